//! The table `event`: the trace's columns, ten million rows and more.
//!
//! ```text
//! id track parent start_ps   ranges of rows, as events lie sorted by (track, start)
//! name name_id kind          numbers compared, or an index once a join asks again and again
//! GROUP BY name, kind, …     rows brought together by counting: SQLite then needs no sorting
//! ```
//!
//! Texts are interned, so names are ranked once each and rows are sorted by small numbers.

use std::cell::{Cell as Slot, OnceCell};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use analyses::{Cell, CellKind, Column, Tables};
use rusqlite::types::ValueRef;
use trace::{EventId, OpKind, StrId, Trace};

use super::vtab::{self, Asked, Op, Order, Plan, ROWID, Term, Visit, Walk, clamp, int_range};

pub(super) const NAME: &str = "event";
pub(super) const DOC: &str = "Everything that happened, sorted by track and start. Rows are found \
    quickly by id, track, parent, start_ps, name, name_id and kind.";

macro_rules! columns {
    ($($at:ident = $name:literal $kind:ident $doc:literal;)*) => {
        /// Columns by number.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum At { $($at),* }

        pub(super) const COLUMNS: &[Column] =
            &[$(Column {
                name: $name,
                doc: $doc,
                kind: CellKind::$kind,
                nullable: is_nullable(At::$at),
            }),*];

        const ALL: &[At] = &[$(At::$at),*];
    };
}

columns! {
    Id = "id" Int "The event's number.";
    Track = "track" Int "The track it is on.";
    Name = "name" Text "As the source calls it.";
    NameId = "name_id" Int "The name as a number: quicker to compare and to join by.";
    Kind = "kind" Text "What sort of work it is: kernel, launch, input_wait, …";
    StartPs = "start_ps" Int "When it began, since the start of the trace.";
    DurPs = "dur_ps" Int "How long it took.";
    EndPs = "end_ps" Int "When it ended.";
    Parent = "parent" Int "The innermost event around it on the same track.";
    FrameworkOp = "op" Text "The framework's op behind it.";
    HloOp = "hlo_op" Text "The compiled program's op behind it.";
    HloModule = "hlo_module" Text "The compiled program it belongs to.";
    CopyBytes = "copy_bytes" Int "Of a copy: how much was copied.";
}

fn at(column: i32) -> Option<At> {
    if column == ROWID {
        return Some(At::Id);
    }
    usize::try_from(column).ok().and_then(|it| ALL.get(it)).copied()
}

/// What not every event has.
const fn is_nullable(column: At) -> bool {
    use At::{CopyBytes, FrameworkOp, HloModule, HloOp, Parent};
    matches!(column, Parent | FrameworkOp | HloOp | HloModule | CopyBytes)
}

/// Columns of few different values, by which rows are sorted by counting.
fn is_ranked(column: At) -> bool {
    use At::{FrameworkOp, HloModule, HloOp, Kind, Name, NameId, Track};
    matches!(column, Track | Name | NameId | Kind | FrameworkOp | HloOp | HloModule)
}

/// After so many scans of the names an index has paid.
const SCANS_BEFORE_INDEX: u32 = 8;

pub(super) struct Relation {
    tables: Arc<Tables>,
    /// Tracks with events and their rows, in the order of rows.
    runs: Vec<(Range<u32>, u32)>,
    n_asked: Slot<u32>,
    by_name: OnceCell<ByName>,
    name_ranks: OnceCell<Ranks>,
}

/// Each name's events, ascending.
struct ByName {
    /// Where each name's rows end.
    ends: Vec<u32>,
    rows: Vec<u32>,
}

/// Texts' places in their order, by the number of the text; equal texts have equal ranks.
struct Ranks {
    of: Vec<u32>,
    n_ranks: usize,
    /// The texts in order.
    sorted: Vec<StrId>,
}

impl Ranks {
    fn new(trace: &Trace, texts: impl Iterator<Item = StrId>) -> Ranks {
        let mut is_used = vec![false; trace.strings.len()];
        for text in texts {
            is_used[text.row()] = true;
        }
        let mut sorted: Vec<StrId> =
            trace.strings.iter().map(|it| it.0).filter(|it| is_used[it.row()]).collect();
        sorted.sort_unstable_by_key(|&it| trace.text(it));
        let mut of = vec![0; trace.strings.len()];
        let mut n_ranks = 0;
        for (place, &text) in sorted.iter().enumerate() {
            if place > 0 && trace.text(sorted[place - 1]) != trace.text(text) {
                n_ranks += 1;
            }
            of[text.row()] = n_ranks;
        }
        Ranks { of, n_ranks: n_ranks as usize + 1, sorted }
    }
}

