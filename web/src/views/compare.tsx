// Two runs beside one another. Differences are shown, not judged: that takes several runs of each.

import { useOpened } from "../data/opened";
import { client, runs, useAnswer, useReport } from "../data/store";
import {
  asDesigned,
  type Comparison,
  type Finding,
  type Measure,
  type OpDifference,
  type Report,
  type RunEntry,
} from "../data/types";
import { categoryName, ms, percent, sentence, UNKNOWN } from "../format";
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

/** Differences are what the shown run takes more: it is `b` of the comparison, the other one `a`. */
interface BothProps {
  shown: Side;
  other: Side;
  compared: Comparison;
}

function Both({ here, other, list }: { here: RunEntry; other: RunEntry; list: RunEntry[] }) {
  const one = useReport(here.id);
  const two = useReport(other.id);
  const compared = useAnswer<Comparison>(`runs/${here.id}/compare?with=${other.id}`);
  const error = one.error ?? two.error ?? compared.error;
  if (error) return <Failed error={error} />;
  if (!one.value || !two.value || !compared.value) {
    return (
      <div key="coming" class="skeleton compare-room">
        …
      </div>
    );
  }
  const a: Side = { run: here, title: titleOf(here, list), report: one.value };
  const b: Side = { run: other, title: titleOf(other, list), report: two.value };
  const it: BothProps = { shown: a, other: b, compared: compared.value };
  const scale = Math.max(a.report.steps.mean_ms ?? 0, b.report.steps.mean_ms ?? 0);
  return (
    <>
      <h1>{headline(it)}</h1>
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
          <Steps {...it} />
          <Findings {...it} />
        </div>
        <div>
          <Categories {...it} />
          <Facts {...it} />
        </div>
      </div>
      <Ops {...it} />
    </>
  );
}

function headline({ shown, other, compared }: BothProps): string {
  const median = compared.step.find((it) => it.measure === "median");
  const [one, two] = [median?.b_ms ?? null, median?.a_ms ?? null];
  if (one === null || two === null) {
    const which = one === null ? shown.title : other.title;
    return `Step times cannot be compared: no steps could be told apart in ${which}.`;
  }
  const difference = median?.delta_ms ?? 0;
  const share = median?.delta_share ?? null;
  const words =
    Math.abs(difference) < 1e-6
      ? "the same"
      : `${ms(Math.abs(difference))}${share === null ? "" : ` (${percent(Math.abs(share))})`} ${difference < 0 ? "less" : "more"}`;
  return `The median step takes ${ms(one)} in ${shown.title} and ${ms(two)} in ${other.title}: ${words}.`;
}

const signed = (value: number, text: (value: number) => string): string =>
  value === 0 ? "0" : `${value > 0 ? "+" : "−"}${text(Math.abs(value))}`;

function Heads({ shown, other, first }: { shown: Side; other: Side; first: string }) {
  return (
    <thead>
      <tr>
        {first ? <th>{first}</th> : <td />}
        <th class="number">{shown.title}</th>
        <th class="number">{other.title}</th>
        <th class="number">difference</th>
      </tr>
    </thead>
  );
}

const MEASURES: Record<Measure, string> = {
  median: "median",
  mean: "mean",
  p95: "p95",
  stdev: "standard deviation",
  typical: "an ordinary step",
  spread: "its spread",
};

function Steps({ shown, other, compared }: BothProps) {
  const { step, slow_steps } = compared;
  return (
    <Section title="Step times">
      <table class="quiet" aria-label="Step times of both runs">
        <Heads shown={shown} other={other} first="" />
        <tbody>
          {step.map((it) => (
            <tr key={it.measure}>
              <th scope="row">{MEASURES[it.measure]}</th>
              <td class="number">{ms(it.b_ms)}</td>
              <td class="number">{ms(it.a_ms)}</td>
              <td class="number">{it.delta_ms === null ? UNKNOWN : signed(it.delta_ms, ms)}</td>
            </tr>
          ))}
          <tr>
            <th scope="row">steps that count, of them slow</th>
            <td class="number">
              {shown.report.steps.count}, {slow_steps.b ?? UNKNOWN}
            </td>
            <td class="number">
              {other.report.steps.count}, {slow_steps.a ?? UNKNOWN}
            </td>
            <td />
          </tr>
        </tbody>
      </table>
    </Section>
  );
}

