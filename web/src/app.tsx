// The frame: a slim bar on top, the rail of views, the view itself.

import { useEffect, useState } from "preact/hooks";
import type { ComponentType } from "preact";
import { failure, follow, remembered, runs, status, statusOf, useReport } from "./data/store";
import type { TableData } from "./data/types";
import { bytes, thousands } from "./format";
import { Failed } from "./parts/empty";
import { Licences } from "./parts/licences";
import { NarrowBar } from "./parts/narrow-bar";
import { go, link, route } from "./router";
import { choose, theme } from "./theme";
import { VIEWS, type Needs, type View, type ViewProps } from "./views";

export function App() {
  const { run, view } = route.value;
  useEffect(() => {
    let left = false;
    void follow(run, () => left);
    return () => {
      left = true;
    };
  }, [run]);
  const ready = status.value?.state === "ready" && statusOf.value === run;
  const shown = VIEWS.find((it) => it.id === view);
  useEffect(() => {
    document.title = `${shown?.title ?? "Not found"} · Stroboscope`;
  }, [shown]);
  return (
    <div class="frame">
      <Top run={run} ready={ready} view={shown} />
      <nav class="rail" aria-label="Views">
        {VIEWS.map((it) => (
          <a key={it.id} href={link(it.id)} aria-current={it.id === view ? "page" : undefined}>
            {it.title}
            {it.id === "overview" && ready && <FindingCount run={run} />}
            {it.needs && ready && <Nothing run={run} {...it.needs} />}
          </a>
        ))}
        <Licences />
      </nav>
      <main class="view" id="view" tabIndex={-1}>
        {failure.value ? (
          <Failed error={failure.value} />
        ) : !ready ? (
          <Opening />
        ) : shown ? (
          <Loaded key={`${shown.id}/${run}`} view={shown} run={run} />
        ) : (
          <Failed error={new Error(`there is no view called ${view}`)} />
        )}
      </main>
    </div>
  );
}

function Top({ run, ready, view }: { run: number; ready: boolean; view: View | undefined }) {
  const other = theme.value === "dark" ? "light" : "dark";
  const list = runs.value ?? [];
  return (
    <header class="top">
      <a class="brand" href={link("overview", {}, run)}>
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <rect width="16" height="16" rx="3" fill="currentColor" />
          <path d="M3 4h2v8H3zM7 4h2v8H7zM11 4h2v8h-2z" fill="var(--ground)" />
        </svg>
        Stroboscope
      </a>
      {list.length > 1 ? (
        <select
          aria-label="Run"
          value={String(run)}
          onChange={(it) => go(route.value.view, {}, Number(it.currentTarget.value))}
        >
          {list.map((it) => (
            <option key={it.id} value={String(it.id)} title={it.path}>
              {it.name}
            </option>
          ))}
        </select>
      ) : (
        <b>{list[0]?.name}</b>
      )}
      {ready && view?.narrows && <NarrowBar run={run} by={view.narrows} />}
      <span class="facts">{ready && <Facts run={run} />}</span>
      <button onClick={() => choose(other)} title={`Switch to the ${other} theme`}>
        {theme.value === "dark" ? "Dark" : "Light"}
      </button>
    </header>
  );
}

function Facts({ run }: { run: number }) {
  const { value: report } = useReport(run);
  if (!report) return null;
  const facts = [...report.run.facts, `${thousands(report.run.events)} events`];
  return <>{facts.join(" · ")}</>;
}

function FindingCount({ run }: { run: number }) {
  const n = useReport(run).value?.findings.length;
  return n ? (
    <span class="count" aria-label={`${n} findings`}>
      {n}
    </span>
  ) : null;
}

const NO_TABLES: readonly string[] = [];

/** Marks a view that would be empty, with why. */
function Nothing(needs: { run: number } & Needs) {
  const { run, tables = NO_TABLES, category, runs: fewest = 1, without } = needs;
  const { value: report } = useReport(run);
  const [hasNoRows, setHasNoRows] = useState(false);
  useEffect(() => {
    let left = false;
    const rows = tables.map((it) => remembered<TableData>(`runs/${run}/tables/${it}?limit=0`));
    setHasNoRows(false);
    // A table that cannot be had says nothing about its rows.
    Promise.all(rows).then(
      (all) => !left && setHasNoRows(all.length > 0 && all.every((it) => it.total === 0)),
      () => {},
    );
    return () => {
      left = true;
    };
  }, [run, tables]);
  const takesTime = report?.breakdown.some((it) => it.category === category && it.share > 0);
  return (hasNoRows && !takesTime) || (runs.value?.length ?? 0) < fewest ? (
    <span class="nothing" role="img" title={without} aria-label={`empty: ${without}`}>
      –
    </span>
  ) : null;
}

/** Nothing spins: a line that grows, and what it is doing. */
function Opening() {
  const now = status.value;
  const share = now && now.total_bytes > 0 ? now.bytes / now.total_bytes : 0;
  return (
    <div class="pad" role="status">
      <div class="progress" style={{ width: `${Math.max(share, 0.02) * 100}%` }} />
      {now && now.seconds >= 0.3 && (
        <p class="faint">
          {now.phase}
          {now.total_bytes > 0 && `, ${bytes(now.bytes)} of ${bytes(now.total_bytes)}`} ·{" "}
          {now.seconds.toFixed(0)} s
        </p>
      )}
    </div>
  );
}

function Loaded({ view, run }: { view: View; run: number }) {
  const [Content, setContent] = useState<ComponentType<ViewProps> | null>(null);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    view.load().then((it) => setContent(() => it.default), setError);
  }, [view]);
  if (error) return <Failed error={error} />;
  return Content && <Content run={run} />;
}
