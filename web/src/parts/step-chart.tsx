// The time of each step by category, with warm-up and slow steps marked; a step opens its timeline.

import { useMemo } from "preact/hooks";
import { categoryName, time, timeTicks } from "../format";
import { narrowed, within } from "../data/narrowing";
import type { Step, StepOutlier, StepTime } from "../data/tables";
import { go } from "../router";
import { Chart, type ChartBand } from "./chart";
import { partsOf, placesOf, runsOf } from "./steps";
import "./quiet.css";

interface StepChartProps {
  steps: Step[];
  times: StepTime[];
  outliers: StepOutlier[];
  height?: number;
}

/** More than so many bars are drawn as areas. */
const MANY = 240;

export default function StepChart({ steps, times, outliers, height = 168 }: StepChartProps) {
  const places = useMemo(() => placesOf(times), [times]);
  const { steps: range } = narrowed.value;
  const place = places.find((it) => within(narrowed.value, it)) ?? { host: "", device: "" };
  const made = useMemo(() => {
    const isShown = (it: StepTime) => within({ ...place, steps: range }, it);
    const rows = times.filter(isShown);
    const of = new Map(steps.filter((it) => it.host === place.host).map((it) => [it.step, it]));
    const slow = new Map(
      outliers.filter((it) => it.host === place.host).map((it) => [it.step, it]),
    );
    const series = partsOf(rows).map((it) => ({
      label: categoryName(it.category),
      values: it.values,
      colour: it.category,
      as: rows.length > MANY ? ("steps" as const) : ("bars" as const),
      filled: true,
      hatched: it.category === "idle",
    }));
    const label = (text: string) => (it: { from: number; to: number }) => ({ ...it, label: text });
    const step = (it: StepTime) => it.step;
    const bands: ChartBand[] = [
      ...runsOf(rows, (it) => of.get(it.step)?.warmup ?? false, step).map(label("warm-up")),
      ...runsOf(rows, (it) => of.get(it.step)?.complete === false, step).map(label("cut off")),
    ];
    const marks = rows
      .filter((it) => slow.has(it.step))
      .map((it) => ({ x: it.step, y: it.dur_ps ?? 0 }));
    return { rows, of, slow, series, bands, marks, x: rows.map(step) };
  }, [steps, times, outliers, place.host, place.device, range?.first, range?.last]);

  const ordinary = made.rows.filter((it) => it.counts).length;
  const warm = made.rows.filter((it) => made.of.get(it.step)?.warmup).length;
  const slow = [...made.slow.values()];
  return (
    <>
      <div class="legend">
        {places.length > 1 && (
          <b>
            {place.host} {place.device}
          </b>
        )}
        {made.series.map((it) => (
          <span key={it.label}>
            <i
              class={`swatch ${it.hatched ? "hatched" : ""}`}
              style={{ backgroundColor: `var(--${it.colour})` }}
            />
            {it.label}
          </span>
        ))}
        {slow.length > 0 && <span>▾ slow step</span>}
      </div>
      <Chart
        label={`Time of ${made.rows.length} steps by category`}
        summary={
          <>
            {ordinary} steady {ordinary === 1 ? "step" : "steps"}
            {warm > 0 && `, ${warm} of warm-up left out`}
            {slow.length > 0 && `, ${slow.length} slow: ${slowInWords(slow)}`}. Click a step to see
            it on the timeline.
          </>
        }
        x={made.x}
        series={made.series}
        stacked
        whole
        height={height}
        ticksY={timeTicks}
        textX={(it) => stepName(it, made.of.get(it))}
        textY={time}
        bands={made.bands}
        marks={made.marks}
        detail={(at) => {
          const row = made.rows[at];
          if (!row) return null;
          const late = made.slow.get(row.step);
          const kind = made.of.get(row.step);
          return [
            `${time(row.dur_ps)} in all`,
            late &&
              `${late.ratio.toFixed(1)}× an ordinary step${late.name ? `: ${late.name}` : ""}`,
            kind?.warmup && "warm-up, not counted",
            kind?.complete === false && "cut off by the end of the capture",
          ]
            .filter(Boolean)
            .join(" · ");
        }}
        onPick={(at) => {
          const step = made.of.get(made.rows[at]?.step ?? -1);
          if (step) go("timeline", { from: step.start_ps, to: step.start_ps + step.dur_ps });
        }}
        pickHint="Enter opens the step on the timeline"
      />
    </>
  );
}

const stepName = (at: number, step: Step | undefined): string =>
  step?.number !== null && step?.number !== undefined && step.number !== at
    ? `step ${at} (number ${step.number})`
    : `step ${at}`;

function slowInWords(slow: StepOutlier[]): string {
  const which = slow.slice(0, 6).map((it) => it.step);
  const more = slow.length > which.length ? ", …" : "";
  const most = slow.reduce((a, b) => (b.excess_ps > a.excess_ps ? b : a));
  const why = most.name ?? categoryName(most.category);
  const period = most.period ? `, every ${most.period} steps` : "";
  return `steps ${which.join(", ")}${more} (${why}${period})`;
}
