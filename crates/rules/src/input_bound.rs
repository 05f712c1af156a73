//! Steps wait for input, whoever is to blame.

use analyses::Tables;

use crate::input::{Cause, SHARPER, input, named};
use crate::{Rule, Verdict};

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
        let stage = input.stage().map(|it| (named(it), it.path.clone()));
        let (title, change) = match (&stage, input.cause) {
            (Some((name, path)), Cause::Stage(_)) => {
                (format!("input waits for {name}"), format!("parallel {path}"))
            }
            (Some((name, _)), _) => (format!("input waits for {name}"), "without input".to_owned()),
            (None, _) => ("steps wait for input".to_owned(), "without input".to_owned()),
        };
        input
            .finding(tables, title, &change)
            .edit(
                "fetch ahead, and work in parallel",
                "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)\nds = ds.prefetch(tf.data.AUTOTUNE)",
            )
            .symptom_of(&SHARPER)
            .found()
    }
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
        assert_eq!(found.cost.0, 70_000_000);
        assert_eq!(found.evidence[0].text, "steps wait 70.00 µs for the next batch, 70 % of the step");
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
        assert_eq!(missing(&InputBound, "gpu0/s: k 0..1"), "no steps could be told apart");
    }
}
