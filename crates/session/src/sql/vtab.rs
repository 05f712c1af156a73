//! Puts our tables before SQLite: the only file that speaks its virtual table interface.
//!
//! ```text
//! best_index   Relation::plan   which of the query's terms the table can look up itself
//! filter       Walk::filter     once a scan; in a join, once for every row of the outer table
//! next column  Walk::next cell  once a row and cell
//! ```
//!
//! Every term is left for SQLite to test again, so a walk may give more rows than asked for,
//! never fewer. Therefore nothing here need know how SQLite compares a text with a number.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use analyses::{Cell, CellKind, Column};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::vtab::{
    Context, Filters, IndexConstraintOp, IndexFlags, IndexInfo, Module, VTab, VTabConnection,
    VTabCursor, sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error, Result};

use super::{Shared, SqlTable, args, event, rows};

/// The column that is a row's number, as SQLite counts columns.
pub(super) const ROWID: i32 = -1;

/// A table that can be walked.
pub(super) trait Relation {
    /// Declared without a type, as its cells have several.
    fn is_untyped(&self, _column: &Column) -> bool {
        false
    }
    /// Chooses among the query's terms and orders.
    fn plan(&self, asked: &Asked) -> Plan;
    fn walk(self: Rc<Self>) -> Box<dyn Walk>;
}

/// A pass over some of a table's rows.
pub(super) trait Walk {
    /// Begins anew. The values belong to the plan's terms.
    fn filter(&mut self, plan: &Plan, values: &[ValueRef<'_>]);
    fn next(&mut self);
    /// The row's number; none after the last.
    fn row(&self) -> Option<u32>;
    fn cell(&self, column: usize) -> Cell<'_>;
}

/// A comparison of a column with a value that is known when the scan begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Term {
    pub column: i32,
    pub op: Op,
    /// The integers that fit, where the query itself says the value.
    pub said: Option<(i64, i64)>,
    /// Its place among SQLite's constraints.
    at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Eq,
    Gt,
    Ge,
    Lt,
    Le,
}

/// A column to order by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Order {
    pub column: i32,
    pub descending: bool,
}

/// What a query wants of a table.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub terms: Vec<Term>,
    pub order: Vec<Order>,
}

/// How a table will answer.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub terms: Vec<Term>,
    /// Empty where the rows come in the table's own order.
    pub order: Vec<Order>,
    /// Whether rows come as the query orders them.
    pub is_ordered: bool,
    /// At most one row.
    pub is_unique: bool,
    pub n_rows: f64,
    /// In the time that handing one row to SQLite takes.
    pub cost: f64,
}

/// Makes every table known to a connection. Nothing is computed.
pub(super) fn register(connection: &Connection, shared: &Shared) -> Result<()> {
    const MODULE: Module<'_, Tab> = Module::eponymous_only_module();
    for table in super::schema() {
        let aux = Aux { table, shared: shared.clone() };
        connection.create_module(table.name, &MODULE, Some(aux))?;
    }
    Ok(())
}

struct Aux {
    table: SqlTable,
    shared: Shared,
}

#[repr(C)]
struct Tab {
    base: sqlite3_vtab,
    columns: &'static [Column],
    relation: Rc<dyn Relation>,
    /// Every plan offered; SQLite names the one it took by number.
    plans: Rc<RefCell<Vec<Rc<Plan>>>>,
}

#[repr(C)]
struct Cursor {
    base: sqlite3_vtab_cursor,
    walk: Box<dyn Walk>,
    plans: Rc<RefCell<Vec<Rc<Plan>>>>,
}

