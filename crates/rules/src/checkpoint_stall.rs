//! Saving holds the training.

use std::collections::BTreeMap;

use analyses::Tables;
use analyses::code_site::Doing;
use analyses::step_time::StepTime;
use analyses::what_if::Altered;
use trace::{Dur, EventId, OpKind};

use crate::dialect::Edit;
use crate::facts::{MOST_ROWS, NO_STEPS, facts};
use crate::lines::{line_of_loop, rows_at};
use crate::{Change, Evidence, Finding, Fix, Prediction, Rule, Verdict, WORTH_SAYING};

rule! {
    /// Training stops while a checkpoint or a summary is written.
    ///
    /// ## Evidence
    /// Steps in which a save runs (`SaveV2`, `MergeV2Checkpoints`, summary writers), and how much
    /// longer they are than the others.
    ///
    /// ## Fix
    /// Save less often, or in the background:
    /// `tf.train.CheckpointOptions(enable_async=True)`, Orbax' `AsyncCheckpointer`.
    ///
    /// ## When it is wrong
    /// A capture of a few steps around a save that happens every thousand makes it look expensive:
    /// the cost is for the captured steps. `CheckpointOptions(enable_async=True)` raises an error
    /// with Keras 3 models.
    pub struct CheckpointStall = "checkpoint-stall";
}

/// A step writes where it writes for longer than one part in so many of what the mean step does.
/// Source: choice, a guess: a tenth.
const PART_OF_MEAN: i64 = 10;
/// As many events are shown.
/// Source: choice, one screen is more than enough.
const MOST_EVENTS: usize = 10;

/// A summary is written once in so many steps, as the printed edit says.
/// Source: choice, a curve of a thousand points for a hundred thousand steps.
const SUMMARY_EVERY: u32 = 100;
/// A checkpoint is written once in so many steps, as the printed edit says.
/// Source: choice, minutes between two of them where a step takes a tenth of a second.
const SAVE_EVERY: u32 = 1000;

impl Rule for CheckpointStall {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        let cost = facts.of("output");
        let share = facts.share("output");
        if share < WORTH_SAYING {
            return Verdict::Clear;
        }
        let steps = tables.get::<StepTime>();
        let steps: Vec<&StepTime> = steps.iter().filter(|it| it.counts).collect();
        let (saving, others): (Vec<&StepTime>, Vec<&StepTime>) =
            steps.iter().partition(|it| it.output_ps * PART_OF_MEAN > cost.0);
        let mean = |of: &[&StepTime]| {
            of.iter().map(|it| it.dur_ps).sum::<i64>() / i64::try_from(of.len()).unwrap_or(1).max(1)
        };
        let (name, events) = largest_save(tables);
        let writes = if is_summary(&name) { "summaries" } else { "a checkpoint" };
        let title = match others.is_empty() {
            true => format!("Every step writes {writes}: {}", facts.per_step(cost)),
            false => format!(
                "{} of {} steps write {writes} ({} each)",
                saving.len(),
                steps.len(),
                Dur(saving.iter().map(|it| it.output_ps).sum::<i64>() / saving.len().max(1) as i64),
            ),
        };
        let mut finding = Finding::new(title, cost, facts.step);
        if !others.is_empty() && !saving.is_empty() {
            let text = format!(
                "Steps that save take {}, the others {}",
                Dur(mean(&saving)),
                Dur(mean(&others))
            );
            let rows = tables.get::<StepTime>();
            let at = (0..rows.len())
                .filter(|&it| rows[it].counts && rows[it].output_ps * PART_OF_MEAN > cost.0);
            finding = finding
                .evidence(Evidence::text(text).steps("output", at.take(MOST_ROWS).collect()));
        }
        finding = finding.evidence(
            Evidence::text(format!("Most of that time is spent in {name}")).events(events),
        );
        let site = line_of_loop(tables, Doing::Saving).map(|it| it.site);
        if let Some(it) = &site {
            let text = format!("It is called from {}", it.place());
            finding =
                finding.evidence(Evidence::text(text).rows("python_line", rows_at(tables, it)));
        }
        let less_often = Prediction::of(tables, &Altered::Without("output"));
        if is_summary(&name) {
            return finding
                .fix(
                    Fix::new(Change::EveryNSteps, "Write summaries every 100th step")
                        .edit(Edit::SummarySeldom)
                        .gives(less_often)
                        .at(site)
                        .amount(SUMMARY_EVERY),
                )
                .found();
        }
        finding
            .fix(
                Fix::new(
                    Change::EveryNSteps,
                    "Save less often: every few minutes, not every few steps",
                )
                .edit(Edit::SaveSeldom)
                .gives(less_often)
                .at(site)
                .amount(SAVE_EVERY),
            )
            .fix(
                Fix::new(Change::InBackground, "Or write in the background")
                    .edit(Edit::SaveInBackground)
                    .untold("what stays in the step depends on how the state is copied"),
            )
            .found()
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("is spent saving")
    }
}

