// A chart of lines, areas or bars over one axis, drawn by uPlot in the colours of the theme.
// Loaded with the views that need it. The arrow keys read its points, Enter opens one.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { number, numberTicks, UNKNOWN } from "../format";
import { colour, theme } from "../theme";
import { aligned } from "./stack";
import "./chart.css";

export interface ChartSeries {
  label: string;
  values: (number | null)[];
  /** A token of the design: `compute`, `accent`. */
  colour: string;
  as?: "line" | "steps" | "bars" | "points";
  /** Between the line and the axis. */
  filled?: boolean;
  /** Unknown is drawn as unknown. */
  hatched?: boolean;
  dashed?: boolean;
  width?: number;
  faint?: boolean;
  /** Goes on over places where only others have a point. */
  spans?: boolean;
  /** Drawn, but said neither in the tooltip nor to screen readers. */
  silent?: boolean;
}

/** A part of the axis with a meaning: warm-up, the captured window. */
export interface ChartBand {
  from: number;
  to: number;
  label?: string;
  strength?: "weak" | "strong";
}

export interface ChartMark {
  x: number;
  /** Where on the other axis; at the top if absent. */
  y?: number;
}

export interface ChartProps {
  /** What it shows, for screen readers. */
  label: string;
  /** What one sees in it, in words: under the chart for all, or only for screen readers. */
  summary: ComponentChildren;
  summaryHidden?: boolean;
  x: number[];
  series: ChartSeries[];
  /** Values of one x lie on top of each other, the first at the bottom. */
  stacked?: boolean;
  height?: number;
  ticksX?: (values: number[]) => string[];
  ticksY?: (values: number[]) => string[];
  textX?: (value: number) => string;
  textY?: (value: number) => string;
  /** x counts things: no tick between two. */
  whole?: boolean;
  range?: { min?: number; max?: number };
  rangeX?: { min: number; max: number };
  bands?: ChartBand[];
  marks?: ChartMark[];
  /** Further lines of the tooltip. */
  detail?: (at: number) => string | null;
  onPick?: (at: number) => void;
  /** What picking does, as a hint: "Enter opens it on the timeline". */
  pickHint?: string;
  /** Charts of one group share the cursor. */
  group?: string;
}

export function Chart(props: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const [at, setAt] = useState<number | null>(null);
  const [left, setLeft] = useState(0);
  const { x, series, stacked = false, height = 160 } = props;
  const data = useMemo(() => aligned(x, series, stacked), [x, series, stacked]);
  const shade = theme.value;

  useEffect(() => {
    const target = box.current;
    if (!target) return;
    const made = new uPlot(
      options(latest, target.clientWidth, height, (index, px) => {
        setAt(index);
        setLeft(px);
      }),
      data,
      target,
    );
    plot.current = made;
    const watch = new ResizeObserver(() => {
      if (target.clientWidth > 0) made.setSize({ width: target.clientWidth, height });
    });
    watch.observe(target);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
    // What is drawn depends on the shape of the series and on the theme; data alone is exchanged.
  }, [shade, height, shape(props)]);
  useEffect(() => {
    plot.current?.setData(data);
  }, [data, props.bands, props.marks]);

  const textX = props.textX ?? number;
  const textY = props.textY ?? number;
  const said = series.filter((it) => !it.silent);
  const point = at !== null && at < x.length ? at : null;
  const lines =
    point === null
      ? []
      : said
          .map((it) => ({ it, value: it.values[point] ?? null }))
          .filter(({ it, value }) => !(it.spans && value === null))
          .filter(({ value }) => !stacked || (value !== null && value !== 0));
  const detail = point === null ? null : (props.detail?.(point) ?? null);
  const spoken =
    point === null
      ? "arrow keys read the points"
      : [
          textX(x[point]!),
          ...lines.map(({ it, value }) => `${it.label} ${value === null ? UNKNOWN : textY(value)}`),
          detail,
        ]
          .filter(Boolean)
          .join(", ");

  const move = (to: number) => {
    const made = plot.current;
    if (!made || x.length === 0) return;
    const index = Math.min(Math.max(to, 0), x.length - 1);
    made.setCursor({ left: made.valToPos(x[index]!, "x"), top: 10 });
  };
  const keys: Record<string, () => void> = {
    ArrowRight: () => move(point === null ? 0 : point + 1),
    ArrowLeft: () => move(point === null ? x.length - 1 : point - 1),
    Home: () => move(0),
    End: () => move(x.length - 1),
    Enter: () => point !== null && props.onPick?.(point),
  };

  return (
    <figure class="chart">
      <div
        ref={box}
        class={props.onPick ? "plot pickable" : "plot"}
        style={{ height: `${height}px` }}
        role="slider"
        tabIndex={0}
        aria-label={props.pickHint ? `${props.label}. ${props.pickHint}` : props.label}
        aria-valuemin={0}
        aria-valuemax={Math.max(x.length - 1, 0)}
        aria-valuenow={point ?? 0}
        aria-valuetext={spoken}
        onKeyDown={(it) => {
          const act = keys[it.key];
          if (!act) return;
          it.preventDefault();
          act();
        }}
        onClick={() => point !== null && props.onPick?.(point)}
      >
        {point !== null && (
          <div
            class="tooltip"
            aria-hidden="true"
            style={
              left > (box.current?.clientWidth ?? 0) / 2
                ? { right: `${(box.current?.clientWidth ?? 0) - left + 12}px` }
                : { left: `${left + 12}px` }
            }
          >
            <b>{textX(x[point]!)}</b>
            {lines.map(({ it, value }) => (
              <div key={it.label} class="line">
                <span>
                  <i
                    class={`swatch ${it.hatched ? "hatched" : ""}`}
                    style={{ backgroundColor: `var(--${it.colour})` }}
                  />{" "}
                  {it.label}
                </span>
                <span>{value === null ? UNKNOWN : textY(value)}</span>
              </div>
            ))}
            {detail && <div class="faint">{detail}</div>}
          </div>
        )}
      </div>
      <figcaption class={props.summaryHidden ? "visually-hidden" : "summary"}>
        {props.summary}
      </figcaption>
    </figure>
  );
}