impl Relation {
    pub fn new(tables: Arc<Tables>) -> Relation {
        let mut runs: Vec<(Range<u32>, u32)> = Vec::new();
        for (track, it) in tables.trace().tracks.iter().enumerate() {
            if !it.events.is_empty() {
                runs.push((it.events.clone(), track as u32));
            }
        }
        runs.sort_by_key(|it| it.0.start);
        let n_asked = Slot::new(0);
        Relation { tables, runs, n_asked, by_name: OnceCell::new(), name_ranks: OnceCell::new() }
    }

    fn trace(&self) -> &Trace {
        self.tables.trace()
    }

    fn n_rows(&self) -> u32 {
        self.trace().events.len() as u32
    }

    fn run(&self, row: u32) -> &(Range<u32>, u32) {
        const NONE: &(Range<u32>, u32) = &(0..0, 0);
        let run = self.runs.partition_point(|it| it.0.end <= row);
        self.runs.get(run).unwrap_or(NONE)
    }

    fn name_ranks(&self) -> &Ranks {
        let trace = self.trace();
        self.name_ranks.get_or_init(|| Ranks::new(trace, trace.events.name.iter().copied()))
    }

    fn by_name(&self) -> &ByName {
        self.by_name.get_or_init(|| {
            let names = &self.trace().events.name;
            let mut ends = vec![0; self.trace().strings.len()];
            for name in names {
                ends[name.row()] += 1;
            }
            let mut n = 0;
            for end in &mut ends {
                n += *end;
                *end = n;
            }
            let mut next = ends.clone();
            let mut rows = vec![0; names.len()];
            for (row, name) in names.iter().enumerate().rev() {
                next[name.row()] -= 1;
                rows[next[name.row()] as usize] = row as u32;
            }
            ByName { ends, rows }
        })
    }

    /// Whether names have been asked for often enough to build what makes it quick.
    fn is_asked_often(&self) -> bool {
        self.n_asked.get() > SCANS_BEFORE_INDEX
    }

    fn name_id(&self, name: &[u8]) -> Option<StrId> {
        let trace = self.trace();
        let name = std::str::from_utf8(name).ok()?;
        if self.is_asked_often() {
            let sorted = &self.name_ranks().sorted;
            let found = sorted.binary_search_by_key(&name, |&it| trace.text(it)).ok()?;
            return Some(sorted[found]);
        }
        trace.strings.iter().find(|it| it.1 == name).map(|it| it.0)
    }

