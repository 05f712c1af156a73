//! Counts tracing and compiling by function, and says what changed between two times.
//!
//! ```text
//! driving thread  |---------------- train_step (traced) ----------------|
//!                 |-- graph building --|  |---- __inference_train_step --|
//!                     |-- loss_fn --|     |--- compile ---|==== run ====|
//! other threads                             |-| |--|  parts of that compile
//! counted         '-- trace train_step --''-- compile ---'
//!                     '- trace loss_fn'
//! ```
//!
//! Every instant belongs to the innermost of them, so `own_ps` of all rows add up; running the
//! function belongs to none. A compiler's own threads are parts of the compilation they work for.

mod shapes;

use std::collections::BTreeMap;
use std::fmt;

use hashbrown::{HashMap, HashSet};
use trace::dialect::{self, Call};
use trace::{Dur, EventId, FactValue, OpKind, StrId, Trace, TrackId, TrackKind};

use crate::span::{Span, covered, subtract, total, union};
use crate::step::{HostSteps, Step, is_pipeline_thread};
use crate::step_time::{calls_that_compile, runs_inside};
use crate::{Analysis, Cell, CellKind, Field, Tables, Worded};

table! {
    /// Tracing and compiling, by function.
    ///
    /// `own_step_ps` of all rows add to the `compile_ps` of the mean step in `step_time`, but for
    /// compiling under which a device computed, which counts as compute there.
    pub struct Compile = "compile" {
        /// The host that traced or compiled.
        host: String,
        /// `trace` (tf.function), `compile` (XLA, jit), `autotune`, `optimize` (of the graph).
        kind: Kind,
        /// The function, as its author calls it; absent where the profile does not say.
        function: Option<String>,
        /// How often it was traced or compiled.
        count: i64,
        /// In how many of the steps that count.
        steps: i64,
        /// Calls of the function, whether they traced or compiled or not.
        calls: Option<i64>,
        /// How often it was traced since the program started, as the framework counts.
        tracing_count: Option<i64>,
        /// How many of these happened inside a tracing, and so because of it.
        inside_trace: i64,
        /// Time in all, with the tracing and compiling inside it, without running the function.
        total_ps: i64,
        /// The same, of one time.
        mean_ps: i64,
        /// The same, inside steps that count, per such step.
        step_ps: i64,
        /// Time in all without the tracing and compiling inside it.
        own_ps: i64,
        /// The same, inside steps that count, per such step.
        own_step_ps: i64,
        /// What changed from one time to the next, where the profile says so.
        changed: Option<Worded<Changed>>,
        /// The longest of them.
        event: i64,
    }
}

impl Compile {
    /// Time in a step that has it, of so many that count.
    pub fn per_step_with(&self, n_steps: usize) -> Dur {
        Dur(self.step_ps.saturating_mul(n_steps as i64) / self.steps.max(1))
    }
}

/// What was done to a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Trace,
    Compile,
    Autotune,
    Optimize,
}

impl Field for Kind {
    const KIND: CellKind = CellKind::Text;
    fn cell(&self) -> Cell<'_> {
        Cell::Text(self.name())
    }
}

/// What is different from one time to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// The function itself is a new one each time.
    Function,
    /// It was traced so many times more, for arguments of another kind.
    Arguments {
        times: i64,
    },
    ArgumentCount {
        from: usize,
        to: usize,
    },
    /// The argument's place, counted from one, and the shapes it had; of so many more none is named.
    Shapes {
        argument: usize,
        shapes: Vec<String>,
        more: usize,
    },
    /// Something else: all arguments keep their shapes.
    NotShapes,
}

