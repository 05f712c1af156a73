// What the training job logged of itself: loss, accuracy, learning rate; one chart for each tag.

import { useEffect, useMemo, useState } from "preact/hooks";
import { client, records, remembered, useReport, useSchema } from "../data/store";
import type { Scalar } from "../data/tables";
import type { TableOf } from "../data/types";
import { number, numberTicks, thousands, time, timeTicks } from "../format";
import { Chart, type ChartBand, type ChartSeries } from "../parts/chart";
import { Empty, Failed } from "../parts/empty";
import { besideOneAnother } from "../parts/series";
import { byGroup, smoothed, type Curve } from "../parts/smooth";
import { remember, route } from "../router";
import type { ViewProps } from ".";
import "../parts/quiet.css";
import "./hardware.css";

const CALLBACK = `model.fit(…, callbacks=[keras.callbacks.TensorBoard("logs")])
strobe serve logs`;

export default function Scalars({ run }: ViewProps) {
  const { value: schema, error } = useSchema(run);
  const known = schema?.some((it) => it.name === "scalar") ?? null;
  const { rows, failed } = useScalars(known ? run : null);
  const report = useReport(run).value;
  if (error ?? failed) return <Failed error={(error ?? failed)!} />;
  if (known === false || rows?.length === 0) {
    return (
      <div class="pad">
        <h1>Scalars</h1>
        <Empty command={CALLBACK}>
          There are no event files with this profile. The TensorBoard callback of Keras writes them,
          as do tf.summary and PyTorch's SummaryWriter; the log folder is then opened with the
          profile in it:
        </Empty>
      </div>
    );
  }
  if (!rows) {
    return (
      <div class="pad" aria-busy="true">
        <div class="skeleton coming-title">…</div>
        <div class="section skeleton hardware-room">…</div>
      </div>
    );
  }
  return <Curves rows={rows} window={report ? report.run.window_ms * 1e9 : null} />;
}

const PAGE = 100_000;

/** All rows, however many pages they are. */
function useScalars(run: number | null): { rows: Scalar[] | null; failed: Error | null } {
  const [rows, setRows] = useState<Scalar[] | null>(null);
  const [failed, setFailed] = useState<Error | null>(null);
  useEffect(() => {
    if (run === null) return;
    let wanted = true;
    const load = async () => {
      // An exported file has the first page, which is all of it.
      const first = await remembered<TableOf<"scalar">>(`runs/${run}/tables/scalar`);
      const all = records(first);
      while (wanted && client.live && all.length < first.total) {
        const page = `runs/${run}/tables/scalar?offset=${all.length}&limit=${PAGE}`;
        const more = records(await client.json<TableOf<"scalar">>(page));
        if (more.length === 0) break;
        for (const it of more) all.push(it);
      }
      if (!wanted) return;
      setRows(all);
    };
    load().catch((error: Error) => wanted && setFailed(error));
    return () => {
      wanted = false;
    };
  }, [run]);
  return { rows, failed };
}

type Axis = "step" | "time";

function Curves({ rows, window }: { rows: Scalar[]; window: number | null }) {
  const { params } = route.value;
  const weight = Math.min(Math.max(Number.parseFloat(params["smooth"] ?? "0.6") || 0, 0), 0.99);
  const axis: Axis = params["x"] === "time" ? "time" : "step";
  const filter = params["filter"] ?? "";
  // A run that began again from a checkpoint wrote these once more.
  const kept = useMemo(() => rows.filter((it) => !it.superseded), [rows]);
  const names = useMemo(() => [...new Set(kept.map((it) => it.run))].sort(), [kept]);
  const groups = useMemo(() => {
    const wanted = filter.toLowerCase();
    return byGroup(kept.filter((it) => it.tag.toLowerCase().includes(wanted)));
  }, [kept, filter]);
  const tags = groups.reduce((sum, [, list]) => sum + list.length, 0);
  return (
    <div class="pad scalars">
      <h1>
        {thousands(tags)} {tags === 1 ? "tag" : "tags"} of {names.length}{" "}
        {names.length === 1 ? "log" : "logs"}
      </h1>
      <div class="controls">
        <input
          type="search"
          placeholder="Filter tags"
          aria-label="Filter tags"
          value={filter}
          onInput={(it) => remember({ filter: it.currentTarget.value })}
        />
        <span role="group" aria-label="Horizontal axis">
          <button aria-pressed={axis === "step"} onClick={() => remember({ x: null })}>
            By step
          </button>{" "}
          <button aria-pressed={axis === "time"} onClick={() => remember({ x: "time" })}>
            By time
          </button>
        </span>
        <label>
          Smoothing
          <input
            type="range"
            min="0"
            max="0.99"
            step="0.01"
            value={String(weight)}
            onInput={(it) => remember({ smooth: it.currentTarget.value })}
          />
          <span class="number">{weight.toFixed(2)}</span>
        </label>
        <span class="faint">
          {weight > 0
            ? "Exponential moving average; what was logged is faint behind it."
            : "As logged."}{" "}
          {rows.length > kept.length &&
            `${thousands(rows.length - kept.length)} points that were written again later are left out.`}
        </span>
      </div>
      <div class="legend">
        {names.map((it, at) => (
          <span key={it}>
            <i class="swatch" style={{ backgroundColor: `var(--series-${(at % 6) + 1})` }} />
            {it === "." ? "the log folder itself" : it}
          </span>
        ))}
      </div>
      {tags === 0 && <p class="faint">No tag contains “{filter}”.</p>}
      {groups.map(([group, list]) => (
        <section key={group} class="section" aria-label={group || "Tags without a group"}>
          {groups.length > 1 && <h2>{group || "without a group"}</h2>}
          <div class="multiples">
            {list.map(([tag, curves]) => (
              <TagChart
                key={tag}
                tag={tag}
                curves={curves}
                names={names}
                axis={axis}
                weight={weight}
                window={window}
              />
            ))}
          </div>
        </section>
      ))}
    </div>
  );
}

