//! The input pipeline as an operational model: crews of threads, each with its work for a step.
//!
//! A step of the consumer takes `rest + own work`, or as long as the slowest crew, whichever is
//! longer; nothing is faster than all work shared by all cores. That is the law of the slowest
//! station, as in Plumber (Kuchnik et al., MLSys 2022), with one addition: a pipeline without a
//! buffer before the consumer works in the consumer's own time.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use trace::{EdgeKind, EventId, FactValue, OpKind, StrId, Trace, TrackId, TrackKind};

use crate::mean_step::Mean;
use crate::span::{Span, total, union};
use crate::step::Counted;
use crate::what_if::LimitedBy;
use crate::{Model, Tables};

/// The pipeline of one run; without stages where the trace has none.
#[derive(Debug, Default)]
pub struct Pipeline {
    pub n_steps: i64,
    /// Parents before children.
    pub stages: Vec<Stage>,
    pub crews: Vec<Crew>,
    /// The mean step, as measured.
    pub step_ps: i64,
    /// The mean step without waiting for input.
    pub rest_ps: i64,
    /// Of that, computing, which may want all cores.
    pub compute_ps: i64,
    /// Of that, all in which the host does something, which takes one core at least.
    pub busy_ps: i64,
    /// Cores that the pipeline may use, where it says so.
    pub cores: Option<i64>,
    /// Of the time that threads were at work, the part in which they had a core: where more want
    /// one than there are, they wait for it in the middle of their work.
    pub with_core: f64,
    /// Time of a step in which Python made input, on any thread.
    pub python_ps: i64,
    /// Names of the ops that its functions run.
    pub ops: BTreeSet<StrId>,
}

#[derive(Debug, Clone, Default)]
pub struct Stage {
    pub path: String,
    pub parent: Option<usize>,
    pub dataset: Option<String>,
    pub calls: i64,
    pub iterators: i64,
    pub work_ps: i64,
    pub python_ps: i64,
    /// What its functions run is recorded.
    pub functions_seen: bool,
    pub blocked_ps: i64,
    pub parallelism: Option<i64>,
    pub autotune: Option<bool>,
    pub buffer_limit: Option<i64>,
    pub buffered: Option<f64>,
    pub batch_size: Option<i64>,
    /// The crew that does its work.
    pub works_in: usize,
    /// Its functions draw random numbers: what it makes is new each time.
    pub is_random: bool,
    /// The op that its functions spend most time in, and that time for a step.
    pub top_op: Option<(String, i64)>,
    /// Its rows, for evidence: a few of them.
    pub events: Vec<EventId>,
}

/// Threads that share work: the consumer, the background threads of a stage, its pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crew {
    pub of: CrewOf,
    /// Work for a step, of all its threads together.
    pub work_ps: i64,
    pub parallel: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrewOf {
    /// Who asks for batches: its work is done while the training waits.
    Consumer,
    /// The background threads of a stage, which run all below it up to the next boundary.
    Threads(usize),
    /// The pool that runs a stage's functions.
    Pool(usize),
}

impl Crew {
    /// What its work for a step takes.
    pub fn period_ps(&self) -> i64 {
        self.work_ps / self.parallel.max(1)
    }

    pub fn name(&self, pipeline: &Pipeline) -> String {
        match self.of {
            CrewOf::Consumer => "consumer".to_owned(),
            CrewOf::Threads(it) => pipeline.stages[it].path.clone(),
            CrewOf::Pool(it) => format!("{} functions", pipeline.stages[it].path),
        }
    }

    fn limit(&self, pipeline: &Pipeline) -> LimitedBy {
        match self.of {
            CrewOf::Consumer => LimitedBy::Rest,
            CrewOf::Threads(_) | CrewOf::Pool(_) => LimitedBy::Stage(self.name(pipeline)),
        }
    }
}

/// Stages that buffer what background threads make.
const BOUNDARIES: [&str; 8] = [
    "Prefetch",
    "ParallelMap",
    "MapAndBatch",
    "ParallelInterleave",
    "ParallelBatch",
    "ParseExample",
    "ParallelFilter",
    "LegacyParallelInterleave",
];

impl Stage {
    pub fn kind(&self) -> &str {
        self.path.rsplit("::").next().unwrap_or(&self.path)
    }

    pub fn is_asynchronous(&self) -> bool {
        is_boundary(self.kind())
    }

    /// The kind without its version: `BatchV2` is `Batch`.
    pub fn plain_kind(&self) -> &str {
        plain(self.kind())
    }

