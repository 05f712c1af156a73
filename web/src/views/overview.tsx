// The answer first: the sentence, the bar of the step, the findings; then the proof.

import { records, useAnswer, useReport, useTable } from "../data/store";
import { isNarrow, narrowed, stepsText, within } from "../data/narrowing";
import {
  asDesigned,
  type Finding,
  type MeanOfSteps,
  type Report,
  type TableOf,
} from "../data/types";
import { bytes, categoryName, ms, percent, plain, thousands, time } from "../format";
import { Empty, Failed } from "../parts/empty";
import { useSpotlights } from "../parts/evidence";
import { Findings, RuleLink, RulePanel } from "../parts/finding";
import { inline } from "../parts/markdown";
import { StepBar } from "../parts/step-bar";
import StepChart from "../parts/step-chart";
import { isOfInput, WhatIfs } from "../parts/what-if";
import { link } from "../router";
import { Section } from "../parts/section";
import type { ViewProps } from ".";
import "../parts/quiet.css";
import "./overview.css";

export default function Overview({ run }: ViewProps) {
  const { value: report, error } = useReport(run);
  const steps = useTable(run, "step").value;
  const times = useTable(run, "step_time").value;
  const outliers = useTable(run, "step_outlier").value;
  const changes = useTable(run, "what_if");
  const lit = useSpotlights(run);
  if (error) return <Failed error={error} />;
  if (!report) return <Coming />;
  return (
    <div class="pad overview">
      <h1>{report.headline}</h1>
      {isNarrow(narrowed.value) ? (
        <Narrowed run={run} report={report} />
      ) : (
        <StepBar report={report} />
      )}
      <section class="block" aria-label="Findings">
        {report.findings.length > 0 ? (
          <Findings findings={report.findings} lit={lit} />
        ) : (
          <Fine report={report} />
        )}
      </section>
      <section class="block" aria-label="Step times">
        {report.run.events === 0 ? null : report.steps.count === 0 && steps?.total === 0 ? (
          <Empty command="strobe run --steps 20 -- python train.py">
            No steps could be told apart, so times are of the whole capture. A longer one has more
            to tell them by:
          </Empty>
        ) : steps && times && outliers ? (
          <StepChart steps={records(steps)} times={records(times)} outliers={records(outliers)} />
        ) : (
          <div class="skeleton step-chart-room">…</div>
        )}
      </section>
      <Notes report={report} />
      {/* Below the fold, all at once: nothing jumps. */}
      {(changes.value || changes.error) && (
        <>
          <Won changes={changes.value} findings={report.findings} />
          <div class="cols">
            <div>
              <Spread run={run} />
              <TopOps report={report} />
              <NotChecked report={report} />
            </div>
            <div>
              <Use run={run} report={report} />
              <Facts run={run} />
            </div>
          </div>
        </>
      )}
      <RulePanel />
    </div>
  );
}

/** Where the steps go that the top bar chose. */
function Narrowed({ run, report }: { run: number; report: Report }) {
  const { host, device, steps } = narrowed.value;
  const asked = Object.entries({ host, device, first: steps?.first, last: steps?.last });
  const given = asked.flatMap(([key, it]) => (it == null ? [] : [[key, String(it)]]));
  const { value: mean, error } = useAnswer<MeanOfSteps>(
    `runs/${run}/mean_step?${new URLSearchParams(given)}`,
  );
  const whole = (
    <a href={link("overview", { host: null, device: null, steps: null })}>the whole run</a>
  );
  const of = [host, device, steps && `steps ${stepsText(steps)}`].filter(Boolean).join(" · ");
  if (error) return <Failed error={error} />;
  if (!mean) return <div class="skeleton coming-bar">…</div>;
  if (mean.mean_ms === null) {
    return (
      <p class="fine">
        <b>{of}:</b> no steady steps among these; back to {whole}.
      </p>
    );
  }
  return (
    <>
      <p class="fine">
        <b>{of}:</b> {ms(mean.mean_ms)} a step, over {thousands(mean.n_steps)}. The sentence and the
        findings are of {whole}.
      </p>
      <StepBar report={{ ...report, breakdown: [...mean.breakdown].sort(asDesigned) }} />
    </>
  );
}

/** In its final place. */
const Coming = () => (
  <div class="pad overview" aria-busy="true">
    <div class="skeleton coming-title">…</div>
    <div class="skeleton coming-bar">…</div>
    <div class="skeleton coming-finding">…</div>
    <div class="skeleton step-chart-room">…</div>
  </div>
);

function Fine({ report }: { report: Report }) {
  const largest = report.breakdown.reduce<Report["breakdown"][number] | null>(
    (most, it) => (most === null || it.share > most.share ? it : most),
    null,
  );
  const unasked = report.not_checked.length;
  if (report.run.events === 0) return null;
  return (
    <p class="fine">
      <b>
        {report.steps.count > 0
          ? "No rule found anything to fix."
          : "No rule that could be asked found anything."}
      </b>{" "}
      {largest &&
        largest.share > 0 &&
        `The largest part of the step is ${categoryName(largest.category)}, ${ms(largest.ms_per_step)} or ${percent(largest.share)}. `}
      {unasked > 0 && `${unasked} rules could not be asked; why is said below.`}
    </p>
  );
}

