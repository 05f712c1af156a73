//! Tables that are rows with numbers: the analyses, and the small parts of the trace.
//!
//! SQLite builds no indexes on virtual tables, so a join without one tries every pair. Terms
//! `column = value` are therefore looked up here: the first few by reading the column, more of
//! them, as a join asks, in an index made for this query.

use std::cell::{Cell as Slot, OnceCell};
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use analyses::{AnyRows, Cell, CellKind, Column, Tables};
use rusqlite::types::ValueRef;
use trace::{EdgeKind, NoteKind, Trace, TrackId, TrackKind};

use super::vtab::{self, Asked, Op, Order, Plan, ROWID, Visit, Walk, clamp, int_range};

/// A part of the trace, as a table.
pub(super) struct Own {
    pub name: &'static str,
    pub doc: &'static str,
    pub columns: &'static [Column],
    n_rows: fn(&Trace) -> usize,
    cell: for<'a> fn(&'a Trace, usize, usize) -> Cell<'a>,
}

const fn column(name: &'static str, kind: CellKind, doc: &'static str) -> Column {
    Column { name, doc, kind, nullable: false }
}

/// What not every row has.
const fn nullable(name: &'static str, kind: CellKind, doc: &'static str) -> Column {
    Column { name, doc, kind, nullable: true }
}

use CellKind::{Float, Int, Text};

pub(super) static OWN: &[Own] = &[
    Own {
        name: "track",
        doc: "Where events lie: hosts, processes, threads, devices, streams.",
        columns: &[
            column("id", Int, "The track's number."),
            nullable("parent", Int, "The track this one belongs to."),
            column(
                "kind",
                Text,
                "host, process, thread, device, stream, steps, summary or counter.",
            ),
            column("name", Text, "As the source calls it."),
            nullable("host", Text, "The name of the host it is on."),
            column("n_events", Int, "Events on this track itself, not on those below it."),
        ],
        n_rows: |trace| trace.tracks.len(),
        cell: |trace, row, column| {
            let track = &trace.tracks[row];
            match column {
                0 => Cell::Int(row as i64),
                1 => track.parent.map_or(Cell::Null, |it| Cell::Int(i64::from(it.0))),
                2 => Cell::Text(track.kind.name()),
                3 => Cell::Text(trace.text(track.name)),
                4 => trace
                    .ancestor(TrackId(row as u32), TrackKind::Host)
                    .map_or(Cell::Null, |it| Cell::Text(trace.track_name(it))),
                _ => Cell::Int(track.events.len() as i64),
            }
        },
    },
    Own {
        name: "edge",
        doc: "Which event caused which.",
        columns: &[
            column("from_event", Int, "The event that caused the other."),
            column("to_event", Int, "The event caused."),
            column(
                "kind",
                Text,
                "launch (host call to what it started on a device), function (call to its \
                 executor's work on another thread) or flow (any other).",
            ),
        ],
        n_rows: |trace| trace.edges.len(),
        cell: |trace, row, column| match column {
            0 => Cell::Int(i64::from(trace.edges.from[row].0)),
            1 => Cell::Int(i64::from(trace.edges.to[row].0)),
            _ => Cell::Text(match trace.edges.kind[row] {
                EdgeKind::Launch => "launch",
                EdgeKind::Function => "function",
                EdgeKind::Flow => "flow",
            }),
        },
    },
    Own {
        name: "counter",
        doc: "Values over time.",
        columns: &[
            column("track", Int, "The track whose value it is."),
            column("time_ps", Int, "When, since the start of the trace."),
            column("value", Float, "The value from then on."),
        ],
        n_rows: |trace| trace.counters.len(),
        cell: |trace, row, column| match column {
            0 => Cell::Int(i64::from(trace.counters[row].track.0)),
            1 => Cell::Int(trace.counters[row].time.0),
            _ => Cell::Float(trace.counters[row].value),
        },
    },
    Own {
        name: "note",
        doc: "What was skipped or guessed when the profile was read, and what could not be read since.",
        columns: &[
            column("kind", Text, "What happened."),
            column("count", Int, "How often."),
            column("first", Text, "The first such case."),
        ],
        n_rows: |trace| trace.notes.len() + usize::from(trace.args.lost().is_some()),
        cell: |trace, row, column| {
            let note = trace.notes.get(row).map(|it| (it.kind, it.count, it.first.as_str()));
            let lost = || trace.args.lost().map(|it| (NoteKind::LostArguments, it.0, it.1));
            match (column, note.or_else(lost)) {
                (0, Some((kind, ..))) => Cell::Text(kind.name()),
                (1, Some((_, count, _))) => Cell::Int(count as i64),
                (_, Some((.., first))) => Cell::Text(first),
                (_, None) => Cell::Null,
            }
        },
    },
];

