//! Replays the steps of a run with a device as a graph of what waited for what.
//!
//! ```text
//! host    |python|launch|launch|    wait      |python|      one chain, cut at launches and waits
//!                 \      \            ^
//! stream           |==k1==|==k2==|====|                     a queue: launched, and after the last
//! stream                   '-> |==k3==|                     or after another stream's, if that
//!                                                           explains its start
//! ```
//!
//! All threads of a host are laid onto its driving thread's time: a launch happens when the chain
//! reaches the moment it was made. A collective ends when the last of its devices has come.
//! Every delay that nothing explains stays as it was measured; so replaying the unchanged graph
//! gives the measured step but for what the graph does not know, and that error is kept.
//!
//! Some steps stand for all: few blocks of neighbouring ones, played twice, of which the second
//! round is measured, when queues are as full as they stay.

mod layout;

use std::cmp::Reverse;
use std::ops::Range;

use hashbrown::HashSet;
use trace::{EventId, OpKind, StrId, Trace, TrackId, TrackKind};

use self::layout::{Lane, lay_out};
use crate::span::Span;
use crate::step::{HostSteps, Step};
use crate::step_time::{HostTimes, busy_devices, streams_of};
use crate::{Model, Tables};

/// As many steps stand for all.
/// Source: choice, a bound on the work.
const MOST_STEPS: usize = 20;
/// Neighbours replayed together where not all steps are.
/// Source: choice, a quarter of the steps that are replayed.
const BLOCK: usize = 5;
/// More device work than this is not replayed: fewer steps are.
/// Source: choice, a bound on the work.
const MOST_OPS: usize = 300_000;
/// From one kernel of a queue to the next, where no measured gap says it.
/// Source: choice, a guess: going on within a queue takes 1 to 2 µs.
const QUEUE_GAP: i64 = 1_000_000;
/// A step of a day is none; times of broken profiles fill an `i64`, and sums of them must not.
/// Source: choice, a bound against broken files.
const LONGEST: i64 = 86_400 * 1_000_000_000_000;
/// Beyond this error of the unchanged replay nothing is predicted.
/// Source: choice, the report's contract: a model that misses today's step by more is not asked.
const TRUSTED: f64 = 0.10;
/// Steps that are so much longer or shorter than all on average do not stand for all.
/// Source: choice, a guess.
const TYPICAL: f64 = 0.25;

/// What a stretch of the host's chain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostPart {
    Input,
    Compile,
    Output,
    Python,
    Runtime,
    /// Calls that hand work to the device: part of the category runtime.
    Launch,
    /// Waiting for the device: part of the category runtime, as far as the device does nothing.
    Wait,
    Unknown,
}

impl HostPart {
    const ALL: [HostPart; 8] = [
        HostPart::Input,
        HostPart::Compile,
        HostPart::Output,
        HostPart::Python,
        HostPart::Runtime,
        HostPart::Launch,
        HostPart::Wait,
        HostPart::Unknown,
    ];
    const N: usize = HostPart::ALL.len();

    /// The category it is counted under.
    pub fn category(self) -> &'static str {
        match self {
            HostPart::Input => "input",
            HostPart::Compile => "compile",
            HostPart::Output => "output",
            HostPart::Python => "python",
            HostPart::Runtime | HostPart::Launch | HostPart::Wait => "runtime",
            HostPart::Unknown => "idle",
        }
    }
}

/// What work on a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Compute,
    Collective,
    TransferIn,
    TransferOut,
    Infeed,
}

impl Class {
    const ALL: [Class; 5] =
        [Class::Compute, Class::Collective, Class::TransferIn, Class::TransferOut, Class::Infeed];
    const N: usize = Class::ALL.len();

    fn of(kind: OpKind) -> Option<Class> {
        Some(match kind {
            OpKind::Kernel | OpKind::Memset | OpKind::CopyOnDevice => Class::Compute,
            OpKind::Collective | OpKind::CopyPeer => Class::Collective,
            OpKind::CopyIn => Class::TransferIn,
            OpKind::CopyOut => Class::TransferOut,
            OpKind::InputWait => Class::Infeed,
            _ => return None,
        })
    }

