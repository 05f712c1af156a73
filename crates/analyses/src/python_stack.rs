//! Sampled Python stacks as calls with a beginning and a duration: what a flame graph draws.
//!
//! ```text
//! readings   ·    ·    ·    ·    ·         each stands for the time until the next one
//! samples    a>b  a>b  a>c  a    a>b
//! calls      |a------------------------|   one row for as long as the line stays on the stack
//!            |b-------||c--|      |b---|
//! steps      |---- 0 ----|---- 1 ------|   cut where a step begins: rows of steps add to all
//! ```
//!
//! Frames of `strobe run` itself are left out, and so are threads that run nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use trace::{Process, Stacks, StrId, Trace, TrackKind};

use crate::python_line::{calls_for_input, is_library, is_ours};
use crate::span::Span;
use crate::step::{HostSteps, Step};
use crate::{Analysis, Tables};

table! {
    /// The Python stacks that were sampled, as calls: a row stands for a line that stayed on a
    /// thread's stack, from the sample that saw it first to the sample that no longer did. Calls
    /// are cut where a step begins. In the order of threads and time, each call before what it
    /// called.
    pub struct PythonStack = "python_stack" {
        /// The row.
        call: i64,
        /// The row of the caller; null for the outermost.
        parent: Option<i64>,
        /// How many callers are around it.
        depth: i64,
        /// The host whose steps these are; null where that is not known.
        host: Option<Arc<str>>,
        /// The process.
        pid: i64,
        /// Threads of the process, counted from 0: the driving thread first, then those that make
        /// input.
        lane: i64,
        /// The thread's number in the operating system; null where it is not known.
        thread: Option<i64>,
        /// `driving`: takes the steps; `input`: makes batches; `other`.
        role: &'static str,
        /// The step it is in; null outside of steps, and where none are known.
        step: Option<i64>,
        /// When the first sample saw it, since the start of the trace.
        start_ps: i64,
        /// What the samples that saw it stand for: its own time, and that of all it called.
        dur_ps: i64,
        /// The part of it in which it had called no other Python.
        self_ps: i64,
        /// The function.
        function: Arc<str>,
        /// Its file.
        file: Arc<str>,
        /// The line that was running; null where it could not be made out.
        line: Option<i64>,
        /// Your own code, and not that of an installed library.
        own: bool,
        /// What the line says; null where the run does not hold it.
        text: Option<Arc<str>>,
    }
}

/// Readings further apart than so many usual distances have a pause between them, of which nothing
/// is known: the reading before it stands for the usual distance only.
/// Source: choice, more than the 1.6 distances by which `offset` in `capture/src/pid.rs` spreads
/// readings, since a busy machine delays some.
const PAUSE: i64 = 4;

/// No stack is shown deeper. Time further in is counted in the deepest call shown.
/// Source: choice, a bound on memory; twice as deep as the sampler inside a process looks.
const DEEPEST: usize = 256;

/// More rows than this are made fewer by showing less deep stacks.
/// Source: choice, a bound on memory; twice as many as the page takes of a table.
const MOST_ROWS: usize = 200_000;

impl Analysis for PythonStack {
    fn run(tables: &Tables) -> Vec<PythonStack> {
        let trace = tables.trace();
        let steps = tables.model::<HostSteps>();
        let threads: Vec<_> = trace
            .processes
            .iter()
            .map(|process| {
                let host = host_of(trace, process);
                let steps = host.as_ref().map_or(&[][..], |it| steps.of(it));
                (Places::of(trace, process), host, steps)
            })
            .collect();
        let mut deepest = DEEPEST;
        loop {
            let mut rows = Rows { made: Vec::new(), deepest };
            let is_whole = threads
                .iter()
                .all(|(places, host, steps)| rows.process(places, host.as_ref(), steps));
            if is_whole || deepest == 1 {
                return rows.made;
            }
            deepest /= 2;
        }
    }
}

/// The host that a process ran on. Of several, the one whose profile names the process.
fn host_of(trace: &Trace, process: &Process) -> Option<Arc<str>> {
    let mut hosts = trace.tracks_of(TrackKind::Host);
    let (first, second) = (hosts.next()?, hosts.next());
    if second.is_none() {
        return Some(trace.track_name(first).into());
    }
    let pid = process.pid.to_string();
    let mut named = trace.tracks_of(TrackKind::Host).filter(|&host| {
        let is_pid = |name: &str| name.split(|it: char| !it.is_ascii_digit()).any(|it| it == pid);
        trace.tracks_below(host, TrackKind::Process).any(|it| is_pid(trace.track_name(it)))
    });
    let host = named.next()?;
    named.next().is_none().then(|| trace.track_name(host).into())
}

/// What is known of each place of a process's stacks, looked at once and not for every sample.
struct Places<'a> {
    process: &'a Process,
    known: Vec<Place>,
    names: Vec<(Arc<str>, Arc<str>, bool)>,
    texts: BTreeMap<(StrId, u32), Arc<str>>,
}

