//! One Python process as it goes on: its steps and what it decided, of `python-PID.jsonl`.

use std::collections::{BTreeMap, VecDeque};

use runlog::{Record, Said, StepKey};

use super::cells::{Cells, second_of};
use super::tail::Lines;
use super::{RATE_OVER_NS, STATISTICS_OVER, Steps, one_line};

/// Points of the count are kept this far apart: enough to find the rate of the last seconds.
const POINTS_APART_NS: i64 = 100_000_000;
const MOST_POINTS: usize = 256;
/// What was decided long ago is in the file.
const MOST_SAID: usize = 64;
/// Below this many steps one of twenty says nothing.
const FEWEST_FOR_P95: i64 = 20;
/// The log is written out twice a second, on a busy machine later.
const NEWEST_MAY_BE_NS: i64 = 2_500_000_000;
/// A step that takes so many times longer than the others is a stop.
const STOP: i64 = 4;

#[derive(Debug, Clone, Default)]
pub struct Process {
    pub pid: i64,
    pub script: String,
    pub python: String,
    pub frameworks: BTreeMap<String, String>,
    /// What counts as a step.
    pub step: Option<StepKey>,
    pub n_steps: i64,
    pub said: VecDeque<Said>,
    pub damaged: u64,
    examples: Option<i64>,
    first: Option<Point>,
    last: Option<Point>,
    points: VecDeque<Point>,
    /// The last hundred steps, as what a step of each record took and how many it stands for.
    recent: VecDeque<(i64, i64)>,
    n_recent: i64,
    cells: Cells,
}

/// So many steps had begun at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Point {
    unix_ns: i64,
    count: i64,
}

impl Lines for Process {
    fn anew(&mut self) {
        *self = Process::default();
    }

    fn line(&mut self, line: &[u8]) {
        if Record::is_of_stacks(line) || line.is_empty() {
            return;
        }
        match Record::parse(line) {
            Some(record) => self.record(record),
            None => self.damaged += 1,
        }
    }

    fn damaged(&mut self) {
        self.damaged += 1;
    }
}

impl Process {
    fn record(&mut self, record: Record) {
        match record {
            Record::Header(it) => {
                self.pid = it.pid.unwrap_or(0);
                self.script = it.script.unwrap_or_default();
                self.python = it.python.unwrap_or_default();
            }
            Record::Framework { name, version } => {
                self.frameworks.insert(name, version);
            }
            Record::Examples(n) => self.examples = Some(n).filter(|&it| it > 0),
            Record::StepKey(it) => {
                self.begin_anew();
                self.step = Some(it);
            }
            Record::Step { unix_ns, count } => self.steps_had_begun(Point { unix_ns, count }),
            Record::Said(it) => {
                if self.said.len() == MOST_SAID {
                    self.said.pop_front();
                }
                self.said.push_back(it);
            }
            _ => (),
        }
    }

    /// Steps before were of something else: nothing of them says how these go.
    fn begin_anew(&mut self) {
        self.first = None;
        self.last = None;
        self.points.clear();
        self.recent.clear();
        self.n_recent = 0;
        self.cells = Cells::default();
    }

    fn steps_had_begun(&mut self, point: Point) {
        if let Some(last) = self.last {
            let steps = point.count.saturating_sub(last.count);
            let took = point.unix_ns.saturating_sub(last.unix_ns);
            if steps > 0 && took >= 0 {
                self.took(last.unix_ns, point.unix_ns, took / steps, steps);
            } else {
                // A clock that was set back, or a process that replaced itself by another.
                self.begin_anew();
            }
        }
        self.n_steps = point.count;
        self.first.get_or_insert(point);
        self.last = Some(point);
        if self
            .points
            .back()
            .is_none_or(|it| point.unix_ns.saturating_sub(it.unix_ns) >= POINTS_APART_NS)
        {
            if self.points.len() == MOST_POINTS {
                self.points.pop_front();
            }
            self.points.push_back(point);
        }
    }

    fn took(&mut self, from_ns: i64, until_ns: i64, each_ns: i64, steps: i64) {
        self.cells.add_over(second_of(from_ns), second_of(until_ns), each_ns as f64);
        self.recent.push_back((each_ns, steps));
        self.n_recent = self.n_recent.saturating_add(steps);
        while let Some(&(_, steps)) = self.recent.front() {
            if self.n_recent - steps < STATISTICS_OVER {
                break;
            }
            self.n_recent -= steps;
            self.recent.pop_front();
        }
    }

    /// The last thing said of this kind.
    pub fn last_said(&self, what: &str) -> Option<&Said> {
        self.said.iter().rev().find(|it| it.what == what)
    }

    pub fn last_step_ns(&self) -> Option<i64> {
        self.last.map(|it| it.unix_ns)
    }

    /// How the steps go; `now_ns` is `None` where the run is over, `last_second` the last to draw.
    pub fn steps(&self, now_ns: Option<i64>, last_second: i64) -> Option<Steps> {
        let (first, last) = (self.first?, self.last?);
        let (median_ns, p95_ns) = self.median_and_p95();
        let silent_ns = now_ns.map(|it| it.saturating_sub(last.unix_ns)).filter(|&silent| {
            silent > NEWEST_MAY_BE_NS.max(median_ns.unwrap_or(0).saturating_mul(STOP))
        });
        let until = match (silent_ns, now_ns) {
            (Some(_), Some(now_ns)) => now_ns,
            _ => last.unix_ns,
        };
        let rate = |from: Point, until: i64| {
            let seconds = until.saturating_sub(from.unix_ns) as f64 / 1e9;
            (seconds > 0.0).then(|| last.count.saturating_sub(from.count) as f64 / seconds)
        };
        let long_ago = |it: &&Point| it.unix_ns <= until.saturating_sub(RATE_OVER_NS);
        let from = self.points.iter().rev().find(long_ago).copied().unwrap_or(first);
        let rate_now = rate(from, until);
        let step = self.step.as_ref();
        Some(Steps {
            count: self.n_steps,
            kind: step.map(|it| it.kind.clone()).unwrap_or_default(),
            name: step.map(|it| one_line(&it.name)).unwrap_or_default(),
            rate_now,
            rate_run: rate(first, last.unix_ns),
            median_ns,
            p95_ns,
            statistics_over: self.n_recent,
            examples_per_step: self.examples,
            examples_now: rate_now.zip(self.examples).map(|(rate, n)| rate * n as f64),
            silent_ns,
            slowest_ns: self.cells.largest(last_second),
        })
    }

    fn median_and_p95(&self) -> (Option<i64>, Option<i64>) {
        let mut sorted: Vec<(i64, i64)> = self.recent.iter().copied().collect();
        sorted.sort_unstable();
        let at = |share: f64| {
            let rank = (share * self.n_recent as f64).ceil() as i64;
            let mut n = 0;
            sorted.iter().find_map(|&(each_ns, steps)| {
                n = i64::saturating_add(n, steps);
                (n >= rank).then_some(each_ns)
            })
        };
        (at(0.5), at(0.95).filter(|_| self.n_recent >= FEWEST_FOR_P95))
    }
}