/** Each step as a tick on one line, and where half and nine of ten of them lie. */
function Spread({ run }: { run: number }) {
  const spreads = useTable(run, "step_spread").value;
  const steps = useTable(run, "step").value;
  if (!spreads || !steps || spreads.total === 0) return null;
  const all = records(steps).filter((it) => it.complete && !it.warmup);
  return (
    <Section title="Spread of the steps">
      {ofChosen(records(spreads)).map((it) => {
        const own = all.filter((step) => step.host === it.host).map((step) => step.dur_ps);
        const high = Math.max(...own, it.p999_ps) * 1.02;
        const low = Math.min(...own, it.typical_ps) * 0.9;
        const at = (ps: number) => `${((ps - low) / (high - low || 1)) * 100}%`;
        const shown = own.length > 2000 ? own.slice(0, 2000) : own;
        return (
          <div key={it.host} class="spread">
            {spreads.total > 1 && <b>{it.host}</b>}
            <div
              class="rug"
              role="img"
              aria-label={`Steps from ${time(Math.min(...own))} to ${time(Math.max(...own))}`}
            >
              {it.limit_ps < high && (
                <i
                  class="beyond"
                  style={{ left: at(it.limit_ps) }}
                  title={`beyond ${time(it.limit_ps)} a step is slow`}
                />
              )}
              {shown.map((ps, n) => (
                <i key={n} style={{ left: at(ps) }} />
              ))}
            </div>
            <table class="quiet">
              <thead>
                <tr>
                  <th class="number">typical</th>
                  <th class="number">mean</th>
                  <th class="number">p50</th>
                  <th class="number">p90</th>
                  <th class="number">p99</th>
                  <th class="number">steps</th>
                  <th class="number">slow</th>
                </tr>
              </thead>
              <tbody>
                <tr>
                  <td class="number">
                    {time(it.typical_ps)} <span class="faint">± {time(it.spread_ps)}</span>
                  </td>
                  <td class="number">{time(it.mean_ps)}</td>
                  <td class="number">{time(it.p50_ps)}</td>
                  <td class="number">{time(it.p90_ps)}</td>
                  <td class="number">{time(it.p99_ps)}</td>
                  <td class="number">{thousands(it.steps)}</td>
                  <td class="number">{thousands(it.slow)}</td>
                </tr>
              </tbody>
            </table>
          </div>
        );
      })}
    </Section>
  );
}

/** What is left of a step without one of its parts: the most that work on it could win. */
function Won({ changes, findings }: { changes: TableOf<"what_if"> | null; findings: Finding[] }) {
  const rows = changes ? records(changes).filter((it) => !isOfInput(it)) : [];
  if (rows.length === 0) return null;
  return (
    <Section title="Upper bounds: what if …">
      <WhatIfs rows={rows} findings={findings} label="What changes would give" />
    </Section>
  );
}