function Categories({ shown, other, compared }: BothProps) {
  const rows = [...compared.by_category].sort(asDesigned);
  const most = Math.max(...rows.map((it) => Math.abs(it.delta_ms ?? 0)), 1e-9);
  return (
    <Section title="Categories of the mean step">
      <table class="quiet" aria-label="Categories of both runs">
        <Heads shown={shown} other={other} first="category" />
        <tbody>
          {rows.map(({ category, a_ms, b_ms, delta_ms }) => {
            return (
              <tr key={category}>
                <th scope="row">
                  <i
                    class={`swatch ${category === "idle" ? "hatched" : ""}`}
                    style={{ backgroundColor: `var(--${category})` }}
                  />{" "}
                  {categoryName(category)}
                </th>
                <td class="number">{ms(b_ms)}</td>
                <td class="number">{ms(a_ms)}</td>
                <td class="number">
                  {delta_ms === null ? (
                    <span class="faint">not measured in both</span>
                  ) : (
                    <>
                      {signed(delta_ms, ms)}
                      <Diverging value={delta_ms / most} colour={category} />
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

function Findings({ shown, other, compared }: BothProps) {
  const { fixed, new: added, kept } = compared.findings;
  const of = (side: Side, rules: string[]) =>
    side.report.findings.filter((it) => rules.includes(it.rule));
  const groups: [string, Side, Finding[]][] = [
    [`Only in ${shown.title}`, shown, of(shown, added)],
    [`Only in ${other.title}`, other, of(other, fixed)],
    ["In both", shown, of(shown, kept)],
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
              const why = unchecked(side === shown ? other : shown, it.rule);
              const twin = other.report.findings.find((one) => one.rule === it.rule);
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
                      {other.title}: {sentence(twin.title)} {twin.gain}
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

function Facts({ shown, other, compared }: BothProps) {
  const rows = compared.facts;
  return (
    <Section title="Facts that differ">
      {rows.length === 0 ? (
        <p class="faint">All known facts about the two runs are the same.</p>
      ) : (
        <table class="quiet facts-differ" aria-label="Facts that differ">
          <thead>
            <tr>
              <th>fact</th>
              <th>{shown.title}</th>
              <th>{other.title}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((it) => (
              <tr key={`${it.of} ${it.key}`}>
                <th scope="row">{factName(it.of, it.key)}</th>
                <td>{it.b ?? UNKNOWN}</td>
                <td>{it.a ?? UNKNOWN}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Section>
  );
}

const factName = (of: string, key: string): string =>
  `${of === "run" ? "" : `${of} `}${key.replaceAll("_", " ")}`;

const inPs = (ms: number | null): number | null => (ms === null ? null : ms * 1e9);

function Ops({ shown, other, compared }: BothProps) {
  const ops = compared.by_op;
  const columns: DataColumn<OpDifference>[] = [
    { key: "name", title: "op", kind: "text", value: (it) => it.name },
    {
      key: "difference",
      title: "difference",
      kind: "time",
      value: (it) => inPs(it.delta_ms),
      cell: (it) => signed(it.delta_ms, ms),
    },
    { key: "a", title: shown.title, kind: "time", value: (it) => inPs(it.b_ms) },
    { key: "b", title: other.title, kind: "time", value: (it) => inPs(it.a_ms) },
    { key: "side", title: "on", kind: "text", value: (it) => it.side },
    { key: "type", title: "type", kind: "text", value: (it) => it.type },
  ];
  return (
    <Section title="Ops by the difference of their self time in a step">
      {ops.length === 0 ? (
        <p class="faint">There are no steps in one of the runs, or no ops in common terms.</p>
      ) : (
        <>
          <p class="faint">
            Self time over each whole capture, divided by its steps. An op that one run does not
            have counts as nothing there.
          </p>
          <div class="scrolls" tabIndex={0} role="group" aria-label="Ops of both, scrolls sideways">
            <DataTable label="Ops of both runs" columns={columns} rows={ops} />
          </div>
        </>
      )}
    </Section>
  );
}