    /// Whether it reads files.
    pub fn reads_files(&self) -> bool {
        let kind = self.plain_kind();
        [
            "TFRecord",
            "TextLine",
            "FixedLengthRecord",
            "LMDB",
            "SSTable",
            "ArrayRecord",
            "CSV",
            "Csv",
        ]
        .contains(&kind)
    }

    /// Its time in Python. All that a generator does is to call Python and to wait for it; but for
    /// those with which TensorFlow hands batches from device to device, in which no Python runs.
    pub fn in_python_ps(&self) -> i64 {
        let no_python = self.functions_seen && self.python_ps == 0;
        if self.plain_kind() == "Generator" && !no_python {
            self.work_ps
        } else {
            self.python_ps.min(self.work_ps)
        }
    }

    /// Put there by TensorFlow, not by the user.
    pub fn is_injected(&self) -> bool {
        self.dataset.as_deref().is_some_and(|it| it.starts_with("inject/"))
    }
}

fn plain(kind: &str) -> &str {
    let digits = kind.trim_end_matches(|it: char| it.is_ascii_digit());
    match digits.strip_suffix('V') {
        Some(name) if digits.len() < kind.len() => name,
        _ => kind,
    }
}

fn is_boundary(kind: &str) -> bool {
    BOUNDARIES.contains(&plain(kind))
}

impl Pipeline {
    /// The crew that needs longest for a step.
    pub fn limit(&self) -> Option<usize> {
        let busy = (0..self.crews.len()).filter(|&it| self.crews[it].work_ps > 0);
        busy.max_by_key(|&it| self.crews[it].period_ps())
    }

    /// The stage with most work among those that a crew runs.
    pub fn heaviest_in(&self, crew: usize) -> Option<usize> {
        let stages = (0..self.stages.len()).filter(|&it| self.stages[it].works_in == crew);
        stages.max_by_key(|&it| self.stages[it].work_ps)
    }

    pub fn crew(&self, of: CrewOf) -> Option<&Crew> {
        self.crews.iter().find(|it| it.of == of)
    }

    /// What recording its calls took of a step in the threads that limit it. At most half of those
    /// threads' time.
    pub fn recorded_ps(&self) -> i64 {
        /// What recording a stage's event takes.
        /// Source: measured by `bench/costs/run`, 0.24 to 0.5 µs for take, map, batch and shuffle;
        /// 0.9 to 1.1 µs, up to 2.1, for parallel map and prefetch.
        const EACH_PS: i64 = 1_500_000;
        let Some(limit) = self.limit() else { return 0 };
        let inside = self.stages.iter().filter(|it| it.works_in == limit);
        let calls: i64 = inside.map(|it| it.calls).sum();
        (calls * EACH_PS / self.n_steps.max(1)).min(self.crews[limit].period_ps() / 2)
    }

    /// Work done in the consumer's own time.
    pub fn consumer_ps(&self) -> i64 {
        self.crew(CrewOf::Consumer).map_or(0, |it| it.work_ps)
    }

    /// Whether a buffer stands between the consumer and the pipeline's work.
    pub fn fetches_ahead(&self) -> bool {
        let all: i64 = self.crews.iter().map(|it| it.work_ps).sum();
        self.consumer_ps() * AHEAD < all
    }

    /// The mean step that the model expects.
    pub fn predict(&self) -> i64 {
        let crews = self.crews.iter().filter(|it| it.of != CrewOf::Consumer);
        let slowest = crews.map(Crew::period_ps).max().unwrap_or(0);
        (self.rest_ps + self.consumer_ps()).max(slowest).max(self.shared_ps())
    }

    /// The mean step after a change from `before`, where background work slows the computing by a
    /// part of the cores it takes: `contention` is 1 where computing could use all cores itself, 0
    /// where it has one to itself. What the driving thread does alone keeps its core.
    pub fn predict_from(&self, before: &Pipeline, contention: f64) -> i64 {
        let Some(cores) = self.cores.filter(|_| self.compute_ps > 0) else {
            return self.predict();
        };
        let taken = |it: &Pipeline, step: i64| {
            let work: i64 = it.crews.iter().map(|it| it.work_ps).sum();
            let background = (work - it.consumer_ps()) as f64;
            contention * (background / (step.max(1) as f64 * cores as f64)).clamp(0.0, 1.0)
        };
        let compute = self.compute_ps.min(self.rest_ps);
        let undisturbed = compute as f64 / (1.0 + taken(before, before.step_ps));
        // The longer the step, the smaller the part of the cores: settles within a few rounds.
        let mut step = self.predict();
        for _ in 0..ROUNDS {
            let disturbed = (undisturbed * (1.0 + taken(self, step))) as i64;
            step = self.with_rest(self.rest_ps - compute + disturbed).predict();
        }
        step
    }