/// A part of the trace, held as rows.
struct OwnRows {
    own: &'static Own,
    tables: Arc<Tables>,
}

impl AnyRows for OwnRows {
    fn len(&self) -> usize {
        (self.own.n_rows)(self.tables.trace())
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        (self.own.cell)(self.tables.trace(), row, column)
    }
}

pub(super) struct Relation {
    tables: Arc<Tables>,
    columns: &'static [Column],
    source: Source,
    rows: OnceCell<Arc<dyn AnyRows>>,
    lookups: Vec<Lookup>,
}

enum Source {
    Own(&'static Own),
    Analysis(&'static dyn analyses::AnyTable),
    Missing,
}

/// How one column is looked up.
#[derive(Default)]
struct Lookup {
    n_asked: Slot<u32>,
    /// Row numbers in the order of the column's cells.
    sorted: OnceCell<Vec<u32>>,
}

/// After so many readings of the column an index has paid: sorting costs about as much.
const READINGS_BEFORE_INDEX: u32 = 8;

/// Rows of a table that is not yet computed.
const GUESSED_ROWS: f64 = 1_000.0;

impl Relation {
    pub fn new(name: &str, tables: Arc<Tables>) -> Relation {
        let own = OWN.iter().find(|it| it.name == name).map(Source::Own);
        let analysis = || analyses::find(name).map(Source::Analysis);
        let source = own.or_else(analysis).unwrap_or(Source::Missing);
        let columns = match &source {
            Source::Own(it) => it.columns,
            Source::Analysis(it) => it.columns(),
            Source::Missing => &[],
        };
        let lookups = columns.iter().map(|_| Lookup::default()).collect();
        Relation { tables, columns, source, rows: OnceCell::new(), lookups }
    }

    /// Computes the table if nobody has yet.
    fn rows(&self) -> &Arc<dyn AnyRows> {
        self.rows.get_or_init(|| match &self.source {
            Source::Own(own) => Arc::new(OwnRows { own, tables: Arc::clone(&self.tables) }),
            Source::Analysis(it) => it.rows(&self.tables),
            Source::Missing => Arc::new(Vec::<analyses::step::Step>::new()),
        })
    }

    fn guess_rows(&self) -> f64 {
        match (&self.source, self.rows.get()) {
            (Source::Own(own), _) => (own.n_rows)(self.tables.trace()) as f64,
            (_, Some(rows)) => rows.len() as f64,
            _ => GUESSED_ROWS,
        }
    }

    /// Rows that have the same value in a column.
    fn guess_equal(&self, column: i32, n_rows: f64) -> f64 {
        let name = self.columns.get(column as usize).map_or("", |it| it.name);
        if name.ends_with("event") { 2.0 } else { n_rows.sqrt() }
    }

    fn can_look_up(&self, column: i32) -> bool {
        let column = usize::try_from(column).ok().and_then(|it| self.columns.get(it));
        column.is_some_and(|it| it.kind != Float)
    }

    fn sort(&self, rows: &mut [u32], order: &[Order]) {
        let all = self.rows();
        rows.sort_by(|&a, &b| {
            let by = |order: &Order| {
                let ascending = match usize::try_from(order.column) {
                    Ok(column) => {
                        compare(all.cell(a as usize, column), all.cell(b as usize, column))
                    }
                    Err(_) => a.cmp(&b),
                };
                if order.descending { ascending.reverse() } else { ascending }
            };
            order.iter().map(by).find(|it| it.is_ne()).unwrap_or(Ordering::Equal)
        });
    }

    /// The rows whose cell is the wanted one, ascending.
    fn look_up(&self, column: usize, wanted: Cell<'_>) -> Vec<u32> {
        let rows = self.rows();
        let lookup = &self.lookups[column];
        let cell = |row: u32| key(rows.cell(row as usize, column));
        let wanted = key(wanted);
        lookup.n_asked.set(lookup.n_asked.get().saturating_add(1));
        if lookup.n_asked.get() <= READINGS_BEFORE_INDEX {
            return (0..rows.len() as u32).filter(|&it| cell(it) == wanted).collect();
        }
        let sorted = lookup.sorted.get_or_init(|| {
            let mut sorted: Vec<u32> = (0..rows.len() as u32).collect();
            // Stable: equal cells stay in the order of rows.
            sorted.sort_by_key(|&it| cell(it));
            sorted
        });
        let first = sorted.partition_point(|&it| cell(it) < wanted);
        let n = sorted[first..].partition_point(|&it| cell(it) == wanted);
        sorted[first..first + n].to_vec()
    }
}

/// A cell that can be compared. Floats are never looked up.
fn key(cell: Cell<'_>) -> (u8, i64, &str) {
    match cell {
        Cell::Null | Cell::Float(_) => (0, 0, ""),
        Cell::Int(it) => (1, it, ""),
        Cell::Bool(it) => (1, i64::from(it), ""),
        Cell::Text(it) => (2, 0, it),
    }
}

/// As SQLite orders: unknown first. A float that is no number is unknown to SQLite.
fn compare(a: Cell<'_>, b: Cell<'_>) -> Ordering {
    let float = |it| match it {
        Cell::Float(it) if !it.is_nan() => Some(it),
        _ => None,
    };
    key(a).cmp(&key(b)).then_with(|| float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal))
}

impl vtab::Relation for Relation {
    fn plan(&self, asked: &Asked) -> Plan {
        let n_rows = self.guess_rows();
        let by_row = asked.terms.iter().filter(|it| it.column == ROWID);
        let by_cell = asked.terms.iter().find(|it| it.op == Op::Eq && self.can_look_up(it.column));
        let terms: Vec<_> = by_row.chain(by_cell).copied().collect();
        let is_unique = terms.iter().any(|it| it.column == ROWID && it.op == Op::Eq);
        let found = if is_unique {
            1.0
        } else if let Some(term) = by_cell {
            self.guess_equal(term.column, n_rows)
        } else if !terms.is_empty() {
            n_rows / 4.0
        } else {
            n_rows
        };
        // So many rows are sorted before SQLite's next look at the clock.
        let is_ordered = n_rows < 1e6;
        let order = if is_ordered { asked.order.clone() } else { Vec::new() };
        let cost = found * if order.is_empty() { 1.0 } else { 1.2 } + 2.0;
        Plan { terms, order, is_ordered, is_unique, n_rows: found, cost }
    }

