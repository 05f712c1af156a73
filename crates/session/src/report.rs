//! The verdict on one run: its steps, where they go, and what stands out.
//!
//! Put together here once, so that the terminal, scripts and every other outlet say the same.

pub mod beside;
mod facts;
pub mod json;
mod redacted;
pub mod words;

use std::collections::{BTreeMap, BTreeSet};

use analyses::input_stage::pipeline::{Pipeline, without_indices};
use analyses::mean_step::{Mean, MeanStep, unknown};
use analyses::op_time::OpTime;
use analyses::pace::Pace;
pub use analyses::run_info::Part;
use analyses::run_info::{
    Device, Hidden, devices, frameworks, hidden_devices, parts, unrecorded, window,
};
use analyses::runtime_call::RuntimeCall;
use analyses::step::{Step, median, percentile};
use analyses::step_time::CATEGORIES;
use analyses::stream_sum::StreamSums;
use rules::Diagnosis;
use trace::{Dur, EventId, Note, OpKind, OpName, TrackKind};

use self::beside::Beside;
pub use self::facts::{Ranks, facts};
use crate::Session;
use crate::edit_diff::advice::diff_of;

/// What is said of a run before anything is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub run: RunFacts,
    /// `None` where no steps could be identified.
    pub steps: Option<StepFacts>,
    /// In the order of the contract; empty without steps.
    pub breakdown: Vec<Share>,
    /// What holds the largest part of the largest category, where it can be told.
    pub main_culprit: Option<Culprit>,
    /// The ops with the largest self time, of the devices where there are any.
    pub top_ops: Vec<TopOp>,
    /// Work that is hidden in the framework's time.
    pub hidden: Option<Hidden>,
    /// Categories this profile cannot tell, and why.
    pub unknown: Vec<(&'static str, &'static str)>,
    /// What slows the run, what to change, and what could not be judged.
    pub diagnosis: Diagnosis,
    /// How fast the job itself says that it trains, where its log tells.
    pub pace: Option<Pace>,
    /// What was recorded beside the profile.
    pub beside: Beside,
    pub notes: Vec<Note>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RunFacts {
    pub path: String,
    pub name: String,
    pub frameworks: Vec<&'static str>,
    pub hosts: Vec<String>,
    pub ranks: Ranks,
    pub parts: Vec<Part>,
    /// Those on which anything was seen to run.
    pub devices: Vec<Device>,
    /// Those that are there, and of which nothing was recorded.
    pub silent_devices: Vec<Device>,
    pub window: Dur,
    pub events: usize,
    /// Points of the training log beside the profile.
    pub scalars: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StepFacts {
    /// Steps that statistics rest on, on the host that has most.
    pub count: usize,
    pub found_by: &'static str,
    pub marker: String,
    pub confidence: f64,
    pub warmup_skipped: usize,
    /// Cut off by the end of the capture.
    pub partial: usize,
    pub mean: Dur,
    pub median: Dur,
    pub p95: Dur,
    /// Of a sample; `None` for a single step.
    pub stdev: Option<Dur>,
}

impl RunFacts {
    /// How many accelerators there are, in use or not.
    pub fn devices_present(&self) -> usize {
        self.devices.len() + self.silent_devices.len()
    }

    /// How many of them were seen to compute.
    pub fn devices_computing(&self) -> usize {
        self.devices.iter().filter(|it| it.computes).count()
    }

    pub fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }

    /// The sentence about devices of which nothing was recorded.
    pub fn unrecorded_devices(&self) -> Option<String> {
        // Of a damaged file nobody knows what was recorded.
        if !self.has(Part::Events) {
            return None;
        }
        unrecorded(&[&self.devices[..], &self.silent_devices[..]].concat())
    }
}

/// A category's part of the step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    pub category: &'static str,
    pub per_step: Dur,
    pub share: f64,
}

/// An op, stage or call to blame for a category's time.
#[derive(Debug, Clone, PartialEq)]
pub struct Culprit {
    pub name: String,
    /// Of all that could be blamed.
    pub share: f64,
}

/// An op that stands out.
#[derive(Debug, Clone, PartialEq)]
pub struct TopOp {
    pub name: String,
    pub op_type: Option<String>,
    pub side: &'static str,
    pub count: i64,
    pub own: Dur,
    /// Of all ops' self time on its side.
    pub share: f64,
}

/// As many as a person reads.
const TOP_OPS: usize = 6;

impl Session {
    /// What is measured, and what the rules make of it.
    pub fn report(&self) -> Report {
        let mut diagnosis = rules::diagnose(self.tables());
        // Where the user's source is at hand, the edit is their own line with the change in it.
        for fix in diagnosis.causes.iter_mut().flat_map(|it| &mut it.finding.fix) {
            if let Some(Ok(diff)) = diff_of(self.tables(), fix) {
                fix.edit = Some(diff.new_lines());
                fix.diff = Some(diff.text);
            }
        }
        let mut report = Report { diagnosis, ..self.measurements() };
        redacted::redact(&mut report);
        report
    }