#[derive(Clone, Copy)]
struct Place {
    /// The innermost place of it that is shown; `None` where all are ours.
    shown: Option<u32>,
    /// The place shown around that one.
    around: Option<u32>,
    depth: usize,
    makes_input: bool,
    root: Root,
}

/// What a thread was started for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    /// Only `threading` so far.
    Thread,
    Ours,
    Theirs,
}

impl<'a> Places<'a> {
    fn of(trace: &Trace, process: &'a Process) -> Places<'a> {
        let Stacks { frames, places, .. } = &process.stacks;
        let mut known: Vec<Place> = Vec::with_capacity(places.len());
        for (at, place) in places.iter().enumerate() {
            let file = frames.get(place.frame as usize).map_or("", |it| trace.text(it.file));
            // A place names what was said before it; anything else has no caller.
            let around = place.parent.and_then(|it| known.get(it as usize)).copied();
            let ours = is_ours(file);
            let root = match around.map_or(Root::Thread, |it| it.root) {
                Root::Thread if file.ends_with("/threading.py") => Root::Thread,
                Root::Thread if ours => Root::Ours,
                Root::Thread => Root::Theirs,
                known => known,
            };
            let makes_input = around.is_some_and(|it| it.makes_input) || calls_for_input(file);
            let outer = around.and_then(|it| it.shown);
            let is_too_deep = around.is_some_and(|it| it.depth >= DEEPEST);
            known.push(match ours || is_too_deep {
                true => Place {
                    shown: outer,
                    around: around.and_then(|it| it.around),
                    depth: around.map_or(0, |it| it.depth),
                    makes_input,
                    root,
                },
                false => Place {
                    shown: u32::try_from(at).ok(),
                    around: outer,
                    depth: around.map_or(0, |it| it.depth) + 1,
                    makes_input,
                    root,
                },
            });
        }
        let name = |it: &trace::Frame| {
            let file = trace.text(it.file);
            (trace.text(it.function).into(), file.into(), !is_library(file))
        };
        Places {
            process,
            known,
            names: frames.iter().map(name).collect(),
            texts: texts(trace, process),
        }
    }

    fn get(&self, place: u32) -> Option<Place> {
        self.known.get(place as usize).copied()
    }

    /// The shown places of a stack, outermost first, no deeper than so many.
    fn path(&self, place: u32, deepest: usize, out: &mut Vec<u32>) {
        out.clear();
        let mut at = self.get(place).and_then(|it| it.shown);
        while let Some(shown) = at {
            let Some(known) = self.get(shown) else { break };
            if known.depth <= deepest {
                out.push(shown);
            }
            at = known.around;
        }
        out.reverse();
    }
}

/// What lines say: as the sampler noted it, or as part of a statement that was noted.
fn texts(trace: &Trace, process: &Process) -> BTreeMap<(StrId, u32), Arc<str>> {
    let mut texts: BTreeMap<(StrId, u32), Arc<str>> = BTreeMap::new();
    let files: BTreeMap<&str, StrId> =
        process.stacks.frames.iter().map(|it| (trace.text(it.file), it.file)).collect();
    for site in &process.sites {
        let Some(&file) = files.get(site.file.as_str()) else { continue };
        for (line, text) in (site.text_line..).zip(site.text.lines()) {
            texts.entry((file, line)).or_insert_with(|| text.trim().into());
        }
    }
    for it in &process.stacks.sources {
        texts.insert((it.file, it.line), trace.text(it.text).into());
    }
    texts
}

/// From when to when a thread was at a place.
struct Stay {
    span: Span,
    place: u32,
}

/// A thread: several may be of unknown number, which then are told apart by their order.
type ThreadKey = (i64, usize);

fn stays(places: &Places<'_>) -> Vec<(ThreadKey, &'static str, Vec<Stay>)> {
    let process = places.process;
    let samples = &process.stacks.samples;
    let readings: Vec<_> = samples.chunk_by(|a, b| a.time == b.time).collect();
    let distance = |pair: &[&[trace::StackSample]]| {
        let [before, after] = pair else { return None };
        after.first()?.time.0.checked_sub(before.first()?.time.0)
    };
    let mut usual: Vec<i64> = readings.windows(2).filter_map(distance).collect();
    usual.sort_unstable();
    // What a single reading stands for is not known.
    let Some(&usual) = usual.get(usual.len() / 2) else { return Vec::new() };
    let mut threads: BTreeMap<ThreadKey, Vec<Stay>> = BTreeMap::new();
    for (at, reading) in readings.iter().enumerate() {
        let Some(from) = reading.first().map(|it| it.time.0) else { continue };
        let next = readings.get(at..at + 2).and_then(distance);
        let dur = next.filter(|&it| it <= usual.saturating_mul(PAUSE)).unwrap_or(usual);
        let span = (from, from.saturating_add(dur));
        for thread in reading.chunk_by(|a, b| a.thread == b.thread) {
            for (nth, sample) in thread.iter().enumerate() {
                let stay = Stay { span, place: sample.place };
                threads.entry((sample.thread, nth)).or_default().push(stay);
            }
        }
    }
    let role = |key: ThreadKey, stays: &[Stay]| {
        let known = || stays.iter().filter_map(|it| places.get(it.place));
        match process.driving_thread == Some(key.0) {
            true => Some("driving"),
            false if known().all(|it| it.root == Root::Ours) => None,
            false if known().any(|it| it.makes_input) => Some("input"),
            false => Some("other"),
        }
    };
    let mut threads: Vec<_> = threads
        .into_iter()
        .filter_map(|(key, stays)| Some((key, role(key, &stays)?, stays)))
        .collect();
    // As the names happen to be sorted: driving, input, other.
    threads.sort_by_key(|it| (it.1, it.0));
    threads
}

struct Rows {
    made: Vec<PythonStack>,
    deepest: usize,
}

impl Rows {
    /// `false`: there are too many.
    fn process(&mut self, places: &Places<'_>, host: Option<&Arc<str>>, steps: &[Step]) -> bool {
        let mut lane = 0;
        for (key, role, stays) in stays(places) {
            let before = self.made.len();
            let thread =
                Thread { places, host, steps, lane, thread: (key.0 != 0).then_some(key.0), role };
            if !self.thread(&thread, &stays) {
                return false;
            }
            lane += i64::from(self.made.len() > before);
        }
        true
    }

