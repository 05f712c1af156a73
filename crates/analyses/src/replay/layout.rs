//! Lays out steps as a graph: the host's chain, the devices' queues, and what waited for what.
//!
//! Which of several things an op waited for is not in a profile. What ended or happened last
//! before it started is taken for it; a delay that nothing explains stays a delay.

use std::ops::Range;

use hashbrown::HashMap;
use trace::{EdgeKind, EventId, OpKind, StrId, Trace, TrackId, TrackKind};

use super::{Block, Class, HostPart, Link, Node, Op, QUEUE_GAP, rows_in};
use crate::span::{Span, intersect, subtract, union};
use crate::step::Step;
use crate::step_time::HostTime;

/// A start that comes this soon after something else's end follows from it. Launching takes 5 to
/// 20 µs, going on within a queue 1 to 2.
/// Source: choice, between the two.
const SOON: i64 = 5_000_000;
/// Longer than any launch takes by itself: something was waited for.
/// Source: choice, half as long again as a slow launch.
const LONG: i64 = 30_000_000;
/// Shorter stretches of the host are not looked at for waits that nothing names.
/// Source: choice, a guess: more than two slow launches.
const HIDDEN_WAIT: i64 = 50_000_000;
/// A wait is over so soon after what it waited for: the driver polls, or is woken.
/// Source: choice, a guess.
const WAKES: i64 = 20_000_000;
/// Devices stamp their events on another clock than the host: a little disorder is no order.
/// Source: choice, a guess.
const CLOCKS: i64 = 1_000_000;

/// A host that drives devices.
pub(super) struct Lane<'a> {
    pub(super) host: TrackId,
    pub(super) time: &'a HostTime,
    /// Those that count.
    pub(super) steps: Vec<&'a Step>,
    /// Device and stream.
    pub(super) streams: Vec<(TrackId, TrackId)>,
}

impl Lane<'_> {
    pub(super) fn ops_per_step(&self, trace: &Trace) -> usize {
        let (Some(first), Some(last)) = (self.steps.first(), self.steps.last()) else { return 0 };
        let window = (first.start_ps, last.span().1);
        let ops: usize = self.streams.iter().map(|it| rows_in(trace, it.1, window).len()).sum();
        ops / self.steps.len()
    }
}

