// Samples of the machine, the process and its GPUs, under one axis with the steps of the run.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { records, useReport, useTable } from "../data/store";
import type { Hardware as HardwareRow, RunStep } from "../data/tables";
import type { CounterTrack } from "../data/types";
import { time, timeTicks } from "../format";
import { Chart, type ChartBand } from "../parts/chart";
import { groupsOf, shortName, unitOf, type Group } from "../parts/counters";
import { DataTable, type DataColumn } from "../parts/data-table";
import { Empty, Failed } from "../parts/empty";
import { litRows } from "../parts/evidence";
import { FindingsAbout } from "../parts/finding-short";
import { onOneAxis, useCounters } from "../parts/series";
import { narrowed } from "../data/narrowing";
import { go, remember, route } from "../router";
import type { ViewProps } from ".";
import "../parts/quiet.css";
import "./hardware.css";

export default function Hardware({ run }: ViewProps) {
  const { value: report, error } = useReport(run);
  const { value: table, error: failed } = useTable(run, "hardware");
  if (error ?? failed) return <Failed error={(error ?? failed)!} />;
  if (!report || !table) {
    return (
      <div class="pad" aria-busy="true">
        <div class="skeleton coming-title">…</div>
        <div class="section skeleton hardware-room">…</div>
      </div>
    );
  }
  const samples = records(table);
  const hosts = [...new Set(samples.map((it) => it.host))];
  const host = hosts.find((it) => it === narrowed.value.host) ?? hosts[0];
  const cpu = samples.find(
    (it) => it.host === host && it.step === null && it.counter === "cpu/all",
  );
  return (
    <div class="pad hardware-view">
      <h1>
        {cpu && cpu.mean !== null
          ? `${unitOf("cpu/all").text(cpu.mean)} of the cores are busy in steps.`
          : "Hardware"}
      </h1>
      <FindingsAbout
        report={report}
        rules={
          /^(cpu-contention|clock-throttled|memory-pressure|input-cpu-starved|profiler-overhead)$/
        }
      />
      {host === undefined ? (
        <Empty command="strobe run -- python train.py">
          There are no samples with this profile: what the cores, memory, disks, network and GPUs
          did is not known. strobe run takes them, at less than a hundredth of a core:
        </Empty>
      ) : (
        <>
          {hosts.length > 1 && <p class="faint">Of {host}; the bar above shows others.</p>}
          <Multiples run={run} host={host} window={report.run.window_ms * 1e9} samples={samples}>
            <Steps run={run} host={host} samples={samples} docs={table.columns} />
          </Multiples>
        </>
      )}
    </div>
  );
}

interface MultiplesProps {
  run: number;
  host: string;
  window: number;
  samples: HardwareRow[];
  children: ComponentChildren;
}

function Multiples({ run, host, window, samples, children }: MultiplesProps) {
  const names = useMemo(() => new Set(samples.map((it) => it.counter)), [samples]);
  const { value: counters, error } = useCounters(run);
  const own = useMemo(
    () => counters?.filter((it) => names.has(it.name) && (it.host ?? host) === host) ?? null,
    [counters, names, host],
  );
  const runSteps = useTable(run, "run_step").value;
  const steps = useTable(run, "step").value;
  const whole = route.value.params["span"] !== "capture";
  const first = own && own.length > 0 ? Math.min(...own.map((it) => it.first_ps)) : 0;
  const last = own && own.length > 0 ? Math.max(...own.map((it) => it.last_ps)) : window;
  const range = whole
    ? { min: Math.min(first, 0), max: Math.max(last, window) }
    : { min: -window * 0.05, max: window * 1.05 };
  const bands = useMemo<ChartBand[]>(() => {
    const captured: ChartBand = { from: 0, to: window, strength: "weak" };
    const own = steps ? records(steps).filter((it) => it.host === host) : [];
    if (whole || own.length > 100) return [captured];
    // Every other step, so that their borders can be seen.
    const shaded = own
      .filter((it) => it.step % 2 === 0)
      .map((it) => ({ from: it.start_ps, to: it.start_ps + it.dur_ps }));
    return [captured, ...shaded];
  }, [steps, host, whole, window]);
  const lit = litRows(route.value.params, "hardware");
  const litCounters = new Set([...lit].map((it) => samples[it]?.counter ?? ""));
  if (error) {
    return (
      <>
        <p class="faint">{error.message}</p>
        {children}
      </>
    );
  }
  // What comes below waits too, so that nothing jumps.
  if (!own || !runSteps) {
    return (
      <div key="coming" class="section skeleton hardware-room">
        …
      </div>
    );
  }
  const groups = groupsOf(own.map((it) => it.name));
  return (
    <>
      <div class="controls">
        <span role="group" aria-label="Part of the run">
          <button aria-pressed={whole} onClick={() => remember({ span: null })}>
            The whole run
          </button>{" "}
          <button aria-pressed={!whole} onClick={() => remember({ span: "capture" })}>
            The capture
          </button>
        </span>
        <span class="faint">
          {whole ? "The captured part is shaded." : "Every other step of the capture is shaded."}{" "}
          Time is since the start of the capture.
        </span>
      </div>
      <div class="multiples">
        {runSteps.total > 0 && (
          <StepTimes
            rows={records(runSteps)}
            bands={bands}
            range={range}
            lit={route.value.params["table"] === "run_step"}
          />
        )}
        {groups.map((it) => (
          <Multiple
            key={it.title}
            group={it}
            tracks={own}
            bands={bands}
            range={range}
            lit={it.counters.some((name) => litCounters.has(name))}
          />
        ))}
      </div>
      {children}
    </>
  );
}