    /// What the model says holds the step.
    pub fn limited_by(&self) -> LimitedBy {
        let all = self.predict();
        if self.rest_ps + self.consumer_ps() == all {
            return LimitedBy::Rest;
        }
        let slowest = self.crews.iter().find(|it| it.period_ps() == all);
        slowest.map_or(LimitedBy::Cores, |it| it.limit(self))
    }

    /// What all work takes with all cores busy all the time.
    fn shared_ps(&self) -> i64 {
        let work: i64 = self.crews.iter().map(|it| it.work_ps).sum();
        let wanted = (work + self.busy_ps) as f64 * self.with_core;
        (wanted / self.cores.map_or(f64::INFINITY, |it| it.max(1) as f64)) as i64
    }

    /// With another rest of the step.
    #[must_use]
    pub fn with_rest(&self, rest_ps: i64) -> Pipeline {
        let busy_ps = (self.busy_ps + rest_ps - self.rest_ps).max(0);
        Pipeline { rest_ps, busy_ps, ..self.copy() }
    }

    /// With a buffer before the consumer: a thread of its own does what the consumer did.
    #[must_use]
    pub fn with_prefetch(&self) -> Pipeline {
        let mut new = self.copy();
        for crew in &mut new.crews {
            if crew.of == CrewOf::Consumer {
                crew.of = CrewOf::Threads(0);
            }
        }
        new
    }

    /// With a stage's work shared by so many threads, and taken off those that had it.
    #[must_use]
    pub fn with_parallel(&self, stage: usize, parallel: i64) -> Pipeline {
        let mut new = self.without(stage);
        new.crews.push(Crew {
            of: CrewOf::Pool(stage),
            work_ps: self.stages[stage].work_ps,
            parallel,
        });
        new
    }

    /// Without a stage's work.
    #[must_use]
    pub fn without(&self, stage: usize) -> Pipeline {
        let mut new = self.copy();
        let gone = &self.stages[stage];
        new.crews[gone.works_in].work_ps -= gone.work_ps;
        new.stages[stage].work_ps = 0;
        new
    }

    /// Without the Python in a stage.
    #[must_use]
    pub fn without_python(&self, stage: usize) -> Pipeline {
        let gone = &self.stages[stage];
        let python = gone.in_python_ps();
        // The driving thread no longer waits for the interpreter lock between its calls.
        let free = (self.rest_ps - self.compute_ps).max(0);
        let waited = (free as f64 * WAITS_FOR_LOCK * busy_share(python, self.step_ps)) as i64;
        let mut new = self.with_rest(self.rest_ps - waited);
        new.crews[gone.works_in].work_ps -= python;
        new.stages[stage].work_ps -= python;
        new
    }

    /// With a part of the work of a stage, as where fewer elements pass it.
    #[must_use]
    pub fn with_part_of(&self, stage: usize, part: f64) -> Pipeline {
        let mut new = self.copy();
        let gone = (self.stages[stage].work_ps as f64 * (1.0 - part)) as i64;
        new.crews[self.stages[stage].works_in].work_ps -= gone;
        new.stages[stage].work_ps -= gone;
        new
    }

    /// Without the work of a stage and of all below it: its result is kept.
    #[must_use]
    pub fn with_cache_after(&self, stage: usize) -> Pipeline {
        let mut new = self.copy();
        let root = self.stages[stage].path.clone();
        for at in 0..self.stages.len() {
            if self.stages[at].path.starts_with(&root) {
                new.crews[self.stages[at].works_in].work_ps -= self.stages[at].work_ps;
                new.stages[at].work_ps = 0;
            }
        }
        new
    }

    pub fn copy(&self) -> Pipeline {
        let (stages, crews, ops) = (self.stages.clone(), self.crews.clone(), self.ops.clone());
        Pipeline { stages, crews, ops, ..*self }
    }
}

