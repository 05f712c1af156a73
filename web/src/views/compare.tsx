// Two runs beside one another. Differences are shown, not judged: that takes several runs of each.

import { useMemo } from "preact/hooks";
import { useOpened } from "../data/opened";
import { client, records, runs, useReport, useTable } from "../data/store";
import type { OpTime } from "../data/tables";
import { CATEGORIES, type Finding, type Report, type RunEntry, type TableOf } from "../data/types";
import { categoryName, ms, percent, plain, sentence, time, UNKNOWN } from "../format";
import { Code } from "../parts/copy";
import { DataTable, type DataColumn } from "../parts/data-table";
import { Empty, Failed } from "../parts/empty";
import { StepBar } from "../parts/step-bar";
import { link, remember, route } from "../router";
import { Section } from "../parts/section";
import type { ViewProps } from ".";
import "../parts/quiet.css";
import "./compare.css";

export default function Compare({ run }: ViewProps) {
  const list = runs.value ?? [];
  const others = list.filter((it) => it.id !== run);
  const wanted = Number.parseInt(route.value.params["with"] ?? "", 10);
  const other = others.find((it) => it.id === wanted) ?? others[0];
  const here = list.find((it) => it.id === run);
  if (!client.live || !other || !here) {
    return (
      <div class="pad">
        <h1>Compare</h1>
        <Empty command="strobe serve RUN_A RUN_B">
          There is one run here, and nothing to compare it with. Give two, or a folder of runs:
        </Empty>
      </div>
    );
  }
  return (
    <div class="pad compare">
      <div class="controls">
        <span>
          <b>{titleOf(here, list)}</b> against
        </span>
        <select
          aria-label="The other run"
          value={String(other.id)}
          onChange={(it) => remember({ with: it.currentTarget.value })}
        >
          {others.map((it) => (
            <option key={it.id} value={String(it.id)}>
              {titleOf(it, list)}
            </option>
          ))}
        </select>
        <a href={link("compare", { with: run }, other.id)}>Swap them</a>
      </div>
      <Opened key={other.id} here={here} other={other} list={list} />
    </div>
  );
}

/** Runs of one name are told apart by their folder, or by the whole path. */
export function titleOf(it: RunEntry, list: RunEntry[]): string {
  const alone = (text: (one: RunEntry) => string | undefined) =>
    list.filter((one) => text(one) === text(it)).length === 1;
  const folder = (one: RunEntry) => one.path.split("/").filter(Boolean).at(-1);
  if (alone((one) => one.name)) return it.name;
  return (alone(folder) && folder(it)) || it.path;
}

function Opened({ here, other, list }: { here: RunEntry; other: RunEntry; list: RunEntry[] }) {
  const { value: status, error } = useOpened(other.id);
  const ready = status?.state === "ready";
  if (error) return <Failed error={error} />;
  if (!ready) {
    return (
      <div role="status" class="skeleton compare-room">
        {status?.phase}
      </div>
    );
  }
  return <Both here={here} other={other} list={list} />;
}

interface Side {
  run: RunEntry;
  title: string;
  report: Report;
}

function Both({ here, other, list }: { here: RunEntry; other: RunEntry; list: RunEntry[] }) {
  const one = useReport(here.id);
  const two = useReport(other.id);
  const error = one.error ?? two.error;
  if (error) return <Failed error={error} />;
  if (!one.value || !two.value) {
    return (
      <div key="coming" class="skeleton compare-room">
        …
      </div>
    );
  }
  const a: Side = { run: here, title: titleOf(here, list), report: one.value };
  const b: Side = { run: other, title: titleOf(other, list), report: two.value };
  const scale = Math.max(a.report.steps.mean_ms ?? 0, b.report.steps.mean_ms ?? 0);
  return (
    <>
      <h1>{headline(a, b)}</h1>
      <p class="faint">
        A difference of medians and the spread of the steps; whether it is real is not judged here.
        With a few runs of each, this does:
      </p>
      <Code
        text={`strobe bench ${a.run.path} --compare ${b.run.path}`}
        label="the command that judges whether the difference is real"
      />
      <section class="section">
        <h2>The mean step of each, on one scale</h2>
        {[a, b].map((it) => (
          <div key={it.run.id} class="side">
            <h3>{it.title}</h3>
            <p>{it.report.headline}</p>
            <StepBar report={it.report} scaleMs={scale} short />
          </div>
        ))}
      </section>
      <div class="cols">
        <div>
          <Steps a={a} b={b} />
          <Findings a={a} b={b} />
        </div>
        <div>
          <Categories a={a} b={b} />
          <Facts a={a} b={b} />
        </div>
      </div>
      <Ops a={a} b={b} />
    </>
  );
}