impl fmt::Display for Changed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Changed::Function => {
                out.write_str("A new function is created each time, and has to be traced")
            }
            Changed::Arguments { times: 1 } => {
                out.write_str("It was retraced once because its arguments changed")
            }
            Changed::Arguments { times } => {
                write!(out, "It was retraced {times} times because its arguments changed")
            }
            Changed::ArgumentCount { from, to } => {
                write!(out, "The number of arguments changed: {from} → {to}")
            }
            Changed::Shapes { argument, shapes, more } => {
                write!(out, "Argument {argument} changed shape: {}", shapes.join(" → "))?;
                if *more > 0 { write!(out, " and {more} more") } else { Ok(()) }
            }
            Changed::NotShapes => out.write_str("The shapes of all arguments stay the same"),
        }
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Trace => "trace",
            Kind::Compile => "compile",
            Kind::Autotune => "autotune",
            Kind::Optimize => "optimize",
        }
    }

    /// Of an event that is known to trace, compile or tune.
    fn of(name: &str) -> Kind {
        const OPTIMIZE: &[&str] = &[
            "MetaOptimizer",
            "Grappler",
            "GraphOptimization",
            "OptimizeFunctionGraph",
            "InstantiateFunction",
        ];
        if name.starts_with("tf.function-graph_building") {
            Kind::Trace
        } else if name.starts_with("Autotun") {
            Kind::Autotune
        } else if OPTIMIZE.iter().any(|it| name.starts_with(it)) {
            Kind::Optimize
        } else {
            Kind::Compile
        }
    }
}

impl Analysis for Compile {
    fn run(tables: &Tables) -> Vec<Compile> {
        let trace = tables.trace();
        let all = tables.model::<HostSteps>();
        let mut rows = Vec::new();
        for host in trace.tracks_of(TrackKind::Host) {
            let steps = all.of(trace.track_name(host));
            let driver = steps.first().map(|it| TrackId(it.track as u32));
            let works = works_of(trace, host, driver);
            if works.is_empty() {
                continue;
            }
            let counted: Vec<Span> =
                steps.iter().filter(|it| it.counts()).map(Step::span).collect();
            rows.extend(by_function(trace, host, &works, &counted));
        }
        rows.sort_by(|a, b| b.step_ps.cmp(&a.step_ps).then(b.total_ps.cmp(&a.total_ps)));
        rows
    }
}

/// One tracing or compilation.
#[derive(Debug)]
struct Work {
    kind: Kind,
    function: Option<String>,
    event: EventId,
    /// Its own time: what is inside it but not of it is left out.
    spans: Vec<Span>,
    /// The work around it, earlier in the list.
    inside: Option<usize>,
}

/// A work and everything inside it: the outermost call that traces or compiles.
#[derive(Debug, Clone, Copy)]
struct Root {
    track: TrackId,
    event: EventId,
    span: Span,
}

/// All works of a host; those inside others after them.
fn works_of(trace: &Trace, host: TrackId, driver: Option<TrackId>) -> Vec<Work> {
    let mut reader = Reader::new(trace);
    let mut roots = Vec::new();
    for track in trace.tracks_below(host, TrackKind::Thread) {
        if !is_pipeline_thread(trace.track_name(track)) {
            reader.find_roots(track, &mut roots);
        }
    }
    // The driving thread says best what it is about; of the others, who began first.
    roots.sort_by_key(|it| (Some(it.track) != driver, it.span.0, std::cmp::Reverse(it.span.1)));
    let of_driver = roots.partition_point(|it| Some(it.track) == driver);
    for root in &roots[..of_driver] {
        reader.walk(*root);
    }
    let driven = union(reader.works.iter().flat_map(|it| it.spans.iter().copied()).collect());
    let windows: Vec<(Span, usize)> = reader
        .works
        .iter()
        .enumerate()
        .filter_map(|(at, it)| Some(((it.spans.first()?.0, it.spans.last()?.1), at)))
        .collect();
    let mut until = i64::MIN / 4;
    let mut last = None;
    for root in &roots[of_driver..] {
        let first = reader.works.len();
        reader.walk(*root);
        // Whom it works for: the innermost on the driving thread, else the one that still runs.
        let size = root.span.1 - root.span.0;
        let around = if covered(root.span, &driven) * 2 >= size {
            // Sorted by start; a root's works are few.
            let after = windows.partition_point(|it| it.0.0 <= root.span.0);
            windows[..after]
                .iter()
                .rev()
                .take(MOST_AROUND)
                .find(|it| it.0.1 > root.span.0)
                .map(|it| it.1)
        } else if (until - root.span.0).saturating_mul(2) >= size {
            last
        } else {
            None
        };
        let own = reader.works.get(first).and_then(|it| it.function.clone());
        if let Some(around) = around {
            let name = &mut reader.works[around].function;
            let is_part = own.is_none() || name.is_none() || *name == own;
            if is_part {
                *name = name.take().or(own);
                reader.works.truncate(first);
                continue;
            }
        }
        for work in &mut reader.works[first..] {
            work.spans = subtract(&work.spans, &driven);
            let left = work.spans.iter().map(|it| (it.0.max(until), it.1));
            work.spans = left.filter(|it| it.0 < it.1).collect();
        }
        if root.span.1 > until {
            (until, last) = (root.span.1, Some(first));
        }
    }
    reader.works
}