fn is_summary(name: &str) -> bool {
    name.contains("Summary")
}

/// What saves longest, and some of its events.
fn largest_save(tables: &Tables) -> (String, Vec<EventId>) {
    let trace = tables.trace();
    let mut saves: BTreeMap<&str, (i64, Vec<EventId>)> = BTreeMap::new();
    for track in trace.track_ids() {
        for row in trace.rows_of(track, OpKind::Save) {
            let event = EventId(row as u32);
            let name = trace.name(event).trim_start_matches("EagerLocalExecute: ");
            let name = name.rsplit(':').next().unwrap_or(name);
            let sum = saves.entry(name).or_default();
            sum.0 += trace.events.dur[row].0;
            if sum.1.len() < MOST_EVENTS {
                sum.1.push(event);
            }
        }
    }
    let largest = saves.into_iter().max_by_key(|it| it.1.0);
    largest.map_or(("a save".to_owned(), Vec::new()), |it| (it.0.to_owned(), it.1.1))
}

#[cfg(test)]
mod tests {
    use super::CheckpointStall;
    use crate::Verdict;
    use crate::testing::{finding, in_loop, missing, verdict};

    fn picture(save: &str) -> String {
        let mut text = "host/python: ".to_owned();
        let mut at = 0;
        for step in 0..7 {
            let saves = step % 3 == 1;
            let dur = if saves { 400 } else { 100 };
            text += &format!("train#{step} {at}..{}, EagerExecute {at}..{}, ", at + dur, at + 99);
            if saves {
                text += &format!("EagerLocalExecute: {save} {}..{}, ", at + 100, at + 399);
            }
            at += dur;
        }
        text + "x 0..1"
    }

    #[test]
    fn every_third_step_saves() {
        let found = finding(&CheckpointStall, &picture("SaveV2"));
        assert!(
            found.title.starts_with("2 of 7 steps write a checkpoint (300 µs each)"),
            "{}",
            found.title
        );
        let gain = found.gain.unwrap();
        // Taking the saves away leaves 700 of 700 + 600 µs; an undisturbed host is faster still.
        assert!(gain.low < gain.speedup && gain.speedup < gain.high, "{gain:?}");
        assert_eq!(found.cost.0 / 1_000_000, 85, "600 µs over seven steps");
    }

    #[test]
    fn the_line_that_saves_is_named() {
        let file = "/home/me/train.py";
        let found = in_loop(&CheckpointStall, &picture("SaveV2"), &[(file, "main", 45)]);
        assert!(found.evidence.iter().any(|it| it.text == "It is called from train.py:45"));
        let fix = &found.fix[0];
        assert_eq!((fix.site.as_ref().unwrap().line, fix.amount), (45, Some(1000)));
    }

    #[test]
    fn other_ops_do_not_save() {
        assert_eq!(verdict(&CheckpointStall, &picture("MatMul")), Verdict::Clear);
    }

    #[test]
    fn without_steps_it_cannot_know() {
        assert_eq!(missing(&CheckpointStall, "gpu0/s: k 0..1"), "no steps could be identified");
    }
}
