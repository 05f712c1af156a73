// Where the time goes, as a flame graph: sampled Python stacks, or the ops by their name scopes.

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { narrowed, stepsText, type Narrowed } from "../data/narrowing";
import { client, records, useWholeTable } from "../data/store";
import type { PythonStack, ScopeStep } from "../data/tables";
import type { TableData, TableOf } from "../data/types";
import { percent, plain, thousands, time } from "../format";
import { Choice } from "../parts/choice";
import { Empty, Failed } from "../parts/empty";
import { useEscape } from "../parts/escape";
import {
  flame,
  heaviest,
  matchedPs,
  type FlameInput,
  type FlameNode,
  type Part,
  type Order,
} from "../parts/flame";
import { FlameGraph } from "../parts/flame-graph";
import { lastPart, ROOT } from "../parts/scopes";
import { go, link, remember, route } from "../router";
import type { ViewProps } from ".";
import "../parts/details.css";
import "./flame.css";

/** Of all hosts and steps together where these are null. */
type Scope = Omit<ScopeStep, "host" | "step"> & OfStep;

type Of = "python" | "scopes";

/** A thread that was sampled. */
interface Lane {
  id: string;
  title: string;
}

const laneId = (it: PythonStack): string => `${it.pid}.${it.lane}`;

export default function FlameView({ run }: ViewProps) {
  const stacks = useWholeTable(run, "python_stack");
  const scopes = useWholeTable(run, "scope_step");
  const all = useWholeTable(run, "scope_time");
  const error = stacks.error ?? scopes.error ?? all.error;
  if (error) return <Failed error={error} />;
  if (!stacks.value || !scopes.value || !all.value) {
    return (
      <div class="pad flame-view">
        <h1 class="skeleton">Where the time goes</h1>
        <div class="flame-room skeleton" />
      </div>
    );
  }
  return <Shown stacks={stacks.value} scopes={scopes.value} all={all.value} />;
}

function Shown(props: {
  stacks: TableOf<"python_stack">;
  scopes: TableOf<"scope_step">;
  all: TableOf<"scope_time">;
}) {
  const stacks = useMemo(() => records(props.stacks), [props.stacks]);
  const scopes = useMemo(() => scopeRows(props.scopes, props.all), [props.scopes, props.all]);
  const { params } = route.value;
  const has: Record<Of, boolean> = { python: stacks.length > 0, scopes: scopes.length > 0 };
  const asked = params["of"];
  const of: Of =
    asked === "python" || asked === "scopes"
      ? asked
      : has.python || !has.scopes
        ? "python"
        : "scopes";
  const order: Order = params["order"] === "time" ? "time" : "heavy";
  const tools = (
    <>
      <Choice
        label="Flame graph of"
        options={[
          { id: "python", title: "Python", doc: "Stacks of Python, as they were sampled" },
          { id: "scopes", title: "Scopes", doc: "Ops by the layers and functions in their names" },
        ]}
        chosen={of}
        onChoose={(it) => go("flame", { ...params, of: it, zoom: null, thread: null })}
      />
      <Choice
        label="Order"
        options={[
          {
            id: "heavy",
            title: "Left-heavy",
            doc: "Calls of one function together, longest first",
          },
          { id: "time", title: "Time order", doc: "As they followed each other" },
        ]}
        chosen={order}
        onChoose={(it) => go("flame", { ...params, order: it })}
      />
    </>
  );
  return of === "python" ? (
    <OfPython all={stacks} order={order} tools={tools} cutAt={cutAt(props.stacks)} />
  ) : (
    <OfScopes all={scopes} order={order} tools={tools} cutAt={cutAt(props.scopes)} />
  );
}

/** How many rows are there, where that is not all. */
const cutAt = (of: TableData): { rows: number; total: number } | null =>
  of.rows.length < of.total ? { rows: of.rows.length, total: of.total } : null;

/** Step by step; where that is too much to load, those of all steps are still whole. */
function scopeRows(steps: TableOf<"scope_step">, all: TableOf<"scope_time">): Scope[] {
  if (!cutAt(steps) || narrowed.value.steps || narrowed.value.host) return records(steps);
  return records(all).flatMap((it) =>
    (["host", "device"] as const).map((side) => ({
      ...{ host: null, step: null, side, scope: it.scope, parent: it.parent, depth: it.depth },
      ...{ start_ps: 0, count: it.count, self_ps: side === "host" ? it.self_ps : 0 },
      total_ps: side === "host" ? it.total_ps : (it.device_ps ?? 0),
    })),
  );
}