/// The graph of neighbouring steps, by their places in the lanes' lists.
pub(super) fn lay_out(trace: &Trace, lanes: &[Lane<'_>], steps: Range<usize>) -> Block {
    let mut graph = Graph::default();
    let mut first_stream = 0;
    for (host, lane) in lanes.iter().enumerate() {
        let (first, last) = (lane.steps[steps.start], lane.steps[steps.end - 1]);
        let window = (first.start_ps, last.span().1);
        let mut part = Part {
            trace,
            lane,
            host: host as u16,
            window,
            first_stream,
            first_op: graph.block.ops.len(),
            streams: Vec::new(),
            launched: Vec::new(),
            links: Vec::new(),
            over: Vec::new(),
            graph: &mut graph,
        };
        part.lay_out();
        first_stream += lane.streams.len();
    }
    graph.group_collectives();
    let Graph { mut block, keys, .. } = graph;
    let mut order: Vec<u32> = (0..block.nodes.len() as u32).collect();
    order.sort_by_key(|&it| keys[it as usize]);
    block.nodes = order.iter().map(|&it| block.nodes[it as usize]).collect();
    in_order(block)
}

/// Numbers ops and links as they are played, again and again: those of thousands of hosts do not
/// fit into a cache, and are fetched in advance only where they follow one another.
fn in_order(block: Block) -> Block {
    let mut played = Block { seen: block.seen, groups: block.groups, ..Block::default() };
    let mut op_at = vec![0; block.ops.len()];
    let mut link_at = vec![0; block.links.len()];
    for node in block.nodes {
        played.nodes.push(match node {
            Node::Op(it) => {
                op_at[it as usize] = played.ops.len() as u32;
                played.ops.push(block.ops[it as usize]);
                Node::Op(op_at[it as usize])
            }
            Node::Link(it) => {
                link_at[it as usize] = played.links.len() as u32;
                played.links.push(block.links[it as usize]);
                Node::Link(link_at[it as usize])
            }
        });
    }
    for op in &mut played.ops {
        op.launch = op.launch.map(|it| link_at[it as usize]);
        op.before = op.before.map(|(it, waits)| (op_at[it as usize], waits));
        op.other = op.other.map(|it| op_at[it as usize]);
    }
    for it in &mut played.seen {
        *it = op_at[*it as usize];
    }
    played
}

/// A block while it is laid out.
#[derive(Default)]
struct Graph {
    block: Block,
    /// What each node is sorted by: when it began, or was over.
    keys: Vec<i64>,
    /// Of each op.
    measured: Vec<Measured>,
}

/// When an op began and ended.
#[derive(Clone, Copy)]
struct Measured {
    start: i64,
    end: i64,
}

impl Graph {
    fn node(&mut self, key: i64, node: Node) {
        self.keys.push(key);
        self.block.nodes.push(node);
    }

    /// Collectives that ran on several devices at once are one.
    fn group_collectives(&mut self) {
        let mut by_place: HashMap<(StrId, u32), Vec<u32>> = HashMap::new();
        let mut seen: HashMap<(StrId, u16), u32> = HashMap::new();
        for (at, op) in self.block.ops.iter().enumerate() {
            if op.class == Class::Collective {
                let nth = seen.entry((op.name, op.stream)).or_default();
                by_place.entry((op.name, *nth)).or_default().push(at as u32);
                *nth += 1;
            }
        }
        let mut groups: Vec<Vec<u32>> = by_place.into_values().filter(|it| it.len() > 1).collect();
        groups.sort_unstable();
        for members in groups {
            let measured = || members.iter().map(|&it| self.measured[it as usize]);
            let last = measured().map(|it| it.start).max().unwrap_or(0);
            let first_end = measured().map(|it| it.end).min().unwrap_or(0);
            // What did not run at the same time on all did not wait for all.
            if first_end.saturating_add(CLOCKS) < last {
                continue;
            }
            for it in members {
                let op = &mut self.block.ops[it as usize];
                op.group = Some(self.block.groups as u32);
                op.once_all_came = (self.measured[it as usize].end - last).max(0);
            }
            self.block.groups += 1;
        }
    }
}

/// One host's part of a block while it is laid out.
struct Part<'a> {
    trace: &'a Trace,
    lane: &'a Lane<'a>,
    host: u16,
    window: Span,
    first_stream: usize,
    first_op: usize,
    /// Which ops are on each stream.
    streams: Vec<Range<usize>>,
    /// When each op was launched, if that is known.
    launched: Vec<Option<i64>>,
    /// Where the chain's links begin.
    links: Vec<(i64, u32)>,
    /// Of each stream: the first op that is not over, at the moment looked at.
    over: Vec<usize>,
    graph: &'a mut Graph,
}