    /// The report without findings.
    pub fn measurements(&self) -> Report {
        let trace = self.trace();
        let breakdown = self.breakdown();
        let main = largest(&breakdown).map(|it| it.category);
        let told = |it: &str| breakdown.iter().any(|share| share.category == it);
        let mut unknown = unknown(self.trace());
        unknown.retain(|it| !told(it.0));
        let (used, mut silent): (Vec<_>, Vec<_>) =
            devices(trace).into_iter().partition(|it| it.used);
        silent.extend(hidden_devices(trace));
        let mut report = Report {
            run: RunFacts {
                path: self.run.path.display().to_string(),
                name: self.run.name.clone(),
                frameworks: frameworks(trace),
                hosts: trace
                    .tracks_of(TrackKind::Host)
                    .map(|it| trace.track_name(it).to_owned())
                    .collect(),
                ranks: Ranks::of(trace),
                parts: parts(self.tables()),
                devices: used,
                silent_devices: silent,
                window: window(trace),
                events: trace.events.len(),
                scalars: trace.scalars.len(),
            },
            steps: self.step_facts(),
            main_culprit: main.and_then(|it| self.culprit(it)),
            top_ops: self.top_ops(),
            breakdown,
            hidden: Hidden::of(trace),
            unknown,
            diagnosis: Diagnosis::default(),
            pace: Pace::of(self.tables()),
            beside: Beside::of(self.tables()),
            notes: trace.notes_so_far(),
        };
        redacted::redact(&mut report);
        report
    }

    fn step_facts(&self) -> Option<StepFacts> {
        let steps = step_facts(&self.tables().get::<Step>())?;
        // The mean that categories add to, and that every gain counts from.
        let mean = rules::facts(self.tables()).map_or(steps.mean, |it| it.step);
        Some(StepFacts { mean, ..steps })
    }

    fn breakdown(&self) -> Vec<Share> {
        let rows = self.tables().get::<MeanStep>();
        let share = |it: &MeanStep| {
            let (per_step, share) = (Dur(it.per_step_ps?), it.share?);
            Some(Share { category: it.category, per_step, share })
        };
        rows.iter().filter_map(share).collect()
    }

    fn top_ops(&self) -> Vec<TopOp> {
        let ops = self.tables().get::<OpTime>();
        let side = if ops.iter().any(|it| it.side == "device") { "device" } else { "host" };
        // A stage of the input pipeline waits for its own source: its time is not work.
        let mut ops: Vec<&OpTime> =
            ops.iter().filter(|it| it.side == side && it.family != "tf.data").collect();
        ops.sort_by(|a, b| b.self_ps.cmp(&a.self_ps).then_with(|| a.name.cmp(&b.name)));
        ops.truncate(TOP_OPS);
        let top = |it: &OpTime| TopOp {
            name: it.name.clone(),
            op_type: it.op_type.clone(),
            side: it.side,
            count: it.count,
            own: Dur(it.self_ps),
            share: it.self_share,
        };
        ops.into_iter().map(top).collect()
    }

    /// What holds most of a category, in the user's words where they are known.
    fn culprit(&self, category: &str) -> Option<Culprit> {
        match category {
            "compute" => self.slowest_kernel().or_else(|| self.slowest_op()),
            "input" => self.slowest_stage(),
            "compile" => self.longest(&[OpKind::Compile]),
            "output" => self.longest(&[OpKind::Save]),
            "collective" => self.longest(&[OpKind::Collective, OpKind::CopyPeer]),
            "runtime" => self.longest_runtime_call(),
            _ => None,
        }
    }

    /// The op whose kernels took most device time; its kernel's name where no op is known.
    fn slowest_kernel(&self) -> Option<Culprit> {
        let trace = self.trace();
        let mut times: BTreeMap<&str, i64> = BTreeMap::new();
        for sum in self.tables().model::<StreamSums>().iter().flat_map(|it| it.1) {
            if sum.kind == OpKind::Kernel {
                let detail = &trace.details[sum.detail.row()];
                let label = detail.op.or(detail.hlo_op).unwrap_or(sum.name);
                add(times.entry(trace.text(label)).or_default(), sum.total_ps);
            }
        }
        let slowest = slowest(times)?;
        let name = match OpName::parse(&slowest.name) {
            Some(op) if !op.name.ends_with(op.op_type) => format!("{} ({})", op.name, op.op_type),
            Some(op) => op.name.to_owned(),
            None => slowest.name,
        };
        Some(Culprit { name, share: slowest.share })
    }

    /// The op that took most time of the host itself, but for those that make input meanwhile.
    fn slowest_op(&self) -> Option<Culprit> {
        let pipeline = self.tables().model::<Pipeline>();
        let makes_input: BTreeSet<(&str, &str)> = pipeline
            .ops
            .iter()
            .filter_map(|&it| OpName::parse(self.trace().text(it)))
            .map(|it| (it.name, it.op_type))
            .collect();
        let mut times: BTreeMap<String, i64> = BTreeMap::new();
        for op in self.tables().get::<OpTime>().iter() {
            let op_type = op.op_type.as_deref().unwrap_or("");
            let computes = op.family != "tf.data"
                && OpKind::of_type(op_type) == OpKind::Op
                && !makes_input.contains(&(op.name.as_str(), op_type));
            if op.side == "host" && computes {
                let name = match op.name.ends_with(op_type) {
                    true => op.name.clone(),
                    false => format!("{} ({op_type})", op.name),
                };
                add(times.entry(name).or_default(), op.self_ps);
            }
        }
        slowest(times)
    }