interface OfStep {
  host: string | null;
  step: number | null;
}

/** What a row must be of: a host, and steps, unless what is outside of them is wanted too. */
interface Chosen {
  narrow: Narrowed;
  outside: boolean;
}

/** Only what is known to be of these steps and this host. */
function isWithin({ narrow, outside }: Chosen, row: OfStep): boolean {
  const { host, steps } = narrow;
  if (host !== null && row.host !== null && row.host !== host) return false;
  if (row.step === null) return outside && steps === null;
  return steps === null || (row.step >= steps.first && row.step <= steps.last);
}

/** Where there are steps, warm-up and what follows the capture are another matter. */
function useChosen(rows: readonly OfStep[]): Chosen & { isKnown: boolean } {
  const narrow = narrowed.value;
  const isKnown = useMemo(
    () => rows.some((it) => it.step !== null) && rows.some((it) => it.step === null),
    [rows],
  );
  const noSteps = useMemo(() => rows.every((it) => it.step === null), [rows]);
  const outside = noSteps || route.value.params["outside"] === "1";
  // By what it says: every change of the address makes a new one, and a zoom is none for the rows.
  return useMemo(
    () => ({ narrow, outside, isKnown }),
    [narrow.host, stepsText(narrow.steps), outside, isKnown],
  );
}

const Outside = ({ chosen }: { chosen: Chosen & { isKnown: boolean } }) =>
  chosen.isKnown &&
  !chosen.narrow.steps && (
    <Choice
      label="Time"
      options={[
        { id: "", title: "In steps" },
        {
          id: "1",
          title: "All time",
          doc: "Also before the first step, between steps and after the last",
        },
      ]}
      chosen={chosen.outside ? "1" : ""}
      onChoose={(it) => go("flame", { ...route.value.params, outside: it || null, zoom: null })}
    />
  );

interface OfProps<T> {
  all: T[];
  order: Order;
  tools: ComponentChildren;
  cutAt: { rows: number; total: number } | null;
}

const CALLS: FlameInput<PythonStack> = {
  id: (it) => String(it.call),
  parent: (it) => (it.parent === null ? null : String(it.parent)),
  key: (it) => `${it.file}\n${it.function}`,
  name: (it) => it.function,
  ps: (it) => it.dur_ps,
  selfPs: (it) => it.self_ps,
  start: (it) => it.start_ps,
};

function OfPython({ all, order, tools, cutAt }: OfProps<PythonStack>) {
  const { params } = route.value;
  const narrow = narrowed.value;
  const lanes = useMemo(() => lanesOf(all, narrow.host), [all, narrow.host]);
  const lane = lanes.find((it) => it.id === params["thread"]) ?? lanes[0];
  const own = useMemo(() => all.filter((it) => laneId(it) === lane?.id), [all, lane?.id]);
  const chosen = useChosen(own);
  const rows = useMemo(() => own.filter((it) => isWithin(chosen, it)), [own, chosen]);
  const made = useMemo(() => flame(rows, CALLS, order), [rows, order]);
  const threads = lanes.length > 1 && (
    <select
      aria-label="Thread"
      value={lane?.id}
      onChange={(it) => go("flame", { ...params, thread: it.currentTarget.value, zoom: null })}
    >
      {lanes.map((it) => (
        <option key={it.id} value={it.id}>
          {it.title}
        </option>
      ))}
    </select>
  );
  if (all.length === 0) {
    return (
      <Without tools={tools}>
        <Empty command="strobe run -- python train.py">
          This run has no sampled Python stacks. strobe run takes them, a hundred times a second
          while it captures; a profile alone does not have them.
        </Empty>
      </Without>
    );
  }
  const nSteps = countSteps(rows);
  return (
    <Frame
      label="Sampled Python stacks"
      title={`${lane?.title}: ${time(made.root.ps)} of Python sampled${stepsOf(chosen, nSteps)}`}
      tools={
        <>
          {tools}
          <Outside chosen={chosen} />
          {threads}
        </>
      }
      made={made}
      cutAt={cutAt}
      text={(it) => `${it.name} ${it.rows[0]?.file ?? ""}`}
      place={(it) => place(it.rows)}
      nameOf={(it) => it.name}
      colour={(it) =>
        it.rows[0]?.own === true ? (it.rows[0].role === "input" ? "input" : "python") : "runtime"
      }
      legend={[
        [lane?.title.startsWith("Input") ? "input" : "python", "your code"],
        ["runtime", "libraries"],
      ]}
      nSteps={nSteps}
      whole="All of the thread"
    >
      {(it) =>
        it.parent ? (
          <Lines title="Lines" lines={ownLines(it.rows)} own={it.rows[0]?.own === true} />
        ) : (
          <Lines title="Lines of your code" lines={innermostLines(rows)} own />
        )
      }
    </Frame>
  );
}

