// A query's result as bars by name or as lines over its first column.

import { useEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { SqlResult } from "../data/types";
import { thousands } from "../format";
import { colour, theme } from "../theme";
import { cellOf, colourOf, type ResultColumn, type ResultShape } from "./result-shape";
import { Name } from "./data-table";
import { cellText, type Value } from "./table-rows";
import "./result-chart.css";

const MOST_BARS = 50;

export default function ResultChart({ result, shape }: { result: SqlResult; shape: ResultShape }) {
  return (
    <div class="result-chart" role="region" aria-label="Result as a chart" tabIndex={0}>
      {shape.as === "bars" && (
        <p class="legend">
          {shape.ys.map((it, at) => (
            <span key={it.key}>
              <i class="swatch" style={{ backgroundColor: `var(--${colourOf(it, at)})` }} />{" "}
              {it.name}
            </span>
          ))}
          {result.rows.length > MOST_BARS && (
            <span class="faint">
              the first {MOST_BARS} of {thousands(result.rows.length)} rows
            </span>
          )}
        </p>
      )}
      {shape.as === "bars" ? (
        <Bars result={result} shape={shape} />
      ) : (
        <Lines result={result} shape={shape} />
      )}
    </div>
  );
}

/** How the figures of one chart read: one unit for all of them. */
function useText(result: SqlResult, columns: ResultColumn[]) {
  return useMemo(() => {
    const cells = columns.flatMap((it) => result.rows.map((row) => cellOf(row, it)));
    return cellText({ key: "", kind: columns[0]!.kind, value: (it: Value) => it }, cells);
  }, [result, columns]);
}

function Bars({ result, shape }: { result: SqlResult; shape: ResultShape }) {
  const rows = result.rows.slice(0, MOST_BARS);
  const text = useText(result, shape.ys);
  const xs = useMemo(() => [shape.x], [shape]);
  const name = useText(result, xs);
  const largest = Math.max(
    ...rows.flatMap((row) => shape.ys.map((it) => Math.abs(Number(cellOf(row, it) ?? 0)))),
    Number.MIN_VALUE,
  );
  return (
    <table class="bars" aria-label="Result as bars">
      <thead class="visually-hidden">
        <tr>
          <th scope="col">{shape.x.name}</th>
          {shape.ys.map((it) => (
            <th scope="col" key={it.key}>
              {it.name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, at) => (
          <tr key={at}>
            <th scope="row" title={String(cellOf(row, shape.x) ?? "")}>
              <Name text={name.text(cellOf(row, shape.x))} />
            </th>
            {shape.ys.map((it, y) => {
              const value = cellOf(row, it);
              return (
                <td key={it.key}>
                  <i
                    style={{
                      backgroundColor: `var(--${colourOf(it, y)})`,
                      width: `${(Math.abs(Number(value ?? 0)) / largest) * 80}%`,
                    }}
                  />
                  <span>
                    {text.text(value)} {value !== null && text.unit}
                  </span>
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Lines({ result, shape }: { result: SqlResult; shape: ResultShape }) {
  const box = useRef<HTMLDivElement>(null);
  const y = useText(result, shape.ys);
  const xs = useMemo(() => [shape.x], [shape]);
  const x = useText(result, xs);
  const shade = theme.value;
  useEffect(() => {
    const target = box.current!;
    const axis = {
      stroke: colour("faint"),
      font: `12px ${colour("font")}`,
      grid: { stroke: colour("line"), width: 1 },
      ticks: { show: false },
    };
    const column = (it: ResultColumn) =>
      result.rows.map((row) => {
        const value = cellOf(row, it);
        return value === null ? null : Number(value);
      });
    const few = result.rows.length <= 100;
    const size = () => ({ width: Math.max(target.clientWidth, 100), height: 320 });
    const plot = new uPlot(
      {
        ...size(),
        scales: {
          x: { time: false },
          y: { range: (_, low, high) => [Math.min(0, low), high * 1.05 || 1] },
        },
        axes: [
          {
            ...axis,
            label: shape.x.name + (x.unit ? `, ${x.unit}` : ""),
            labelFont: axis.font,
            labelSize: 16,
            size: 32,
            values: (_, ticks) => ticks.map((it) => x.text(it)),
          },
          { ...axis, size: 72, values: (_, ticks) => ticks.map((it) => `${y.text(it)} ${y.unit}`) },
        ],
        series: [
          { label: shape.x.name, value: (_, it) => x.text(it ?? null) },
          ...shape.ys.map((it, at) => ({
            label: it.name,
            stroke: colour(colourOf(it, at)),
            width: 1.5,
            points: { show: few, size: 4 },
            value: (_: uPlot, value: number | null) =>
              value === null ? y.text(value) : `${y.text(value)} ${y.unit}`,
          })),
        ],
        cursor: { drag: { x: true, y: false } },
      },
      [column(shape.x) as number[], ...shape.ys.map(column)],
      target,
    );
    const watch = new ResizeObserver(() => plot.setSize(size()));
    watch.observe(target);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [result, shape, x, y, shade]);
  return (
    <div
      ref={box}
      class="lines"
      role="img"
      aria-label={`${shape.ys.map((it) => it.name).join(", ")} over ${shape.x.name}, ${result.rows.length} points; the table has the figures`}
    />
  );
}