impl Part<'_> {
    fn lay_out(&mut self) {
        let blocking = self.queues();
        self.explain_starts();
        self.chain(blocking);
        for (at, launch) in self.launched.iter().enumerate() {
            let Some(launch) = *launch else { continue };
            let after = self.links.partition_point(|it| it.0 <= launch);
            let link = after.checked_sub(1).and_then(|it| self.links.get(it));
            let Some(&(from, link)) = link else { continue };
            let op = &mut self.graph.block.ops[self.first_op + at];
            op.launch = Some(link);
            // Launched inside a link, by another thread while this one waits.
            op.after_launch += launch - from;
        }
        for ops in &self.streams {
            // Whatever the clocks say, a queue keeps its order.
            let mut key = i64::MIN;
            for at in ops.clone() {
                let launch = self.launched[at - self.first_op].unwrap_or(i64::MIN);
                key = key.max(self.graph.measured[at].start).max(launch);
                self.graph.node(key, Node::Op(at as u32));
            }
        }
    }

    /// The work of each stream in order, and who launched it; returns calls that waited for their
    /// own copy.
    fn queues(&mut self) -> Vec<Span> {
        let (trace, events, window) = (self.trace, &self.trace.events, self.window);
        let mut blocking: Vec<Span> = Vec::new();
        for (nth, &(_, stream)) in self.lane.streams.iter().enumerate() {
            let from = self.graph.block.ops.len();
            let rows = rows_in(trace, stream, window);
            for row in self.running_into(stream, rows.start).into_iter().chain(rows) {
                let Some(class) = Class::of(events.kind[row]) else { continue };
                let event = EventId(row as u32);
                // An op inside another, as a TPU's, is part of that one.
                if events.parent(event).is_some() {
                    continue;
                }
                // Of what lies across an end of the block, the part inside counts.
                let start = events.start[row].0.max(window.0);
                let span = Measured { start, end: events.end(event).0.min(window.1).max(start) };
                let call = trace.edges.cause(event, EdgeKind::Launch);
                self.launched.push(call.map(|it| events.start[it.row()].0));
                if let Some(call) = call {
                    let (called, over) = (events.start[call.row()].0, events.end(call).0);
                    let copies = matches!(class, Class::TransferIn | Class::TransferOut);
                    if copies && called >= window.0 && called < span.end && span.end <= over {
                        blocking.push((called, over.min(window.1)));
                    }
                }
                self.graph.measured.push(span);
                self.graph.block.ops.push(Op {
                    row: row as u32,
                    name: events.name[row],
                    class,
                    host: self.host,
                    stream: (self.first_stream + nth) as u16,
                    dur: span.end - span.start,
                    launch: None,
                    after_launch: 0,
                    before: None,
                    after_before: 0,
                    other: None,
                    after_other: 0,
                    launch_bound: false,
                    group: None,
                    once_all_came: 0,
                });
            }
            self.streams.push(from..self.graph.block.ops.len());
        }
        blocking
    }

    /// The row before the block's first on a stream, if that goes on into the block.
    fn running_into(&self, stream: TrackId, first: usize) -> Option<usize> {
        let events = &self.trace.events;
        let before = first.checked_sub(1)?;
        let last = EventId(before as u32);
        let row = events.ancestors(last).last().unwrap_or(last);
        let is_here = self.trace.tracks[stream.row()].rows().contains(&before);
        (is_here && events.end(row).0 > self.window.0).then(|| row.row())
    }

    /// What each op's start followed from: its launch, its stream, or another stream.
    fn explain_starts(&mut self) {
        let window = self.window;
        let n_ops = self.graph.block.ops.len();
        let mut order: Vec<usize> = (self.first_op..n_ops).collect();
        order.sort_by_key(|&it| self.graph.measured[it].start);
        self.over = self.streams.iter().map(|it| it.start).collect();
        let mut latencies = Vec::new();
        for &at in &order {
            let start = self.graph.measured[at].start;
            let stream = usize::from(self.graph.block.ops[at].stream) - self.first_stream;
            let before = (at > self.streams[stream].start).then(|| at - 1);
            let (before_at, waits) = match before.map(|it| self.graph.measured[it]) {
                Some(it) if it.end <= start.saturating_add(CLOCKS) => (it.end, true),
                Some(it) => (it.start, false),
                None => (window.0, false),
            };
            let launched = self.launched[at - self.first_op];
            let queued = if waits { before_at } else { i64::MIN };
            let other = self.other_cause(stream, start, launched.unwrap_or(i64::MIN).max(queued));
            if other.is_none()
                && launched.is_none()
                && (!waits || start.saturating_sub(before_at) > SOON)
            {
                // Nobody is known to have launched it: it comes when the host is where it was.
                self.launched[at - self.first_op] = Some(start);
            }
            let launch = self.launched[at - self.first_op];
            let since = |from: i64| start.saturating_sub(from).max(0);
            let after_other = other.map_or(0, |it| since(self.graph.measured[it as usize].end));
            let op = &mut self.graph.block.ops[at];
            op.before = before.map(|it| (it as u32, waits));
            op.after_before = since(before_at);
            op.other = other;
            op.after_other = after_other;
            op.after_launch = launch.map_or(0, |it| since(it.max(window.0)));
            op.launch_bound = other.is_none() && launch.is_some_and(|it| !waits || it > before_at);
            if op.launch_bound && launch.is_some_and(|it| it >= window.0) {
                latencies.push(op.after_launch);
            }
        }
        latencies.sort_unstable();
        let latency = latencies.get(latencies.len() / 2).copied().unwrap_or(0);
        for op in &mut self.graph.block.ops[self.first_op..] {
            // What did not decide the start was over some time before: how long it would have
            // taken from there is not measured, but known from others.
            if !op.launch_bound {
                op.after_launch = op.after_launch.min(latency);
            }
            if (op.launch_bound || op.other.is_some()) && op.before.is_some_and(|it| it.1) {
                op.after_before = op.after_before.min(QUEUE_GAP);
            }
        }
    }

    /// The op of another stream whose end explains a start that comes long after `explained`.
    /// Asked in the order of starts.
    fn other_cause(&mut self, stream: usize, start: i64, explained: i64) -> Option<u32> {
        let unexplained = start.saturating_sub(explained);
        if unexplained <= SOON {
            return None;
        }
        let (mut latest, mut other) = (explained, None);
        for nth in (0..self.streams.len()).filter(|&it| it != stream) {
            if let Some(it) = self.last_over(nth, start.saturating_add(CLOCKS)) {
                let end = self.graph.measured[it].end;
                if end > latest {
                    (latest, other) = (end, Some(it as u32));
                }
            }
        }
        // The end of something that explains most of a long delay is taken for its cause.
        let left = start.saturating_sub(latest);
        other.filter(|_| left <= SOON || (unexplained >= LONG && left <= unexplained / 2))
    }

    /// The last op of a stream that was over at a moment. Asked in the order of moments.
    fn last_over(&mut self, nth: usize, moment: i64) -> Option<usize> {
        let ops = &self.streams[nth];
        let over = &mut self.over[nth];
        while *over < ops.end && self.graph.measured[*over].end <= moment {
            *over += 1;
        }
        (*over > ops.start).then(|| *over - 1)
    }

    /// The host's time in the window as a chain of links.
    fn chain(&mut self, blocking: Vec<Span>) {
        let (time, window) = (self.lane.time, self.window);
        let runtime = clip(&time.runtime, window);
        let (mut waits, launches) = self.calls(&runtime);
        waits.extend(blocking);
        let waits = union(waits);
        let launches = subtract(&intersect(&union(launches), &runtime), &waits);
        let rest = |set: &[Span]| subtract(&clip(set, window), &waits);
        let mut spans: Vec<(Span, HostPart)> = Vec::new();
        for (set, part) in [
            (rest(&time.input), HostPart::Input),
            (rest(&time.compile), HostPart::Compile),
            (rest(&time.output), HostPart::Output),
            (rest(&time.python), HostPart::Python),
            (subtract(&rest(&time.runtime), &launches), HostPart::Runtime),
            (launches, HostPart::Launch),
            (waits, HostPart::Wait),
            (vec![(window.1, window.1)], HostPart::Unknown),
        ] {
            spans.extend(set.into_iter().map(|it| (it, part)));
        }
        spans.sort_by_key(|it| it.0);
        let inside = |it: &i64| (window.0..window.1).contains(it);
        let mut cuts: Vec<i64> = self.launched.iter().flatten().copied().filter(inside).collect();
        cuts.sort_unstable();
        cuts.dedup();

        self.over = self.streams.iter().map(|it| it.start).collect();
        let mut next_cut = 0;
        let mut at = window.0;
        for (span, part) in spans {
            let (from, to) = (span.0.max(at), span.1.max(at));
            for (mut from, to, part) in [(at, from, HostPart::Unknown), (from, to, part)] {
                while let Some(&cut) = cuts.get(next_cut).filter(|&&it| it < to) {
                    next_cut += 1;
                    // A wait is one piece.
                    if cut > from && part != HostPart::Wait {
                        self.link(from, cut, part);
                        from = cut;
                    }
                }
                if from < to {
                    self.link(from, to, part);
                }
            }
            at = to;
        }
    }

    fn link(&mut self, from: i64, to: i64, mut part: HostPart) {
        let first = self.graph.block.seen.len() as u32;
        if self.looks_like_a_wait(from, to, part) {
            part = HostPart::Wait;
        }
        let mut latest = from;
        if part == HostPart::Wait {
            let last: Vec<Option<usize>> = (0..self.streams.len())
                .map(|it| self.last_over(it, to.saturating_add(CLOCKS)))
                .collect();
            // A device that finished something meanwhile is the one waited for.
            let finished =
                |it: &usize| last[*it].is_some_and(|it| self.graph.measured[it].end > from);
            let device = |it: usize| self.lane.streams[it].0;
            let waited: Vec<TrackId> = (0..last.len()).filter(finished).map(device).collect();
            for it in (0..last.len()).filter(|&it| waited.contains(&device(it))) {
                let Some(op) = last[it] else { continue };
                self.graph.block.seen.push(op as u32);
                latest = latest.max(self.graph.measured[op].end);
            }
            if waited.is_empty() {
                part = HostPart::Runtime;
            }
        }
        let (host, seen) = (self.host, (first, self.graph.block.seen.len() as u32));
        self.links.push((from, self.graph.block.links.len() as u32));
        if part == HostPart::Wait {
            // What is launched during a wait, or by the call that waits, is launched at its
            // beginning: before the wait is over, which comes after all it saw finish.
            let begin = Link { host, part: HostPart::Runtime, dur: 0, seen: (0, 0), tail: 0 };
            self.push(from, begin);
            self.push(to, Link { host, part, dur: 0, seen, tail: (to - latest).max(0) });
        } else {
            self.push(from, Link { host, part, dur: to - from, seen, tail: 0 });
        }
    }

    fn push(&mut self, key: i64, link: Link) {
        let place = self.graph.block.links.len() as u32;
        self.graph.block.links.push(link);
        self.graph.node(key, Node::Link(place));
    }

    /// Whether a stretch in which the host shows nothing ends as the device runs dry.
    fn looks_like_a_wait(&mut self, from: i64, to: i64, part: HostPart) -> bool {
        if !matches!(part, HostPart::Runtime | HostPart::Python) || to - from < HIDDEN_WAIT {
            return false;
        }
        let mut latest = i64::MIN;
        for nth in 0..self.streams.len() {
            if let Some(it) = self.last_over(nth, to) {
                latest = latest.max(self.graph.measured[it].end);
            }
            let next = self.over[nth];
            if next < self.streams[nth].end && self.graph.measured[next].start < to {
                return false;
            }
        }
        to.saturating_sub(latest) <= WAKES && latest > from + (to - from) / 2
    }

    /// Waits for the device and launch calls, of all threads of the host.
    fn calls(&self, runtime: &[Span]) -> (Vec<Span>, Vec<Span>) {
        let (trace, events) = (self.trace, &self.trace.events);
        let (mut own, mut others, mut launches) = (Vec::new(), Vec::new(), Vec::new());
        for track in trace.tracks_below(self.lane.host, TrackKind::Thread) {
            let drives = self.lane.time.driver == Some(track);
            for row in rows_in(trace, track, self.window) {
                let to = match events.kind[row] {
                    OpKind::Sync if drives => &mut own,
                    OpKind::Sync => &mut others,
                    OpKind::Launch => &mut launches,
                    _ => continue,
                };
                let end = events.end(EventId(row as u32)).0;
                to.push((events.start[row].0, end.min(self.window.1)));
            }
        }
        // Another thread's wait holds the step only while the driving thread waits for it.
        own.extend(intersect(&union(others), runtime));
        (own, launches)
    }
}

/// The part of a set inside a window.
fn clip(set: &[Span], window: Span) -> Vec<Span> {
    let first = set.partition_point(|it| it.1 <= window.0);
    let inside = set[first..].iter().take_while(|it| it.0 < window.1);
    inside.map(|it| (it.0.max(window.0), it.1.min(window.1))).collect()
}
