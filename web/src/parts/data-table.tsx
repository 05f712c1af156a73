// A table of any length: filter as you type, sort by header, columns to drag, copy as CSV.
// Only the rows in sight are in the document. Sorting and filtering flat rows is a few lines
// (`table-rows.ts`); a table library for that alone would weigh more than all of this.

import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
} from "@tanstack/virtual-core";
import type { ComponentChildren, VNode } from "preact";
import {
  useEffect,
  useId,
  useLayoutEffect,
  useMemo,
  useReducer,
  useRef,
  useState,
} from "preact/hooks";
import { thousands } from "../format";
import { remember, route } from "../router";
import { follow } from "./drag";
import {
  cellText,
  csv,
  kept,
  parseSort,
  searchable,
  sorted,
  sortText,
  split,
  type CellText,
  type ColumnKind,
  type Sort,
  type Value,
} from "./table-rows";
import "./data-table.css";

export type { ColumnKind, Sort } from "./table-rows";

export interface DataColumn<T> {
  /** Stable: stands in the address as the sort order, and in copies as the column's name. */
  key: string;
  title: string;
  /** Shown on hover: lifted from the code by `tables/NAME`. */
  doc?: string;
  kind: ColumnKind;
  value: (row: T) => Value;
  /** In place of the formatted value. */
  cell?: (row: T) => ComponentChildren;
  /** Of text: shown in place of the value, which is still what is sorted, filtered and copied. */
  show?: (row: T) => string;
  /** A bar inside the cell in this colour, as long as its part of the column's largest value. */
  bar?: (row: T) => string | null;
  /** In pixels; text without one takes the room that is left. */
  width?: number;
  /** Behind the unit: `/s` for bytes a second. */
  per?: string;
}

export interface DataTableProps<T> {
  /** For screen readers and for the file name of a copy. */
  label: string;
  columns: DataColumn<T>[];
  rows: T[];
  sort?: Sort;
  onSort?: (sort: Sort) => void;
  filter?: string;
  onFilter?: (text: string) => void;
  /** Makes rows open on click and Enter. */
  onOpen?: (row: T) => void;
  /** Lit, and scrolled to. */
  marked?: (row: T) => boolean;
  /** As high as its parent, which is then a flex column; else as high as its rows, up to a limit. */
  fill?: boolean;
  /** What rows are called: "73 ops". */
  noun?: [one: string, many: string];
  /** Beside the filter: switches of the view. */
  tools?: ComponentChildren;
}

const ROW = 26;
const HEADER = 28;
const NARROWEST = 40;

/** Sort order and filter in the address of the view: `<DataTable {...inAddress()} …>`. */
export function inAddress(start?: Sort, prefix = "") {
  const { params } = route.value;
  const sort = parseSort(params[`${prefix}sort`]) ?? start;
  return {
    ...(sort && { sort }),
    onSort: (it: Sort) => remember({ [`${prefix}sort`]: sortText(it) }),
    filter: params[`${prefix}filter`] ?? "",
    onFilter: (text: string) => remember({ [`${prefix}filter`]: text }),
  };
}

