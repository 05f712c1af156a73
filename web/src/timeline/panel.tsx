// At the right: all about the selected event, or what lies in the selected range.

import type { EventDetails, EventLink, EventRef } from "../data/types";
import { categoryName, percent, plain, thousands, time, UNKNOWN } from "../format";
import { Edge, PANEL_WIDTH } from "./edge";
import type { Model } from "./model";
import { RangeTable } from "./range-table";

const MOST_LINKS = 12;

export function Panel({ model }: { model: Model }) {
  const content =
    model.selected.value !== null ? (
      <EventPanel model={model} />
    ) : model.range.value ? (
      <RangeTable model={model} />
    ) : null;
  return (
    content && (
      <>
        <Edge size={PANEL_WIDTH} label="Width of the panel" grows="left" />
        {content}
      </>
    )
  );
}

function EventPanel({ model }: { model: Model }) {
  const { value, error } = model.details.value;
  return (
    <aside
      class="tl-panel"
      aria-label="Selected event"
      tabIndex={0}
      style={{ width: `${PANEL_WIDTH.value}px` }}
    >
      <div class="tl-close">
        <button aria-label="Close" title="Close  Esc" onClick={() => model.choose(null)}>
          ×
        </button>
      </div>
      {error ? (
        <p class="failed">{error.message}</p>
      ) : value ? (
        <Details it={value} model={model} />
      ) : (
        <div class="skeleton tl-wait">…</div>
      )}
    </aside>
  );
}

function Details({ it, model }: { it: EventDetails; model: Model }) {
  // While the view is left, the stage is gone before this is.
  const ruler = model.stage?.ruler;
  const step = ruler?.steps[ruler.at(it.start_ps)];
  return (
    <>
      <h2 class="tl-title">{it.name}</h2>
      <p class="faint">
        <i
          class="swatch"
          style={{ backgroundColor: it.category ? `var(--${it.category})` : "var(--strong-line)" }}
        />{" "}
        {it.kind.replaceAll("_", " ")}
        {it.category && it.category !== it.kind && ` · ${categoryName(it.category)}`}
      </p>
      <dl class="tl-facts">
        <Fact name="duration">{time(it.dur_ps)}</Fact>
        <Fact name="self time">{time(it.self_ps)}</Fact>
        {it.step !== null && (
          <Fact name={`of step ${it.step}`}>
            {step && step.dur_ps > 0 ? percent(it.dur_ps / step.dur_ps) : UNKNOWN}
          </Fact>
        )}
        <Fact name="begins">
          {step ? `${time(it.start_ps - step.start_ps)} into step ${step.step}` : time(it.start_ps)}
        </Fact>
        <Fact name="on">{model.titleOf(it.track)}</Fact>
        {it.op && <Fact name="op">{plain(it.op)}</Fact>}
        {it.hlo_op && <Fact name="HLO">{it.hlo_op}</Fact>}
        {it.hlo_module && <Fact name="program">{it.hlo_module}</Fact>}
        {it.source && <Fact name="source">{it.source}</Fact>}
      </dl>
      <p>
        <button onClick={() => void model.focusOn(it.event)} title="Zoom to it  f">
          Zoom to it
        </button>
      </p>
      {it.hlo && (
        <section>
          <h3>Instruction</h3>
          <pre class="tl-hlo" tabIndex={0}>
            {it.hlo}
          </pre>
        </section>
      )}
      <Links title="Caused by" links={it.causes} model={model} />
      <Links title="Causes" links={it.effects} model={model} />
      <Links title="Inside" links={it.ancestors} model={model} />
      <SameName it={it} model={model} />
      {it.args.length > 0 && (
        <section>
          <h3>Arguments</h3>
          <dl class="tl-facts">
            {it.args.map(([key, value], at) => (
              <Fact key={at} name={key}>
                {String(value)}
              </Fact>
            ))}
          </dl>
        </section>
      )}
    </>
  );
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Links(props: { title: string; links: (EventRef | EventLink)[]; model: Model }) {
  const { title, links, model } = props;
  if (links.length === 0) return null;
  return (
    <section>
      <h3>{title}</h3>
      <ul class="tl-links">
        {links.slice(0, MOST_LINKS).map((it) => (
          <li key={it.event}>
            <a href={model.eventLink(it)} title={it.name}>
              {it.name}
            </a>
            <span class="faint">
              {"kind" in it && `${it.kind} · `}
              {time(it.dur_ps)}
            </span>
          </li>
        ))}
      </ul>
      {links.length > MOST_LINKS && (
        <p class="faint">and {thousands(links.length - MOST_LINKS)} more</p>
      )}
    </section>
  );
}

function SameName({ it, model }: { it: EventDetails; model: Model }) {
  const { same_name: same } = it;
  if (same.count < 2) return null;
  const tallest = Math.max(...same.histogram.counts, 1);
  const most = Math.max(...same.per_step.map((of) => of.total_ps), 1);
  const { edges_ps, counts } = same.histogram;
  const own = edges_ps.findLastIndex((edge) => edge <= it.dur_ps);
  const mine = Math.min(own, counts.length - 1);
  return (
    <section>
      <h3>{thousands(same.count)} of this name</h3>
      {same.sampled && <p class="faint">Of the first million.</p>}
      <dl class="tl-facts">
        <Fact name="median">{time(same.median_ps)}</Fact>
        <Fact name="shortest">{time(same.min_ps)}</Fact>
        <Fact name="longest">{time(same.max_ps)}</Fact>
        <Fact name="total">{time(same.total_ps)}</Fact>
      </dl>
      {counts.length > 1 && (
        <figure class="tl-chart">
          <svg
            viewBox={`0 0 ${counts.length} 10`}
            preserveAspectRatio="none"
            role="img"
            aria-label={`How long they take: from ${time(same.min_ps)} to ${time(same.max_ps)}, half within ${time(same.median_ps)}`}
          >
            {counts.map((n, at) => (
              <rect
                key={at}
                class={at === mine ? "tl-mine" : ""}
                x={at + 0.06}
                width={0.88}
                y={10 - (n > 0 ? Math.max((n / tallest) * 10, 0.4) : 0)}
                height={n > 0 ? Math.max((n / tallest) * 10, 0.4) : 0}
              />
            ))}
          </svg>
          <figcaption class="faint">
            <span>{time(same.min_ps)}</span>
            <span>how long</span>
            <span>{time(same.max_ps)}</span>
          </figcaption>
        </figure>
      )}
      {same.per_step.length > 1 && (
        <figure class="tl-chart">
          <svg
            viewBox={`0 0 ${same.per_step.length} 10`}
            preserveAspectRatio="none"
            role="img"
            aria-label={`Time in each of ${same.per_step.length} steps, at most ${time(most)}`}
          >
            {same.per_step.map((of, at) => (
              <rect
                key={of.step}
                class={of.step === it.step ? "tl-mine" : ""}
                x={at + 0.06}
                width={0.88}
                y={10 - (of.total_ps / most) * 10}
                height={(of.total_ps / most) * 10}
                onClick={() => model.showStepNumber(of.step)}
              >
                <title>{`step ${of.step}: ${thousands(of.count)} in ${time(of.total_ps)}`}</title>
              </rect>
            ))}
          </svg>
          <figcaption class="faint">
            <span>step {same.per_step[0]!.step}</span>
            <span>time in each step</span>
            <span>{same.per_step.at(-1)!.step}</span>
          </figcaption>
        </figure>
      )}
    </section>
  );
}