    /// The rows that the terms leave.
    fn pick(&self, terms: &[Term], values: &[ValueRef<'_>]) -> Picked {
        let mut picked = Picked {
            span: 0..self.n_rows(),
            start_ps: (i64::MIN, i64::MAX),
            name: None,
            kind: None,
            parent: None,
        };
        for (term, &value) in terms.iter().zip(values) {
            let column = at(term.column);
            let known = match column {
                Some(At::Name | At::Kind) => match value {
                    ValueRef::Text(it) => picked.narrow_text(self, column, it),
                    ValueRef::Null => None,
                    _ => Some(()),
                },
                _ => match int_range(term.op, value) {
                    Some(range) => picked.narrow(self, column, range),
                    None => Some(()),
                },
            };
            if known.is_none() {
                picked.span = 0..0;
            }
        }
        picked
    }

    /// Sorts rows by the columns; where those are equal, rows stay as they are.
    fn sort(&self, rows: &mut Vec<u32>, order: &[Order]) {
        let trace = self.trace();
        let events = &trace.events;
        for Order { column, descending } in order.iter().rev() {
            let down = *descending;
            match at(*column) {
                Some(At::Track) => {
                    let n_tracks = trace.tracks.len();
                    sort_by_rank(rows, n_tracks, down, |it| self.run(it).1);
                }
                Some(At::NameId) => {
                    let n_names = trace.strings.len();
                    sort_by_rank(rows, n_names, down, |it| events.name[it as usize].0);
                }
                Some(At::Name) => {
                    let ranks = self.name_ranks();
                    sort_by_rank(rows, ranks.n_ranks, down, |it| {
                        ranks.of[events.name[it as usize].row()]
                    });
                }
                Some(At::Kind) => {
                    let mut sorted = OpKind::ALL;
                    sorted.sort_by_key(|it| it.name());
                    let mut of = [0; OpKind::ALL.len()];
                    for (rank, kind) in sorted.iter().enumerate() {
                        of[*kind as usize] = rank as u32;
                    }
                    sort_by_rank(rows, of.len(), down, |it| of[events.kind[it as usize] as usize]);
                }
                Some(detail) => {
                    // Unknown comes first.
                    let text = |it: &trace::Detail| match detail {
                        At::FrameworkOp => it.op,
                        At::HloOp => it.hlo_op,
                        _ => it.hlo_module,
                    };
                    let ranks = Ranks::new(trace, trace.details.iter().filter_map(text));
                    let of: Vec<u32> = trace
                        .details
                        .iter()
                        .map(|it| text(it).map_or(0, |it| ranks.of[it.row()] + 1))
                        .collect();
                    sort_by_rank(rows, ranks.n_ranks + 1, down, |it| {
                        of[events.detail[it as usize].row()]
                    });
                }
                None => (),
            }
        }
    }
}

/// Sorts stably by numbers below `n_ranks`.
fn sort_by_rank(rows: &mut Vec<u32>, n_ranks: usize, down: bool, rank: impl Fn(u32) -> u32) {
    let last = n_ranks.saturating_sub(1) as u32;
    let rank = |row: u32| {
        if down { last.saturating_sub(rank(row)) } else { rank(row) }
    };
    if rows.len() < n_ranks {
        rows.sort_by_key(|&it| rank(it));
        return;
    }
    let mut next = vec![0_u32; n_ranks + 1];
    for &row in rows.iter() {
        next[rank(row) as usize + 1] += 1;
    }
    for at in 1..next.len() {
        next[at] += next[at - 1];
    }
    let mut sorted = vec![0; rows.len()];
    for &row in rows.iter() {
        let place = &mut next[rank(row) as usize];
        sorted[*place as usize] = row;
        *place += 1;
    }
    *rows = sorted;
}

/// What is left to visit: a span of rows, and what its rows must be.
struct Picked {
    span: Range<u32>,
    /// First and last.
    start_ps: (i64, i64),
    name: Option<StrId>,
    kind: Option<OpKind>,
    parent: Option<u32>,
}

impl Picked {
    /// None where no row can be what is asked for.
    fn narrow(&mut self, of: &Relation, column: Option<At>, range: (i64, i64)) -> Option<()> {
        let trace = of.trace();
        match column {
            Some(At::Id) => self.cut(clamp(range, of.n_rows())),
            Some(At::Track) => {
                let track = usize::try_from(range.0).ok().filter(|_| range.0 <= range.1)?;
                self.cut(trace.tracks.get(track)?.events.clone());
            }
            Some(At::StartPs) => {
                self.start_ps.0 = self.start_ps.0.max(range.0);
                self.start_ps.1 = self.start_ps.1.min(range.1);
            }
            Some(At::NameId) => {
                let name = u32::try_from(range.0).ok().filter(|_| range.0 <= range.1)?;
                self.set_name(StrId(name))?;
            }
            Some(At::Parent) => {
                let parent = u32::try_from(range.0).ok().filter(|_| range.0 <= range.1)?;
                if parent >= of.n_rows() || self.parent.is_some_and(|it| it != parent) {
                    return None;
                }
                // Children begin after their parent, on its track, before it ends.
                self.cut(parent + 1..of.run(parent).0.end.max(parent + 1));
                self.start_ps.1 = self.start_ps.1.min(trace.events.end(EventId(parent)).0);
                self.parent = Some(parent);
            }
            _ => (),
        }
        Some(())
    }

    fn narrow_text(&mut self, of: &Relation, column: Option<At>, text: &[u8]) -> Option<()> {
        if column == Some(At::Name) {
            return self.set_name(of.name_id(text)?);
        }
        let kind = OpKind::ALL.into_iter().find(|it| it.name().as_bytes() == text)?;
        if self.kind.is_some_and(|it| it != kind) {
            return None;
        }
        self.kind = Some(kind);
        Some(())
    }

    fn set_name(&mut self, name: StrId) -> Option<()> {
        if self.name.is_some_and(|it| it != name) {
            return None;
        }
        self.name = Some(name);
        Some(())
    }

    fn cut(&mut self, rows: Range<u32>) {
        let start = self.span.start.max(rows.start);
        self.span = start..self.span.end.min(rows.end).max(start);
    }

    fn is_timed(&self) -> bool {
        self.start_ps != (i64::MIN, i64::MAX)
    }

