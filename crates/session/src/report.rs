//! The verdict on one run: its steps, where they go, and what stands out.
//!
//! Put together here once, so that the terminal, scripts and every other outlet say the same.

use analyses::run_info::{Device, devices, frameworks, window};
use analyses::step::{Step, median};
use analyses::step_time::{CATEGORIES, StepTime};
use trace::{Dur, Note, OpKind, TrackKind};

use crate::Session;

/// What is said of a run before anything is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub run: RunFacts,
    /// `None` where no steps could be told apart.
    pub steps: Option<StepFacts>,
    /// In the order of the contract; empty without steps.
    pub breakdown: Vec<Share>,
    /// Categories this profile cannot tell, and why.
    pub unknown: Vec<(&'static str, &'static str)>,
    pub notes: Vec<Note>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RunFacts {
    pub path: String,
    pub name: String,
    pub frameworks: Vec<&'static str>,
    pub hosts: Vec<String>,
    pub devices: Vec<Device>,
    pub window: Dur,
    pub events: usize,
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

/// A category's part of the step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    pub category: &'static str,
    pub per_step: Dur,
    pub share: f64,
}

impl Session {
    pub fn report(&self) -> Report {
        let trace = self.trace();
        Report {
            run: RunFacts {
                path: self.run.path.display().to_string(),
                name: self.run.name.clone(),
                frameworks: frameworks(trace),
                hosts: trace
                    .tracks_of(TrackKind::Host)
                    .map(|it| trace.track_name(it).to_owned())
                    .collect(),
                devices: devices(trace).into_iter().filter(|it| it.used).collect(),
                window: window(trace),
                events: trace.events.len(),
            },
            steps: step_facts(&self.tables().get::<Step>()),
            breakdown: self.breakdown(),
            unknown: self.unknown(),
            notes: trace.notes.clone(),
        }
    }

    fn breakdown(&self) -> Vec<Share> {
        let rows = self.tables().get::<StepTime>();
        let rows: Vec<&StepTime> = rows.iter().filter(|it| it.counts).collect();
        let unknown = self.unknown();
        let total: i128 = rows.iter().map(|it| i128::from(it.dur_ps)).sum();
        if total == 0 {
            return Vec::new();
        }
        let mut shares = Vec::new();
        for (category, of) in CATEGORIES {
            let sum: i128 = rows.iter().map(|it| i128::from(of(it))).sum();
            if sum != 0 || !unknown.iter().any(|it| it.0 == category) {
                let per_step = Dur((sum / rows.len() as i128) as i64);
                shares.push(Share { category, per_step, share: sum as f64 / total as f64 });
            }
        }
        shares
    }

    fn unknown(&self) -> Vec<(&'static str, &'static str)> {
        let trace = self.trace();
        let has = |kind| trace.tracks_of(kind).any(|it| !trace.tracks[it.row()].events.is_empty());
        let mut unknown = Vec::new();
        if !has(TrackKind::Stream) {
            let why = "no accelerator in this profile";
            unknown.extend([("transfer_in", why), ("transfer_out", why)]);
        }
        if !has(TrackKind::Thread) {
            let why = "no host events in this profile";
            let of_host = ["input", "compile", "python", "runtime", "output"];
            unknown.extend(of_host.map(|it| (it, why)));
        }
        unknown
    }
}

fn step_facts(steps: &[Step]) -> Option<StepFacts> {
    let first = steps.first()?;
    let hosts = {
        let mut hosts: Vec<&str> = steps.iter().map(|it| it.host.as_str()).collect();
        hosts.dedup();
        hosts
    };
    let of = |host: &str, test: &dyn Fn(&Step) -> bool| {
        steps.iter().filter(|it| it.host == host && test(it)).count()
    };
    let count = hosts.iter().map(|it| of(it, &Step::counts)).max()?;
    let mut durs: Vec<i64> = steps.iter().filter(|it| it.counts()).map(|it| it.dur_ps).collect();
    let mean = durs.iter().map(|&it| it as f64).sum::<f64>() / durs.len().max(1) as f64;
    let squares: f64 = durs.iter().map(|&it| (it as f64 - mean).powi(2)).sum();
    let stdev = (durs.len() > 1).then(|| Dur((squares / (durs.len() - 1) as f64).sqrt() as i64));
    Some(StepFacts {
        count,
        found_by: first.found_by,
        marker: first.marker.clone(),
        confidence: steps.iter().map(|it| it.confidence).fold(1.0, f64::min),
        warmup_skipped: hosts.iter().map(|it| of(it, &|it| it.warmup)).max()?,
        partial: hosts.iter().map(|it| of(it, &|it| !it.complete)).max()?,
        mean: Dur(mean as i64),
        p95: Dur(percentile(&mut durs, 0.95)?),
        median: Dur(median(&mut durs)?),
        stdev,
    })
}

/// The value below which a share of the others lies, between neighbours by proportion.
fn percentile(values: &mut [i64], share: f64) -> Option<i64> {
    values.sort_unstable();
    let at = share * values.len().checked_sub(1)? as f64;
    let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
    Some(low + ((high - low) as f64 * at.fract()).round() as i64)
}

impl Report {
    /// The largest category.
    pub fn main(&self) -> Option<&Share> {
        self.breakdown.iter().max_by(|a, b| a.share.total_cmp(&b.share))
    }
}

/// What a person would say that a category does.
pub fn in_words(category: &str) -> &'static str {
    match category {
        "input" => "wait for input",
        "transfer_in" => "copy to the device",
        "compile" => "trace and compile",
        "python" => "run Python",
        "runtime" => "are framework overhead on the host",
        "compute" => "compute",
        "collective" => "communicate",
        "transfer_out" => "copy from the device",
        "output" => "save",
        _ => "are unexplained idle time",
    }
}

/// Kinds of events that can be to blame for a category, to name the one that holds most of it.
pub fn kinds_of(category: &str) -> &'static [OpKind] {
    match category {
        "input" => &[OpKind::InputStage],
        "compile" => &[OpKind::Compile],
        "output" => &[OpKind::Save],
        "collective" => &[OpKind::Collective, OpKind::CopyPeer],
        "transfer_in" => &[OpKind::CopyIn],
        "transfer_out" => &[OpKind::CopyOut],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentiles_lie_between_neighbours() {
        assert_eq!(percentile(&mut [], 0.95), None);
        assert_eq!(percentile(&mut [7], 0.95), Some(7));
        assert_eq!(percentile(&mut [30, 10, 20], 0.5), Some(20));
        assert_eq!(percentile(&mut [0, 100], 0.95), Some(95));
    }
}
