// SQL over every table of the run: an editor that knows them, the result as table and chart.

import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError } from "../data/client";
import { client, useSchema } from "../data/store";
import type { Cell, SqlResult, TableSchema } from "../data/types";
import { thousands } from "../format";
import { Choice } from "../parts/choice";
import { DataTable, DataTableSkeleton, inAddress, type DataColumn } from "../parts/data-table";
import { Empty, Failed } from "../parts/empty";
import { cellOf, resultColumns, shapeOf, type ResultShape } from "../parts/result-shape";
import type { Editor } from "../parts/sql-editor";
import { go, remember, route, showEvents } from "../router";
import { EXAMPLES } from "./query-examples";
import type { ViewProps } from ".";
import "./ops.css";
import "./query.css";

const LIMIT = 10_000;

interface Asked {
  query: string;
  said: string;
}

/** Of this session only. */
const asked = signal<Asked[]>([]);

interface Outcome {
  query: string;
  result: SqlResult | null;
  error: Error | null;
  ms: number;
}

export default function Query({ run }: ViewProps) {
  const { value: schema, error } = useSchema(run);
  const { params } = route.value;
  const query = params["q"] ?? EXAMPLES[0]!.query;
  // What is typed is the editor's own: the view need not be drawn for every letter.
  const text = useRef(query);
  const [again, setAgain] = useState(0);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [running, setRunning] = useState<AbortController | null>(null);
  const editor = useRef<Editor | null>(null);

  const write = (it: string) => {
    text.current = it;
    editor.current?.set(it);
  };
  useEffect(() => write(query), [query]);
  useEffect(() => {
    if (!client.live) return;
    const stop = new AbortController();
    const since = performance.now();
    const done = (result: SqlResult | null, failed: Error | null) => {
      if (stop.signal.aborted) return;
      setRunning(null);
      setOutcome({ query, result, error: failed, ms: performance.now() - since });
      const said = result
        ? `${thousands(result.rows.length)}${result.truncated ? " and more" : ""} rows`
        : (failed?.message ?? "");
      asked.value = [{ query, said }, ...asked.value.filter((it) => it.query !== query)].slice(
        0,
        50,
      );
    };
    setRunning(stop);
    client.post<SqlResult>(`runs/${run}/sql`, { query, limit: LIMIT }, stop.signal).then(
      (it) => done(it, null),
      (it: Error) => done(null, it),
    );
    return () => stop.abort();
  }, [run, query, again]);

  if (!client.live) {
    return (
      <div class="pad">
        <h1>Queries need the server</h1>
        <Empty command="strobe serve RUN#query">
          This is an exported file, which holds no tables to ask. Open the run itself.
        </Empty>
      </div>
    );
  }
  if (error) return <Failed error={error} />;
  const ask = (it: string) => {
    const wanted = it.trim();
    if (wanted === "") return;
    write(wanted);
    if (wanted === query) setAgain((n) => n + 1);
    else go("query", { q: wanted, side: params["side"] });
  };
  const stop = () => {
    running?.abort();
    setRunning(null);
  };
  return (
    <div class="pad table-view query">
      <h1 class="visually-hidden">Query the tables of this run</h1>
      <div class="query-ask">
        <LazyEditor
          text={text.current}
          schema={schema ?? NOTHING}
          onChange={(it) => (text.current = it)}
          onRun={() => ask(text.current)}
          onReady={(it) => {
            editor.current = it;
            it.set(text.current);
          }}
        />
        <div class="query-run">
          <button
            class="primary"
            onClick={() => ask(text.current)}
            aria-keyshortcuts="Control+Enter"
          >
            Run
          </button>
          <span class="faint">Ctrl+Enter</span>
          {running && outcome && <Waiting since={running} onStop={stop} />}
        </div>
        {outcome ? (
          <Answered outcome={outcome} stale={running !== null} />
        ) : (
          <DataTableSkeleton fill />
        )}
      </div>
      <Side
        schema={schema}
        onAsk={ask}
        onInsert={(it) => editor.current?.insert(it)}
        chosen={params["side"] ?? "examples"}
      />
    </div>
  );
}

const NOTHING: TableSchema[] = [];

type EditorProps = Parameters<typeof import("../parts/sql-editor").default>[0];

/** The text can be read, edited and run before the editor has come. */
function LazyEditor(props: EditorProps) {
  const [Loaded, setLoaded] = useState<ComponentType<EditorProps> | null>(null);
  useEffect(() => {
    import("../parts/sql-editor").then(
      (it) => setLoaded(() => it.default),
      () => undefined,
    );
  }, []);
  if (Loaded) {
    return (
      <div class="query-editor">
        <Loaded {...props} />
      </div>
    );
  }
  return (
    <div class="query-editor">
      <textarea
        aria-label="SQL query"
        spellcheck={false}
        defaultValue={props.text}
        onInput={(it) => props.onChange(it.currentTarget.value)}
      />
    </div>
  );
}

/** Says so only where one would begin to wonder. */
function Waiting({ since, onStop }: { since: AbortController; onStop: () => void }) {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    setSeconds(0);
    const timer = setInterval(() => setSeconds((it) => it + 1), 1000);
    return () => clearInterval(timer);
  }, [since]);
  if (seconds < 1) return null;
  return (
    <span role="status">
      running for {seconds} s <button onClick={onStop}>Stop waiting</button>
    </span>
  );
}