    /// The spans of rows that begin in time: one of each track, as starts ascend there.
    fn spans(&self, of: &Relation) -> Vec<Range<u32>> {
        if !self.is_timed() {
            return vec![self.span.clone()];
        }
        let start = &of.trace().events.start;
        let first = of.runs.partition_point(|it| it.0.end <= self.span.start);
        let mut spans = Vec::new();
        for (rows, _) in &of.runs[first..] {
            let lo = rows.start.max(self.span.start);
            let hi = rows.end.min(self.span.end);
            if lo >= hi {
                break;
            }
            let starts = &start[lo as usize..hi as usize];
            let from = starts.partition_point(|it| it.0 < self.start_ps.0);
            let n = starts[from..].partition_point(|it| it.0 <= self.start_ps.1);
            if n > 0 {
                let from = lo + from as u32;
                spans.push(from..from + n as u32);
            }
        }
        spans
    }

    /// The rows one by one, ascending; or the one span that they are.
    fn rows(&self, of: &Relation) -> Result<Range<u32>, Vec<u32>> {
        let events = &of.trace().events;
        let fits = |row: &u32| {
            let row = *row as usize;
            self.kind.is_none_or(|it| events.kind[row] == it)
                && self
                    .parent
                    .is_none_or(|it| events.parent(EventId(row as u32)) == Some(EventId(it)))
        };
        if let Some(name) = self.name {
            of.n_asked.set(of.n_asked.get().saturating_add(1));
            if of.is_asked_often() {
                let ByName { ends, rows } = of.by_name();
                let Some(&end) = ends.get(name.row()) else {
                    return Ok(0..0);
                };
                let start = name.row().checked_sub(1).map_or(0, |it| ends[it]);
                let rows = &rows[start as usize..end as usize];
                let first = rows.partition_point(|&it| it < self.span.start);
                let n = rows[first..].partition_point(|&it| it < self.span.end);
                let timed = |row: &u32| {
                    let start = events.start[*row as usize].0;
                    self.start_ps.0 <= start && start <= self.start_ps.1
                };
                let rows = rows[first..first + n].iter().copied();
                return Err(rows.filter(timed).filter(fits).collect());
            }
            let named = |row: &u32| events.name[*row as usize] == name;
            return Err(self.spans(of).into_iter().flatten().filter(named).filter(fits).collect());
        }
        let mut spans = self.spans(of);
        if self.kind.is_none() && self.parent.is_none() && spans.len() <= 1 {
            return Ok(spans.pop().unwrap_or(0..0));
        }
        Err(spans.into_iter().flatten().filter(fits).collect())
    }
}

impl vtab::Relation for Relation {
    fn plan(&self, asked: &Asked) -> Plan {
        let mut n_rows = f64::from(self.n_rows());
        let mut setup = 2.0;
        let mut is_unique = false;
        let mut terms = Vec::new();
        let (mut starts_after, mut starts_before) = (false, false);
        let mut ids = 0..self.n_rows();
        let n_runs = self.runs.len().max(1) as f64;
        for term in &asked.terms {
            let share = match (at(term.column), term.op) {
                (Some(At::Id), Op::Eq) => {
                    is_unique = true;
                    0.0
                }
                (Some(At::Id), _) => match term.said {
                    Some(range) => {
                        let rows = clamp(range, self.n_rows());
                        ids = ids.start.max(rows.start)..ids.end.min(rows.end);
                        1.0
                    }
                    None => 0.25,
                },
                (Some(At::Track), Op::Eq) => 1.0 / n_runs,
                (Some(At::Name | At::NameId), Op::Eq) => {
                    1.0 / (self.trace().strings.len().max(1) as f64).sqrt()
                }
                (Some(At::Kind), Op::Eq) => 0.2,
                (Some(At::Parent), Op::Eq) => 4.0 / n_rows.max(4.0),
                (Some(At::StartPs), op) => {
                    setup += n_runs * 0.2;
                    starts_after |= matches!(op, Op::Eq | Op::Gt | Op::Ge);
                    starts_before |= matches!(op, Op::Eq | Op::Lt | Op::Le);
                    1.0
                }
                _ => continue,
            };
            // Comparing a number is far less than handing over a row.
            if matches!(at(term.column), Some(At::Name | At::NameId | At::Kind)) {
                setup += n_rows * 0.01;
            }
            n_rows *= share;
            terms.push(*term);
        }
        match (starts_after, starts_before) {
            (true, true) => n_rows *= 0.01,
            (true, false) | (false, true) => n_rows *= 0.5,
            (false, false) => (),
        }
        let n_rows = (n_rows * ids.len() as f64 / f64::from(self.n_rows()).max(1.0)).max(1.0);
        let (is_ordered, order) = match ordered(&terms, &asked.order) {
            Some(order) => (true, order),
            None => (false, Vec::new()),
        };
        if order.iter().any(|it| at(it.column) != Some(At::Id)) {
            setup += n_rows * 0.1 * order.len() as f64;
        }
        Plan { terms, order, is_ordered, is_unique, n_rows, cost: n_rows + setup }
    }

