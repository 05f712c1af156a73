// What lies in the selected range, by name.

import type { RangeResult } from "../data/types";
import { thousands, time } from "../format";
import { DataTable, type DataColumn } from "../parts/data-table";
import { PANEL_WIDTH } from "./edge";
import type { Model } from "./model";

/** All columns are seen from this width on. */
const LEAST = 500;

type RangeRow = RangeResult["rows"][number];

const COLUMNS: DataColumn<RangeRow>[] = [
  {
    key: "name",
    title: "Name",
    kind: "text",
    value: (it) => it.name,
    cell: (it) => (
      <span class="tl-long" title={`${it.name}\n${it.kind.replaceAll("_", " ")}`}>
        <i
          class="swatch"
          style={{ backgroundColor: it.category ? `var(--${it.category})` : "var(--strong-line)" }}
        />{" "}
        {it.name}
      </span>
    ),
  },
  { key: "count", title: "Count", kind: "count", width: 70, value: (it) => it.count },
  {
    key: "self",
    title: "Self",
    doc: "Time in it and in nothing inside it; only what lies in the range",
    kind: "time",
    width: 84,
    value: (it) => it.self_ps,
  },
  {
    key: "total",
    title: "Total",
    doc: "Only what lies in the range",
    kind: "time",
    width: 84,
    value: (it) => it.total_ps,
  },
];

export function RangeTable({ model }: { model: Model }) {
  const range = model.range.value!;
  const { value, error } = model.inside.value;
  return (
    <aside
      class="tl-panel tl-wide"
      aria-label="Selected range"
      tabIndex={0}
      style={{ width: `${Math.max(PANEL_WIDTH.value, LEAST)}px` }}
    >
      <div class="tl-close">
        <button aria-label="Close" title="Close  Esc" onClick={() => model.chooseRange(null)}>
          ×
        </button>
      </div>
      <h2 class="tl-title">{time(range.to - range.from)} selected</h2>
      {error && <p class="failed">{error.message}</p>}
      {!value && !error && <div class="skeleton tl-wait">…</div>}
      {value && (
        <>
          <p class="faint">
            {thousands(value.count)} events of {thousands(value.rows.length)} names, on all tracks
          </p>
          <p>
            <button onClick={() => model.stage?.glide(range.from, range.to)} title="Zoom to it  f">
              Zoom to it
            </button>
          </p>
          <DataTable
            label="Events in the range"
            fill
            columns={COLUMNS}
            rows={value.rows}
            sort={{ key: "self", descending: true }}
            onOpen={(row) => model.search(row.name)}
          />
        </>
      )}
    </aside>
  );
}
