// The input pipeline: its stages from the consumer down, which limits, and what changes would give.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { records, useReport, useTable } from "../data/store";
import type { BatchLoader, InputStage } from "../data/tables";
import type { Report } from "../data/types";
import { ms, number, percent, thousands, time, timeColumn, UNKNOWN } from "../format";
import { Empty, Failed } from "../parts/empty";
import { litRows } from "../parts/evidence";
import { FindingsAbout } from "../parts/finding-short";
import { isOfInput, stageName, WhatIfs } from "../parts/what-if";
import { link, route } from "../router";
import type { ViewProps } from ".";
import "../parts/quiet.css";
import "./input.css";

export default function Input({ run }: ViewProps) {
  const { value: report, error } = useReport(run);
  const { value: stages, error: failed } = useTable(run, "input_stage");
  const { value: loaders } = useTable(run, "batch_loader");
  const { value: changes } = useTable(run, "what_if");
  if (error ?? failed) return <Failed error={(error ?? failed)!} />;
  if (!report || !stages || !loaders) return <Coming />;
  const ofInput = changes ? records(changes).filter(isOfInput) : null;
  return (
    <div class="pad input-view">
      <h1>{headline(report)}</h1>
      <FindingsAbout report={report} rules={/^input-/} />
      {loaders.total > 0 && <Loaders loaders={records(loaders)} doc={loaders.columns} />}
      {stages.total === 0 && loaders.total > 0 ? null : stages.total === 0 ? (
        <None report={report} />
      ) : (
        <>
          <Tree stages={records(stages)} doc={stages.columns} />
          <Threads stages={records(stages)} report={report} />
        </>
      )}
      <section class="section">
        <h2>What changes would give</h2>
        {ofInput && ofInput.length > 0 ? (
          <>
            <WhatIfs
              rows={ofInput}
              findings={report.findings}
              label="What changes of the input would give"
            />
            <p class="faint">
              Replayed from the measured steps; of a change that a finding advises, what the finding
              promises. The bar goes from the best to the worst that can be expected, the line is
              the likely one; each change comes with a prefetch at the end.
            </p>
          </>
        ) : ofInput ? (
          <p class="faint">
            Nothing to predict: the steps hardly wait for input, or replaying them does not come
            within a tenth of what was measured.
          </p>
        ) : (
          <div class="skeleton input-room">…</div>
        )}
      </section>
    </div>
  );
}

const Coming = () => (
  <div class="pad" aria-busy="true">
    <div class="skeleton coming-title">…</div>
    <div class="section skeleton input-room">…</div>
  </div>
);

function headline(report: Report): string {
  const input = report.breakdown.find((it) => it.category === "input");
  if (!input || report.steps.count === 0) return "The input pipeline";
  if (input.share < 0.005) return "Steps do not wait for input.";
  return `Steps wait ${ms(input.ms_per_step)} for input, ${percent(input.share)} of the time.`;
}

function None({ report }: { report: Report }) {
  if (report.run.frameworks.includes("tensorflow")) {
    return (
      <Empty command="strobe run --steps 20 -- python train.py">
        No stage of tf.data ran in this profile: the input is made elsewhere, or the capture was too
        short to see it. A capture of whole steps shows every stage:
      </Empty>
    );
  }
  return (
    <Empty command="strobe run -- python train.py">
      No loader left its marks in this profile: neither stages of tf.data nor a DataLoader of
      PyTorch. The lines of Python that make batches are sampled by:
    </Empty>
  );
}