#[expect(unsafe_code, reason = "the trait is unsafe because SQLite casts the struct to its base")]
// SAFETY: `Tab` is `repr(C)` and begins with `sqlite3_vtab`.
unsafe impl VTab<'_> for Tab {
    type Aux = Aux;
    type Cursor = Cursor;

    fn connect(
        _: &mut VTabConnection,
        aux: Option<&Aux>,
        _module: &[u8],
        _database: &[u8],
        _table: &[u8],
        _arguments: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Tab)> {
        let Some(Aux { table, shared }) = aux else {
            return Err(Error::ModuleError("the table was registered without its rows".to_owned()));
        };
        shared.named.lock().unwrap_or_else(|it| it.into_inner()).push(table.name);
        let tables = shared.tables.clone();
        let relation: Rc<dyn Relation> = match table.name {
            event::NAME => Rc::new(event::Relation::new(tables)),
            args::NAME => Rc::new(args::Relation::new(tables)),
            name => Rc::new(rows::Relation::new(name, tables)),
        };
        let declaration = CString::new(declare(table, &*relation))?;
        let tab = Tab {
            base: sqlite3_vtab::default(),
            columns: table.columns,
            relation,
            plans: Rc::default(),
        };
        Ok((Cow::Owned(declaration), tab))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let mut asked = Asked::default();
        for (at, constraint) in info.constraints().enumerate() {
            let op = match constraint.operator() {
                IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ => Op::Eq,
                IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GT => Op::Gt,
                IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GE => Op::Ge,
                IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LT => Op::Lt,
                IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LE => Op::Le,
                _ => continue,
            };
            // Other collations find texts equal that are not the same bytes.
            if constraint.is_usable() && info.collation(at)? == "BINARY" {
                let said = info.rhs_value(at)?.and_then(|it| int_range(op, it));
                asked.terms.push(Term { column: constraint.column(), op, said, at });
            }
        }
        asked.order.extend(
            info.order_bys()
                .map(|it| Order { column: it.column(), descending: it.is_order_by_desc() }),
        );
        let plan = self.relation.plan(&asked);
        for (argument, term) in plan.terms.iter().enumerate() {
            info.constraint_usage(term.at).set_argv_index(argument as c_int + 1);
        }
        info.set_order_by_consumed(plan.is_ordered && !asked.order.is_empty());
        info.set_estimated_cost(plan.cost.max(1.0));
        info.set_estimated_rows(plan.n_rows.max(1.0) as i64);
        if plan.is_unique {
            info.set_idx_flags(IndexFlags::SQLITE_INDEX_SCAN_UNIQUE);
        }
        info.set_idx_str(&self.describe(&plan));
        let mut plans = self.plans.borrow_mut();
        info.set_idx_num(plans.len() as c_int);
        plans.push(Rc::new(plan));
        Ok(true)
    }

    fn open(&mut self) -> Result<Cursor> {
        Ok(Cursor {
            base: sqlite3_vtab_cursor::default(),
            walk: Rc::clone(&self.relation).walk(),
            plans: Rc::clone(&self.plans),
        })
    }
}

impl Tab {
    /// The plan in words, for `EXPLAIN QUERY PLAN`.
    fn describe(&self, plan: &Plan) -> String {
        let name = |column: i32| {
            let column = usize::try_from(column).ok().and_then(|it| self.columns.get(it));
            column.map_or("rowid", |it| it.name)
        };
        let mut words: Vec<String> = Vec::new();
        for term in &plan.terms {
            let op = match term.op {
                Op::Eq => "=",
                Op::Gt => ">",
                Op::Ge => ">=",
                Op::Lt => "<",
                Op::Le => "<=",
            };
            words.push(format!("{}{op}?", name(term.column)));
        }
        for order in &plan.order {
            let descending = if order.descending { " desc" } else { "" };
            words.push(format!("by {}{descending}", name(order.column)));
        }
        words.join(" ")
    }
}

#[expect(unsafe_code, reason = "the trait is unsafe because SQLite casts the struct to its base")]
// SAFETY: `Cursor` is `repr(C)` and begins with `sqlite3_vtab_cursor`.
unsafe impl VTabCursor for Cursor {
    fn filter(&mut self, number: c_int, _: Option<&str>, values: &Filters<'_>) -> Result<()> {
        let plan = usize::try_from(number).ok().and_then(|it| self.plans.borrow().get(it).cloned());
        let plan = plan.unwrap_or_default();
        let values: Vec<ValueRef<'_>> = values.iter().collect();
        guard(|| self.walk.filter(&plan, &values))
    }