function headline(a: Side, b: Side): string {
  const [one, two] = [a.report.steps.median_ms, b.report.steps.median_ms];
  if (one === undefined || two === undefined) {
    const which = one === undefined ? a.title : b.title;
    return `Step times cannot be compared: no steps could be told apart in ${which}.`;
  }
  const difference = one - two;
  const share = two > 0 ? ` (${percent(Math.abs(difference) / two)})` : "";
  const words =
    Math.abs(difference) < 1e-6
      ? "the same"
      : `${ms(Math.abs(difference))}${share} ${difference < 0 ? "less" : "more"}`;
  return `The median step takes ${ms(one)} in ${a.title} and ${ms(two)} in ${b.title}: ${words}.`;
}

const signed = (value: number, text: (value: number) => string): string =>
  value === 0 ? "0" : `${value > 0 ? "+" : "−"}${text(Math.abs(value))}`;

function Heads({ a, b, first }: { a: Side; b: Side; first: string }) {
  return (
    <thead>
      <tr>
        {first ? <th>{first}</th> : <td />}
        <th class="number">{a.title}</th>
        <th class="number">{b.title}</th>
        <th class="number">difference</th>
      </tr>
    </thead>
  );
}

function Steps({ a, b }: { a: Side; b: Side }) {
  const spreads = [
    useTable(a.run.id, "step_spread").value,
    useTable(b.run.id, "step_spread").value,
  ];
  const [one, two] = spreads.map((it) => (it ? records(it)[0] : undefined));
  const rows: [string, number | null | undefined, number | null | undefined][] = [
    ["median", a.report.steps.median_ms, b.report.steps.median_ms],
    ["mean", a.report.steps.mean_ms, b.report.steps.mean_ms],
    ["p95", a.report.steps.p95_ms, b.report.steps.p95_ms],
    ["standard deviation", a.report.steps.stdev_ms, b.report.steps.stdev_ms],
    ["an ordinary step", inMs(one?.typical_ps), inMs(two?.typical_ps)],
    ["its spread", inMs(one?.spread_ps), inMs(two?.spread_ps)],
  ];
  return (
    <Section title="Step times">
      <table class="quiet" aria-label="Step times of both runs">
        <Heads a={a} b={b} first="" />
        <tbody>
          {rows.map(([name, x, y]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="number">{ms(x)}</td>
              <td class="number">{ms(y)}</td>
              <td class="number">
                {x === null || x === undefined || y === null || y === undefined
                  ? UNKNOWN
                  : signed(x - y, ms)}
              </td>
            </tr>
          ))}
          <tr>
            <th scope="row">steps that count, of them slow</th>
            {[a, b].map((it, at) => (
              <td key={at} class="number">
                {it.report.steps.count}, {[one, two][at]?.slow ?? UNKNOWN}
              </td>
            ))}
            <td />
          </tr>
        </tbody>
      </table>
    </Section>
  );
}

const inMs = (ps: number | undefined): number | undefined =>
  ps === undefined ? undefined : ps / 1e9;