/** Loaders that make batches in Python: what of that the training thread waits for. */
function Loaders({
  loaders,
  doc,
}: {
  loaders: BatchLoader[];
  doc: { name: string; doc: string }[];
}) {
  const lit = litRows(route.value.params, "batch_loader");
  const about = (name: string) => doc.find((it) => it.name === name)?.doc;
  const anyFunction = loaders.some((it) => it.function !== null);
  return (
    <section class="section">
      <h2>Loaders that make batches in Python</h2>
      <div class="scrolls" tabIndex={0} role="group" aria-label="Loaders">
        <table class="quiet" aria-label="Loaders">
          <thead>
            <tr>
              <th title={about("made_in")}>batches are made in</th>
              <Head name="batches_per_step" about={about}>
                batches a step
              </Head>
              <Head name="wait_ps" about={about}>
                in the loader, a step
              </Head>
              <Head name="ops_ps" about={about}>
                of it in ops
              </Head>
              <Head name="longest_ps" about={about}>
                longest, one batch
              </Head>
              {anyFunction && <th title={about("function")}>most of it in</th>}
            </tr>
          </thead>
          <tbody>
            {loaders.map((it, at) => (
              <tr key={it.made_in} class={lit.has(at) ? "lit" : ""}>
                <th scope="row">
                  {it.made_in === "workers" ? "worker processes" : `the ${it.made_in}`}
                </th>
                <td class="number">{number(it.batches_per_step)}</td>
                <td class="number">{time(it.wait_ps)}</td>
                <td class="number">{time(it.ops_ps)}</td>
                <td class="number">{time(it.longest_ps)}</td>
                {anyFunction && (
                  <td>
                    {it.function ?? UNKNOWN} <span class="faint">{it.place}</span>
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {loaders.some((it) => it.made_in === "workers") && (
        <p class="faint">
          What the workers do is in none of the profile's events: time in the loader is what they
          are behind by.
        </p>
      )}
    </section>
  );
}

function Tree({ stages, doc }: { stages: InputStage[]; doc: { name: string; doc: string }[] }) {
  const lit = litRows(route.value.params, "input_stage");
  const first = useRef<HTMLTableRowElement>(null);
  useEffect(() => first.current?.scrollIntoView({ block: "nearest" }), []);
  const depth = new Map<string, number>();
  for (const it of stages) {
    depth.set(it.stage, it.parent === null ? 0 : (depth.get(it.parent) ?? 0) + 1);
  }
  const most = Math.max(...stages.map((it) => Math.max(it.work_ps, it.blocked_ps ?? 0)), 1);
  // Stages of the limiting threads take turns: the one that works most is what to change.
  const limiting = stages.filter((it) => it.limits);
  const heaviest = limiting.reduce<InputStage | undefined>(
    (most, it) => (most && most.work_ps >= it.work_ps ? most : it),
    undefined,
  );
  const work = timeColumn(stages.map((it) => it.work_ps));
  const blocked = timeColumn(stages.map((it) => it.blocked_ps));
  const about = (name: string) => doc.find((it) => it.name === name)?.doc;
  const anyPython = stages.some((it) => (it.python_ps ?? 0) > 0);
  return (
    <section class="section">
      <h2>Stages, consumer first</h2>
      <div class="scrolls" tabIndex={0} role="group" aria-label="Stages of the input pipeline">
        <table class="quiet stages" aria-label="Stages">
          <thead>
            <tr>
              <th>stage</th>
              <Head name="elements_per_step" about={about}>
                elements a step
              </Head>
              <Head name="work_ps" about={about}>
                work a step <span class="faint">{work.unit}</span>
              </Head>
              <th class="bar-cell">
                <span class="legend">
                  <span>
                    <i class="swatch" style={{ backgroundColor: "var(--input)" }} />
                    work
                  </span>
                  {anyPython && (
                    <span>
                      <i class="swatch" style={{ backgroundColor: "var(--python)" }} />
                      of it Python
                    </span>
                  )}
                  <span>
                    <i class="swatch hatched" style={{ backgroundColor: "var(--idle)" }} />
                    blocked
                  </span>
                </span>
              </th>
              <Head name="blocked_ps" about={about}>
                blocked <span class="faint">{blocked.unit}</span>
              </Head>
              <Head name="parallelism" about={about}>
                parallel
              </Head>
              <Head name="buffered" about={about}>
                buffer held
              </Head>
              <th title={about("limits")}>limits</th>
            </tr>
          </thead>
          <tbody>
            {stages.map((it, at) => (
              <tr
                key={it.stage}
                class={lit.has(at) ? "lit" : ""}
                ref={lit.has(at) && at === Math.min(...lit) ? first : null}
              >
                <th scope="row" class="stage" title={it.stage}>
                  <span
                    class="indent"
                    style={{ width: `${(depth.get(it.stage) ?? 0) * 16}px` }}
                    aria-hidden="true"
                  />
                  {(depth.get(it.stage) ?? 0) > 0 && (
                    <span class="faint" aria-hidden="true">
                      └{" "}
                    </span>
                  )}
                  <span class={it === heaviest ? "limiting" : ""}>{it.kind}</span>{" "}
                  <span class="faint">
                    {it.dataset}
                    {it.dataset?.startsWith("inject/") && ", put there by TensorFlow"}
                  </span>
                </th>
                <td class="number">{number(it.elements_per_step)}</td>
                <td class="number">{work.text(it.work_ps)}</td>
                <td class="bar-cell">
                  <div class="stage-bars" aria-hidden="true">
                    <i
                      style={{
                        width: `${((it.work_ps - (it.python_ps ?? 0)) / most) * 100}%`,
                        backgroundColor: "var(--input)",
                      }}
                    />
                    <i
                      style={{
                        width: `${((it.python_ps ?? 0) / most) * 100}%`,
                        backgroundColor: "var(--python)",
                      }}
                    />
                    <i
                      class="hatched"
                      style={{
                        width: `${((it.blocked_ps ?? 0) / most) * 100}%`,
                        backgroundColor: "var(--idle)",
                      }}
                    />
                  </div>
                </td>
                <td class="number">
                  {it.blocked_ps === null ? UNKNOWN : blocked.text(it.blocked_ps)}
                </td>
                <td class="number">
                  {thousands(it.parallelism)}
                  {it.autotune && <span class="faint"> auto</span>}
                </td>
                <td class="number">
                  {it.buffered === null && it.buffer_limit === null
                    ? UNKNOWN
                    : `${number(it.buffered)} of ${it.buffer_limit === null ? UNKNOWN : thousands(it.buffer_limit)}`}
                </td>
                <td>
                  {it.limits &&
                    (it === heaviest ? <b>limits</b> : <span class="faint">same threads</span>)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

const Head = ({
  name,
  about,
  children,
}: {
  name: string;
  about: (name: string) => string | undefined;
  children: ComponentChildren;
}) => (
  <th class="number" title={about(name)}>
    {children}
  </th>
);

/** Stages that share threads take turns; what the slowest group needs is what a batch takes. */
function Threads({ stages, report }: { stages: InputStage[]; report: Report }) {
  const groups = new Map<string, InputStage>();
  for (const it of stages) if (!groups.has(it.runs_in)) groups.set(it.runs_in, it);
  const step = (report.steps.mean_ms ?? 0) * 1e9;
  const most = Math.max(...[...groups.values()].map((it) => it.period_ps ?? 0), step, 1);
  return (
    <section class="section">
      <h2>What each group of threads needs for a step</h2>
      <table class="quiet" aria-label="Threads of the pipeline">
        <tbody>
          {[...groups].map(([name, it]) => (
            <tr key={name}>
              <th scope="row">
                {name === "consumer"
                  ? "the thread that asks for batches"
                  : `threads of ${stageName(name)}`}
              </th>
              <td class="number">{time(it.period_ps)}</td>
              <td class="period">
                <div class="meter" aria-hidden="true">
                  <i
                    style={{
                      width: `${((it.period_ps ?? 0) / most) * 100}%`,
                      backgroundColor: it.limits ? "var(--input)" : "var(--runtime)",
                    }}
                  />
                </div>
              </td>
              <td>{it.limits && <b>limits the pipeline</b>}</td>
            </tr>
          ))}
          {step > 0 && (
            <tr>
              <th scope="row">the mean step, as measured</th>
              <td class="number">{time(step)}</td>
              <td class="period">
                <div class="meter" aria-hidden="true">
                  <i
                    style={{
                      width: `${(step / most) * 100}%`,
                      backgroundColor: "var(--strong-line)",
                    }}
                  />
                </div>
              </td>
              <td>
                <a href={link("timeline")}>a typical step on the timeline</a>
              </td>
            </tr>
          )}
        </tbody>
      </table>
    </section>
  );
}
