//! Making a batch and training on it take turns.

use analyses::Tables;
use analyses::code_site::last_stage_site;
use analyses::what_if::Altered;
use trace::Dur;

use crate::dialect::Edit;
use crate::input::{Cause, blamed, named_within};
use crate::{Change, Fix, Prediction, Rule, Verdict};

rule! {
    /// Nothing is fetched ahead: making a batch and training on it take turns.
    ///
    /// ## Evidence
    /// The pipeline works in the time of the thread that asks for the batch, with no stage that
    /// buffers before it, and its work would fit in parallel to the rest of the step.
    ///
    /// ## Fix
    /// `prefetch(tf.data.AUTOTUNE)` as the last stage.
    ///
    /// ## When it is wrong
    /// With one core nothing can run in parallel.
    pub struct InputNoPrefetch = "input-no-prefetch";
}

impl Rule for InputNoPrefetch {
    fn check(&self, tables: &Tables) -> Verdict {
        blamed(
            tables,
            |it| matches!(it, Cause::NoPrefetch(_)),
            |input, stage| {
                let work = Dur(input.pipeline.consumer_ps());
                let title = format!(
                    "Nothing is prefetched: the step waits while each batch is made ({work}, most of it in {})",
                    named_within(tables, stage)
                );
                input.finding(tables, title).fix(
                    Fix::new(Change::Prefetch, "Make the next batch while this one is used")
                        .edit(Edit::Prefetch)
                        .gives(Prediction::of(tables, &Altered::Prefetch))
                        .at(last_stage_site(tables)),
                )
            },
        )
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("is spent waiting for input")
    }
}

#[cfg(test)]
mod tests {
    use super::InputNoPrefetch;
    use crate::Verdict;
    use crate::testing::{finding, missing, verdict};

    const PIPELINE: &str = "
        host/python: train#1 0..100, IteratorGetNext 0..40, Iterator::Root{cpu_budget=4} 1..39, \
        Iterator::Root::Batch 2..38, Iterator::Root::Batch::KIND 3..37, \
        train#2 100..200, IteratorGetNext 100..140, Iterator::Root 101..139, \
        Iterator::Root::Batch 102..138, Iterator::Root::Batch::KIND 103..137, \
        train#3 200..300, IteratorGetNext 200..240, Iterator::Root 201..239, \
        Iterator::Root::Batch 202..238, Iterator::Root::Batch::KIND 203..237
        host/tf_Compute: MatMul:MatMul 40..100, MatMul:MatMul 140..200, MatMul:MatMul 240..300
        ";

    #[test]
    fn taking_turns_is_found() {
        let found = finding(&InputNoPrefetch, &PIPELINE.replace("KIND", "Shuffle"));
        assert!(found.title.contains("the step waits while each batch is made"), "{}", found.title);
        let gain = found.gain.unwrap();
        assert!(1.2 < gain.speedup && gain.speedup < 1.7, "{gain:?}");
    }

    #[test]
    fn python_is_another_matter() {
        let picture = PIPELINE.replace("KIND", "Generator");
        assert_eq!(verdict(&InputNoPrefetch, &picture), Verdict::Clear);
    }

    #[test]
    fn without_stages_it_cannot_know() {
        let picture = PIPELINE.replace("Iterator::Root", "Other");
        assert!(missing(&InputNoPrefetch, &picture).contains("does not show the stages"));
    }
}