function Answered({ outcome, stale }: { outcome: Outcome; stale: boolean }) {
  const { result, error } = outcome;
  const columns = useMemo(() => (result ? resultColumns(result) : []), [result]);
  const shape = useMemo(() => (result ? shapeOf(result, columns) : null), [result, columns]);
  const shown = useMemo<DataColumn<Cell[]>[]>(() => {
    const texts = columns.filter((it) => it.kind === "text").length;
    return columns.map((it) => ({
      key: it.key,
      title: it.name,
      kind: it.kind,
      value: (row) => cellOf(row, it),
      ...(it.kind === "share" && { bar: () => "var(--accent)", width: 112 }),
      // A text beside others need not be wide; one alone takes what is left.
      ...(it.kind === "text" && texts > 2 && { width: 200 }),
    }));
  }, [columns]);
  if (error) {
    const hint = error instanceof ApiError ? error.hint : null;
    return (
      <div class="query-failed" role="alert">
        <p class="failed">{error.message}</p>
        {hint && <pre>{hint}</pre>}
      </div>
    );
  }
  if (!result) return null;
  const event = columns.find((it) => it.name === "event");
  const as = shape && route.value.params["as"] === "chart" ? "chart" : "table";
  const tools = (
    <>
      {shape && (
        <Choice
          label="Result as"
          options={[
            { id: "table", title: "Table" },
            { id: "chart", title: "Chart" },
          ]}
          chosen={as}
          onChoose={(it) => remember({ as: it === "chart" ? it : null })}
        />
      )}
      <span class="faint">
        {outcome.ms < 1000 ? `${outcome.ms.toFixed(0)} ms` : `${(outcome.ms / 1000).toFixed(1)} s`}
        {event && as === "table" && ", a row opens on the timeline"}
      </span>
      {result.truncated && (
        <b>
          Cut off after {thousands(result.rows.length)} rows: there are more. Narrow the query, or
          add up in it.
        </b>
      )}
    </>
  );
  return (
    <div class={`query-answer ${stale ? "stale" : ""}`}>
      {as === "chart" && shape ? (
        <>
          <div class="query-tools">{tools}</div>
          <LazyChart result={result} shape={shape} />
        </>
      ) : (
        <DataTable
          fill
          label="query result"
          columns={shown}
          rows={result.rows}
          tools={tools}
          {...inAddress()}
          {...(event && {
            onOpen: (row: Cell[]) => {
              const number = cellOf(row, event);
              if (typeof number === "number") location.hash = showEvents([number]);
            },
          })}
        />
      )}
    </div>
  );
}

type ChartProps = { result: SqlResult; shape: ResultShape };

function LazyChart(props: ChartProps) {
  const [Loaded, setLoaded] = useState<ComponentType<ChartProps> | null>(null);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    import("../parts/result-chart").then((it) => setLoaded(() => it.default), setError);
  }, []);
  if (error) return <Failed error={error} />;
  return Loaded ? <Loaded {...props} /> : <div class="skeleton query-blank" />;
}

function Side(props: {
  schema: TableSchema[] | null;
  chosen: string;
  onAsk: (query: string) => void;
  onInsert: (text: string) => void;
}) {
  return (
    <aside class="query-side" aria-label="Help for queries">
      <Choice
        label="Help"
        options={[
          { id: "examples", title: "Examples" },
          { id: "tables", title: "Tables" },
          { id: "history", title: "History" },
        ]}
        chosen={props.chosen}
        onChoose={(it) => remember({ side: it === "examples" ? null : it })}
      />
      {props.chosen === "tables" ? (
        <Tables {...props} />
      ) : props.chosen === "history" ? (
        <History onAsk={props.onAsk} />
      ) : (
        <ul class="query-list">
          {EXAMPLES.map((it) => (
            <li key={it.title}>
              <button onClick={() => props.onAsk(it.query)} title={it.query}>
                {it.title}
              </button>
            </li>
          ))}
        </ul>
      )}
    </aside>
  );
}

function History({ onAsk }: { onAsk: (query: string) => void }) {
  return (
    <ul class="query-list">
      {asked.value.map((it) => (
        <li key={it.query}>
          <button onClick={() => onAsk(it.query)} title={it.query}>
            <code>{it.query}</code>
            <span class="faint">{it.said}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function Tables(props: {
  schema: TableSchema[] | null;
  onAsk: (query: string) => void;
  onInsert: (text: string) => void;
}) {
  const [filter, setFilter] = useState("");
  const wanted = filter.toLowerCase();
  const has = (text: string) => text.toLowerCase().includes(wanted);
  const found = (props.schema ?? []).filter(
    (it) => has(it.name) || has(it.doc) || it.columns.some((one) => has(one.name) || has(one.doc)),
  );
  return (
    <>
      <input
        type="search"
        placeholder="Find a table or column"
        aria-label="Find a table or column"
        value={filter}
        onInput={(it) => setFilter(it.currentTarget.value)}
      />
      {props.schema && found.length === 0 && <p class="faint">No table or column says {filter}.</p>}
      {found.map((table) => (
        <details key={table.name} open={wanted !== "" && found.length <= 5}>
          <summary title={table.doc}>
            <code>{table.name}</code>
          </summary>
          <p>{table.doc}</p>
          {table.name !== "args" && (
            <button onClick={() => props.onAsk(`select * from ${table.name} limit 1000`)}>
              Show its rows
            </button>
          )}
          <dl>
            {table.columns.map((it) => (
              <div key={it.name}>
                <dt>
                  <button onClick={() => props.onInsert(it.name)} title="Put into the query">
                    <code>{it.name}</code>
                  </button>{" "}
                  <span class="faint">{it.kind}</span>
                </dt>
                <dd class="faint">{it.doc}</dd>
              </div>
            ))}
          </dl>
        </details>
      ))}
    </>
  );
}