/// Reads roots into works.
struct Reader<'a> {
    trace: &'a Trace,
    works: Vec<Work>,
    /// Calls that hold a compilation.
    compiling: HashSet<u32>,
    /// Arguments are decoded for few events: a name is all that is wanted of them.
    decodes_left: usize,
}

/// As many works that began before another are asked whether they contain it.
/// Source: choice, a bound on the work.
const MOST_AROUND: usize = 64;

/// Beyond so many the names that are still missing stay so.
/// Source: choice, a bound on the work.
const MOST_DECODED: usize = 5000;

/// What a stretch of a thread's time belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Belongs {
    Work(usize),
    /// To running what was traced.
    Nobody,
    /// To fetching or saving, whatever happens inside.
    Others,
}

impl<'a> Reader<'a> {
    fn new(trace: &'a Trace) -> Reader<'a> {
        let decodes_left = MOST_DECODED;
        Reader { trace, works: Vec::new(), compiling: HashSet::new(), decodes_left }
    }

    fn find_roots(&mut self, track: TrackId, roots: &mut Vec<Root>) {
        let trace = self.trace;
        let compiling = calls_that_compile(trace, track);
        let mut until = i64::MIN;
        for row in trace.rows_of(track, OpKind::Compile) {
            if trace.events.start[row].0 < until {
                continue;
            }
            let (mut event, mut is_other) = (EventId(row as u32), false);
            for it in trace.events.ancestors(event) {
                let kind = trace.events.kind[it.row()];
                is_other |= belongs_to_others(kind);
                if compiling.contains(&it.0) || kind == OpKind::Compile {
                    event = it;
                }
            }
            let span = (trace.events.start[event.row()].0, trace.events.end(event).0);
            until = span.1;
            if !is_other {
                roots.push(Root { track, event, span });
            }
        }
        self.compiling.extend(compiling);
    }

    /// Walks a root's events, giving each instant to the innermost work.
    fn walk(&mut self, root: Root) {
        let trace = self.trace;
        let rows = trace.tracks[root.track.row()].rows();
        let mut open: Vec<(i64, Belongs)> = Vec::new();
        let mut at = root.span.0;
        for row in root.event.row()..rows.end {
            let start = trace.events.start[row].0;
            if start >= root.span.1 && row > root.event.row() {
                break;
            }
            let kind = trace.events.kind[row];
            if matches!(kind, OpKind::Listener | OpKind::Memory | OpKind::OpEnd) {
                continue;
            }
            while let Some(&(end, to)) = open.last().filter(|it| it.0 <= start) {
                self.give(to, at, end);
                at = at.max(end);
                open.pop();
            }
            let around = open.last().map_or(Belongs::Nobody, |it| it.1);
            let to = self.belongs(row, kind, around, &open);
            if to == around && !open.is_empty() {
                continue;
            }
            self.give(around, at, start);
            at = at.max(start);
            open.push((trace.events.end(EventId(row as u32)).0.min(root.span.1), to));
        }
        while let Some((end, to)) = open.pop() {
            self.give(to, at, end);
            at = at.max(end);
        }
    }

    fn give(&mut self, to: Belongs, from: i64, until: i64) {
        if let (Belongs::Work(work), true) = (to, from < until) {
            let spans = &mut self.works[work].spans;
            match spans.last_mut() {
                Some(last) if last.1 == from => last.1 = until,
                _ => spans.push((from, until)),
            }
        }
    }

    fn belongs(
        &mut self,
        row: usize,
        kind: OpKind,
        around: Belongs,
        open: &[(i64, Belongs)],
    ) -> Belongs {
        let trace = self.trace;
        let event = EventId(row as u32);
        if around == Belongs::Others || belongs_to_others(kind) {
            return Belongs::Others;
        }
        let calls = self.compiling.contains(&event.0);
        let traced = trace.detail(event).traced == Some(true);
        if kind != OpKind::Compile && !calls {
            let runs = around != Belongs::Nobody
                && (kind == OpKind::Program || runs_inside(trace.name(event)));
            return if runs { Belongs::Nobody } else { around };
        }
        let name = trace.name(event);
        let of = if calls { Kind::Compile } else { Kind::of(name) };
        let (of, function) = match (traced, calls) {
            (true, _) => (Kind::Trace, function_name(name)),
            (_, true) => (of, function_name(name)),
            _ => (of, None),
        };
        if let Belongs::Work(work) = around {
            let work_kind = self.works[work].kind;
            let is_part = match of {
                Kind::Trace => !traced && matches!(work_kind, Kind::Trace | Kind::Compile),
                Kind::Autotune => work_kind == Kind::Autotune,
                Kind::Compile | Kind::Optimize => work_kind == of || work_kind == Kind::Compile,
            };
            if is_part {
                if self.works[work].function.is_none() {
                    self.works[work].function = function.or_else(|| self.name_in_args(event));
                }
                return around;
            }
        }
        let inside = open.iter().rev().find_map(|it| match it.1 {
            Belongs::Work(work) => Some(work),
            _ => None,
        });
        let function = function
            .or_else(|| self.name_in_args(event))
            .or_else(|| inside.and_then(|it| self.works[it].function.clone()));
        self.works.push(Work { kind: of, function, event, spans: Vec::new(), inside });
        Belongs::Work(self.works.len() - 1)
    }

    /// The name of the program that a step of its compilation carries.
    fn name_in_args(&mut self, event: EventId) -> Option<String> {
        const KEYS: [&str; 5] = ["name", "module_name", "hlo_module", "fun_name", "module"];
        // Its module is one kernel of the program.
        if self.decodes_left == 0 || self.trace.name(event).starts_with("FusionCompiler") {
            return None;
        }
        self.decodes_left -= 1;
        let args = self.trace.args.of(event);
        args.iter().find(|it| KEYS.contains(&it.0.as_str())).and_then(|it| match &it.1 {
            FactValue::Text(it) => function_name(it),
            _ => None,
        })
    }
}

fn belongs_to_others(kind: OpKind) -> bool {
    matches!(kind, OpKind::InputWait | OpKind::InputStage | OpKind::Save | OpKind::PythonOp)
}

/// A function as its author calls it, without what frameworks put around the name.
pub fn function_name(name: &str) -> Option<String> {
    if let Some(Call::Function(function)) = dialect::call(name, OpKind::CallOp) {
        return Some(function.to_owned());
    }
    // `__inference_f_12:__inference_f_12`: an op, and its type is the function.
    let name = name.split(':').next().unwrap_or(name);
    if name.is_empty() || name.starts_with("ExecutorState") || name.ends_with("PartitionedCall") {
        return None;
    }
    let lambda = |it: &str| match it.trim_matches('_') {
        "lambda" => "<lambda>".to_owned(),
        _ => it.to_owned(),
    };
    Some(lambda(dialect::function_of(name).unwrap_or(name)))
}

/// What is summed up into a row.
#[derive(Debug, Default)]
struct Sum {
    works: Vec<usize>,
    inside_trace: i64,
    total_ps: i64,
    step_ps: i64,
    own_ps: i64,
    own_step_ps: i64,
}

fn by_function(trace: &Trace, host: TrackId, works: &[Work], counted: &[Span]) -> Vec<Compile> {
    let own: Vec<(i64, i64)> =
        works.iter().map(|it| (total(&it.spans), inside_steps(&it.spans, counted))).collect();
    let mut whole = own.clone();
    for at in (0..works.len()).rev() {
        if let Some(around) = works[at].inside {
            whole[around].0 = whole[around].0.saturating_add(whole[at].0);
            whole[around].1 = whole[around].1.saturating_add(whole[at].1);
        }
    }
    let mut sums: BTreeMap<(Kind, Option<&str>), Sum> = BTreeMap::new();
    for (at, work) in works.iter().enumerate() {
        let around = std::iter::successors(work.inside, |&it| works[it].inside);
        let traced = around.clone().any(|it| works[it].kind == Kind::Trace);
        // A function that traces itself again is one tracing, and its time is counted once.
        let same = |it: usize| works[it].kind == work.kind && works[it].function == work.function;
        let recursive = around.clone().any(same);
        let sum = sums.entry((work.kind, work.function.as_deref())).or_default();
        sum.own_ps = sum.own_ps.saturating_add(own[at].0);
        sum.own_step_ps = sum.own_step_ps.saturating_add(own[at].1);
        if !recursive {
            sum.works.push(at);
            sum.inside_trace += i64::from(traced && work.kind != Kind::Trace);
            sum.total_ps = sum.total_ps.saturating_add(whole[at].0);
            sum.step_ps = sum.step_ps.saturating_add(whole[at].1);
        }
    }
    let calls = calls_by_function(trace, host, works);
    let programs = shapes::programs(trace);
    let n_steps = counted.len().max(1) as i64;
    sums.into_iter()
        .map(|((kind, function), sum)| {
            let count = sum.works.len() as i64;
            let mut steps: Vec<usize> = sum
                .works
                .iter()
                .filter_map(|&it| step_at(trace.events.start[works[it].event.row()].0, counted))
                .collect();
            steps.sort_unstable();
            steps.dedup();
            let tracings = tracing_counts(trace, works, &sum, kind);
            let changed = match kind {
                Kind::Trace => changed_tracing(&tracings),
                Kind::Compile => {
                    let of = |it: &&shapes::Program| {
                        function.is_some() && function_name(&it.module).as_deref() == function
                    };
                    shapes::difference(&programs.iter().filter(of).collect::<Vec<_>>())
                }
                _ => None,
            };
            let longest = sum.works.iter().max_by_key(|&&it| whole[it].0);
            Compile {
                host: trace.track_name(host).to_owned(),
                kind,
                function: function.map(str::to_owned),
                count,
                steps: steps.len() as i64,
                calls: function.and_then(|it| calls.get(it)).copied().filter(|&it| it >= count),
                tracing_count: tracings.into_iter().max(),
                inside_trace: sum.inside_trace,
                total_ps: sum.total_ps,
                mean_ps: sum.total_ps / count.max(1),
                step_ps: sum.step_ps / n_steps,
                own_ps: sum.own_ps,
                own_step_ps: sum.own_step_ps / n_steps,
                changed: changed.map(Worded::from),
                event: longest.map_or(0, |&it| i64::from(works[it].event.0)),
            }
        })
        .collect()
}

/// How much of the spans lies inside steps; both are in order.
fn inside_steps(spans: &[Span], steps: &[Span]) -> i64 {
    spans.iter().fold(0, |sum, &it| sum + covered(it, steps))
}

fn step_at(time: i64, steps: &[Span]) -> Option<usize> {
    let at = steps.partition_point(|it| it.0 <= time).checked_sub(1)?;
    (time < steps[at].1).then_some(at)
}

/// The framework's own count at each tracing.
fn tracing_counts(trace: &Trace, works: &[Work], sum: &Sum, kind: Kind) -> Vec<i64> {
    if kind != Kind::Trace {
        return Vec::new();
    }
    let count = |&work: &usize| {
        let args = trace.args.of(works[work].event);
        args.iter().find(|it| it.0 == "tracing_count").and_then(|it| match it.1 {
            FactValue::Int(it) => Some(it),
            _ => None,
        })
    };
    sum.works.iter().take(MOST_DECODED).filter_map(count).collect()
}

/// A function that is traced again counts up; one that is made anew begins from the start.
fn changed_tracing(counts: &[i64]) -> Option<Changed> {
    let (&first, &last) = (counts.first()?, counts.last()?);
    if counts.len() < 2 {
        None
    } else if counts.iter().all(|&it| it == first) {
        Some(Changed::Function)
    } else {
        (last > first).then(|| Changed::Arguments { times: last - first })
    }
}

/// Calls of the functions that were traced or compiled, by their name.
fn calls_by_function(trace: &Trace, host: TrackId, works: &[Work]) -> HashMap<String, i64> {
    let mut names: HashMap<StrId, String> = HashMap::new();
    for work in works.iter().filter(|it| it.function.is_some()) {
        let name = trace.events.name[work.event.row()];
        let text = trace.text(name);
        let is_call = dialect::any(|it| it.begins_step(text, OpKind::Runtime));
        if is_call || trace.detail(work.event).traced.is_some() {
            names.entry(name).or_insert_with(|| function_name(text).unwrap_or_default());
        }
    }
    let mut calls: HashMap<String, i64> = HashMap::new();
    if names.is_empty() {
        return calls;
    }
    for track in trace.tracks_below(host, TrackKind::Thread) {
        for row in trace.tracks[track.row()].rows() {
            let kind = trace.events.kind[row];
            if !matches!(kind, OpKind::Runtime | OpKind::Compile) {
                continue;
            }
            let name = trace.events.name[row];
            let Some(function) = names.get(&name) else { continue };
            // A call can be marked twice, one mark inside the other.
            let around = trace.events.parent(EventId(row as u32));
            if around.is_none_or(|it| trace.events.name[it.row()] != name) {
                *calls.entry_ref(function).or_default() += 1;
            }
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;

    use super::{Changed, Compile, function_name};
    use crate::Tables;
    use crate::step_time::StepTime;

    type Row<'a> = (&'a str, &'a str, i64, i64, i64, i64);

    /// Kind, function, count, steps, total and own time (both µs).
    fn check(picture: &str, expected: &[Row<'_>]) -> Vec<Compile> {
        let tables = Tables::new(Arc::new(draw(picture)));
        let rows = tables.get::<Compile>();
        let found: Vec<Row<'_>> = rows
            .iter()
            .map(|it| {
                let function = it.function.as_deref().unwrap_or("?");
                let (total, own) = (it.total_ps / 1_000_000, it.own_ps / 1_000_000);
                (it.kind.name(), function, it.count, it.steps, total, own)
            })
            .collect();
        assert_eq!(found, expected);
        let steps = tables.get::<StepTime>();
        let counted: Vec<_> = steps.iter().filter(|it| it.counts).collect();
        let in_steps: i64 = counted.iter().map(|it| it.compile_ps).sum();
        let own: i64 = rows.iter().map(|it| it.own_step_ps).sum();
        let mean = in_steps / counted.len().max(1) as i64;
        assert!((own - mean).abs() <= rows.len() as i64, "{own} here, {mean} in step_time");
        rows.to_vec()
    }

    #[test]
    fn nested_tracing_is_counted_once() {
        let rows = check(
            "
            host/python: train#1 0..100, f{traced=true;tracing_count=2} 0..80, \
            tf.function-graph_building 0..50, g{traced=true;tracing_count=2} 10..30, \
            tf.function-graph_building 12..28, EagerKernelExecute 60..80, train#2 100..200, \
            f{traced=true;tracing_count=3} 100..180, EagerKernelExecute 160..180, \
            train#3 200..300, f{traced=false;tracing_count=3} 200..220
            ",
            &[("trace", "f", 2, 2, 120, 100), ("trace", "g", 1, 1, 20, 20)],
        );
        assert_eq!(rows[0].calls, Some(3));
        assert_eq!(rows[0].tracing_count, Some(3));
        assert!(matches!(rows[0].changed.as_deref(), Some(Changed::Arguments { .. })), "{rows:?}");
    }

    #[test]
    fn a_function_made_anew_starts_counting_again() {
        let rows = check(
            "
            host/python: train#1 0..100, f{traced=true;tracing_count=1} 0..80, train#2 100..200, \
            f{traced=true;tracing_count=1} 100..180, train#3 200..300
            ",
            &[("trace", "f", 2, 2, 160, 160)],
        );
        assert_eq!(rows[0].changed.as_deref(), Some(&Changed::Function));
    }

    #[test]
    fn what_compiles_inside_a_tracing_hangs_on_it() {
        let rows = check(
            "
            host/python: train#1 0..100, f{traced=true} 0..90, tf.function-graph_building 0..20, \
            EagerKernelExecute 25..90, __inference_f_12:__inference_f_12 25..90, \
            CpuCompiler::RunBackend{name=a_inference_f_12__XlaMustCompile_true.2} 40..70, \
            CpuExecutable::ExecuteAsyncOnStream 75..90, ThunkExecutor::Execute 76..89, \
            train#2 100..200, train#3 200..300
            host/pool: FusionCompiler::Compile{module=fusion.1} 45..60
            ",
            &[("trace", "f", 1, 1, 75, 25), ("compile", "f", 1, 1, 50, 50)],
        );
        assert_eq!(rows[1].inside_trace, 1);
    }

    #[test]
    fn a_jit_call_is_one_compilation_however_many_functions_it_holds() {
        let rows = check(
            "
            host/python: train#1 0..100, PjitFunction(f) 0..90, PjitFunction(f) 0..90, \
            PjitFunction(matmul) 5..20, trace_to_jaxpr_dynamic 5..18, \
            backend_compile_and_load 30..80, ExecuteReplicated.__call__ 82..90, \
            train#2 100..200, PjitFunction(f) 100..110, train#3 200..300
            host/pool: PjRtCpuClient::Compile 35..78, \
            CpuCompiler::RunBackend{name=jit_f} 40..70
            ",
            &[("compile", "f", 1, 1, 82, 82)],
        );
        assert_eq!(rows[0].calls, Some(2));
    }

    #[test]
    fn compiling_on_another_thread_is_named_by_its_program() {
        check(
            "
            host/python: train#1 0..100, EagerExecute 0..90, train#2 100..200, train#3 200..300
            host/tf_Compute: CpuCompiler::RunBackend{name=a_inference_step_460__.7} 20..60
            host/pool: FusionCompiler::Compile{module=fusion.1} 30..50
            ",
            &[("compile", "step", 1, 1, 40, 40)],
        );
    }

    #[test]
    fn without_compiling_there_are_no_rows() {
        check("host/python: train#1 0..100, EagerExecute 0..90, train#2 100..200", &[]);
    }

    #[test]
    fn functions_are_called_what_their_author_calls_them() {
        let check = |name: &str, expected: &str| {
            assert_eq!(function_name(name).as_deref(), Some(expected), "{name}");
        };
        check("train_step", "train_step");
        check("PjitFunction(update)", "update");
        check("PjitFunction(<lambda>)", "<lambda>");
        check("jit_update", "update");
        check("jit__lambda_", "<lambda>");
        check("__inference_train_step_535:__inference_train_step_535", "train_step");
        check("a_inference_train_step_5__XlaMustCompile_true_config_proto_1_.2", "train_step");
        check("a_inference_one_step_on_data_460__.7", "one_step_on_data");
        check("__inference_my_step_2_81", "my_step_2");
        assert_eq!(function_name("x/StatefulPartitionedCall:StatefulPartitionedCall"), None);
    }
}