const countSteps = (rows: readonly { step: number | null }[]): number =>
  new Set(rows.flatMap((it) => (it.step === null ? [] : [it.step]))).size;

const stepsOf = ({ narrow, outside }: Chosen, n: number): string =>
  narrow.steps
    ? ` in ${narrow.steps.first === narrow.steps.last ? "step" : "steps"} ${stepsText(narrow.steps)}`
    : n > 0
      ? ` in ${thousands(n)} ${n === 1 ? "step" : "steps"}${outside ? " and outside of them" : ""}`
      : "";

function lanesOf(all: PythonStack[], host: string | null): Lane[] {
  const found = new Map<string, PythonStack>();
  for (const it of all) {
    if ((host === null || it.host === null || it.host === host) && !found.has(laneId(it))) {
      found.set(laneId(it), it);
    }
  }
  const several = new Set([...found.values()].map((it) => it.pid)).size > 1;
  return [...found].map(([id, it]) => {
    const name = it.thread === null ? `thread ${it.lane}` : `thread ${it.thread}`;
    const title =
      it.role === "driving"
        ? "Driving thread"
        : it.role === "input"
          ? `Input ${name}`
          : `T${name.slice(1)}`;
    return { id, title: several ? `${title}, process ${it.pid}` : title };
  });
}

/** `train.py:42`, with the line where all rows are on one. */
function place(rows: PythonStack[]): string {
  const first = rows[0];
  if (!first) return "";
  const line = rows.every((it) => it.line === first.line) ? first.line : null;
  return line === null ? first.file : `${first.file}:${line}`;
}

/** Most lines that anybody compares. */
const MOST_LINES = 8;

interface Line {
  place: string;
  ps: number;
  text: string | null;
}

/** The lines of a function that were running. */
const ownLines = (rows: readonly PythonStack[]): Line[] =>
  sumOfLines(rows, (it) => (it.line === null ? null : [it, String(it.line), it.dur_ps]));

/** The innermost lines of the user's own code, each with all that libraries did for it. */
function innermostLines(rows: readonly PythonStack[]): Line[] {
  const innermost = new Map<number, PythonStack | null>();
  return sumOfLines(rows, (it) => {
    const own = it.own ? it : it.parent === null ? null : (innermost.get(it.parent) ?? null);
    innermost.set(it.call, own);
    return own && it.self_ps > 0
      ? [own, `${own.file.split("/").pop()}:${own.line ?? "?"}`, it.self_ps]
      : null;
  });
}

function sumOfLines(
  rows: readonly PythonStack[],
  of: (row: PythonStack) => [line: PythonStack, place: string, ps: number] | null,
): Line[] {
  const sums = new Map<string, Line>();
  for (const row of rows) {
    const found = of(row);
    if (!found) continue;
    const [line, place, ps] = found;
    const key = `${line.file}:${line.line}`;
    const known = sums.get(key) ?? { place, ps: 0, text: line.text };
    known.ps += ps;
    sums.set(key, known);
  }
  return [...sums.values()].sort((a, b) => b.ps - a.ps).slice(0, MOST_LINES);
}

/** Which lines were running, and what they say. */
function Lines({ title, lines, own }: { title: string; lines: Line[]; own: boolean }) {
  if (lines.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ol class="flame-lines">
        {lines.map((it) => (
          <li key={it.place}>
            <span class="faint">{it.place}</span>
            <code>{it.text ?? ""}</code>
            <span class="number">{time(it.ps)}</span>
          </li>
        ))}
      </ol>
      {own && lines.every((it) => it.text === null) && (
        <p class="faint">
          {client.live
            ? "What these lines say is not part of the run: strobe run notes it where the file has not changed since the program began."
            : "An exported file does not contain lines of your program."}
        </p>
      )}
    </>
  );
}

