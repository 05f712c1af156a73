// Columns of the tables of a run: what each means is lifted from the code.

import type { DataColumn } from "./data-table";
import type { ColumnKind, Value } from "./table-rows";

/** Makes columns by name: `column("self_ps", "Self", "time")`. */
export function documented<T extends object>(doc: Record<string, string>) {
  return (
    key: keyof T & string,
    title: string,
    kind: ColumnKind,
    more: Partial<DataColumn<T>> = {},
  ): DataColumn<T> => {
    const said = doc[key];
    return {
      key,
      title,
      kind,
      value: (row) => row[key] as Value,
      ...(said !== undefined && { doc: said }),
      ...more,
    };
  };
}

/** What a column holds, by the conventions of the tables. */
export function kindByName(name: string, sample: Value): ColumnKind {
  if (typeof sample === "boolean") return "bool";
  if (typeof sample !== "number") return "text";
  if (/(^|_)ps$/.test(name)) return "time";
  if (/(^|_)bytes$/.test(name)) return "bytes";
  if (/(^|_)share$|^occupancy$|^confidence$/.test(name)) return "share";
  return "number";
}
