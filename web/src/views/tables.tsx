// Every table of the run, as it is: what each column means, and rows that evidence points at.

import { useMemo } from "preact/hooks";
import { docs, useSchema, useWholeTable } from "../data/store";
import type { Tables as TableRows } from "../data/tables";
import type { TableData } from "../data/types";
import { DataTable, DataTableSkeleton, inAddress, type DataColumn } from "../parts/data-table";
import { Empty, Failed } from "../parts/empty";
import { litRows } from "../parts/evidence";
import { inline } from "../parts/markdown";
import { kindByName } from "../parts/table-columns";
import type { Value } from "../parts/table-rows";
import { go, link, route } from "../router";
import type { ViewProps } from ".";
import "./tables.css";

/** The view that draws a table. */
const VIEW_OF: Record<string, { id: string; title: string }> = {
  op_time: { id: "ops", title: "Ops" },
  scope_time: { id: "ops", title: "Ops" },
  host_call: { id: "ops", title: "Ops" },
  kernel_time: { id: "kernels", title: "Kernels" },
  copy: { id: "kernels", title: "Kernels" },
  input_stage: { id: "input", title: "Input" },
  batch_loader: { id: "input", title: "Input" },
  memory: { id: "memory", title: "Memory" },
  memory_peak: { id: "memory", title: "Memory" },
  program_memory: { id: "memory", title: "Memory" },
  hardware: { id: "hardware", title: "Hardware" },
  run_step: { id: "hardware", title: "Hardware" },
  compile: { id: "compile", title: "Compile" },
};

const FIRST = "step_time";

export default function Tables({ run }: ViewProps) {
  const { value: schema, error } = useSchema(run);
  const name = route.value.params["table"] ?? FIRST;
  if (error) return <Failed error={error} />;
  const known = schema?.find((it) => it.name === name);
  return (
    <div class="pad table-view tables">
      <div class="tables-head">
        <h1>
          <label for="table-choice">Table</label>
        </h1>
        <select
          id="table-choice"
          value={name}
          onChange={(it) => go("tables", { table: it.currentTarget.value })}
        >
          {(schema ?? []).map((it) => (
            <option key={it.name} value={it.name}>
              {it.name}
            </option>
          ))}
        </select>
        {VIEW_OF[name] && <a href={withRows(name)}>Drawn in {VIEW_OF[name].title}</a>}
      </div>
      {schema && !known ? (
        <Empty>There is no table called {name}.</Empty>
      ) : (
        <One key={name} run={run} name={name} />
      )}
    </div>
  );
}

const withRows = (table: string): string =>
  link(VIEW_OF[table]!.id, { table, rows: route.value.params["rows"] });

function One({ run, name }: { run: number; name: string }) {
  const { value: table, error } = useWholeTable(run, name as keyof TableRows);
  if (error) return <Failed error={error} />;
  if (!table) return <DataTableSkeleton fill />;
  return (
    <>
      <p class="faint tables-doc">{inline(table.doc.replace(/\s+/g, " "))}</p>
      {table.total === 0 ? <Empty>This run has no rows of it.</Empty> : <Rows table={table} />}
    </>
  );
}

interface Numbered {
  row: number;
  cells: Value[];
}

function Rows({ table }: { table: TableData }) {
  const rows = useMemo(() => table.rows.map((cells, row) => ({ row, cells })), [table]);
  const columns = useMemo(() => columnsOf(table), [table]);
  const { params } = route.value;
  const asked = params["rows"] ?? "";
  const marked = useMemo(() => {
    const lit = litRows({ table: table.name, rows: asked }, table.name);
    return (it: Numbered) => lit.has(it.row);
  }, [table, asked]);
  return (
    <DataTable
      label={table.name}
      columns={columns}
      rows={rows}
      marked={marked}
      fill
      {...inAddress()}
    />
  );
}

function columnsOf(table: TableData): DataColumn<Numbered>[] {
  const doc = docs(table);
  return table.columns.map((it, at) => {
    const sample = table.rows.find((row) => row[at] !== null)?.[at] ?? null;
    const kind = it.kind === "bool" || it.kind === "text" ? it.kind : kindByName(it.name, sample);
    return {
      key: it.name,
      title: it.name,
      kind,
      value: (row) => row.cells[at] ?? null,
      ...(doc[it.name] && { doc: doc[it.name]! }),
      ...(kind === "text" && { width: 180 }),
    };
  });
}