const SCOPES: FlameInput<Scope> = {
  id: (it) => (it.step === null ? it.scope : `${it.host} ${it.step} ${it.scope}`),
  parent: (it) =>
    it.parent === null || it.parent === ROOT
      ? null
      : it.step === null
        ? it.parent
        : `${it.host} ${it.step} ${it.parent}`,
  key: (it) => it.scope,
  name: (it) => (it.scope === ROOT ? "without a scope" : lastPart(it.scope)),
  ps: (it) => (it.scope === ROOT ? it.self_ps : it.total_ps),
  selfPs: (it) => it.self_ps,
  start: (it) => it.start_ps,
};

function OfScopes({ all, order, tools, cutAt }: OfProps<Scope>) {
  const { params } = route.value;
  const narrow = narrowed.value;
  const sides = (["device", "host"] as const).filter((side) =>
    all.some((it) => it.side === side && it.total_ps > 0),
  );
  const side = sides.find((it) => it === params["side"]) ?? sides[0] ?? "host";
  const own = useMemo(
    () =>
      all
        .filter((it) => it.side === side && SCOPES.ps(it) > 0)
        .sort((a, b) => a.start_ps - b.start_ps || a.depth - b.depth),
    [all, side],
  );
  const chosen = useChosen(own);
  const rows = useMemo(() => own.filter((it) => isWithin(chosen, it)), [own, chosen]);
  const made = useMemo(() => flame(rows, SCOPES, order), [rows, order]);
  if (all.length === 0) {
    return (
      <Without tools={tools}>
        <Empty command="strobe run -- python train.py">
          No op of this run has name scopes. TensorFlow and JAX write them into the names of ops
          while a step runs under their profiler.
        </Empty>
      </Without>
    );
  }
  const nSteps = countSteps(rows);
  return (
    <Frame
      label="Ops by name scope"
      title={`${time(made.root.ps)} of ops on the ${side}${stepsOf(chosen, nSteps)}`}
      tools={
        <>
          {tools}
          <Outside chosen={chosen} />
          {sides.length > 1 && (
            <Choice
              label="Side"
              options={sides.map((it) => ({ id: it, title: it === "host" ? "Host" : "Device" }))}
              chosen={side}
              onChoose={(it) => go("flame", { ...params, side: it, zoom: null })}
            />
          )}
        </>
      }
      made={made}
      cutAt={narrow.steps || narrow.host ? cutAt : null}
      text={(it) => `${it.name} ${it.key}`}
      place={(it) => plain(it.rows[0]?.scope ?? "")}
      nameOf={(it) => (it.key === ROOT ? it.name : it.key)}
      colour={() => (side === "device" || sides.length < 2 ? "compute" : "runtime")}
      legend={[]}
      nSteps={nSteps}
      whole="All ops"
    >
      {(it) =>
        it.parent && (
          <div class="links">
            <a href={link("ops", { scope: it.rows[0]?.scope, side })}>Its ops</a>
          </div>
        )
      }
    </Frame>
  );
}

const Without = ({
  tools,
  children,
}: {
  tools: ComponentChildren;
  children: ComponentChildren;
}) => (
  <div class="pad flame-view">
    <h1>Where the time goes</h1>
    <div class="flame-tools">{tools}</div>
    {children}
  </div>
);

interface FrameProps<T> {
  label: string;
  title: string;
  tools: ComponentChildren;
  made: { root: FlameNode<T>; of: Map<string, FlameNode<T>> };
  cutAt: { rows: number; total: number } | null;
  /** What a search looks at. */
  text: (of: FlameNode<T>) => string;
  place: (of: FlameNode<T>) => string;
  /** What tells it from others, and is found by a search. */
  nameOf: (of: Part) => string;
  colour: (of: FlameNode<T>) => string;
  legend: [category: string, means: string][];
  nSteps: number;
  /** What the outermost is called. */
  whole: string;
  children: (of: FlameNode<T>) => ComponentChildren;
}

/** Names in a list that nobody reads further. */
const MOST_INSIDE = 8;