    /// The category it is counted under.
    pub fn category(self) -> &'static str {
        match self {
            Class::Compute => "compute",
            Class::Collective => "collective",
            Class::TransferIn => "transfer_in",
            Class::TransferOut => "transfer_out",
            Class::Infeed => "input",
        }
    }
}

/// What is changed before replaying.
#[derive(Debug, Clone, Default)]
pub struct Change<'a> {
    /// These categories take no time, on the host nor on devices.
    pub without: &'a [&'a str],
    /// Launch calls take no time, and launched work starts at once.
    pub launches_free: bool,
    /// The host never waits for the device.
    pub no_waits: bool,
    /// Work of these rows takes this part of its time.
    pub rows: Option<(&'a HashSet<u32>, f64)>,
}

/// A change, looked up once for all that is replayed.
struct Effect<'a> {
    host_gone: [bool; HostPart::N],
    work_gone: [bool; Class::N],
    launches_free: bool,
    no_waits: bool,
    rows: Option<(&'a HashSet<u32>, f64)>,
}

impl<'a> Effect<'a> {
    fn of(change: &Change<'a>) -> Effect<'a> {
        let mut effect = Effect {
            host_gone: [false; HostPart::N],
            work_gone: [false; Class::N],
            launches_free: change.launches_free,
            no_waits: change.no_waits,
            rows: change.rows,
        };
        for part in HostPart::ALL {
            effect.host_gone[part as usize] = match part {
                HostPart::Launch if change.launches_free => true,
                HostPart::Wait => false,
                _ => change.without.contains(&part.category()),
            };
        }
        for class in Class::ALL {
            effect.work_gone[class as usize] = change.without.contains(&class.category());
        }
        effect
    }

    fn host(&self, part: HostPart, dur: i64) -> i64 {
        if self.host_gone[part as usize] { 0 } else { dur }
    }

    fn op(&self, op: &Op, dur: i64) -> i64 {
        if self.work_gone[op.class as usize] {
            return 0;
        }
        match self.rows {
            Some((rows, part)) if rows.contains(&op.row) => (dur as f64 * part) as i64,
            _ => dur,
        }
    }
}

/// The graph, and how well replaying it gives what was measured.
#[derive(Debug, Default)]
pub struct Replay {
    hosts: usize,
    streams: usize,
    blocks: Vec<Block>,
    n_steps: usize,
    /// The mean of all counted steps.
    step_ps: i64,
    /// The mean of the replayed steps, as measured.
    chosen_ps: i64,
    /// The same, as replayed.
    replayed_ps: i64,
}

/// Neighbouring steps of all hosts.
#[derive(Debug, Default)]
struct Block {
    /// In an order in which everything comes after what it waits for.
    nodes: Vec<Node>,
    /// In the order of nodes, as are the links.
    ops: Vec<Op>,
    links: Vec<Link>,
    /// What each wait saw finish: places in `ops`.
    seen: Vec<u32>,
    groups: usize,
}

/// A place in a block's lists.
#[derive(Debug, Clone, Copy)]
enum Node {
    Link(u32),
    Op(u32),
}

/// A stretch of a host's chain.
#[derive(Debug, Clone, Copy)]
struct Link {
    host: u16,
    part: HostPart,
    dur: i64,
    /// Of a wait: the range of what it saw finish, and how long after that it went on.
    seen: (u32, u32),
    tail: i64,
}

/// Work on a device.
#[derive(Debug, Clone, Copy)]
struct Op {
    row: u32,
    name: StrId,
    class: Class,
    host: u16,
    stream: u16,
    dur: i64,
    /// The link at whose beginning it was launched; `None` if that was before the block.
    launch: Option<u32>,
    after_launch: i64,
    /// The one before it on its stream, whether it waits for that one's end or only its start.
    before: Option<(u32, bool)>,
    after_before: i64,
    /// One on another stream whose end it seems to wait for.
    other: Option<u32>,
    after_other: i64,
    launch_bound: bool,
    /// The collective it is a part of, on several devices.
    group: Option<u32>,
    /// How long a collective goes on once all have come.
    once_all_came: i64,
}

/// What something waited for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cause {
    /// The host's chain, at the beginning of this link.
    Link(u32),
    OpEnd(u32),
    OpStart(u32),
    /// Nothing in the block.
    Before,
}

