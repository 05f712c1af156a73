// Tracing and compiling while the program ran: what, how often, what it costs a step, and why.

import { useMemo } from "preact/hooks";
import { docs, records, useReport, useTable } from "../data/store";
import type { Compile as Compiled } from "../data/tables";
import type { Finding, TableOf } from "../data/types";
import { percent, thousands, time } from "../format";
import { DataTable, DataTableSkeleton, inAddress, type DataColumn } from "../parts/data-table";
import { Details } from "../parts/details";
import { Failed } from "../parts/empty";
import { documented } from "../parts/table-columns";
import { link, remember, route, showEvents } from "../router";
import type { ViewProps } from ".";
import "./ops.css";
import "./compile.css";

const KINDS: Record<string, string> = {
  trace: "traced",
  compile: "compiled",
  autotune: "autotuned",
  optimize: "optimized",
};

const RULES = ["retracing", "recompilation"];

export default function Compile({ run }: ViewProps) {
  const table = useTable(run, "compile");
  const report = useReport(run);
  const error = table.error ?? report.error;
  if (error) return <Failed error={error} />;
  if (!table.value || !report.value) {
    return (
      <div class="pad table-view">
        <h1 class="skeleton">What was traced and compiled</h1>
        <DataTableSkeleton rows={8} fill />
      </div>
    );
  }
  const findings = report.value.findings
    .flatMap((it) => [it, ...(it.symptoms ?? [])])
    .filter((it) => RULES.includes(it.rule));
  const unchecked = report.value.not_checked.filter((it) => RULES.includes(it.rule));
  if (table.value.total === 0) {
    return (
      <div class="pad">
        <h1>Nothing was traced or compiled during the capture</h1>
        <div class="empty">
          <p>
            That is good news: every call ran what had been traced and compiled before. The first
            calls of a program always trace and compile; a capture that begins with the program
            shows them.
          </p>
          <pre>strobe run -- python train.py</pre>
          {unchecked.map((it) => (
            <p class="faint" key={it.rule}>
              {it.rule} was not checked: {it.why}
            </p>
          ))}
        </div>
      </div>
    );
  }
  return <Shown table={table.value} findings={findings} meanMs={report.value.steps.mean_ms} />;
}

function Shown(props: {
  table: TableOf<"compile">;
  findings: Finding[];
  meanMs: number | undefined;
}) {
  const { table, findings } = props;
  const rows = useMemo(() => records(table), [table]);
  const doc = docs(table);
  const perStep = rows.reduce((all, it) => all + (it.own_step_ps ?? 0), 0);
  const own = rows.reduce((all, it) => all + it.own_ps, 0);
  const step = props.meanMs === undefined ? null : props.meanMs * 1e9;
  const columns = useMemo<DataColumn<Compiled>[]>(() => {
    const column = documented<Compiled>({
      ...doc,
      step_share: "Its own part of the mean step, without the tracing and compiling inside it.",
    });
    return [
      column("function", "Function", "text"),
      column("kind", "Was", "text", { show: (it) => KINDS[it.kind] ?? it.kind, width: 96 }),
      column("count", "Times", "count"),
      column("calls", "Of calls", "count"),
      column("steps", "In steps", "count"),
      column("step_ps", "A step", "time"),
      ...(step
        ? [
            {
              key: "step_share",
              title: "Share",
              kind: "share" as const,
              doc: "Its own part of the mean step, without the tracing and compiling inside it.",
              value: (it: Compiled) => (it.own_step_ps === null ? null : it.own_step_ps / step),
              bar: () => "var(--compile)",
              width: 96,
            },
          ]
        : []),
      column("mean_ps", "Each", "time"),
      column("total_ps", "Total", "time"),
      ...(new Set(rows.map((it) => it.host)).size > 1
        ? [column("host", "Host", "text", { width: 120 })]
        : []),
      column("changed", "What changed", "text"),
    ];
  }, [rows, doc, step]);
  const open = Number(route.value.params["open"] ?? Number.NaN);
  const opened = rows[open];
  const numbers = useMemo(() => new Map(rows.map((it, at) => [it, at])), [rows]);
  const guilty = useMemo(() => {
    const list = findings.flatMap((it) => it.evidence);
    return new Set(list.filter((it) => it.table === "compile").flatMap((it) => it.rows));
  }, [findings]);
  return (
    <div class="pad table-view">
      <div>
        <h1>
          Tracing and compiling took{" "}
          {perStep > 0 && step
            ? `${time(perStep)} of a step, ${percent(perStep / step)}`
            : `${time(own)} in all, outside of the steps that count`}
        </h1>
        {findings.length === 0 && (
          <p class="faint kernels-summary">
            {perStep > 0
              ? "No rule calls that a problem."
              : "The first calls of a program do; the steps that follow are not slowed down by it."}
          </p>
        )}
      </div>
      {findings.map((it) => (
        <Said key={it.rule} finding={it} />
      ))}
      <div class="ops-table">
        <DataTable
          fill
          label="traced and compiled functions"
          noun={["function", "functions"]}
          columns={columns}
          rows={rows}
          {...inAddress({ key: perStep > 0 ? "step_ps" : "total_ps", descending: true })}
          onOpen={(it) => remember({ open: numbers.get(it)! })}
          marked={(it) => (opened ? it === opened : guilty.has(numbers.get(it)!))}
        />
        {opened && <CompiledDetails it={opened} doc={doc} />}
      </div>
    </div>
  );
}

