//! The table-valued function `args(event_id)`: an event's arguments, decoded when asked for.

use std::rc::Rc;
use std::sync::Arc;

use analyses::{Cell, CellKind, Column, Tables};
use rusqlite::types::ValueRef;
use trace::{EventId, FactValue};

use super::SqlTable;
use super::vtab::{self, Asked, Op, Plan, Visit, Walk, clamp, int_range};

pub(super) const NAME: &str = "args";

pub(super) const TABLE: SqlTable = SqlTable {
    name: NAME,
    doc: "An event's arguments, as the source has them: `args(7)`, or joined by `args(event.id)`. \
          Without an event, those of all events, which takes long.",
    columns: &[
        Column {
            name: "key",
            doc: "What the argument is called.",
            kind: CellKind::Text,
            nullable: false,
        },
        Column {
            name: "value",
            doc: "An integer, float or text.",
            kind: CellKind::Text,
            nullable: false,
        },
    ],
    parameter: Some(Column {
        name: "event_id",
        doc: "The event whose arguments these are.",
        kind: CellKind::Int,
        nullable: false,
    }),
};

const EVENT_ID: i32 = 2;

/// Decoding an event's arguments, in rows handed over.
const DECODE_COST: f64 = 10.0;

#[derive(Debug)]
pub(super) struct Relation {
    tables: Arc<Tables>,
}

impl Relation {
    pub fn new(tables: Arc<Tables>) -> Relation {
        Relation { tables }
    }
}

impl vtab::Relation for Relation {
    fn is_untyped(&self, column: &Column) -> bool {
        column.name == "value"
    }

    fn plan(&self, asked: &Asked) -> Plan {
        let of_one = asked.terms.iter().find(|it| it.column == EVENT_ID && it.op == Op::Eq);
        let n_events = if of_one.is_some() { 1.0 } else { self.tables.trace().events.len() as f64 };
        Plan {
            terms: of_one.copied().into_iter().collect(),
            n_rows: n_events * 5.0,
            cost: n_events * DECODE_COST,
            ..Plan::default()
        }
    }

    fn walk(self: Rc<Self>) -> Box<dyn Walk> {
        let visit = Visit::nothing();
        Box::new(Args { relation: self, visit, event: 0, decoded: Vec::new(), at: 0, n_before: 0 })
    }
}

struct Args {
    relation: Rc<Relation>,
    visit: Visit,
    event: u32,
    /// The arguments of that event, and which of them is the row.
    decoded: Vec<(String, FactValue)>,
    at: usize,
    /// Rows given for earlier events.
    n_before: u32,
}

impl Args {
    /// Goes on to the next event that has any, once this one's are through.
    fn settle(&mut self) {
        while self.at == self.decoded.len() {
            self.n_before = self.n_before.wrapping_add(self.at as u32);
            self.at = 0;
            self.decoded.clear();
            let Some(event) = self.visit.next() else {
                return;
            };
            self.event = event;
            self.decoded = self.relation.tables.trace().args.of(EventId(event));
        }
    }
}

impl Walk for Args {
    fn filter(&mut self, plan: &Plan, values: &[ValueRef<'_>]) {
        let n_events = self.relation.tables.trace().events.len() as u32;
        let mut span = 0..n_events;
        for (term, value) in plan.terms.iter().zip(values) {
            if let Some(range) = int_range(term.op, *value) {
                span = clamp(range, n_events);
            }
        }
        self.visit = Visit::Span(span);
        self.decoded.clear();
        self.at = 0;
        self.n_before = 0;
        self.settle();
    }

    fn next(&mut self) {
        self.at += 1;
        self.settle();
    }

    fn row(&self) -> Option<u32> {
        (self.at < self.decoded.len()).then(|| self.n_before.wrapping_add(self.at as u32))
    }

    fn cell(&self, column: usize) -> Cell<'_> {
        let Some((key, value)) = self.decoded.get(self.at) else {
            return Cell::Null;
        };
        match (column, value) {
            (0, _) => Cell::Text(key),
            (1, FactValue::Int(it)) => Cell::Int(*it),
            (1, FactValue::Float(it)) => Cell::Float(*it),
            (1, FactValue::Text(it)) => Cell::Text(it),
            _ => Cell::Int(i64::from(self.event)),
        }
    }
}