/// Time on the critical path of the mean step, by what it was spent on.
#[derive(Debug, Clone, PartialEq)]
pub struct PathPart {
    pub category: &'static str,
    /// `None` on the host, and for delays.
    pub row: Option<EventId>,
    /// A delay between two things, as from launch to start.
    pub is_delay: bool,
    pub ps: i64,
}

impl Model for Replay {
    fn build(tables: &Tables) -> Replay {
        Replay::of(tables).unwrap_or_default()
    }
}

impl Replay {
    fn of(tables: &Tables) -> Option<Replay> {
        let trace = tables.trace();
        let times = tables.model::<HostTimes>();
        let rows = tables.model::<HostSteps>();
        let mut lanes = Vec::new();
        for host in trace.tracks_of(TrackKind::Host) {
            let devices = busy_devices(trace, host);
            let Some(time) = times.of(host).filter(|it| it.driver.is_some()) else { continue };
            let steps: Vec<&Step> = rows.counted(trace.track_name(host)).collect();
            if devices.is_empty() || steps.is_empty() {
                continue;
            }
            let streams: Vec<(TrackId, TrackId)> = devices
                .iter()
                .flat_map(|&device| streams_of(trace, device).map(move |it| (device, it)))
                .filter(|it| !trace.tracks[it.1.row()].events.is_empty())
                .collect();
            lanes.push(Lane { time, steps, streams, host });
        }
        let n = lanes.iter().map(|it| it.steps.len()).min()?;
        let longest = lanes.iter().flat_map(|it| &it.steps).map(|it| it.dur_ps).max()?;
        if longest > LONGEST {
            return None;
        }
        // A few thousand hosts or streams fit; a broken file may say more.
        if lanes.iter().map(|it| it.streams.len()).sum::<usize>() > usize::from(u16::MAX) {
            return None;
        }
        let per_step = lanes.iter().map(|it| it.ops_per_step(trace)).sum::<usize>().max(1);
        let most = (MOST_OPS / per_step).clamp(1, MOST_STEPS);
        let chosen = choose(&lanes, n, most);
        let mut replay = Replay {
            hosts: lanes.len(),
            streams: lanes.iter().map(|it| it.streams.len()).sum(),
            n_steps: chosen.iter().map(ExactSizeIterator::len).sum(),
            ..Replay::default()
        };
        let mean = |steps: &mut dyn Iterator<Item = &Step>, n: usize| {
            let sum: i128 = steps.map(|it| i128::from(it.dur_ps)).sum();
            (sum / n.max(1) as i128) as i64
        };
        let all: usize = lanes.iter().map(|it| it.steps.len()).sum();
        replay.step_ps = mean(&mut lanes.iter().flat_map(|it| it.steps.iter().copied()), all);
        let mut of_chosen = lanes
            .iter()
            .flat_map(|it| chosen.iter().flat_map(|c| it.steps[c.clone()].iter().copied()));
        replay.chosen_ps = mean(&mut of_chosen, replay.n_steps * lanes.len());
        for steps in chosen {
            replay.blocks.push(lay_out(trace, &lanes, steps));
        }
        replay.replayed_ps = replay.mean_step(&replay.play(&Change::default(), None));
        Some(replay)
    }

    /// Whether there is anything to replay, and replaying it unchanged comes within a tenth of
    /// what was measured.
    pub fn is_trusted(&self) -> bool {
        let near = |a: i64, b: i64, by: f64| a.abs_diff(b) as f64 <= by * b as f64;
        self.chosen_ps > 0
            && near(self.replayed_ps, self.chosen_ps, TRUSTED)
            && near(self.chosen_ps, self.step_ps, TYPICAL)
    }