function Categories({ a, b }: { a: Side; b: Side }) {
  const of = (side: Side, category: string) =>
    side.report.breakdown.find((it) => it.category === category)?.ms_per_step ?? null;
  const rows = CATEGORIES.map((it) => ({ category: it, x: of(a, it), y: of(b, it) })).filter(
    ({ x, y }) => (x ?? 0) > 0 || (y ?? 0) > 0,
  );
  const most = Math.max(...rows.map(({ x, y }) => Math.abs((x ?? 0) - (y ?? 0))), 1e-9);
  return (
    <Section title="Categories of the mean step">
      <table class="quiet" aria-label="Categories of both runs">
        <Heads a={a} b={b} first="category" />
        <tbody>
          {rows.map(({ category, x, y }) => {
            const difference = x === null || y === null ? null : x - y;
            return (
              <tr key={category}>
                <th scope="row">
                  <i
                    class={`swatch ${category === "idle" ? "hatched" : ""}`}
                    style={{ backgroundColor: `var(--${category})` }}
                  />{" "}
                  {categoryName(category)}
                </th>
                <td class="number">{ms(x)}</td>
                <td class="number">{ms(y)}</td>
                <td class="number">
                  {difference === null ? (
                    <span class="faint">not measured in both</span>
                  ) : (
                    <>
                      {signed(difference, ms)}
                      <Diverging value={difference / most} colour={category} />
                    </>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Section>
  );
}

/** Less to the left of the middle, more to the right. */
const Diverging = ({ value, colour }: { value: number; colour: string }) => (
  <div class="diverging" aria-hidden="true">
    <i
      style={{
        left: `${50 + Math.min(value, 0) * 50}%`,
        width: `${Math.abs(value) * 50}%`,
        backgroundColor: `var(--${colour})`,
      }}
    />
  </div>
);

function Findings({ a, b }: { a: Side; b: Side }) {
  const rulesOf = (it: Side) => new Set(it.report.findings.map((one) => one.rule));
  const [inA, inB] = [rulesOf(a), rulesOf(b)];
  const groups: [string, Side, Finding[]][] = [
    [`Only in ${a.title}`, a, a.report.findings.filter((it) => !inB.has(it.rule))],
    [`Only in ${b.title}`, b, b.report.findings.filter((it) => !inA.has(it.rule))],
    ["In both", a, a.report.findings.filter((it) => inB.has(it.rule))],
  ];
  const unchecked = (side: Side, rule: string) =>
    side.report.not_checked.find((it) => it.rule === rule)?.why;
  return (
    <Section title="Findings">
      {groups.map(([title, side, list]) => (
        <div key={title} class="found">
          <h3>{title}</h3>
          {list.length === 0 && <p class="faint">none</p>}
          <ul>
            {list.map((it) => {
              const why = unchecked(side === a ? b : a, it.rule);
              const twin = b.report.findings.find((one) => one.rule === it.rule);
              return (
                <li key={it.rule}>
                  <a
                    href={link(
                      "overview",
                      { open: side.report.findings.indexOf(it) + 1 },
                      side.run.id,
                    )}
                  >
                    {it.rule}
                  </a>{" "}
                  {sentence(it.title)} <span class="faint">{it.gain}</span>
                  {title === "In both" && twin && (
                    <div class="faint">
                      {b.title}: {sentence(twin.title)} {twin.gain}
                    </div>
                  )}
                  {why && <div class="faint">The other run could not be asked: {why}.</div>}
                </li>
              );
            })}
          </ul>
        </div>
      ))}
    </Section>
  );
}

function Facts({ a, b }: { a: Side; b: Side }) {
  const [one, two] = [useTable(a.run.id, "run_info").value, useTable(b.run.id, "run_info").value];
  const rows = useMemo(() => differing(one, two), [one, two]);
  if (!one || !two) return null;
  return (
    <Section title="Facts that differ">
      {rows.length === 0 ? (
        <p class="faint">All known facts about the two runs are the same.</p>
      ) : (
        <table class="quiet facts-differ" aria-label="Facts that differ">
          <thead>
            <tr>
              <th>fact</th>
              <th>{a.title}</th>
              <th>{b.title}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((it) => (
              <tr key={it.name}>
                <th scope="row">{it.name}</th>
                <td>{it.a ?? UNKNOWN}</td>
                <td>{it.b ?? UNKNOWN}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Section>
  );
}

/** Moments always differ, and say nothing. */
const MOMENT = /(_time|_unix_ns)$/;

export function differing(
  one: TableOf<"run_info"> | null,
  two: TableOf<"run_info"> | null,
): { name: string; a: string | null; b: string | null }[] {
  const facts = (table: TableOf<"run_info"> | null) =>
    new Map(
      (table ? records(table) : [])
        .filter((it) => !MOMENT.test(it.key))
        .map((it) => [
          `${it.of === "run" ? "" : `${it.of} `}${it.key.replaceAll("_", " ")}`,
          it.value,
        ]),
    );
  const [x, y] = [facts(one), facts(two)];
  return [...new Set([...x.keys(), ...y.keys()])]
    .filter((name) => x.get(name) !== y.get(name))
    .map((name) => ({ name, a: x.get(name) ?? null, b: y.get(name) ?? null }));
}

interface OpPair {
  side: string;
  name: string;
  type: string | null;
  a: number | null;
  b: number | null;
  difference: number;
}

function Ops({ a, b }: { a: Side; b: Side }) {
  const ops = [useTable(a.run.id, "op_time").value, useTable(b.run.id, "op_time").value] as const;
  const steps = [useTable(a.run.id, "step").value, useTable(b.run.id, "step").value] as const;
  const pairs = useMemo(
    () =>
      ops[0] && ops[1] && steps[0] && steps[1]
        ? pairsOf(perStep(ops[0], steps[0]), perStep(ops[1], steps[1]))
        : null,
    [ops[0], ops[1], steps[0], steps[1]],
  );
  const columns: DataColumn<OpPair>[] = [
    { key: "name", title: "op", kind: "text", value: (it) => it.name },
    {
      key: "difference",
      title: "difference",
      kind: "time",
      value: (it) => it.difference,
      cell: (it) => signed(it.difference, time),
    },
    { key: "a", title: a.title, kind: "time", value: (it) => it.a },
    { key: "b", title: b.title, kind: "time", value: (it) => it.b },
    { key: "side", title: "on", kind: "text", value: (it) => it.side },
    { key: "type", title: "type", kind: "text", value: (it) => it.type },
  ];
  return (
    <Section title="Ops by the difference of their self time in a step">
      {!pairs ? (
        <div class="skeleton compare-room">…</div>
      ) : pairs.length === 0 ? (
        <p class="faint">There are no steps in one of the runs, or no ops in common terms.</p>
      ) : (
        <>
          <p class="faint">
            Self time over each whole capture, divided by its steps. An op that one run does not
            have counts as nothing there.
          </p>
          <div class="scrolls" tabIndex={0} role="group" aria-label="Ops of both, scrolls sideways">
            <DataTable label="Ops of both runs" columns={columns} rows={pairs.slice(0, 100)} />
          </div>
        </>
      )}
    </Section>
  );
}

/** By side and name; null without steps. */
function perStep(
  ops: TableOf<"op_time">,
  steps: TableOf<"step">,
): Map<string, { op: OpTime; ps: number }> | null {
  const count = new Set(records(steps).map((it) => it.step)).size;
  if (count === 0) return null;
  const by = new Map<string, { op: OpTime; ps: number }>();
  for (const op of records(ops)) {
    const key = `${op.side}\n${plain(op.name)}`;
    const known = by.get(key);
    if (known) known.ps += op.self_ps / count;
    else by.set(key, { op, ps: op.self_ps / count });
  }
  return by;
}

function pairsOf(a: ReturnType<typeof perStep>, b: ReturnType<typeof perStep>): OpPair[] {
  if (!a || !b) return [];
  return [...new Set([...a.keys(), ...b.keys()])]
    .map((key) => {
      const [x, y] = [a.get(key), b.get(key)];
      const { op } = (x ?? y)!;
      return {
        side: op.side,
        name: plain(op.name),
        type: op.op_type,
        a: x?.ps ?? null,
        b: y?.ps ?? null,
        difference: (x?.ps ?? 0) - (y?.ps ?? 0),
      };
    })
    .sort((x, y) => Math.abs(y.difference) - Math.abs(x.difference));
}
