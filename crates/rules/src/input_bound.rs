//! Steps wait for input, whoever is to blame.

use analyses::Tables;
use analyses::what_if::Altered;

use crate::dialect::Edit;
use crate::input::{Cause, Input, SHARPER, input, named_within};
use crate::{Change, Fix, Gain, Prediction, Rule, Verdict};

rule! {
    /// Steps wait for input.
    ///
    /// ## Evidence
    /// The share of the step in which the training waits for the next batch and nothing computes,
    /// and the stage of the pipeline that works longest.
    ///
    /// ## Fix
    /// Where the stage to blame can be told, a sharper rule says what to change. Else: fetch ahead
    /// (`prefetch`), work in parallel (`num_parallel_calls`), keep what does not change (`cache`).
    ///
    /// ## When it is wrong
    /// In the first steps, while buffers fill, and right after a new epoch begins.
    pub struct InputBound = "input-bound";
}

impl Rule for InputBound {
    fn check(&self, tables: &Tables) -> Verdict {
        let input = match input(tables) {
            Ok(it) => it,
            Err(verdict) => return verdict,
        };
        let wait = input.facts.per_step(input.facts.of("input"));
        let (title, prediction) = match (input.stage(), input.cause) {
            (Some(stage), Cause::Stage(_)) => (
                format!("Steps wait for {}: {wait}", named_within(tables, stage)),
                Prediction::of(tables, &Altered::Parallel(stage.path.clone())),
            ),
            (Some(stage), _) => {
                (format!("Steps wait for {}: {wait}", named_within(tables, stage)), hidden(&input))
            }
            (None, _) => (format!("Steps wait for input: {wait}"), hidden(&input)),
        };
        input
            .finding(tables, title)
            .fix(
                Fix::new(Change::Prefetch, "Prefetch, and map in parallel")
                    .edit(Edit::ParallelAndAhead)
                    .gives(prediction),
            )
            .symptom_of(&SHARPER)
            .found()
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("is spent waiting for input")
    }
}

/// Making input and using it take turns at worst: then the longer of the two stays. At best input
/// is hidden altogether.
fn hidden(input: &Input) -> Option<Prediction> {
    let step = input.facts.step.0;
    let wait = input.facts.of("input").0;
    let rest = (step - wait).max(1);
    let longer = rest.max(wait);
    (wait > 0).then(|| Gain::of_range(step, [longer, (longer + rest) / 2, rest]).into())
}

#[cfg(test)]
mod tests {
    use super::InputBound;
    use crate::testing::{finding, missing, verdict};
    use crate::{Severity, Verdict};

    #[test]
    fn waiting_for_batches_is_found() {
        let found = finding(
            &InputBound,
            "
            host/python: train#1 0..100, IteratorGetNext 0..70, train#2 100..200, \
            IteratorGetNext 100..170, train#3 200..300, IteratorGetNext 200..270
            gpu0/s: gemm 70..100, gemm 170..200, gemm 270..300
            ",
        );
        assert_eq!(found.severity, Severity::High);
        // From half of it, where nothing else gets faster, to all of it.
        let after = found.gain.unwrap().step_after(trace::Dur(100_000_000));
        let us = [after.low, after.likely, after.high].map(|it| it.0 / 1_000_000);
        assert_eq!((us, found.cost.0), ([30, 50, 70], 50_000_000));
        assert_eq!(found.evidence[0].text, "Each step waits 70 µs for its batch");
    }

    #[test]
    fn a_batch_that_is_there_is_clear() {
        let picture = "
            host/python: train#1 0..100, IteratorGetNext 0..1, train#2 100..200, \
            IteratorGetNext 100..101, train#3 200..300, IteratorGetNext 200..201
            gpu0/s: gemm 1..100, gemm 101..200, gemm 201..300
            ";
        assert_eq!(verdict(&InputBound, picture), Verdict::Clear);
    }

    #[test]
    fn without_steps_it_cannot_know() {
        assert_eq!(missing(&InputBound, "gpu0/s: k 0..1"), "no steps could be identified");
    }
}