/** What needs the plot to be made anew. */
const shape = (it: ChartProps): string =>
  JSON.stringify([
    it.series.map((one) => [one.label, one.colour, one.as, one.filled, one.faint]),
    it.stacked,
    it.range,
    it.rangeX,
    it.group,
    it.bands?.some((band) => band.label),
  ]);

function options(
  latest: { current: ChartProps },
  width: number,
  height: number,
  onCursor: (at: number | null, left: number) => void,
): uPlot.Options {
  const props = latest.current;
  const drawn = props.stacked ? props.series.slice().reverse() : props.series;
  const font = `11px ${colour("font")}`;
  const axis: uPlot.Axis = {
    stroke: colour("faint"),
    font,
    grid: { stroke: colour("line"), width: 1 },
    ticks: { show: false },
  };
  const { min, max } = props.range ?? {};
  return {
    width: Math.max(width, 40),
    height,
    padding: [props.bands?.some((it) => it.label) ? 18 : 8, 16, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: false, y: false },
      points: { show: !props.stacked, size: 6 },
      ...(props.group ? { sync: { key: props.group, setSeries: false } } : {}),
    },
    scales: {
      x: {
        time: false,
        // From the data itself: of a single point, uPlot would make a hundred.
        range: () => {
          const { rangeX, x, series } = latest.current;
          if (rangeX) return [rangeX.min, rangeX.max];
          const [low, high] = [x[0], x.at(-1)];
          if (low === undefined || high === undefined) return [0, 1];
          const bars = series.some((it) => it.as === "bars");
          const room = bars ? 0.6 : low === high ? 1 : 0;
          return [low - room, high + room];
        },
      },
      y: {
        range: (_, low, high) => {
          const from = min ?? Math.min(low ?? 0, 0);
          const to =
            max ?? (high === null || high <= from ? from + 1 : high + (high - from) * 0.06);
          return [from, to];
        },
      },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 24,
        gap: 4,
        ...(props.whole ? { incrs: WHOLE } : {}),
        values: (_, splits) => (latest.current.ticksX ?? numberTicks)(splits),
      },
      {
        ...axis,
        size: 60,
        gap: 6,
        space: 28,
        values: (_, splits) => (latest.current.ticksY ?? numberTicks)(splits),
      },
    ],
    series: [{}, ...drawn.map((it) => line(it))],
    hooks: {
      drawClear: [(plot) => bands(plot, latest.current.bands ?? [])],
      draw: [
        (plot) => {
          labels(plot, latest.current.bands ?? [], font);
          marks(plot, latest.current.marks ?? []);
        },
      ],
      setCursor: [
        (plot) => {
          const index = plot.cursor.idx ?? null;
          const inside = (plot.cursor.left ?? -1) >= 0;
          const over = plot.over.offsetLeft + (plot.cursor.left ?? 0);
          onCursor(inside ? index : null, over);
        },
      ],
    },
  };
}

