// Memory: how full each allocator got, who held it at its fullest, and its level over time.

import { useMemo } from "preact/hooks";
import { records, useReport, useTable } from "../data/store";
import type { Memory as Allocator, MemoryPeak, ProgramMemory } from "../data/tables";
import { bytes, bytesTicks, percent, plain, thousands, time, timeTicks, UNKNOWN } from "../format";
import { Chart } from "../parts/chart";
import { DataTable, type DataColumn } from "../parts/data-table";
import { Empty, Failed } from "../parts/empty";
import { litRows } from "../parts/evidence";
import { FindingsAbout } from "../parts/finding-short";
import { useCounters } from "../parts/series";
import { Treemap, type Area } from "../parts/treemap";
import { link, remember, route, showEvents } from "../router";
import type { ViewProps } from ".";
import "../parts/quiet.css";
import "./memory.css";

export default function Memory({ run }: ViewProps) {
  const { value: report, error } = useReport(run);
  const { value: table, error: failed } = useTable(run, "memory");
  const peaks = useTable(run, "memory_peak").value;
  const programs = useTable(run, "program_memory").value;
  const allocators = useMemo(() => (table ? records(table) : []), [table]);
  const lit = litRows(route.value.params, "memory");
  const wanted = Number.parseInt(route.value.params["allocator"] ?? "", 10);
  if (error ?? failed) return <Failed error={(error ?? failed)!} />;
  if (!report || !table || !peaks || !programs) {
    return (
      <div class="pad" aria-busy="true">
        <div class="skeleton coming-title">…</div>
        <div class="section skeleton memory-room">…</div>
      </div>
    );
  }
  // Without a capacity nobody is full: then the one that holds most.
  const fullest = allocators.reduce((most, it, at) => {
    const than = allocators[most];
    const fuller = (it.peak_share ?? 0) - (than?.peak_share ?? 0);
    return fuller > 0 || (fuller === 0 && it.peak_bytes > (than?.peak_bytes ?? 0)) ? at : most;
  }, 0);
  const at = allocators[wanted] ? wanted : (lit.values().next().value ?? fullest);
  const chosen = allocators[at];
  return (
    <div class="pad memory-view">
      <h1>{chosen ? headline(allocators[fullest]!) : "Memory"}</h1>
      <FindingsAbout report={report} rules={/^memory-/} />
      {chosen ? (
        <>
          <Allocators allocators={allocators} chosen={at} lit={lit} />
          <Level run={run} it={chosen} window={report.run.window_ms * 1e9} />
          <Peak it={chosen} holders={records(peaks)} />
        </>
      ) : report.run.frameworks.includes("torch") ? (
        <Empty command="strobe run -- python train.py">
          No allocator events in this profile. PyTorch's profiler writes them where it is asked to,
          by profile_memory=True; the memory of the whole process is sampled by:
        </Empty>
      ) : (
        <Empty command="TF_ENABLE_ONEDNN_OPTS=1 strobe run -- python train.py">
          No allocator events in this profile. On a GPU, TensorFlow and JAX write them; on a CPU
          only TensorFlow with oneDNN does, and the memory of the whole process is sampled by:
        </Empty>
      )}
      <Resident run={run} window={report.run.window_ms * 1e9} />
      {programs.total > 0 && <Programs rows={records(programs)} columns={programs.columns} />}
    </div>
  );
}

function headline(it: Allocator): string {
  const of =
    it.capacity_bytes === null || it.peak_share === null
      ? ""
      : `, ${percent(it.peak_share)} of ${bytes(it.capacity_bytes)}`;
  return `${it.allocator} peaks at ${bytes(it.peak_bytes)}${of}.`;
}

function growth(it: Allocator): string {
  if (it.growth_bytes_per_step === null) return UNKNOWN;
  const { growth_low_bytes: low, growth_high_bytes: high } = it;
  if (low === null || high === null) return bytes(it.growth_bytes_per_step);
  return low === high ? bytes(low) : `${bytes(low)} to ${bytes(high)}`;
}

interface AllocatorsProps {
  allocators: Allocator[];
  chosen: number;
  lit: Set<number>;
}