/** The finding in short: what was seen, what changed, what to do. */
function Said({ finding }: { finding: Finding }) {
  return (
    <section class="compile-finding" aria-label={finding.rule}>
      <h2>
        {finding.title}
        <span class="gain">{finding.gain}</span>
      </h2>
      <ul>
        {finding.evidence.map((it) => (
          <li key={it.text}>
            {it.text}
            {it.events.length > 0 && (
              <>
                {" "}
                <a href={showEvents(it.events)}>Show me</a>
              </>
            )}
          </li>
        ))}
      </ul>
      <dl>
        {finding.fix.map((it) => (
          <div key={it.text}>
            <dt>{it.text}</dt>
            {it.edit !== null && (
              <dd>
                <code>{it.edit}</code>
              </dd>
            )}
          </div>
        ))}
      </dl>
    </section>
  );
}

function CompiledDetails({ it, doc }: { it: Compiled; doc: Record<string, string> }) {
  const figures = [
    { title: "Was", text: KINDS[it.kind] ?? it.kind, doc: doc["kind"] },
    { title: "Host", text: it.host, doc: doc["host"] },
    { title: "Times", text: thousands(it.count), doc: doc["count"] },
    { title: "Calls of the function", text: thousands(it.calls), doc: doc["calls"] },
    { title: "In steps that count", text: thousands(it.steps), doc: doc["steps"] },
    {
      title: "Traced since the start",
      text: thousands(it.tracing_count),
      doc: doc["tracing_count"],
    },
    { title: "Inside a tracing", text: thousands(it.inside_trace), doc: doc["inside_trace"] },
    { title: "Cost a step", text: time(it.step_ps), doc: doc["step_ps"] },
    { title: "Of that its own", text: time(it.own_step_ps), doc: doc["own_step_ps"] },
    { title: "Each time", text: time(it.mean_ps), doc: doc["mean_ps"] },
    { title: "In all", text: time(it.total_ps), doc: doc["total_ps"] },
    { title: "In all, its own", text: time(it.own_ps), doc: doc["own_ps"] },
  ];
  return (
    <Details
      label="Function"
      name={it.function ?? "a function the profile does not name"}
      onClose={() => remember({ open: null })}
      figures={figures}
    >
      <h2>What changed</h2>
      <p>{it.changed ?? "The profile does not say."}</p>
      <div class="links">
        <a href={showEvents([it.event])}>Show the longest on the timeline</a>
        {it.function !== null && (
          <a href={link("timeline", { q: it.function })}>Find its calls on the timeline</a>
        )}
      </div>
    </Details>
  );
}