    fn walk(self: Rc<Self>) -> Box<dyn Walk> {
        Box::new(Rows { relation: self, visit: Visit::nothing(), now: None })
    }
}

struct Rows {
    relation: Rc<Relation>,
    visit: Visit,
    now: Option<u32>,
}

impl Walk for Rows {
    fn filter(&mut self, plan: &Plan, values: &[ValueRef<'_>]) {
        let relation = &*self.relation;
        let n_rows = relation.rows().len() as u32;
        let mut span = 0..n_rows;
        let mut list = None;
        for (term, &value) in plan.terms.iter().zip(values) {
            if term.column == ROWID {
                if let Some(range) = int_range(term.op, value) {
                    let other = clamp(range, n_rows);
                    span = span.start.max(other.start)..span.end.min(other.end);
                }
                continue;
            }
            let column = term.column as usize;
            let text = relation.columns[column].kind == Text;
            list = match value {
                ValueRef::Null => Some(Vec::new()),
                ValueRef::Integer(it) if !text => Some(relation.look_up(column, Cell::Int(it))),
                ValueRef::Text(it) if text => match std::str::from_utf8(it) {
                    Ok(it) => Some(relation.look_up(column, Cell::Text(it))),
                    Err(_) => Some(Vec::new()),
                },
                // Only SQLite knows whether a number equals a text.
                _ => list,
            };
        }
        self.visit = match (list, plan.order.is_empty()) {
            (None, true) => Visit::Span(span),
            (list, _) => {
                let mut rows = list.unwrap_or_else(|| span.clone().collect());
                rows.retain(|it| span.contains(it));
                relation.sort(&mut rows, &plan.order);
                Visit::list(rows)
            }
        };
        self.next();
    }

    fn next(&mut self) {
        self.now = self.visit.next();
    }

    fn row(&self) -> Option<u32> {
        self.now
    }

    fn cell(&self, column: usize) -> Cell<'_> {
        let row = self.now.unwrap_or_default() as usize;
        self.relation.rows.get().map_or(Cell::Null, |it| it.cell(row, column))
    }
}