impl Model for Pipeline {
    fn build(tables: &Tables) -> Pipeline {
        let trace = tables.trace();
        // One host's: on another, the pipeline is the same.
        let Some(counted) = Counted::of(tables) else { return Pipeline::default() };
        let mut hosts = trace.tracks_of(TrackKind::Host);
        let host = hosts.find(|&it| trace.track_name(it) == counted.host);
        let Some(host) = host else { return Pipeline::default() };
        let seen = Seen::of(trace, host, counted.window);
        if seen.stages.is_empty() {
            return Pipeline::default();
        }
        let mut pipeline = seen.settle(trace, counted.n);
        let Some(mean) = Mean::of_host(tables, &counted.host) else { return Pipeline::default() };
        pipeline.step_ps = mean.dur_ps;
        pipeline.rest_ps = mean.dur_ps - mean.category("input");
        // A device of its own computes without the host's cores.
        if !mean.on_device {
            pipeline.compute_ps = mean.category("compute");
            pipeline.busy_ps = pipeline.rest_ps - mean.category("idle");
        }
        pipeline.with_core = 1.0;
        let wanted = pipeline.shared_ps().max(1) as f64;
        pipeline.with_core = (pipeline.step_ps as f64 / wanted).min(1.0);
        pipeline
    }
}

/// What an event of the pipeline is, by its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    /// A stage is asked for an element.
    Asked(usize),
    /// A background thread makes one.
    Produce,
    Other,
}

/// Sums over the window, before they are shared out.
struct Seen {
    window: Span,
    stages: Vec<Stage>,
    by_path: BTreeMap<String, usize>,
    by_name: HashMap<StrId, Said>,
    /// Iterators that were seen of each stage.
    iterators: BTreeMap<usize, i64>,
    /// Work in a crew's threads by the stage that owns them; `None` is the consumer.
    threads: BTreeMap<Option<usize>, i64>,
    pools: BTreeMap<usize, i64>,
    /// Which stage a function's executor works for, on another thread than its caller's.
    runs: HashMap<EventId, usize>,
    python: Vec<(usize, Span)>,
    ops: BTreeMap<(usize, StrId), i64>,
}

/// An event of the pipeline that is not over yet.
struct Open {
    row: usize,
    end: i64,
    said: Said,
    /// Time of events inside it that are not its own work.
    inside: i64,
    /// Time inside it in which something waited for a buffer.
    blocked: i64,
    /// The stage whose thread this is, once a child has told.
    owner: Option<usize>,
}

impl Seen {
    fn of(trace: &Trace, host: TrackId, window: Span) -> Seen {
        let mut seen = Seen {
            window,
            stages: Vec::new(),
            by_path: BTreeMap::new(),
            by_name: HashMap::new(),
            iterators: BTreeMap::new(),
            threads: BTreeMap::new(),
            pools: BTreeMap::new(),
            runs: HashMap::new(),
            python: Vec::new(),
            ops: BTreeMap::new(),
        };
        let tracks: Vec<TrackId> = trace.tracks_below(host, TrackKind::Thread).collect();
        let mut calls = HashMap::new();
        for &track in &tracks {
            if trace.tracks[track.row()].kinds.contains(OpKind::InputStage) {
                seen.walk(trace, track, &mut calls);
            }
        }
        if seen.stages.is_empty() {
            return seen;
        }
        seen.follow_functions(trace, &calls);
        if !seen.runs.is_empty() {
            for &track in &tracks {
                seen.find_ops(trace, track);
            }
        }
        seen
    }

    fn holds(&self, start: i64) -> bool {
        self.window.0 <= start && start < self.window.1
    }

    /// Reads one thread's events. `calls` learns which stage each function call is for.
    fn walk(&mut self, trace: &Trace, track: TrackId, calls: &mut HashMap<EventId, usize>) {
        let mut open: Vec<Open> = Vec::new();
        for row in trace.tracks[track.row()].rows() {
            if trace.events.kind[row] != OpKind::InputStage {
                continue;
            }
            let start = trace.events.start[row].0;
            while open.last().is_some_and(|it| it.end <= start) {
                self.close(trace, &mut open);
            }
            let said = self.said(trace, trace.events.name[row]);
            let end = trace.events.end(EventId(row as u32)).0;
            if let Said::Asked(stage) = said {
                // A background thread works for the stage above the first one it asks.
                let above = self.stages[stage].parent;
                for it in open.iter_mut().filter(|it| it.said == Said::Produce) {
                    it.owner = it.owner.or(above);
                }
            } else if said == Said::Other {
                let caller = open.iter().rev().find_map(|it| match it.said {
                    Said::Asked(stage) => Some(stage),
                    Said::Produce => it.owner,
                    Said::Other => None,
                });
                if let Some(stage) = caller {
                    calls.insert(EventId(row as u32), stage);
                }
            }
            open.push(Open { row, end, said, inside: 0, blocked: 0, owner: None });
        }
        while !open.is_empty() {
            self.close(trace, &mut open);
        }
    }