    fn next(&mut self) -> Result<()> {
        guard(|| self.walk.next())
    }

    fn eof(&self) -> bool {
        self.walk.row().is_none()
    }

    fn column(&self, context: &mut Context, column: c_int) -> Result<()> {
        let cell = usize::try_from(column).map_or(Cell::Null, |it| self.walk.cell(it));
        context.set_result(ToSqlOutput::Borrowed(match cell {
            Cell::Null => ValueRef::Null,
            Cell::Int(it) => ValueRef::Integer(it),
            Cell::Float(it) => ValueRef::Real(it),
            Cell::Text(it) => ValueRef::Text(it.as_bytes()),
            Cell::Bool(it) => ValueRef::Integer(i64::from(it)),
        }))
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.walk.row().map_or(0, i64::from))
    }
}

/// A panic must not unwind through SQLite's frames: it would end the process.
fn guard(work: impl FnOnce()) -> Result<()> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|_| Error::ModuleError("the table could not be computed".to_owned()))
}

/// The table as SQLite wants it said.
fn declare(table: &SqlTable, relation: &dyn Relation) -> String {
    let declared = |column: &Column| {
        let kind = match column.kind {
            _ if relation.is_untyped(column) => "",
            CellKind::Int => "INTEGER",
            CellKind::Bool => "BOOLEAN",
            CellKind::Float => "REAL",
            CellKind::Text => "TEXT",
        };
        format!("\"{}\" {kind}", column.name)
    };
    let mut columns: Vec<String> = table.columns.iter().map(declared).collect();
    columns.extend(table.parameter.iter().map(|it| format!("{} HIDDEN", declared(it))));
    format!("CREATE TABLE \"{}\"({})", table.name, columns.join(", "))
}

/// Integers that may satisfy a term: first and last. None where only SQLite can tell.
pub(super) fn int_range(op: Op, value: ValueRef<'_>) -> Option<(i64, i64)> {
    const NOTHING: (i64, i64) = (1, 0);
    let (down, up) = match value {
        ValueRef::Integer(it) => (it, it),
        ValueRef::Real(it) => (it.floor() as i64, it.ceil() as i64),
        ValueRef::Null => return Some(NOTHING),
        // SQLite would make a number of the text if it can.
        ValueRef::Text(_) | ValueRef::Blob(_) => return None,
    };
    let is_whole = down == up;
    Some(match op {
        Op::Eq if is_whole => (down, down),
        Op::Eq => NOTHING,
        Op::Gt => (down.saturating_add(1), i64::MAX),
        Op::Ge => (up, i64::MAX),
        Op::Lt => (i64::MIN, up.saturating_sub(1)),
        Op::Le => (i64::MIN, down),
    })
}

/// The rows `lo..=hi` of `n_rows`.
pub(super) fn clamp(range: (i64, i64), n_rows: u32) -> std::ops::Range<u32> {
    let lo = range.0.clamp(0, i64::from(n_rows)) as u32;
    let hi = range.1.saturating_add(1).clamp(0, i64::from(n_rows)) as u32;
    lo..hi.max(lo)
}

/// Rows to visit, in order.
#[derive(Debug)]
pub(super) enum Visit {
    Span(std::ops::Range<u32>),
    Back(std::iter::Rev<std::ops::Range<u32>>),
    List(std::vec::IntoIter<u32>),
}

impl Visit {
    pub fn nothing() -> Visit {
        Visit::Span(0..0)
    }

    pub fn list(rows: Vec<u32>) -> Visit {
        Visit::List(rows.into_iter())
    }
}

impl Iterator for Visit {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match self {
            Visit::Span(it) => it.next(),
            Visit::Back(it) => it.next(),
            Visit::List(it) => it.next(),
        }
    }
}