function Frame<T>(props: FrameProps<T>) {
  const { made, nSteps } = props;
  const { params } = route.value;
  const { root } = made;
  const zoom = made.of.get(params["zoom"] ?? "") ?? root;
  const zoomTo = (to: FlameNode<T>) =>
    to !== zoom && go("flame", { ...params, zoom: to === root ? null : to.id });
  useEscape(zoom !== root, () => zoomTo(zoom.parent ?? root));
  const find = params["find"] ?? "";
  const wanted = find.toLowerCase();
  const matches =
    wanted === ""
      ? null
      : (it: FlameNode<T>) => it !== root && props.text(it).toLowerCase().includes(wanted);
  const found = matches ? matchedPs(root, matches) : 0;
  const share = (ps: number) => percent(root.ps > 0 ? ps / root.ps : null);
  const name = (it: FlameNode<T>) => (it === root ? props.whole : it.name);
  const inside = useMemo(() => heaviest(zoom, MOST_INSIDE), [zoom]);
  const figures: [string, string][] = [
    ["Total", time(zoom.ps)],
    ["Share", share(zoom.ps)],
    ...(zoom === root ? [] : [["Self", time(zoom.selfPs)] as [string, string]]),
    ...(nSteps > 1 ? [["Per step, mean", time(zoom.ps / nSteps)] as [string, string]] : []),
  ];
  return (
    <div class="pad flame-view">
      <h1>{props.title}</h1>
      <div class="flame-tools">
        {props.tools}
        <input
          type="search"
          aria-label="Find"
          placeholder="Find a name"
          value={find}
          onInput={(it) => remember({ find: it.currentTarget.value })}
        />
        <span class="faint" role="status">
          {matches && (found > 0 ? `${time(found)}, ${share(found)}` : "no match")}
        </span>
        <span class="flame-legend faint">
          {props.legend.map(([category, means]) => (
            <span key={category}>
              <i class="swatch" style={{ "--swatch": `var(--${category})` }} /> {means}
            </span>
          ))}
        </span>
      </div>
      {props.cutAt && (
        <p class="faint">
          Only the first {thousands(props.cutAt.rows)} of {thousands(props.cutAt.total)} rows are
          drawn.
        </p>
      )}
      {root.ps === 0 ? (
        <Empty>Nothing was seen in the steps and on the host that are chosen above.</Empty>
      ) : (
        <div class="flame-room">
          <div class="flame-scroll" tabIndex={-1}>
            <FlameGraph
              label={props.label}
              root={root}
              zoom={zoom}
              onZoom={zoomTo}
              colour={(it) => (it === root ? "idle" : props.colour(it))}
              matches={matches}
              say={(it) => `${name(it)} ${share(it.ps)}: ${time(it.ps)}`}
              tell={(it) => (
                <>
                  <b>{name(it)}</b>
                  {it !== root && <p class="mono">{props.place(it)}</p>}
                  <p>
                    {time(it.ps)}, {share(it.ps)}
                    {it !== root && ` · self ${time(it.selfPs)}`}
                  </p>
                </>
              )}
            />
          </div>
          <aside class="details" aria-label="Chosen">
            <header>
              <h2>{zoom === root ? "Everything" : "Chosen"}</h2>
              {zoom !== root && (
                <button onClick={() => zoomTo(root)} title="Show everything" aria-label="Close">
                  ✕
                </button>
              )}
            </header>
            <p class="mono name">
              {name(zoom)}
              {zoom !== root && <span class="faint"> {props.place(zoom)}</span>}
            </p>
            <dl>
              {figures.map(([title, text]) => (
                <div key={title}>
                  <dt>{title}</dt>
                  <dd>{text}</dd>
                </div>
              ))}
            </dl>
            {props.children(zoom)}
            {inside.length > 0 && (
              <>
                <h3>Most self time {zoom === root ? "" : "inside"}</h3>
                <ol class="flame-lines flame-inside">
                  {inside.map((it) => (
                    <li key={it.key}>
                      <button
                        class="flame-name"
                        title="Find it in the graph"
                        onClick={() => remember({ find: props.nameOf(it) })}
                      >
                        {plain(props.nameOf(it))}
                      </button>
                      <span class="number">{time(it.ps)}</span>
                    </li>
                  ))}
                </ol>
              </>
            )}
          </aside>
        </div>
      )}
    </div>
  );
}