    /// The innermost open event is over: its time goes where it belongs.
    fn close(&mut self, trace: &Trace, open: &mut Vec<Open>) {
        let Some(it) = open.pop() else { return };
        let dur = trace.events.dur[it.row].0;
        let counts = self.holds(trace.events.start[it.row].0);
        let mut blocked = it.blocked;
        if let Said::Asked(stage) = it.said {
            let own = (dur - it.inside).max(0);
            if self.stages[stage].is_asynchronous() {
                // What it does itself is to wait for its buffer.
                blocked += own;
                if counts {
                    add(&mut self.stages[stage].blocked_ps, own);
                }
            } else if counts {
                add(&mut self.stages[stage].work_ps, own);
            }
            if counts {
                self.stages[stage].calls += 1;
                let events = &mut self.stages[stage].events;
                if events.len() < SAMPLED {
                    events.push(EventId(it.row as u32));
                }
            }
        }
        if it.said == Said::Other {
            return;
        }
        match open.iter_mut().rfind(|it| it.said != Said::Other) {
            Some(around) => {
                add(&mut around.inside, dur);
                add(&mut around.blocked, blocked);
            }
            // The outermost event is a thread's whole turn.
            None if counts => {
                let crew = match it.said {
                    Said::Asked(stage) => self.boundary_above(stage),
                    _ => it.owner,
                };
                add(self.threads.entry(crew).or_default(), (dur - blocked).max(0));
                // A background thread's own part is its stage's work.
                if let (Said::Produce, Some(owner)) = (it.said, it.owner) {
                    add(&mut self.stages[owner].work_ps, (dur - it.inside).max(0));
                }
            }
            None => (),
        }
    }

    fn said(&mut self, trace: &Trace, name: StrId) -> Said {
        if let Some(&said) = self.by_name.get(&name) {
            return said;
        }
        let text = trace.text(name);
        let said = if text.starts_with("Iterator::") {
            let stage = self.stage(&without_indices(text));
            *self.iterators.entry(stage).or_default() += 1;
            Said::Asked(stage)
        } else if text.ends_with("Produce") {
            Said::Produce
        } else {
            Said::Other
        };
        self.by_name.insert(name, said);
        said
    }

    /// The stage of a path, and with it all above.
    fn stage(&mut self, path: &str) -> usize {
        if let Some(&at) = self.by_path.get(path) {
            return at;
        }
        let parent = path
            .rsplit_once("::")
            .filter(|it| it.0.contains("::"))
            .map(|it| it.0.to_owned())
            .map(|it| self.stage(&it));
        self.stages.push(Stage { path: path.to_owned(), parent, ..Stage::default() });
        self.by_path.insert(path.to_owned(), self.stages.len() - 1);
        self.stages.len() - 1
    }

    /// What a stage's functions take on other threads than the one that calls them: from the
    /// call to their end, as handing work over takes time too.
    fn follow_functions(&mut self, trace: &Trace, calls: &HashMap<EventId, usize>) {
        let mut ends: BTreeMap<EventId, (usize, i64)> = BTreeMap::new();
        for at in 0..trace.edges.len() {
            if trace.edges.kind[at] != EdgeKind::Function {
                continue;
            }
            let (from, to) = (trace.edges.from[at], trace.edges.to[at]);
            // The call itself lies in an event that says that a stage calls.
            let stage = std::iter::once(from)
                .chain(trace.events.ancestors(from).take(DEEPEST))
                .find_map(|it| calls.get(&it));
            let Some(&stage) = stage else { continue };
            self.runs.insert(to, stage);
            self.stages[stage].functions_seen = true;
            let same_thread = trace.track_of(from) == trace.track_of(to);
            if !same_thread && self.holds(trace.events.start[from.row()].0) {
                let end = &mut ends.entry(from).or_insert((stage, i64::MIN)).1;
                *end = (*end).max(trace.events.end(to).0);
            }
        }
        for (from, (stage, end)) in ends {
            let took = (end - trace.events.start[from.row()].0).max(0);
            add(self.pools.entry(stage).or_default(), took);
        }
    }