export function DataTable<T>(props: DataTableProps<T>) {
  const { columns, rows, label, onOpen } = props;
  const id = useId();
  const scroller = useRef<HTMLDivElement>(null);
  const grid = useRef<HTMLTableElement>(null);
  const [sort, setSort] = useGiven(props.sort ?? null, (it) => it && sortText(it));
  const [filter, setFilter] = useGiven(props.filter ?? "", (it) => it);
  const [active, setActive] = useState(-1);
  const [widths, setWidths] = useState<Record<string, number>>({});
  const [copied, setCopied] = useState<string | null>(null);

  const texts = useMemo(() => {
    let made: string[] | null = null;
    return () => (made ??= searchable(rows, columns));
  }, [rows, columns]);
  const shown = useMemo(() => {
    const by = sort && columns.find((it) => it.key === sort.key);
    const left = kept(rows, texts, filter);
    return by && sort ? sorted(left, by, sort.descending) : left;
  }, [rows, columns, texts, sort, filter]);
  const looks = useMemo(() => columns.map((it) => look(it, rows)), [rows, columns]);

  const window = useRowsInSight(scroller, shown.length);
  const marked = useMemo(
    () => (props.marked ? shown.findIndex(props.marked) : -1),
    [shown, props.marked],
  );
  useEffect(() => {
    if (marked >= 0) window.show(marked, "center");
  }, [marked, rows]);

  const order = (column: DataColumn<T>) => {
    const again = sort?.key === column.key;
    const next = {
      key: column.key,
      descending: again ? !sort.descending : column.kind !== "text",
    };
    setSort(next);
    setActive(-1);
    scroller.current?.scrollTo({ top: 0 });
    props.onSort?.(next);
  };
  const search = (text: string) => {
    setFilter(text);
    setActive(-1);
    scroller.current?.scrollTo({ top: 0 });
    props.onFilter?.(text);
  };
  const copy = async () => {
    const said = await handOver(csv(columns, shown), `${label}.csv`);
    setCopied(`${said} ${thousands(shown.length)} ${shown.length === 1 ? "row" : "rows"}`);
  };
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(null), 3000);
    return () => clearTimeout(timer);
  }, [copied]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== grid.current) return;
    if ((event.ctrlKey || event.metaKey) && event.key === "c") {
      if (getSelection()?.isCollapsed ?? true) void copy();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 0) / ROW) - 2);
    const last = shown.length - 1;
    const to = {
      ArrowDown: Math.min(active + 1, last),
      ArrowUp: Math.max(active - 1, 0),
      PageDown: Math.min(active + page, last),
      PageUp: Math.max(active - page, 0),
      Home: 0,
      End: last,
    }[event.key];
    if (to !== undefined) {
      setActive(to);
      window.show(to, "auto");
    } else if (event.key === "Enter" && shown[active] !== undefined) {
      onOpen?.(shown[active]);
    } else return;
    event.preventDefault();
  };

  /** Every column as wide as it is now, so that dragging one moves only what is right of it. */
  const frozen = (): Record<string, number> => {
    const cells = grid.current?.tHead?.rows[0]?.cells;
    return Object.fromEntries(
      columns.map((it, at) => [it.key, Math.round(cells?.[at]?.offsetWidth ?? NARROWEST)]),
    );
  };
  const widen = (key: string, by: number) => {
    const now = frozen();
    setWidths({ ...now, [key]: Math.max(NARROWEST, now[key]! + by) });
  };
  const drag = (key: string, event: PointerEvent) => {
    const start = frozen();
    follow(event, (by) => setWidths({ ...start, [key]: Math.max(NARROWEST, start[key]! + by) }));
  };

  const widthOf = (at: number) => widths[columns[at]!.key] ?? looks[at]!.width;
  const flexible = columns.some((_, at) => widthOf(at) === null);
  const least = columns.reduce((sum, _, at) => sum + (widthOf(at) ?? (at === 0 ? 220 : 140)), 0);
  const [one, many] = props.noun ?? ["row", "rows"];
  const count =
    shown.length === rows.length
      ? `${thousands(rows.length)} ${rows.length === 1 ? one : many}`
      : `${thousands(shown.length)} of ${thousands(rows.length)} ${many}`;
  const { items, before, after } = window;
  // Rows that stay in sight while scrolling are the very same, so that nothing of them is redone.
  const cache = useMemo(() => new Map<number, VNode>(), [props, shown, looks, active]);
  if (cache.size > 500) cache.clear();
  const drawn = (at: number): VNode | null => {
    const row = shown[at];
    if (row === undefined) return null;
    let made = cache.get(at);
    if (!made) {
      const lit = props.marked?.(row) ?? false;
      made = (
        <tr
          key={at}
          id={`${id}-${at}`}
          aria-rowindex={at + 2}
          class={`${lit ? "marked" : ""} ${at === active ? "active" : ""} ${onOpen ? "opens" : ""}`}
          aria-selected={lit || undefined}
          onClick={() => {
            if (!(getSelection()?.isCollapsed ?? true)) return;
            setActive(at);
            onOpen?.(row);
          }}
        >
          {columns.map((it, column) => (
            <DataCell key={it.key} column={it} row={row} look={looks[column]!} />
          ))}
        </tr>
      );
      cache.set(at, made);
    }
    return made;
  };
  return (
    <div class={`data-table ${props.fill ? "fill" : ""}`}>
      <div class="bar-of-tools">
        <input
          type="search"
          placeholder="Filter"
          aria-label={`Filter ${label}`}
          value={filter}
          onInput={(it) => search(it.currentTarget.value)}
          onKeyDown={(it) => {
            if (it.key === "Escape" && filter !== "") {
              search("");
              it.stopPropagation();
            } else if (it.key === "ArrowDown") {
              grid.current?.focus();
              setActive(shown.length > 0 ? 0 : -1);
              it.preventDefault();
            }
          }}
        />
        <span class="faint" role="status">
          {copied ?? count}
        </span>
        {props.tools}
        <button
          class="copy"
          onClick={() => void copy()}
          title="Copy what is shown as CSV, with all digits (Ctrl+C in the table)"
        >
          Copy CSV
        </button>
      </div>
      <div class="rows" ref={scroller}>
        <table
          ref={grid}
          role="grid"
          aria-label={label}
          aria-rowcount={shown.length + 1}
          aria-activedescendant={
            items.includes(active) && shown[active] !== undefined ? `${id}-${active}` : undefined
          }
          tabIndex={0}
          onKeyDown={onKeyDown}
          style={{ minWidth: `${least}px`, width: flexible ? "100%" : `${least}px` }}
        >
          <colgroup>
            {columns.map((it, at) => {
              const width = widthOf(at);
              return <col key={it.key} style={{ width: width === null ? "auto" : `${width}px` }} />;
            })}
          </colgroup>
          <thead>
            <tr aria-rowindex={1}>
              {columns.map((it, at) => (
                <th
                  key={it.key}
                  scope="col"
                  class={isText(it) ? "" : "number"}
                  aria-sort={
                    sort?.key === it.key ? (sort.descending ? "descending" : "ascending") : "none"
                  }
                >
                  <button
                    title={it.doc}
                    aria-keyshortcuts="Shift+ArrowLeft Shift+ArrowRight"
                    onClick={() => order(it)}
                    onKeyDown={(event) => {
                      if (!event.shiftKey) return;
                      if (event.key === "ArrowLeft") widen(it.key, -16);
                      else if (event.key === "ArrowRight") widen(it.key, 16);
                      else return;
                      event.preventDefault();
                    }}
                  >
                    <span>{it.title}</span>
                    {looks[at]!.unit && <span class="faint"> {looks[at]!.unit}</span>}
                    <i aria-hidden="true">
                      {sort?.key === it.key ? (sort.descending ? "▾" : "▴") : ""}
                    </i>
                  </button>
                  <span
                    class="handle"
                    aria-hidden="true"
                    title="Drag: width of the column (Shift and arrow keys on its title). Double click: as it was"
                    onPointerDown={(event) => drag(it.key, event)}
                    onDblClick={() => setWidths({})}
                  />
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {before > 0 && <Gap height={before} />}
            {items.map(drawn)}
            {after > 0 && <Gap height={after} />}
          </tbody>
        </table>
        {shown.length === 0 && (
          <p class="none">
            {rows.length === 0 ? `No ${many}.` : `None of ${thousands(rows.length)} ${many} has `}
            {rows.length > 0 && <b>{filter}</b>}
            {rows.length > 0 && <button onClick={() => search("")}>Clear the filter</button>}
          </p>
        )}
      </div>
    </div>
  );
}

/** What is to come, in its final place. */
export function DataTableSkeleton({ rows = 12, fill = false }: { rows?: number; fill?: boolean }) {
  return (
    <div class={`data-table ${fill ? "fill" : ""}`} aria-hidden="true">
      <div class="bar-of-tools">
        <span class="skeleton blank-filter" />
      </div>
      <div class="rows">
        <div class="blank-header" />
        {Array.from({ length: rows }, (_, at) => (
          <div class="blank-row" key={at}>
            <span class="skeleton" style={{ width: `${60 - ((at * 7) % 25)}%` }} />
            <span class="skeleton" style={{ width: "12%" }} />
          </div>
        ))}
      </div>
    </div>
  );
}

const isText = (it: { kind: ColumnKind }) => it.kind === "text" || it.kind === "bool";

/** How a column reads, how wide it is unless told, and what its longest bar stands for. */
interface Look extends CellText {
  width: number | null;
  largest: number;
}

function look<T>(column: DataColumn<T>, rows: readonly T[]): Look {
  const said = cellText(column, rows);
  let largest = 0;
  if (column.kind !== "text") {
    for (const row of rows) {
      const value = column.value(row);
      if (typeof value === "number" && Math.abs(value) > largest) largest = Math.abs(value);
    }
  }
  if (column.width !== undefined) return { ...said, largest, width: column.width };
  if (column.kind === "text") return { ...said, largest, width: null };
  // The arrow of the sort order, and the padding of a cell.
  const title = measured(column.title, 600) + (said.unit ? 4 + measured(said.unit, 400) : 0) + 12;
  const figures = measured(column.kind === "bool" ? "yes" : said.text(largest), 400);
  return { ...said, largest, width: Math.ceil(Math.max(title, figures) + 20) };
}

let pen: CanvasRenderingContext2D | null = null;

/** How wide a text is, in pixels. */
function measured(text: string, weight: number): number {
  pen ??= document.createElement("canvas").getContext("2d");
  if (!pen) return text.length * 8;
  pen.font = `${weight} 13px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

function DataCell<T>({ column, row, look }: { column: DataColumn<T>; row: T; look: Look }) {
  if (column.cell) return <td class={isText(column) ? "" : "number"}>{column.cell(row)}</td>;
  const value = column.value(row);
  if (column.kind === "text") {
    if (value === null) return <td class="faint">{look.text(value)}</td>;
    return (
      <td title={String(value)}>
        <Name text={column.show?.(row) ?? String(value)} />
      </td>
    );
  }
  const colour = value === null ? null : column.bar?.(row);
  return (
    <td class={isText(column) ? "" : "number"}>
      {colour && look.largest > 0 && (
        <i
          class="share"
          style={{
            "--colour": colour,
            width: `${Math.max(0, Math.min(1, Number(value) / look.largest)) * 100}%`,
          }}
        />
      )}
      <span class={value === null ? "faint" : ""}>{look.text(value)}</span>
    </td>
  );
}

/** Where there is no room, the outer scopes of a name are cut: its last part says most. */
export function Name({ text }: { text: string }) {
  const [head, tail] = split(text);
  if (!tail) return <>{text}</>;
  return (
    <span class="scoped-name">
      <bdi dir="ltr">
        <span class="faint">{head}</span>
        {tail}
      </bdi>
    </span>
  );
}

const Gap = ({ height }: { height: number }) => (
  <tr aria-hidden="true" class="gap">
    <td style={{ height: `${height}px` }} />
  </tr>
);

/** Its own state, until what is given from outside (the address) changes. */
function useGiven<T>(given: T, text: (it: T) => string | null): [T, (it: T) => void] {
  const [state, setState] = useState({ value: given, given: text(given) });
  if (state.given !== text(given)) {
    const next = { value: given, given: text(given) };
    setState(next);
    return [given, (value) => setState({ ...next, value })];
  }
  return [state.value, (value) => setState({ value, given: state.given })];
}

/** The rows in sight and some around them, and how much room the others take. */
function useRowsInSight(scroller: { current: HTMLDivElement | null }, count: number) {
  const [, redraw] = useReducer((n: number) => n + 1, 0);
  const make = () => ({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    paddingStart: HEADER,
    scrollPaddingStart: HEADER,
    overscan: 8,
    initialRect: { width: 0, height: 640 },
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: redraw as () => void,
  });
  const [virtual] = useState(() => new Virtualizer<HTMLDivElement, HTMLElement>(make()));
  virtual.setOptions({ ...virtual.options, ...make() });
  useLayoutEffect(() => virtual._didMount(), [virtual]);
  useLayoutEffect(() => virtual._willUpdate());
  const items = virtual.getVirtualItems();
  const first = items[0];
  const last = items[items.length - 1];
  return {
    items: items.map((it) => it.index),
    before: first ? first.start - HEADER : 0,
    after: last ? virtual.getTotalSize() - last.end : 0,
    show: (at: number, align: "auto" | "center") => {
      const element = scroller.current;
      if (!element) return;
      const top = HEADER + at * ROW;
      const seen =
        top - HEADER >= element.scrollTop && top + ROW <= element.scrollTop + element.clientHeight;
      if (!seen) virtual.scrollToIndex(at, { align });
    },
  };
}

/** To the clipboard; as a file where a page may not use that (plain HTTP from another machine). */
async function handOver(text: string, name: string): Promise<string> {
  try {
    await navigator.clipboard.writeText(text);
    return "Copied";
  } catch {
    const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    const anchor = document.createElement("a");
    anchor.href = url;
    anchor.download = name;
    anchor.click();
    URL.revokeObjectURL(url);
    return "Saved";
  }
}