function Allocators({ allocators, chosen, lit }: AllocatorsProps) {
  return (
    <section class="section">
      <h2>Allocators</h2>
      <div class="scrolls" tabIndex={0} role="group" aria-label="Allocators, scrolls sideways">
        <table class="quiet" aria-label="Allocators">
          <thead>
            <tr>
              <th>allocator</th>
              <th class="number">peak</th>
              <th>of capacity</th>
              <th class="number">
                <span class="visually-hidden">share</span>
              </th>
              <th>in</th>
              <th
                class="number"
                title="What stays between steps: the lowest level of a step, as a median"
              >
                between steps
              </th>
              <th class="number" title="How much that rises from step to step, in 95 of 100 cases">
                growth a step
              </th>
              <th class="number" title="Bytes taken in a step, given back or not">
                taken a step
              </th>
              <th class="number" title="0 is one piece, as the allocator says">
                fragmentation
              </th>
              <th class="number">blocks taken</th>
            </tr>
          </thead>
          <tbody>
            {allocators.map((it, at) => (
              <tr key={at} class={lit.has(at) ? "lit" : ""}>
                <th scope="row">
                  {allocators.length > 1 ? (
                    <button
                      aria-pressed={at === chosen}
                      onClick={() => remember({ allocator: at, held: null })}
                    >
                      {it.allocator}
                    </button>
                  ) : (
                    <b>{it.allocator}</b>
                  )}{" "}
                  <span class="faint">
                    {it.memory} {it.host}
                  </span>
                </th>
                <td class="number">{bytes(it.peak_bytes)}</td>
                <td>
                  {it.peak_share !== null && (
                    <div class="meter" aria-hidden="true">
                      <i style={{ width: `${it.peak_share * 100}%` }} />
                    </div>
                  )}
                </td>
                <td class="number">
                  {percent(it.peak_share)}{" "}
                  <span class="faint">
                    {it.capacity_bytes !== null && bytes(it.capacity_bytes)}
                  </span>
                </td>
                <td class="peak-step">
                  {it.peak_step === null ? "no step" : `step ${it.peak_step}`}
                </td>
                <td class="number">{bytes(it.floor_bytes)}</td>
                <td class="number">{growth(it)}</td>
                <td class="number">{bytes(it.allocated_bytes_per_step)}</td>
                <td class="number">{percent(it.fragmentation)}</td>
                <td class="number">{thousands(it.n_allocations)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {allocators.some((it) => it.n_unread > 0) && (
        <p class="faint">
          More than a million events of allocators: counts are of the part around the peak.
        </p>
      )}
    </section>
  );
}

/** The counter of an allocator is called after it. */
function Level({ run, it, window }: { run: number; it: Allocator; window: number }) {
  const counters = useCounters(run);
  const line = counters.value?.find((one) => one.name.startsWith(`${it.allocator} `));
  const steps = useTable(run, "step").value;
  const bands = useMemo(
    () =>
      steps
        ? records(steps)
            .filter((step) => step.host === it.host && step.step % 2 === 0)
            .map((step) => ({
              from: step.start_ps,
              to: step.start_ps + step.dur_ps,
              strength: "weak" as const,
            }))
        : [],
    [steps, it.host],
  );
  const series = useMemo(
    () =>
      line
        ? [{ label: "in use", values: line.high, colour: "series-1", as: "steps" as const }]
        : [],
    [line],
  );
  return (
    <section class="section">
      <h2>Level over time</h2>
      {line ? (
        <Chart
          label={`Bytes in use of ${it.allocator} over time`}
          summary={
            <>
              {bytes(it.start_bytes)} at the start, {bytes(it.end_bytes)} at the end, the peak (▾)
              of {bytes(it.peak_bytes)} at {time(it.peak_ps)}. Every other step is shaded.{" "}
              <a
                href={link("timeline", {
                  from: Math.max(it.peak_ps - window / 20, 0),
                  to: it.peak_ps + window / 20,
                })}
              >
                The peak on the timeline
              </a>
            </>
          }
          x={line.time_ps}
          series={series}
          rangeX={{ min: 0, max: Math.max(window, line.last_ps) }}
          bands={bands}
          marks={[{ x: it.peak_ps, y: it.peak_bytes }]}
          ticksX={timeTicks}
          ticksY={bytesTicks}
          textX={time}
          textY={bytes}
        />
      ) : counters.error || counters.value ? (
        <p class="faint">
          {counters.error?.message ??
            `${bytes(it.start_bytes)} at the start, ${bytes(it.end_bytes)} at the end; the profile has no counter of this allocator in between.`}
        </p>
      ) : (
        <div class="skeleton level-room">…</div>
      )}
    </section>
  );
}

const HELD: Record<string, { name: string; short?: string; colour: string; hatched?: boolean }> = {
  op: { name: "an op", colour: "compute" },
  call: { name: "a call", colour: "runtime" },
  before: {
    name: "allocated before the capture: variables and what else lives long",
    short: "before the capture",
    colour: "output",
  },
  reserved: { name: "reserved for temporaries of compiled programs", colour: "compile" },
  small: { name: "many small blocks", colour: "idle" },
  unknown: { name: "unknown", colour: "idle", hatched: true },
};

const nameOf = (it: MemoryPeak): string =>
  it.op ? plain(it.op) : (HELD[it.held_by]?.short ?? HELD[it.held_by]?.name ?? it.held_by);

function areaOf(it: MemoryPeak): Area {
  const parts = it.op ? plain(it.op).split("/") : [];
  const held = HELD[it.held_by];
  const area: Area = {
    path: parts.slice(0, -1),
    name: parts.at(-1) ?? nameOf(it),
    size: it.bytes,
    text: `${bytes(it.bytes)}, ${percent(it.share)}`,
    colour: held?.colour ?? "idle",
  };
  return held?.hatched ? { ...area, hatched: true } : area;
}

const COLUMNS: DataColumn<MemoryPeak>[] = [
  {
    key: "name",
    title: "held by",
    kind: "text",
    value: nameOf,
    cell: (it) =>
      it.event === null ? nameOf(it) : <a href={showEvents([it.event])}>{nameOf(it)}</a>,
  },
  { key: "bytes", title: "bytes", kind: "bytes", value: (it) => it.bytes },
  {
    key: "share",
    title: "share",
    kind: "share",
    value: (it) => it.share,
    bar: (it) => HELD[it.held_by]?.colour ?? null,
  },
  { key: "count", title: "blocks", kind: "count", value: (it) => it.count },
  {
    key: "earlier",
    title: "kept from earlier steps",
    kind: "bytes",
    value: (it) => it.earlier_bytes,
  },
  { key: "region", title: "for", kind: "text", value: (it) => it.region_type },
  {
    key: "shape",
    title: "largest tensor",
    kind: "text",
    value: (it) => [it.data_type, it.shape].filter(Boolean).join(" ") || null,
  },
];

function Peak({ it, holders }: { it: Allocator; holders: MemoryPeak[] }) {
  const litAll = litRows(route.value.params, "memory_peak");
  const own = useMemo(
    () =>
      holders
        .map((one, row) => ({ ...one, row }))
        .filter((one) => one.host === it.host && one.allocator === it.allocator),
    [holders, it.host, it.allocator],
  );
  const areas = useMemo(() => own.map(areaOf), [own]);
  const held = route.value.params["held"];
  const chosen = held === undefined ? null : Number.parseInt(held, 10);
  if (own.length === 0) return null;
  const kinds = [...new Set(own.map((one) => one.held_by))];
  return (
    <section class="section">
      <h2>Who holds the {bytes(it.peak_bytes)} at the peak</h2>
      <div class="legend kinds">
        {kinds.map((kind) => (
          <span key={kind}>
            <i
              class={`swatch ${HELD[kind]?.hatched ? "hatched" : ""}`}
              style={{ backgroundColor: `var(--${HELD[kind]?.colour ?? "idle"})` }}
            />
            {HELD[kind]?.name ?? kind}
          </span>
        ))}
      </div>
      <div class="peak">
        <Treemap
          label={`Who holds the memory of ${it.allocator} at its peak`}
          areas={areas}
          height={320}
          chosen={chosen}
          onChoose={(at) => remember({ held: at })}
        />
        <div class="scrolls" tabIndex={0} role="group" aria-label="Holders, scrolls sideways">
          <DataTable
            label="Holders at the peak"
            columns={COLUMNS}
            rows={own}
            sort={{ key: "bytes", descending: true }}
            marked={(one) => (chosen === null ? litAll.has(one.row) : own[chosen] === one)}
            onOpen={(one) => remember({ held: own.indexOf(one) })}
          />
        </div>
      </div>
    </section>
  );
}

/** Memory of the whole process, where it was sampled beside the run. */
function Resident({ run, window }: { run: number; window: number }) {
  const line = useCounters(run).value?.find((it) => it.name === "memory/process");
  const series = useMemo(
    () =>
      line ? [{ label: "resident", values: line.high, colour: "series-1", filled: true }] : [],
    [line],
  );
  if (!line) return null;
  return (
    <section class="section">
      <h2>Memory of the process tree, as sampled</h2>
      <Chart
        label="Resident memory of the process tree over the run"
        summary={
          <>
            At most {bytes(Math.max(...line.high))}; all samples are in{" "}
            <a href={link("hardware")}>Hardware</a>.
          </>
        }
        x={line.time_ps}
        series={series}
        height={120}
        bands={[{ from: 0, to: window, label: "captured" }]}
        ticksX={timeTicks}
        ticksY={bytesTicks}
        textX={time}
        textY={bytes}
      />
    </section>
  );
}

function Programs({
  rows,
  columns,
}: {
  rows: ProgramMemory[];
  columns: { name: string; doc: string }[];
}) {
  const lit = litRows(route.value.params, "program_memory");
  const doc = (name: string) => columns.find((it) => it.name === name)?.doc ?? "";
  const size = (key: keyof ProgramMemory, title: string): DataColumn<ProgramMemory> => ({
    key,
    title,
    doc: doc(key),
    kind: "bytes",
    value: (it) => it[key],
  });
  return (
    <section class="section">
      <h2>Compiled programs, as their compiler planned them</h2>
      <DataTable
        label="Memory of compiled programs"
        columns={[
          { key: "program", title: "program", kind: "text", value: (it) => it.program },
          { key: "ran", title: "ran", doc: doc("ran"), kind: "bool", value: (it) => it.ran },
          size("peak_bytes", "peak"),
          size("argument_bytes", "arguments"),
          size("output_bytes", "outputs"),
          size("alias_bytes", "donated"),
          size("temp_bytes", "temporaries"),
          size("constant_bytes", "constants"),
          {
            key: "largest_temp",
            title: "largest temporary",
            doc: doc("largest_temp"),
            kind: "text",
            value: (it) => it.largest_temp,
          },
          size("largest_temp_bytes", "of"),
        ]}
        rows={rows}
        sort={{ key: "peak_bytes", descending: true }}
        marked={(it) => lit.has(rows.indexOf(it))}
      />
    </section>
  );
}