    /// The ops that functions of the pipeline run, and Python among them.
    fn find_ops(&mut self, trace: &Trace, track: TrackId) {
        for row in trace.tracks[track.row()].rows() {
            let start = trace.events.start[row].0;
            let kind = trace.events.kind[row];
            if !matches!(kind, OpKind::PythonOp | OpKind::Op) || !self.holds(start) {
                continue;
            }
            let event = EventId(row as u32);
            let mut around = trace.events.ancestors(event).take(DEEPEST);
            let Some(stage) = around.find_map(|it| self.runs.get(&it).copied()) else { continue };
            let op = self.ops.entry((stage, trace.events.name[row])).or_default();
            add(op, trace.events.dur[row].0);
            if kind == OpKind::PythonOp {
                self.python.push((stage, (start, trace.events.end(event).0)));
            }
        }
    }

    fn settle(mut self, trace: &Trace, n_steps: i64) -> Pipeline {
        let n = n_steps.max(1);
        let mut python: BTreeMap<usize, Vec<Span>> = BTreeMap::new();
        for (stage, span) in &self.python {
            python.entry(*stage).or_default().push(*span);
        }
        let python_ps = total(&union(self.python.iter().map(|it| it.1).collect())) / n;
        for (stage, spans) in python {
            self.stages[stage].python_ps = total(&union(spans)) / n;
        }
        for (&(stage, name), &time) in &self.ops {
            self.stages[stage].is_random |= trace.text(name).contains("Random");
            let top = &mut self.stages[stage].top_op;
            if top.as_ref().is_none_or(|it| it.1 < time / n) {
                let text = trace.text(name);
                let op = text.rsplit_once(':').map_or(text, |it| it.1);
                *top = Some((op.to_owned(), time / n));
            }
        }
        let mut cores = None;
        for (at, stage) in self.stages.iter_mut().enumerate() {
            stage.iterators = self.iterators.get(&at).copied().unwrap_or(0);
            stage.work_ps /= n;
            stage.blocked_ps /= n;
            cores = describe(trace, stage).max(cores);
        }
        let mut crews: Vec<Crew> = Vec::new();
        for (&owner, &work) in &self.threads {
            let of = owner.map_or(CrewOf::Consumer, CrewOf::Threads);
            // Only an interleave asks several iterators at once.
            let parallel = owner
                .filter(|&it| self.stages[it].plain_kind().ends_with("Interleave"))
                .and_then(|it| self.stages[it].parallelism)
                .map_or(1, |it| it.clamp(1, cores.unwrap_or(i64::MAX).max(1)));
            crews.push(Crew { of, work_ps: work / n, parallel });
        }
        for at in 0..self.stages.len() {
            let own = self.threads_of(at);
            let found = crews.iter().position(|it| match (it.of, own) {
                (CrewOf::Consumer, None) => true,
                (CrewOf::Threads(it), Some(own)) => it == own,
                _ => false,
            });
            // A thread that made nothing inside the window still has its place.
            self.stages[at].works_in = found.unwrap_or_else(|| {
                let of = own.map_or(CrewOf::Consumer, CrewOf::Threads);
                crews.push(Crew { of, work_ps: 0, parallel: 1 });
                crews.len() - 1
            });
        }
        for (&stage, &work) in &self.pools {
            let most = cores.unwrap_or(i64::MAX).max(1);
            let chosen = match self.stages[stage].autotune {
                Some(true) => cores,
                _ => None,
            };
            let parallel = self.stages[stage].parallelism.or(chosen).unwrap_or(1).clamp(1, most);
            add(&mut self.stages[stage].work_ps, work / n);
            // A serial stage waits for its function: the time is in its thread already.
            if self.stages[stage].is_asynchronous() {
                self.stages[stage].works_in = crews.len();
                // One call at a time takes turns with the thread that makes the next one ready.
                let caller = self.threads.get(&Some(stage)).filter(|_| parallel == 1);
                let work_ps = (work + caller.copied().unwrap_or(0)) / n;
                crews.push(Crew { of: CrewOf::Pool(stage), work_ps, parallel });
            } else {
                self.stages[stage].work_ps -= work / n;
            }
        }
        // Python runs one thread at a time, however many call it.
        for at in 0..self.stages.len() {
            let stage = &self.stages[at];
            let crew = &mut crews[stage.works_in];
            // Threads that wait for the interpreter's lock are at work too: what counts is whether
            // Python runs for most of the time that the crew takes.
            if matches!(crew.of, CrewOf::Pool(_)) && stage.python_ps * 2 > crew.period_ps() {
                crew.work_ps = stage.python_ps.max(crew.period_ps());
                crew.parallel = 1;
                self.stages[at].work_ps = crew.work_ps;
            }
        }
        let ops = self.ops.into_keys().map(|it| it.1).collect();
        Pipeline {
            n_steps,
            stages: self.stages,
            crews,
            cores,
            python_ps,
            ops,
            ..Pipeline::default()
        }
    }