    /// The mean of all counted steps, as measured.
    pub fn step_ps(&self) -> i64 {
        self.step_ps
    }

    /// The mean of all counted steps, as replaying makes it.
    pub fn replayed_ps(&self) -> i64 {
        self.scaled(self.replayed_ps)
    }

    /// The mean step after a change; `None` where replaying is not trusted.
    pub fn after(&self, change: &Change<'_>) -> Option<i64> {
        let rounds = self.is_trusted().then(|| self.play(change, None))?;
        Some(self.after_rounds(&rounds))
    }

    /// The same, and what it is made of: the chain of things each of which waited for the one
    /// before.
    pub fn path_after(&self, change: &Change<'_>) -> Option<(i64, Vec<PathPart>)> {
        if !self.is_trusted() {
            return None;
        }
        let mut causes: Vec<Causes> = Vec::new();
        let rounds = self.play(change, Some(&mut causes));
        let new_ps = self.after_rounds(&rounds);
        // The path is that of the host that took longest, or of its devices where they lag.
        let host = (0..self.hosts).max_by_key(|&it| rounds[it].0.max(rounds[it].1))?;
        let on_device = rounds[host].1 as f64 > rounds[host].0 as f64 * (1.0 + TRUSTED);
        let mut parts: Vec<PathPart> = Vec::new();
        for (block, causes) in self.blocks.iter().zip(&causes) {
            causes.walk(block, host as u16, on_device, &mut parts);
        }
        let whole: i64 = parts.iter().map(|it| it.ps).sum();
        for part in &mut parts {
            // The path may begin a little before or after a block: it is said of one mean step.
            part.ps = (part.ps as f64 * new_ps as f64 / whole.max(1) as f64) as i64;
        }
        Some((new_ps, parts))
    }

    /// The mean step if kernels of these names took `part` of their time.
    pub fn with_kernels(&self, trace: &Trace, names: &[&str], part: f64) -> Option<i64> {
        let names: HashSet<&str> = names.iter().copied().collect();
        let ids: HashSet<StrId> =
            trace.strings.iter().filter(|it| names.contains(it.1)).map(|it| it.0).collect();
        let rows = self.rows_where(|it| ids.contains(&trace.events.name[it.row()]));
        self.after(&Change { rows: Some((&rows, part)), ..Change::default() })
    }

    /// Rows of replayed device work that pass a test.
    pub fn rows_where(&self, test: impl Fn(EventId) -> bool) -> HashSet<u32> {
        let ops = self.blocks.iter().flat_map(|it| &it.ops);
        ops.map(|it| it.row).filter(|&it| test(EventId(it))).collect()
    }

    fn scaled(&self, ps: i64) -> i64 {
        (ps as f64 * self.step_ps as f64 / self.chosen_ps.max(1) as f64) as i64
    }

    /// The mean step, from what `play` gives.
    fn mean_step(&self, rounds: &[(i64, i64)]) -> i64 {
        // A host that runs ahead of its devices is held up by them in the end.
        let sum: i64 = rounds.iter().map(|it| it.0.max(it.1)).sum();
        sum / (self.hosts * self.n_steps).max(1) as i64
    }

    /// The error of the unchanged replay is taken to be in the changed one as well.
    fn after_rounds(&self, rounds: &[(i64, i64)]) -> i64 {
        let factor = self.mean_step(rounds) as f64 / self.replayed_ps.max(1) as f64;
        ((self.step_ps as f64 * factor) as i64).min(self.step_ps)
    }