    /// The stage of the input pipeline with most time of its own; a dataset's many files, each
    /// a stage with a number, count as one.
    fn slowest_stage(&self) -> Option<Culprit> {
        let mut stages: BTreeMap<String, i64> = BTreeMap::new();
        for op in self.tables().get::<OpTime>().iter().filter(|it| it.family == "tf.data") {
            add(stages.entry(without_indices(&op.name)).or_default(), op.self_ps);
        }
        slowest(stages)
    }

    /// The name that events of these kinds spend most time under.
    fn longest(&self, kinds: &[OpKind]) -> Option<Culprit> {
        let trace = self.trace();
        let mut names: BTreeMap<&str, i64> = BTreeMap::new();
        for track in &trace.tracks {
            let mut over = i64::MIN;
            for row in track.rows() {
                let event = EventId(row as u32);
                if kinds.contains(&trace.events.kind[row]) && trace.events.start[row].0 >= over {
                    over = trace.events.end(event).0;
                    // The call that compiles says more than the compiler's phases.
                    let call = trace.events.ancestors(event).take(DEEPEST).map(|it| trace.name(it));
                    let call = call.filter(|it| it.starts_with("PjitFunction(")).last();
                    let name = call.unwrap_or_else(|| trace.name(event));
                    add(names.entry(name).or_default(), trace.events.dur[row].0);
                }
            }
        }
        let longest = slowest(names)?;
        let name = longest.name.trim_start_matches("EagerLocalExecute: ").to_owned();
        Some(Culprit { name, share: longest.share })
    }

    fn longest_runtime_call(&self) -> Option<Culprit> {
        let calls = self.tables().get::<RuntimeCall>();
        let longest = calls.iter().find(|it| it.call.is_some())?;
        Some(Culprit { name: longest.call.clone()?, share: longest.share })
    }
}

/// Every category of the mean of some steps.
pub fn shares(mean: &Mean) -> Vec<Share> {
    let share = |(it, of): (&analyses::step_time::Category, i64)| Share {
        category: it.0,
        per_step: Dur(of),
        share: of as f64 / mean.dur_ps.max(1) as f64,
    };
    CATEGORIES.iter().zip(mean.of).map(share).collect()
}

fn step_facts(steps: &[Step]) -> Option<StepFacts> {
    let first = steps.first()?;
    // A host's steps lie together. Of hosts that differ, the one with most.
    let most = |test: fn(&Step) -> bool| {
        let hosts = steps.chunk_by(|a, b| a.host == b.host);
        hosts.map(|own| own.iter().filter(|it| test(it)).count()).max()
    };
    let count = most(Step::counts)?;
    let mut durs: Vec<i64> = steps.iter().filter(|it| it.counts()).map(|it| it.dur_ps).collect();
    let mean = durs.iter().map(|&it| it as f64).sum::<f64>() / durs.len().max(1) as f64;
    let squares: f64 = durs.iter().map(|&it| (it as f64 - mean).powi(2)).sum();
    let stdev = (durs.len() > 1).then(|| Dur((squares / (durs.len() - 1) as f64).sqrt() as i64));
    Some(StepFacts {
        count,
        found_by: first.found_by,
        marker: first.marker.clone(),
        confidence: steps.iter().map(|it| it.confidence).fold(1.0, f64::min),
        warmup_skipped: most(|it| it.warmup)?,
        partial: most(|it| !it.complete)?,
        mean: Dur(mean as i64),
        p95: Dur(percentile(&mut durs, 0.95)?),
        median: Dur(median(&mut durs)?),
        stdev,
    })
}

impl Report {
    /// The largest category.
    pub fn main(&self) -> Option<&Share> {
        largest(&self.breakdown)
    }
}

fn largest(breakdown: &[Share]) -> Option<&Share> {
    breakdown.iter().max_by(|a, b| a.share.total_cmp(&b.share))
}

/// Python's own limit; what nests deeper is nonsense, and would be climbed for every event.
const DEEPEST: usize = 1000;

/// Overlapping events of a broken profile can come to more than time has.
fn add(to: &mut i64, time: i64) {
    *to = to.saturating_add(time);
}

/// The largest, and its share of all.
fn slowest<K: Ord + Into<String>>(times: BTreeMap<K, i64>) -> Option<Culprit> {
    let all: f64 = times.values().map(|&it| it as f64).sum();
    let (name, time) = times.into_iter().max_by_key(|it| it.1)?;
    (time > 0).then(|| Culprit { name: name.into(), share: time as f64 / all })
}
