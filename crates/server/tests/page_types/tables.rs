//! `web/src/data/tables.ts`: a type for the rows of each table.

use analyses::{AnyTable, CellKind, Column};

use crate::{check, comment};

#[test]
fn the_types_of_tables_are_fresh() {
    let rows: Vec<String> = analyses::ALL.iter().map(|it| interface(*it)).collect();
    let names = analyses::ALL.iter().map(|it| format!("  {}: {};\n", it.name(), type_name(*it)));
    check(
        "tables.ts",
        &format!(
            "// The rows of every table. Made from the doc comments in the code by `UPDATE=1 cargo \
             test`.\n// Times are integer picoseconds, shares go from 0 to 1, null is not known.\n\n\
             {}\n/** The row of each table, by the table's name. */\nexport interface Tables {{\n\
             {}}}\n",
            rows.join("\n"),
            names.collect::<String>(),
        ),
    );
}

fn interface(table: &dyn AnyTable) -> String {
    let columns: String = table.columns().iter().map(field).collect();
    let name = type_name(table);
    format!("{}export interface {name} {{\n{columns}}}\n", comment(table.doc(), ""))
}

fn field(column: &Column) -> String {
    let kind = match column.kind {
        CellKind::Int | CellKind::Float => "number",
        CellKind::Text => "string",
        CellKind::Bool => "boolean",
    };
    let null = if column.nullable { " | null" } else { "" };
    format!("{}  {}: {kind}{null};\n", comment(column.doc, "  "), column.name)
}

/// `op_time` has rows `OpTime`, as in Rust.
fn type_name(table: &dyn AnyTable) -> String {
    let capital = |word: &str| {
        let (first, rest) = word.split_at(1);
        first.to_uppercase() + rest
    };
    table.name().split('_').map(capital).collect()
}