    /// The boundary above a stage: its threads run it. A boundary's own background work is its.
    fn threads_of(&self, stage: usize) -> Option<usize> {
        let own = self.stages[stage].is_asynchronous() && self.threads.contains_key(&Some(stage));
        if own { Some(stage) } else { self.boundary_above(stage) }
    }

    fn boundary_above(&self, stage: usize) -> Option<usize> {
        std::iter::successors(self.stages[stage].parent, |&it| self.stages[it].parent)
            .find(|&it| self.stages[it].is_asynchronous())
    }
}

/// How much of Python's and the dispatcher's time in a step is waiting for the interpreter lock
/// while another thread runs Python all the time: it is handed over every 5 ms only.
/// Source: choice, a guess: the 5 ms are Python's `sys.getswitchinterval`.
const WAITS_FOR_LOCK: f64 = 0.6;

fn busy_share(work: i64, step: i64) -> f64 {
    (work as f64 / step.max(1) as f64).clamp(0.0, 1.0)
}

/// A prediction is fed back to itself so often.
/// Source: choice, a guess: it settles within a few rounds.
const ROUNDS: usize = 8;
/// As many of a stage's events as its arguments are read from.
/// Source: choice, a bound on the work.
const SAMPLED: usize = 64;
/// As many events of a stage are shown.
/// Source: choice, a few examples.
const MOST_EVENTS: usize = 5;
/// No machine has more cores.
/// Source: choice, a bound against broken files.
const MOST_CORES: i64 = 4096;
/// Batches are fetched ahead where the consumer's own time has less than one part in so many of the
/// work.
/// Source: choice, a guess: a tenth.
const AHEAD: i64 = 10;
/// What nests deeper is nonsense.
/// Source: choice, a bound against broken files.
const DEEPEST: usize = 100;

fn add(to: &mut i64, time: i64) {
    *to = to.saturating_add(time);
}

/// Reads a stage's arguments; answers how many cores the pipeline may use.
fn describe(trace: &Trace, stage: &mut Stage) -> Option<i64> {
    let mut cores = None;
    let (mut held, mut n_held) = (0.0, 0_u32);
    for &event in &stage.events {
        for (key, value) in trace.args.of(event) {
            let number = match &value {
                FactValue::Int(it) => Some(*it),
                FactValue::Float(it) => Some(*it as i64),
                FactValue::Text(it) => it.parse().ok(),
            };
            match key.as_str() {
                "name" => stage.dataset = Some(value.to_string()),
                // AUTOTUNE moves these while the run goes on: the last word counts.
                "parallelism" => stage.parallelism = number.filter(|&it| it > 0),
                "buffer_limit" | "buffer_size" | "max_batch_results" => {
                    stage.buffer_limit = number.filter(|&it| it > 0);
                }
                "autotune" => {
                    stage.autotune = match &value {
                        FactValue::Text(it) => Some(it == "true"),
                        _ => number.map(|it| it != 0),
                    };
                }
                "buffered_elements" => {
                    held += number.unwrap_or(0) as f64;
                    n_held += 1;
                }
                "batch_size" => stage.batch_size = number,
                "cpu_budget" | "threadpool_size" => {
                    cores = cores.max(number.filter(|&it| (1..=MOST_CORES).contains(&it)));
                }
                _ => (),
            }
        }
    }
    stage.buffered = (n_held > 0).then(|| held / f64::from(n_held));
    stage.events.truncate(MOST_EVENTS);
    cores
}