interface MultipleProps {
  group: Group;
  tracks: CounterTrack[];
  bands: ChartBand[];
  range: { min: number; max: number };
  lit: boolean;
}

function Multiple({ group, tracks, bands, range, lit }: MultipleProps) {
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    if (lit) box.current?.scrollIntoView({ block: "nearest" });
  }, [lit]);
  const { x, series } = useMemo(() => {
    const own = group.counters.flatMap((name) => {
      const track = tracks.find((it) => it.name === name);
      return track ? [{ name, track }] : [];
    });
    const { x, values } = onOneAxis(own.map((it) => ({ x: it.track.time_ps, y: it.track.mean })));
    return {
      x,
      series: own.map(({ name }, at) => ({
        label: shortName(name),
        values: values[at]!,
        colour: group.alike ? "series-1" : `series-${(at % 6) + 1}`,
        dashed: !group.alike && at > 0,
        faint: group.alike ?? false,
      })),
    };
  }, [group, tracks]);
  const unit = unitOf(group.counters[0]!);
  if (series.length === 0) return null;
  const all = series.flatMap((it) => it.values).filter((it) => it !== null);
  const spoken = `${group.title}: from ${unit.text(Math.min(...all))} to ${unit.text(Math.max(...all))}`;
  return (
    <section class={lit ? "multiple lit" : "multiple"} aria-label={group.title} ref={box}>
      <h2>
        {group.title}
        {series.length > 1 && !group.alike && (
          <span class="legend">
            {series.map((it) => (
              <span key={it.label}>
                <i class="swatch" style={{ backgroundColor: `var(--${it.colour})` }} />
                {it.label}
              </span>
            ))}
          </span>
        )}
      </h2>
      <Chart
        label={`${group.title} over time`}
        summary={spoken}
        summaryHidden
        x={x}
        series={series}
        height={104}
        group="hardware"
        bands={bands}
        rangeX={range}
        {...(unit.max === undefined ? {} : { range: { min: 0, max: unit.max * 1.02 } })}
        ticksX={timeTicks}
        ticksY={unit.ticks}
        textX={time}
        textY={unit.text}
      />
    </section>
  );
}

interface StepTimesProps {
  rows: RunStep[];
  bands: ChartBand[];
  range: { min: number; max: number };
  lit: boolean;
}

