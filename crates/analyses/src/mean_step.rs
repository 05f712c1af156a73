//! The mean step: what the report's bar shows, and every gain counts from.

use trace::{Trace, TrackKind};

use crate::run_info::Hidden;
use crate::step::median;
use crate::step_time::{CATEGORIES, StepTime};
use crate::{Analysis, Model, Tables};

table! {
    /// The mean of the steps that count, by category.
    ///
    /// The rows add to the step, to the picosecond: each is rounded so that all before it and it
    /// are together as long as they were measured.
    pub struct MeanStep = "mean_step" {
        /// One of the ten categories of a step.
        category: &'static str,
        /// Time in a step; absent where the profile cannot tell.
        per_step_ps: Option<i64>,
        /// Of the step.
        share: Option<f64>,
        /// Why it cannot be told.
        unknown: Option<&'static str>,
    }
}

impl Analysis for MeanStep {
    fn run(tables: &Tables) -> Vec<MeanStep> {
        let Some(mean) = Mean::of(tables) else { return Vec::new() };
        let unknown = unknown(tables.trace());
        let row = |(category, per_step_ps): (&'static str, i64)| {
            let unknown = unknown.iter().find(|it| it.0 == category && per_step_ps == 0);
            let known = unknown.is_none();
            MeanStep {
                category,
                per_step_ps: known.then_some(per_step_ps),
                share: known.then_some(per_step_ps as f64 / mean.dur_ps.max(1) as f64),
                unknown: unknown.map(|it| it.1),
            }
        };
        CATEGORIES.iter().map(|it| it.0).zip(mean.of).map(row).collect()
    }
}

/// The mean of some steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mean {
    pub n_steps: usize,
    pub dur_ps: i64,
    pub median_ps: i64,
    /// In the order of [`CATEGORIES`].
    pub of: [i64; CATEGORIES.len()],
    /// Whether an accelerator computes in any of them.
    pub on_device: bool,
}

impl Mean {
    /// Of all steps that count; `None` where there are none.
    pub fn of(tables: &Tables) -> Option<Mean> {
        tables.model::<Asked>().0
    }

    /// The same of one host's steps.
    pub fn of_host(tables: &Tables, host: &str) -> Option<Mean> {
        Mean::of_chosen(tables, |it| it.host == host)
    }

    pub fn category(&self, category: &str) -> i64 {
        CATEGORIES.iter().position(|it| it.0 == category).map_or(0, |it| self.of[it])
    }

    /// The same of steps that are chosen, of those that count.
    pub fn of_chosen(tables: &Tables, is_chosen: impl Fn(&StepTime) -> bool) -> Option<Mean> {
        Mean::over(tables.get::<StepTime>().iter().filter(|it| it.counts && is_chosen(it)))
    }

    fn over<'a>(rows: impl Iterator<Item = &'a StepTime>) -> Option<Mean> {
        let mut durs = Vec::new();
        let mut sums = [0_i128; CATEGORIES.len()];
        let mut on_device = false;
        for row in rows {
            durs.push(row.dur_ps);
            on_device |= row.device != "cpu";
            for (sum, category) in sums.iter_mut().zip(CATEGORIES) {
                *sum += i128::from(category.1(row));
            }
        }
        let n = durs.len() as i128;
        let mut until = 0;
        let of = sums.map(|sum| {
            let from = until;
            until += sum;
            (until.checked_div(n).unwrap_or(0) - from.checked_div(n).unwrap_or(0)) as i64
        });
        let dur_ps = durs.iter().map(|&it| i128::from(it)).sum::<i128>().checked_div(n)? as i64;
        let median_ps = median(&mut durs)?;
        Some(Mean { n_steps: durs.len(), dur_ps, median_ps, of, on_device })
    }
}

/// Added up once.
struct Asked(Option<Mean>);

impl Model for Asked {
    fn build(tables: &Tables) -> Asked {
        Asked(Mean::over(tables.get::<StepTime>().iter().filter(|it| it.counts)))
    }
}

/// Categories of which this profile can tell nothing, and why.
pub fn unknown(trace: &Trace) -> Vec<(&'static str, &'static str)> {
    if trace.events.is_empty() {
        return Vec::new();
    }
    let has = |kind| trace.tracks_of(kind).any(|it| !trace.tracks[it.row()].events.is_empty());
    let mut unknown = Vec::new();
    if !has(TrackKind::Stream) {
        let hidden = Hidden::of(trace);
        unknown.extend(hidden.map(|it| ("compute", it.why())));
        let why = match hidden {
            Some(Hidden::OnAccelerator) => Hidden::OnAccelerator.why(),
            _ => "this profile shows no accelerator",
        };
        unknown.extend([("transfer_in", why), ("transfer_out", why)]);
    }
    if !has(TrackKind::Thread) {
        let why = "this profile has no host events";
        let of_host = ["input", "compile", "python", "runtime", "output"];
        unknown.extend(of_host.map(|it| (it, why)));
    }
    unknown
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;

    use super::{Mean, MeanStep};
    use crate::Tables;

    #[test]
    fn categories_add_to_the_step() {
        let picture = "
            host/python: train#1 0..100, IteratorGetNext 0..31, train#2 100..201, \
            IteratorGetNext 100..132, train#3 201..304, IteratorGetNext 201..233
        ";
        let tables = Tables::new(Arc::new(draw(picture)));
        let mean = Mean::of(&tables).unwrap();
        assert_eq!(mean.n_steps, 3);
        assert_eq!(mean.of.iter().sum::<i64>(), mean.dur_ps);
        let rows = tables.get::<MeanStep>();
        let of = |name: &str| rows.iter().find(|it| it.category == name).unwrap().clone();
        assert_eq!(of("input").per_step_ps, Some(mean.category("input")));
        assert!(mean.category("input") > 0, "{mean:?}");
        assert_eq!(of("transfer_in").per_step_ps, None);
        assert_eq!(of("transfer_in").unknown, Some("this profile shows no accelerator"));
    }

    #[test]
    fn without_steps_there_is_no_mean() {
        let tables = Tables::new(Arc::new(draw("host/python: f 0..100")));
        assert_eq!(Mean::of(&tables), None);
        assert_eq!(tables.get::<MeanStep>().len(), 0);
    }
}