    /// How long the second round takes each host and its devices, when queues are as full as they
    /// stay; and what everything in it waited for, of each block, if that is asked for.
    fn play(&self, change: &Change<'_>, mut causes: Option<&mut Vec<Causes>>) -> Vec<(i64, i64)> {
        let effect = Effect::of(change);
        let mut state = State::new(self.hosts, self.streams);
        for block in &self.blocks {
            state.play(block, &effect, None);
        }
        let first = state.reached();
        for block in &self.blocks {
            let mut of_block = causes.is_some().then(Causes::default);
            state.play(block, &effect, of_block.as_mut());
            if let Some(causes) = &mut causes {
                causes.extend(of_block);
            }
        }
        let rounds = state.reached().into_iter().zip(first);
        rounds.map(|(now, before)| (now.0 - before.0, now.1 - before.1)).collect()
    }
}

/// Rows of a track that begin in a window.
pub fn rows_in(trace: &Trace, track: TrackId, window: Span) -> Range<usize> {
    let rows = trace.tracks[track.row()].rows();
    let starts = &trace.events.start[rows.clone()];
    let from = starts.partition_point(|it| it.0 < window.0);
    let to = starts.partition_point(|it| it.0 < window.1);
    rows.start + from..rows.start + to.max(from)
}

/// Which steps stand for all: runs of places in the lanes' lists, of neighbours.
fn choose(lanes: &[Lane<'_>], n: usize, most: usize) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    if n <= most {
        runs.push(0..n);
    } else {
        let block = BLOCK.min(most);
        let n_blocks = (most / block).max(1);
        runs.extend((0..n_blocks).map(|it| {
            let at = it * (n - block) / (n_blocks - 1).max(1);
            at..at + block
        }));
    }
    // Where a step that does not count lies between, the run ends.
    let follows = |at: usize| lanes.iter().all(|it| it.steps[at].step == it.steps[at - 1].step + 1);
    let mut split: Vec<Range<usize>> = Vec::new();
    for run in runs {
        for at in run.clone() {
            match split.last_mut() {
                Some(last) if at > run.start && last.end == at && follows(at) => last.end += 1,
                _ => split.push(at..at + 1),
            }
        }
    }
    split
}

/// How far everything has come.
struct State {
    hosts: Vec<i64>,
    /// When the last work of each host's devices is over.
    devices: Vec<i64>,
    streams: Vec<i64>,
    /// Of the block that is played.
    starts: Vec<i64>,
    ends: Vec<i64>,
    groups: Vec<i64>,
    began: Vec<i64>,
    at_link: Vec<i64>,
}

impl State {
    fn new(hosts: usize, streams: usize) -> State {
        State {
            hosts: vec![0; hosts],
            devices: vec![0; hosts],
            streams: vec![i64::MIN / 4; streams],
            starts: Vec::new(),
            ends: Vec::new(),
            groups: Vec::new(),
            began: Vec::new(),
            at_link: Vec::new(),
        }
    }

    fn reached(&self) -> Vec<(i64, i64)> {
        self.hosts.iter().copied().zip(self.devices.iter().copied()).collect()
    }

    fn end_of(&self, block: &Block, effect: &Effect<'_>, op: u32) -> i64 {
        let it = &block.ops[op as usize];
        match it.group {
            Some(group) if effect.op(it, 1 << 20) > 0 => {
                self.groups[group as usize] + effect.op(it, it.once_all_came)
            }
            _ => self.ends[op as usize],
        }
    }