    fn walk(self: Rc<Self>) -> Box<dyn Walk> {
        let run = Slot::new((0, 0, 0));
        Box::new(Events { relation: self, visit: Visit::nothing(), now: None, run })
    }
}

/// What to sort by so that rows come as asked; nothing where that is for SQLite to do.
///
/// A last order by id says whether rows of equal rank ascend or descend.
fn ordered(terms: &[Term], asked: &[Order]) -> Option<Vec<Order>> {
    let is_fixed = |order: &&Order| {
        at(order.column) == Some(At::Track)
            && terms.iter().any(|it| it.column == order.column && it.op == Op::Eq)
    };
    let mut asked: Vec<Order> = asked.iter().filter(|it| !is_fixed(it)).copied().collect();
    // Ids are unique: what comes after them orders nothing.
    if let Some(id) = asked.iter().position(|it| at(it.column) == Some(At::Id)) {
        asked.truncate(id + 1);
    }
    let one_track = terms.iter().any(|it| at(it.column) == Some(At::Track) && it.op == Op::Eq);
    for back in [false, true] {
        let own = [(At::Track, back), (At::StartPs, back), (At::DurPs, !back)];
        let own = &own[usize::from(one_track)..];
        let by_id = [(At::Track, back), (At::Id, back)];
        let asked: Option<Vec<(At, bool)>> =
            asked.iter().map(|it| Some((at(it.column)?, it.descending))).collect();
        if asked.is_some_and(|it| own.starts_with(&it) || by_id.starts_with(&it)) {
            // Rows lie like that, or exactly the other way round.
            let reversed = Order { column: ROWID, descending: true };
            return Some(if back { vec![reversed] } else { Vec::new() });
        }
    }
    let sortable = |it: &Order| at(it.column).is_some_and(|it| is_ranked(it) || it == At::Id);
    asked.iter().all(sortable).then_some(asked)
}

struct Events {
    relation: Rc<Relation>,
    visit: Visit,
    now: Option<u32>,
    /// The last track's rows and number: the next row is mostly on the same.
    run: Slot<(u32, u32, u32)>,
}

impl Walk for Events {
    fn filter(&mut self, plan: &Plan, values: &[ValueRef<'_>]) {
        let relation = &*self.relation;
        let rows = relation.pick(&plan.terms, values).rows(relation);
        let (back, order) = match plan.order.split_last() {
            Some((last, order)) if at(last.column) == Some(At::Id) => (last.descending, order),
            _ => (false, &plan.order[..]),
        };
        self.visit = match rows {
            Ok(span) if order.is_empty() && back => Visit::Back(span.rev()),
            Ok(span) if order.is_empty() => Visit::Span(span),
            rows => {
                let mut rows = rows.map_or_else(|it| it, Iterator::collect);
                if back {
                    rows.reverse();
                }
                relation.sort(&mut rows, order);
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
        let (Some(row), Some(column)) = (self.now, ALL.get(column)) else {
            return Cell::Null;
        };
        let trace = self.relation.trace();
        let events = &trace.events;
        let id = EventId(row);
        let text = |it: Option<StrId>| it.map_or(Cell::Null, |it| Cell::Text(trace.text(it)));
        match column {
            At::Id => Cell::Int(i64::from(row)),
            At::Track => {
                let (start, end, _) = self.run.get();
                if !(start..end).contains(&row) {
                    let (rows, track) = self.relation.run(row);
                    self.run.set((rows.start, rows.end, *track));
                }
                Cell::Int(i64::from(self.run.get().2))
            }
            At::Name => Cell::Text(trace.name(id)),
            At::NameId => Cell::Int(i64::from(events.name[id.row()].0)),
            At::Kind => Cell::Text(events.kind[id.row()].name()),
            At::StartPs => Cell::Int(events.start[id.row()].0),
            At::DurPs => Cell::Int(events.dur[id.row()].0),
            At::EndPs => Cell::Int(events.end(id).0),
            At::Parent => events.parent(id).map_or(Cell::Null, |it| Cell::Int(i64::from(it.0))),
            At::FrameworkOp => text(trace.detail(id).op),
            At::HloOp => text(trace.detail(id).hlo_op),
            At::HloModule => text(trace.detail(id).hlo_module),
            At::CopyBytes => {
                trace.detail(id).copy_bytes.map_or(Cell::Null, |it| Cell::Int(it as i64))
            }
        }
    }
}