const WHOLE = [1, 2, 5].flatMap((it) => [0, 1, 2, 3, 4, 5, 6, 7].map((ten) => it * 10 ** ten));
WHOLE.sort((a, b) => a - b);

function line(it: ChartSeries): uPlot.Series {
  const paint = colour(it.colour);
  const area = it.as === "bars" || it.filled;
  const fill = it.hatched ? hatch(paint) : it.as === "line" || !it.as ? `${paint}22` : paint;
  const series: uPlot.Series = {
    label: it.label,
    stroke: it.faint ? `${paint}55` : paint,
    width: it.as === "bars" || (it.as === "steps" && it.filled) ? 0 : (it.width ?? 1.5),
    points: it.as === "points" ? { show: true, size: 6, fill: paint } : { show: false },
    spanGaps: it.spans ?? false,
  };
  if (area) series.fill = fill;
  if (it.dashed) series.dash = [4, 3];
  if (it.as === "bars") series.paths = uPlot.paths.bars!({ size: [0.8, 48] });
  if (it.as === "steps") series.paths = uPlot.paths.stepped!({ align: 1 });
  if (it.as === "points") series.paths = () => null;
  return series;
}

function hatch(paint: string): CanvasPattern | string {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const on = tile.getContext("2d");
  if (!on) return paint;
  on.fillStyle = paint;
  on.fillRect(0, 0, 6, 6);
  on.strokeStyle = colour("strong-line");
  on.beginPath();
  for (const shift of [-6, 0, 6]) {
    on.moveTo(shift, 6);
    on.lineTo(shift + 6, 0);
  }
  on.stroke();
  return on.createPattern(tile, "repeat") ?? paint;
}

function bands(plot: uPlot, list: ChartBand[]): void {
  const { ctx, bbox } = plot;
  ctx.save();
  for (const band of list) {
    const edge = (value: number) =>
      Math.min(Math.max(plot.valToPos(value, "x", true), bbox.left), bbox.left + bbox.width);
    const [from, to] = [edge(band.from), edge(band.to)];
    if (to <= from) continue;
    ctx.fillStyle = band.strength === "weak" ? colour("sunken") : colour("raised");
    ctx.fillRect(from, bbox.top, Math.max(to - from, 1), bbox.height);
  }
  ctx.restore();
}

/** Above the plot, where nothing is drawn over them. */
function labels(plot: uPlot, list: ChartBand[], font: string): void {
  const { ctx, bbox } = plot;
  const dot = devicePixelRatio;
  ctx.save();
  ctx.font = font.replace("11px", `${11 * dot}px`);
  ctx.textBaseline = "top";
  ctx.textAlign = "left";
  ctx.fillStyle = colour("faint");
  for (const { from, label } of list) {
    if (!label) continue;
    const wide = ctx.measureText(label).width;
    const left = Math.max(plot.valToPos(from, "x", true), bbox.left) + 4 * dot;
    const at = Math.min(left, bbox.left + bbox.width - wide - 2 * dot);
    ctx.fillText(label, at, bbox.top - 14 * dot);
  }
  ctx.restore();
}

function marks(plot: uPlot, list: ChartMark[]): void {
  const { ctx, bbox } = plot;
  const size = 4 * devicePixelRatio;
  ctx.save();
  ctx.fillStyle = colour("text");
  for (const mark of list) {
    const x = plot.valToPos(mark.x, "x", true);
    const y = mark.y === undefined ? bbox.top : plot.valToPos(mark.y, "y", true) - size * 1.2;
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x - size, y - size);
    ctx.lineTo(x + size, y - size);
    ctx.lineTo(x, y + size * 0.6);
    ctx.fill();
  }
  ctx.restore();
}