/** By the process's own clock: also the steps before and after the capture. */
function StepTimes({ rows, bands, range, lit }: StepTimesProps) {
  const { x, series, of } = useMemo(() => {
    const of = rows.filter((it) => it.dur_ps !== null).sort((a, b) => a.start_ps - b.start_ps);
    const values = of.map((it) => it.dur_ps);
    return {
      of,
      x: of.map((it) => it.start_ps),
      series: [{ label: "step", values, colour: "series-1", as: "steps" as const }],
    };
  }, [rows]);
  // The first step traces and compiles; it would flatten all others.
  const sorted = of.map((it) => it.dur_ps!).sort((a, b) => a - b);
  const high = sorted[Math.floor((sorted.length - 1) * 0.98)] ?? 1;
  const cut = (sorted.at(-1) ?? 0) > high * 3;
  return (
    <section class={lit ? "multiple lit" : "multiple"} aria-label="Time of each step">
      <h2>
        Time of each step{" "}
        {cut && <span class="legend">the longest, {time(sorted.at(-1))}, goes beyond the top</span>}
      </h2>
      <Chart
        label="Time of each step of the run"
        summary={`${of.length} steps of the run, the longest ${time(sorted.at(-1))}`}
        summaryHidden
        x={x}
        series={series}
        height={104}
        group="hardware"
        bands={bands}
        rangeX={range}
        range={cut ? { min: 0, max: high * 1.5 } : { min: 0 }}
        ticksX={timeTicks}
        ticksY={timeTicks}
        textX={time}
        textY={time}
        detail={(at) => {
          const it = of[at];
          return it
            ? `step ${it.step}, profiler ${it.profiled === "yes" ? "on" : it.profiled === "no" ? "off" : "starting or stopping"}`
            : null;
        }}
      />
    </section>
  );
}

interface StepRow {
  step: number;
  dur_ps: number | null;
  start_ps: number | null;
  means: Map<string, number | null>;
  n: number;
}

/** In a table of steps: what matters most often. */
const SHOWN =
  /^(cpu\/(all|process|runnable|clock)|memory\/process|disk\/(read|write)|process\/read|network\/in|pressure\/(cpu|io)|gpu \d+\/(busy|sm_clock|power|memory))$/;

function Steps({
  run,
  host,
  samples,
  docs,
}: {
  run: number;
  host: string;
  samples: HardwareRow[];
  docs: { name: string; doc: string }[];
}) {
  const steps = useTable(run, "step").value;
  const { rows, columns } = useMemo(() => {
    const of = new Map(
      (steps ? records(steps) : []).filter((it) => it.host === host).map((it) => [it.step, it]),
    );
    const by = new Map<number, StepRow>();
    const names = new Set<string>();
    for (const it of samples) {
      if (it.host !== host || it.step === null) continue;
      const step = of.get(it.step);
      let row = by.get(it.step);
      if (!row) {
        row = {
          step: it.step,
          dur_ps: step?.dur_ps ?? null,
          start_ps: step?.start_ps ?? null,
          means: new Map(),
          n: 0,
        };
        by.set(it.step, row);
      }
      row.means.set(it.counter, it.mean);
      row.n = Math.max(row.n, it.n);
      if (SHOWN.test(it.counter)) names.add(it.counter);
    }
    const columns: DataColumn<StepRow>[] = [
      { key: "step", title: "step", kind: "count", value: (it) => it.step },
      { key: "dur", title: "time", kind: "time", value: (it) => it.dur_ps },
      ...[...names].map((name): DataColumn<StepRow> => ({
        key: name,
        title: `${name}${unitOf(name).name && unitOf(name).kind === "number" ? `, ${unitOf(name).name}` : unitOf(name).name === "bytes/s" ? " a second" : ""}`,
        doc: "Mean of the samples in the step",
        kind: unitOf(name).kind,
        value: (it) => rounded(it.means.get(name) ?? null, unitOf(name).kind),
      })),
      {
        key: "n",
        title: "samples",
        doc: docs.find((it) => it.name === "n")?.doc ?? "",
        kind: "count",
        value: (it) => it.n,
      },
    ];
    return { rows: [...by.values()].sort((a, b) => a.step - b.step), columns };
  }, [steps, samples, host]);
  if (rows.length === 0) return null;
  return (
    <section class="section">
      <h2>Samples in each step</h2>
      <div class="scrolls" tabIndex={0} role="group" aria-label="Samples by step, scrolls sideways">
        <DataTable
          label="Samples in each step"
          columns={columns}
          rows={rows}
          onOpen={(it) => {
            if (it.start_ps === null) return;
            go("timeline", { from: it.start_ps, to: it.start_ps + (it.dur_ps ?? 0) });
          }}
        />
      </div>
    </section>
  );
}

/** A mean has digits that mean nothing. */
function rounded(value: number | null, kind: string): number | null {
  if (value === null || kind === "share") return value;
  return kind === "bytes" ? Math.round(value) : Number(value.toPrecision(4));
}
