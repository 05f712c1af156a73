//! What is on the timeline: tracks, steps, and what the kinds of events mean.

use analyses::step::Step;
use analyses::step_time::category;
use trace::{OpKind, TrackId, TrackKind};

use super::{Steps, Timeline};

/// All of a timeline but its events.
#[derive(Debug, Clone, PartialEq)]
pub struct Overview {
    pub start_ps: i64,
    pub end_ps: i64,
    /// By the number that a span's kind has.
    pub kinds: Vec<Kind>,
    /// Parents first; a track's place is its number.
    pub tracks: Vec<TrackMark>,
    /// Host by host, by time.
    pub steps: Vec<StepMark>,
    /// Which of `steps` took the median time, of those that count where any do.
    pub typical_step: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    pub name: &'static str,
    pub category: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TrackMark {
    pub id: TrackId,
    pub parent: Option<TrackId>,
    pub kind: TrackKind,
    pub name: String,
    pub n_events: u32,
    /// Rows of spans.
    pub lanes: usize,
    /// When its first event or sample is, and when its last one ends.
    pub first_ps: Option<i64>,
    pub last_ps: Option<i64>,
    /// Whether it is a thread that drives the steps.
    pub driving: bool,
    pub counter: Option<Counter>,
}

/// The values of a track.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counter {
    pub n: usize,
    pub min: f64,
    pub max: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepMark {
    /// The track of the host.
    pub host: TrackId,
    pub step: i64,
    pub start_ps: i64,
    pub dur_ps: i64,
    /// Whether statistics rest on it.
    pub counts: bool,
}

impl Timeline {
    pub fn overview(&self) -> Overview {
        let trace = self.trace();
        let steps = Steps::new(&self.tables);
        let mut driving: Vec<i64> = steps.table.iter().map(|it| it.track).collect();
        driving.sort_unstable();
        driving.dedup();
        let ids = (0..trace.tracks.len() as u32).map(TrackId);
        let tracks: Vec<TrackMark> = ids.map(|it| self.track(it, &driving)).collect();

        // Samples go on for as long as the run does, and stretch no timeline that has events.
        let with_events = tracks.iter().any(|it| it.n_events > 0);
        let timed = || tracks.iter().filter(|it| it.n_events > 0 || !with_events);
        let start_ps = timed().filter_map(|it| it.first_ps).min().unwrap_or(0);
        let end_ps = timed().filter_map(|it| it.last_ps).max().unwrap_or(0);
        let window_ps = trace.window.map_or(0, |it| it.0);

        let marks = steps.hosts.iter().flat_map(|(host, rows)| {
            let steps = steps.table.get(rows.clone()).unwrap_or_default();
            steps.iter().map(|it| StepMark::of(it, *host))
        });
        let marks: Vec<StepMark> = marks.collect();
        Overview {
            start_ps: start_ps.min(0),
            end_ps: end_ps.max(window_ps),
            kinds: OpKind::ALL.map(|it| Kind { name: it.name(), category: category(it) }).to_vec(),
            tracks,
            typical_step: typical(&marks),
            steps: marks,
        }
    }

    fn track(&self, id: TrackId, driving: &[i64]) -> TrackMark {
        let trace = self.trace();
        let track = &trace.tracks[id.row()];
        let lanes = &self.lanes[id.row()];
        let samples = self.samples(id);
        let (mut first_ps, mut last_ps) = (None, None);
        if !track.events.is_empty() {
            first_ps = Some(trace.events.start[track.rows().start].0);
            last_ps = Some(lanes.last_ps);
        } else if let Some(samples) = samples.map(|it| &trace.counters[it.rows.clone()]) {
            first_ps = samples.first().map(|it| it.time.0);
            last_ps = samples.last().map(|it| it.time.0);
        }
        TrackMark {
            id,
            parent: track.parent,
            kind: track.kind,
            name: trace.text(track.name).to_owned(),
            n_events: track.events.len() as u32,
            lanes: lanes.len(),
            first_ps,
            last_ps,
            driving: track.kind == TrackKind::Thread
                && driving.binary_search(&i64::from(id.0)).is_ok(),
            counter: samples.map(|it| {
                let n = it.rows.len();
                let (min, max) = it.bounds(trace, 0..n);
                Counter { n, min, max }
            }),
        }
    }
}

impl StepMark {
    fn of(step: &Step, host: TrackId) -> StepMark {
        StepMark {
            host,
            step: step.step,
            start_ps: step.start_ps,
            dur_ps: step.dur_ps,
            counts: step.counts(),
        }
    }
}

/// The step of median duration: of an even number the shorter of the two in the middle.
fn typical(steps: &[StepMark]) -> Option<usize> {
    let any_counts = steps.iter().any(|it| it.counts);
    let mut by_time: Vec<usize> =
        (0..steps.len()).filter(|&it| steps[it].counts || !any_counts).collect();
    let middle = by_time.len().checked_sub(1)? / 2;
    let (_, typical, _) = by_time.select_nth_unstable_by_key(middle, |&it| (steps[it].dur_ps, it));
    Some(*typical)
}