function Use({ run, report }: { run: number; report: Report }) {
  const devices = useTable(run, "device_use").value;
  const threads = useTable(run, "host_thread").value;
  const hardware = useTable(run, "hardware").value;
  if (!devices || !threads || !hardware)
    return <Section title="Devices and threads">{null}</Section>;
  const window = report.run.window_ms * 1e9;
  const busiest = ofChosen(records(threads))
    .filter((it) => it.busy_ps > 0)
    .sort((a, b) => b.busy_ps - a.busy_ps)
    .slice(0, 6);
  const cpu = records(hardware).filter((it) => it.step === null && it.counter === "cpu/all");
  if (devices.total + threads.total + cpu.length === 0) return null;
  return (
    <Section title={`Devices and threads over ${time(window)}`}>
      <table class="quiet" aria-label="Use of devices and threads">
        <thead>
          <tr>
            <th>device or thread</th>
            <th>busy</th>
            <th class="number">
              <span class="visually-hidden">share of the capture</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {ofChosen(records(devices)).map((it) => (
            <tr key={it.host + it.device}>
              <td class="wide" title={`${it.host} ${it.device}`}>
                <b>{it.device}</b>{" "}
                <span class="faint">
                  {[
                    it.name,
                    it.memory_bytes && bytes(it.memory_bytes),
                    devicesHost(report, it.host),
                  ]
                    .filter(Boolean)
                    .join(" · ")}
                </span>
              </td>
              <td>
                <Meter share={it.busy_share} colour="compute" />
              </td>
              <td class="number">{percent(it.busy_share)}</td>
            </tr>
          ))}
          {cpu.map((it) => (
            <tr key={`cpu ${it.host}`}>
              <td class="wide">
                <a href={link("hardware")}>All cores</a>{" "}
                <span class="faint">
                  {report.steps.count > 0 && "in steps"} {devicesHost(report, it.host)}
                </span>
              </td>
              <td>
                <Meter share={it.mean ?? 0} colour="runtime" />
              </td>
              <td class="number">{percent(it.mean)}</td>
            </tr>
          ))}
          {busiest.map((it) => (
            <tr key={it.track}>
              <td class="wide" title={it.top_name ?? undefined}>
                {it.thread} {it.top_kind && <span class="faint">mostly {it.top_kind}</span>}
              </td>
              <td>
                <Meter share={it.busy_share} colour="runtime" />
              </td>
              <td class="number">{window > 0 ? percent(it.busy_share) : null}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {threads.total > busiest.length && (
        <p class="faint">
          The busiest {busiest.length} of {threads.total} threads;{" "}
          <a href={link("timeline")}>all of them on the timeline</a>.
        </p>
      )}
    </Section>
  );
}

/** Only of the host and the device that the top bar chose. */
const ofChosen = <T extends { host: string; device?: string }>(rows: T[]): T[] => {
  const { host, device } = narrowed.value;
  return rows.filter((it) => within({ host, device, steps: null }, it));
};

const devicesHost = (report: Report, host: string): string =>
  report.run.hosts.length > 1 ? host : "";

const Meter = ({ share, colour }: { share: number; colour: string }) => (
  <div class="meter" aria-hidden="true">
    <i style={{ width: `${Math.min(share, 1) * 100}%`, backgroundColor: `var(--${colour})` }} />
  </div>
);

function TopOps({ report }: { report: Report }) {
  if (report.top_ops.length === 0) return null;
  const most = Math.max(...report.top_ops.map((it) => it.share));
  return (
    <Section title="Top ops">
      <table class="quiet" aria-label="Top ops">
        <thead>
          <tr>
            <th>op</th>
            <th>on</th>
            <th class="number">count</th>
            <th class="number">self</th>
            <th colSpan={2}>share</th>
          </tr>
        </thead>
        <tbody>
          {report.top_ops.map((it) => (
            <tr key={`${it.side} ${it.name} ${it.type}`}>
              <td class="wide" title={it.name}>
                <a href={link("ops", { filter: it.name })}>{plain(it.name)}</a>{" "}
                <span class="faint">{it.type}</span>
              </td>
              <td>{it.side}</td>
              <td class="number">{thousands(it.count)}</td>
              <td class="number">{ms(it.self_ms)}</td>
              <td class="number">{percent(it.share)}</td>
              <td>
                <Meter share={it.share / most} colour="compute" />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}

function Facts({ run }: { run: number }) {
  const facts = useTable(run, "run_info").value;
  if (!facts || facts.total === 0) return null;
  const by = new Map<string, { key: string; value: string }[]>();
  for (const it of records(facts)) {
    by.set(it.of, [...(by.get(it.of) ?? []), it]);
  }
  return (
    <Section title="The run">
      {[...by].map(([of, list]) => (
        // Of the run itself always, of each device and host on opening.
        <details key={of} class="facts-of" open={of === "run"}>
          <summary>{of}</summary>
          <table class="quiet" aria-label={`Facts about ${of}`}>
            <tbody>
              {list.map((it, at) => (
                <tr key={at}>
                  <th scope="row" class="fact-key">
                    {it.key.replaceAll("_", " ").replace(/ unix ns$/, "")}
                  </th>
                  <td class="fact">{factInWords(it.key, it.value)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </details>
      ))}
    </Section>
  );
}

/** Moments and sizes as people read them. */
function factInWords(key: string, value: string): string {
  const moment = /^\d{18,20}$/.test(value) && /(unix_ns|_time)$/.test(key);
  if (moment) {
    return new Date(Number(BigInt(value) / 1_000_000n))
      .toISOString()
      .replace("T", " ")
      .replace("Z", " UTC");
  }
  return /(bytes|memory_size)$/.test(key) && /^\d+$/.test(value) ? bytes(Number(value)) : value;
}

function NotChecked({ report }: { report: Report }) {
  if (report.not_checked.length === 0) return null;
  const by = new Map<string, string[]>();
  for (const { rule, why } of report.not_checked) by.set(why, [...(by.get(why) ?? []), rule]);
  return (
    <Section title="Not checked">
      <dl class="not-checked">
        {[...by].map(([why, rules]) => (
          <div key={why}>
            <dt>{inline(why)}</dt>
            <dd>
              {rules.map((it, at) => (
                <span key={it}>
                  {at > 0 && ", "}
                  <RuleLink rule={it} />
                </span>
              ))}
            </dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}

function Notes({ report }: { report: Report }) {
  if (report.notes.length === 0) return null;
  return (
    <Section title="Skipped or guessed while reading">
      <table class="quiet" aria-label="Notes">
        <tbody>
          {report.notes.map((it) => (
            <tr key={it.kind + it.first}>
              <th scope="row">{it.kind}</th>
              <td class="number">{thousands(it.count)}×</td>
              <td class="faint">first: {it.first}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Section>
  );
}