/// `Iterator::Root::FlatMap[773]::TFRecord` without the number: a dataset's many files, each an
/// iterator, are one stage.
pub fn without_indices(stage: &str) -> String {
    let mut out = String::with_capacity(stage.len());
    let mut inside = false;
    for it in stage.chars() {
        match it {
            '[' => inside = true,
            ']' => inside = false,
            it if !inside => out.push(it),
            _ => (),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;

    use super::{Crew, CrewOf, Pipeline, Stage, without_indices};
    use crate::Tables;

    /// One background thread that needs all of a step on two cores; the step waits for 60 of 100.
    fn serial() -> Pipeline {
        Pipeline {
            n_steps: 1,
            stages: vec![Stage { path: "Map".to_owned(), work_ps: 100, ..Stage::default() }],
            crews: vec![Crew { of: CrewOf::Threads(0), work_ps: 100, parallel: 1 }],
            step_ps: 100,
            rest_ps: 40,
            busy_ps: 40,
            compute_ps: 20,
            cores: Some(2),
            with_core: 1.0,
            ..Pipeline::default()
        }
    }

    #[test]
    fn the_driving_thread_takes_a_core_too() {
        let pipeline = serial();
        assert_eq!(pipeline.predict(), 100);
        assert_eq!(pipeline.with_parallel(0, 2).predict(), 70, "100 and 40 on two cores");
        // A device that computes leaves the cores to the pipeline.
        let on_device = Pipeline { busy_ps: 0, compute_ps: 0, ..serial() };
        assert_eq!(on_device.with_parallel(0, 2).predict(), 50);
    }

    #[test]
    fn threads_that_wait_for_a_core_want_less_than_they_seem_to() {
        let pipeline = Pipeline { with_core: 0.5, ..serial() };
        assert_eq!(pipeline.with_parallel(0, 2).predict(), 50, "the pool's own time");
    }

    /// A background thread at work all the time, beside a driving thread that waits for 20 of 100
    /// and computes in the rest, on so many cores.
    fn drawn(cores: u32) -> Tables {
        let (mut drives, mut makes) = (Vec::new(), Vec::new());
        for step in 0..4 {
            let (start, fed, end) = (100 * step, 100 * step + 20, 100 * step + 100);
            drives.push(format!(
                "train#{step} {start}..{end}, IteratorGetNext {start}..{fed}, \
                 Iterator::Root{{cpu_budget={cores}}} {start}..{fed}, \
                 Iterator::Root::Prefetch {start}..{fed}, x:MatMul {fed}..{end}"
            ));
            makes.push(format!(
                "PrefetchProduce {start}..{end}, Iterator::Root::Prefetch::Map {start}..{end}, \
                 InstantiatedCapturedFunction::Run>{step} {start}..{end}, \
                 ExecutorState::Process<{step} {start}..{end}, decode:DecodePng {start}..{end}"
            ));
        }
        let picture =
            format!("host/python: {}\nhost/tf_data: {}\n", drives.join(", "), makes.join(", "));
        Tables::new(Arc::new(draw(&picture)))
    }

    #[test]
    fn where_more_threads_work_than_there_are_cores_they_wait_for_one() {
        let tables = drawn(1);
        let pipeline = tables.model::<Pipeline>();
        let step = pipeline.step_ps;
        assert_eq!((pipeline.cores, pipeline.busy_ps), (Some(1), step / 100 * 80));
        // 100 and 80 were seen in 100 of one core.
        assert!((pipeline.with_core - 100.0 / 180.0).abs() < 1e-9, "{}", pipeline.with_core);
        assert_eq!(pipeline.predict(), step, "as measured");
        assert_eq!(drawn(2).model::<Pipeline>().with_core, 1.0, "two cores are enough for both");
    }

    #[test]
    fn ops_that_make_input_are_told_from_those_of_the_step() {
        let tables = drawn(2);
        let pipeline = tables.model::<Pipeline>();
        let names: Vec<&str> = pipeline.ops.iter().map(|&it| tables.trace().text(it)).collect();
        assert_eq!(names, ["decode:DecodePng"]);
    }

    #[test]
    fn background_work_slows_computing_and_nothing_else() {
        let pipeline = serial();
        let gone = pipeline.without(0);
        // The thread took half of the cores: computing was 1.5 times as long.
        assert_eq!(gone.predict_from(&pipeline, 1.0), 40 - 20 + 13);
        assert_eq!(gone.predict_from(&pipeline, 0.0), 40);
        let all_python = Pipeline { compute_ps: 0, ..serial() };
        assert_eq!(all_python.without(0).predict_from(&all_python, 1.0), 40);
    }

    #[test]
    fn a_shorter_rest_wants_cores_for_less_time() {
        let shorter = serial().with_rest(10);
        assert_eq!((shorter.rest_ps, shorter.busy_ps), (10, 10));
        assert_eq!(shorter.with_parallel(0, 2).predict(), 55);
    }

    #[test]
    fn many_files_are_one_stage() {
        assert_eq!(
            without_indices("Iterator::Root::FlatMap[773]::TFRecord"),
            "Iterator::Root::FlatMap::TFRecord"
        );
    }
}