    fn play(&mut self, block: &Block, effect: &Effect<'_>, mut causes: Option<&mut Causes>) {
        self.starts.clear();
        self.starts.resize(block.ops.len(), 0);
        self.ends.clear();
        self.ends.resize(block.ops.len(), 0);
        self.groups.clear();
        self.groups.resize(block.groups, i64::MIN / 4);
        self.at_link.clear();
        self.at_link.resize(block.links.len(), 0);
        self.began.clone_from(&self.hosts);
        if let Some(causes) = causes.as_deref_mut() {
            causes.clear(block);
        }
        let mut last_link: Vec<Option<u32>> = vec![None; self.hosts.len()];
        for &node in &block.nodes {
            match node {
                Node::Link(at) => {
                    let link = &block.links[at as usize];
                    let host = usize::from(link.host);
                    let now = self.hosts[host];
                    self.at_link[at as usize] = now;
                    let mut cause = last_link[host].map_or(Cause::Before, Cause::Link);
                    let over = if link.part == HostPart::Wait {
                        let mut over = now;
                        if !effect.no_waits {
                            for &op in &block.seen[link.seen.0 as usize..link.seen.1 as usize] {
                                let end = self.end_of(block, effect, op).saturating_add(link.tail);
                                if end > over {
                                    (over, cause) = (end, Cause::OpEnd(op));
                                }
                            }
                        }
                        over
                    } else {
                        now + effect.host(link.part, link.dur)
                    };
                    self.hosts[host] = over;
                    last_link[host] = Some(at);
                    if let Some(causes) = causes.as_deref_mut() {
                        causes.links[at as usize] = (cause, now, over);
                    }
                }
                Node::Op(at) => self.play_op(block, effect, at, causes.as_deref_mut()),
            }
        }
        for (at, op) in block.ops.iter().enumerate() {
            let end = self.end_of(block, effect, at as u32);
            let stream = &mut self.streams[usize::from(op.stream)];
            *stream = (*stream).max(end);
            let device = &mut self.devices[usize::from(op.host)];
            *device = (*device).max(end);
        }
    }

    fn play_op(
        &mut self,
        block: &Block,
        effect: &Effect<'_>,
        at: u32,
        causes: Option<&mut Causes>,
    ) {
        let op = &block.ops[at as usize];
        let (mut start, mut cause) = (i64::MIN, Cause::Before);
        let mut after = |moment: i64, why: Cause| {
            if moment > start {
                (start, cause) = (moment, why);
            }
        };
        match op.launch {
            Some(link) => {
                let latency = if effect.launches_free && op.launch_bound {
                    op.after_launch.min(QUEUE_GAP)
                } else {
                    op.after_launch
                };
                after(self.at_link[link as usize] + latency, Cause::Link(link));
            }
            // Launched before the block: it comes as long after the block's start as it did.
            None if op.before.is_none() => {
                after(self.began[usize::from(op.host)] + op.after_before, Cause::Before);
            }
            None => (),
        }
        match op.before {
            Some((before, true)) => {
                let end = self.end_of(block, effect, before);
                after(end + op.after_before, Cause::OpEnd(before));
            }
            Some((before, false)) => {
                after(self.starts[before as usize] + op.after_before, Cause::OpStart(before));
            }
            None => after(self.streams[usize::from(op.stream)], Cause::Before),
        }
        if let Some(other) = op.other {
            let end = self.end_of(block, effect, other);
            after(end + op.after_other, Cause::OpEnd(other));
        }
        let end = start + effect.op(op, op.dur);
        self.starts[at as usize] = start;
        self.ends[at as usize] = end;
        if let Some(group) = op.group {
            let group = &mut self.groups[group as usize];
            *group = (*group).max(start);
        }
        if let Some(causes) = causes {
            causes.ops[at as usize] = (cause, start, end);
        }
    }
}

/// What each thing of a played block waited for.
#[derive(Default)]
struct Causes {
    /// Cause, begin, end.
    links: Vec<(Cause, i64, i64)>,
    /// Cause of the start, the start, the end.
    ops: Vec<(Cause, i64, i64)>,
}

impl Causes {
    fn clear(&mut self, block: &Block) {
        self.links.clear();
        self.links.resize(block.links.len(), (Cause::Before, 0, 0));
        self.ops.clear();
        self.ops.resize(block.ops.len(), (Cause::Before, 0, 0));
    }