    fn thread(&mut self, thread: &Thread<'_>, stays: &[Stay]) -> bool {
        // Place and row of the calls that are still going on.
        let mut open: Vec<(u32, usize)> = Vec::new();
        let (mut last, mut path) = ((None, i64::MIN), Vec::new());
        for stay in stays {
            thread.places.path(stay.place, self.deepest, &mut path);
            let pieces = Pieces { steps: thread.steps, span: stay.span };
            for (step, (from, to)) in pieces {
                let goes_on = last == (step, from);
                last = (step, to);
                let common = open.iter().zip(&path).take_while(|(open, it)| open.0 == **it).count();
                open.truncate(if goes_on { common } else { 0 });
                for &place in path.iter().skip(open.len()) {
                    if self.made.len() >= MOST_ROWS {
                        return false;
                    }
                    let row = self.made.len();
                    let parent = open.last().map(|it| it.1);
                    let Some(call) = thread.call(row, parent, open.len(), place, step, from) else {
                        break;
                    };
                    self.made.push(call);
                    open.push((place, row));
                }
                let dur = to.saturating_sub(from);
                for &(_, row) in &open {
                    let it = &mut self.made[row].dur_ps;
                    *it = it.saturating_add(dur);
                }
                if let Some(&(_, row)) = open.last() {
                    let it = &mut self.made[row].self_ps;
                    *it = it.saturating_add(dur);
                }
            }
        }
        true
    }
}

struct Thread<'a> {
    places: &'a Places<'a>,
    host: Option<&'a Arc<str>>,
    steps: &'a [Step],
    lane: i64,
    thread: Option<i64>,
    role: &'static str,
}

impl Thread<'_> {
    /// A call that begins; how long it lasts is added as samples see it.
    fn call(
        &self,
        row: usize,
        parent: Option<usize>,
        depth: usize,
        place: u32,
        step: Option<i64>,
        start_ps: i64,
    ) -> Option<PythonStack> {
        let stacks = &self.places.process.stacks;
        let place = stacks.places.get(place as usize)?;
        let frame = stacks.frames.get(place.frame as usize)?;
        let (function, file, own) = self.places.names.get(place.frame as usize)?;
        Some(PythonStack {
            call: row as i64,
            parent: parent.map(|it| it as i64),
            depth: depth as i64,
            host: self.host.cloned(),
            pid: self.places.process.pid,
            lane: self.lane,
            thread: self.thread,
            role: self.role,
            step,
            start_ps,
            dur_ps: 0,
            self_ps: 0,
            function: function.clone(),
            file: file.clone(),
            line: (place.line > 0).then_some(i64::from(place.line)),
            own: *own,
            text: self.places.texts.get(&(frame.file, place.line)).cloned(),
        })
    }
}

/// A span in pieces: what of it is in which step.
struct Pieces<'a> {
    steps: &'a [Step],
    span: Span,
}

impl Iterator for Pieces<'_> {
    type Item = (Option<i64>, Span);

    fn next(&mut self) -> Option<Self::Item> {
        let (from, to) = self.span;
        if from >= to {
            return None;
        }
        let after = self.steps.partition_point(|it| it.start_ps <= from);
        let around = after.checked_sub(1).and_then(|it| self.steps.get(it));
        let inside = around.filter(|it| it.span().1 > from);
        let end = match inside {
            Some(step) => to.min(step.span().1),
            None => self.steps.get(after).map_or(to, |it| to.min(it.start_ps)),
        };
        self.span.0 = end;
        Some((inside.map(|it| it.step), (from, end)))
    }
}

#[cfg(test)]
mod tests;