interface TagChartProps {
  tag: string;
  curves: Curve[];
  names: string[];
  axis: Axis;
  weight: number;
  window: number | null;
}

function TagChart({ tag, curves, names, axis, weight, window }: TagChartProps) {
  // Time is the trace's where that is known, else since the first point of this tag.
  const traced = curves.every((it) => it.rows.every((row) => row.time_ps !== null));
  const { x, series } = useMemo(() => {
    const first = Math.min(
      ...curves.flatMap((it) => it.rows.map((row) => row.wall_unix_ns ?? Infinity)),
    );
    const at = (row: Scalar): number | null => {
      if (axis === "step") return row.step;
      if (traced) return row.time_ps;
      return row.wall_unix_ns === null ? null : (row.wall_unix_ns - first) * 1000;
    };
    const lines = curves.map((curve) => {
      const rows = curve.rows.filter((row) => at(row) !== null);
      rows.sort((a, b) => at(a)! - at(b)!);
      return { run: curve.run, x: rows.map((row) => at(row)!), y: rows.map((row) => row.value) };
    });
    const raw = besideOneAnother(lines);
    const soft =
      weight > 0
        ? besideOneAnother(lines.map((it) => ({ x: it.x, y: smoothed(it.y, weight) })))
        : raw;
    const made: ChartSeries[] = [];
    lines.forEach((it, n) => {
      const colour = `series-${(names.indexOf(it.run) % 6) + 1}`;
      const label = it.run === "." ? tag : it.run;
      const few = it.x.length < 2;
      if (weight > 0) {
        const behind = { label: `${label}, as logged`, values: raw.values[n]!, colour };
        made.push({ ...behind, faint: true, width: 1, silent: true, spans: true });
      }
      made.push({
        label,
        values: soft.values[n]!,
        spans: true,
        colour,
        as: few ? "points" : "line",
        dashed: names.indexOf(it.run) >= 6,
      });
    });
    return { x: raw.x, series: made };
  }, [curves, names, axis, weight, traced]);
  const bands: ChartBand[] =
    axis === "time" && traced && window ? [{ from: 0, to: window, label: "captured" }] : [];
  const all = curves.flatMap((it) => it.rows.flatMap((row) => row.value ?? []));
  const finite = all.filter(Number.isFinite);
  const points = curves.reduce((sum, it) => sum + it.rows.length, 0);
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  return (
    <section class="multiple" aria-label={tag}>
      <h2>
        {tag}
        {points > finite.length && (
          <span class="legend">{thousands(points - finite.length)} points are no number (NaN)</span>
        )}
      </h2>
      <Chart
        label={`${tag} by ${axis}`}
        summary={`${tag}: ${thousands(points)} points from ${number(low)} to ${number(high)}`}
        summaryHidden
        x={x}
        series={series}
        height={176}
        group={`scalars ${axis}`}
        range={{ min: low - room, max: high + room }}
        bands={bands}
        ticksX={axis === "time" ? timeTicks : numberTicks}
        whole={axis === "step"}
        textX={axis === "time" ? time : (it) => `step ${thousands(it)}`}
        textY={number}
      />
    </section>
  );
}