    /// From the end of the block to its beginning, along what was waited for.
    fn walk(&self, block: &Block, host: u16, on_device: bool, parts: &mut Vec<PathPart>) {
        let mut add = |category, row: Option<u32>, is_delay, ps: i64| {
            if ps > 0 {
                parts.push(PathPart { category, row: row.map(EventId), is_delay, ps });
            }
        };
        let last_link = block.links.iter().rposition(|it| it.host == host).map(|it| it as u32);
        let ops = (0..block.ops.len() as u32).filter(|&it| block.ops[it as usize].host == host);
        let last_op =
            ops.max_by_key(|&it| (self.ops[it as usize].2, block.ops[it as usize].stream));
        let (mut at, mut moment) = match (last_link, last_op) {
            (_, Some(op)) if on_device => (Cause::OpEnd(op), self.ops[op as usize].2),
            (Some(link), _) => (Cause::Link(link), self.links[link as usize].2),
            _ => return,
        };
        // The member of each collective that came last.
        let mut last_of: Vec<Option<u32>> = vec![None; block.groups];
        for (at, op) in block.ops.iter().enumerate() {
            let Some(group) = op.group else { continue };
            let last = &mut last_of[group as usize];
            // Of those that came at once, that of the first stream.
            let came = |it: usize| (self.ops[it].1, Reverse(block.ops[it].stream));
            if last.is_none_or(|it| came(it as usize) < came(at)) {
                *last = Some(at as u32);
            }
        }
        // Every hop goes back in time or along a chain; bounded in case of equal moments.
        for _ in 0..2 * (block.links.len() + block.ops.len()) + 2 {
            match at {
                Cause::Before => break,
                Cause::Link(link) => {
                    let (cause, begin, end) = self.links[link as usize];
                    let Link { part, tail, .. } = block.links[link as usize];
                    let upto = moment.min(end);
                    if let (Cause::OpEnd(_), HostPart::Wait) = (cause, part) {
                        let tail = tail.min(upto - begin);
                        add("runtime", None, true, tail);
                        moment = upto - tail;
                    } else {
                        add(part.category(), None, false, upto - begin);
                        moment = moment.min(begin);
                    }
                    at = cause;
                }
                Cause::OpEnd(op) => {
                    let node = &block.ops[op as usize];
                    // Of a collective, only what came after the last device had come.
                    let last = node.group.and_then(|it| last_of[it as usize]).unwrap_or(op);
                    let from = self.ops[last as usize].1;
                    add(node.class.category(), Some(node.row), false, moment - from);
                    moment = moment.min(from);
                    at = Cause::OpStart(last);
                }
                Cause::OpStart(op) => {
                    let (cause, start, _) = self.ops[op as usize];
                    let node = &block.ops[op as usize];
                    let upto = moment.min(start);
                    let from = match cause {
                        Cause::Link(link) => self.links[link as usize].1,
                        Cause::OpEnd(before) if node.other == Some(before) => {
                            start - node.after_other
                        }
                        Cause::OpEnd(_) => start - node.after_before,
                        Cause::OpStart(before) => self.ops[before as usize].1,
                        Cause::Before => start,
                    };
                    if let Cause::OpStart(before) = cause {
                        // It began while another ran: until then, that one was the path.
                        let before = &block.ops[before as usize];
                        add(before.class.category(), Some(before.row), false, upto - from);
                    } else {
                        add("runtime", None, true, upto - from);
                    }
                    moment = moment.min(from);
                    at = match cause {
                        // Launched at the beginning of a link: what came before it led there.
                        Cause::Link(link) => self.links[link as usize].0,
                        other => other,
                    };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;

    use super::{Change, Replay};
    use crate::Tables;

    /// The mean step in µs after a change.
    fn check(picture: &str, change: &Change<'_>, expected_us: i64) {
        let tables = Tables::new(Arc::new(draw(picture)));
        let replay = tables.model::<Replay>();
        assert!(replay.is_trusted(), "{} for {}", replay.replayed_ps(), replay.step_ps());
        let new = replay.after(change).map(|it| (it + 500_000) / 1_000_000);
        assert_eq!(new, Some(expected_us));
    }

    fn without<'a>(categories: &'a [&'a str]) -> Change<'a> {
        Change { without: categories, ..Change::default() }
    }

    /// Steps of 100 µs: 20 of Python, a launch, a kernel of 50 that the host waits for.
    fn waiting() -> String {
        let (mut host, mut device) = (Vec::new(), Vec::new());
        for step in 0..4 {
            let at = step * 100;
            host.push(format!("train#{step} {at}..{}", at + 100));
            host.push(format!("EagerExecute {}..{}", at + 20, at + 100));
            host.push(format!("cuLaunchKernel@{step} {}..{}", at + 30, at + 34));
            host.push(format!("cuStreamSynchronize {}..{}", at + 40, at + 92));
            device.push(format!("k@{step} {}..{}", at + 40, at + 90));
        }
        format!("host/python: {}\ngpu0/s: {}", host.join(", "), device.join(", "))
    }

    #[test]
    fn unchanged_it_is_as_measured() {
        check(&waiting(), &Change::default(), 100);
    }

    #[test]
    fn a_wait_is_over_with_what_it_waits_for() {
        check(&waiting(), &without(&["compute"]), 50);
    }

    #[test]
    fn what_the_host_does_before_a_launch_delays_it() {
        check(&waiting(), &without(&["python"]), 80);
    }

    #[test]
    fn without_waits_the_host_runs_ahead_until_the_device_is_full() {
        // 48 of the host's own, 50 of the device's and a little between two kernels.
        let change = Change { no_waits: true, ..Change::default() };
        check(&waiting(), &change, 51);
    }

    #[test]
    fn a_device_that_is_always_busy_hides_the_host() {
        let picture = "
            host/python: train#1 0..100, cuLaunchKernel@1 5..8, train#2 100..200, \
            cuLaunchKernel@2 105..108, train#3 200..300, cuLaunchKernel@3 205..208
            gpu0/s: k 0..19, k@1 20..119, k@2 120..219, k@3 220..319
            ";
        check(picture, &without(&["python"]), 100);
    }

    #[test]
    fn another_streams_end_explains_a_late_start() {
        let picture = "
            host/python: train#1 0..100, cuLaunchKernel@1 5..8, cuLaunchKernel@2 8..10, \
            cuStreamSynchronize 12..95, train#2 100..200, cuLaunchKernel@3 105..108, \
            cuLaunchKernel@4 108..110, cuStreamSynchronize 112..195, train#3 200..300
            gpu0/a: k@1 10..60, k@3 110..160
            gpu0/b: ncclAllReduce@2 61..94, ncclAllReduce@4 161..194
            ";
        // Of three steps, the last computes nothing.
        check(picture, &without(&["compute"]), 68);
        check(picture, &without(&["collective"]), 78);
    }

    #[test]
    fn a_collective_waits_for_the_last_device() {
        let picture = "
            host/python: train#1 0..100, cuLaunchKernel@1 2..3, cuLaunchKernel@2 3..4, \
            cuLaunchKernel@3 4..5, cuLaunchKernel@4 5..6, cuStreamSynchronize 10..100, \
            train#2 100..200, cuLaunchKernel@11 102..103, cuLaunchKernel@12 103..104, \
            cuLaunchKernel@13 104..105, cuLaunchKernel@14 105..106, \
            cuStreamSynchronize 110..200, train#3 200..300
            gpu0/s: k@1 10..40, ncclAllReduce@2 40..99, k@11 110..140, ncclAllReduce@12 140..199
            gpu1/s: slow@3 10..80, ncclAllReduce@4 80..99, slow@13 110..180, ncclAllReduce@14 180..199
            ";
        let tables = Tables::new(Arc::new(draw(picture)));
        let replay = tables.model::<Replay>();
        let half = replay.with_kernels(tables.trace(), &["slow"], 0.5);
        // Of three steps, the last computes nothing; the others are shorter by 35.
        assert_eq!(half.map(|it| it / 1_000_000), Some(76), "nobody waits for the slow one");
        let other = replay.with_kernels(tables.trace(), &["k"], 0.5);
        assert_eq!(other.map(|it| it / 1_000_000), Some(100), "the other waits longer");
    }
}
