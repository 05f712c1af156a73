//! A `map` of the pipeline uses fewer cores than there are.

use analyses::Tables;

use crate::input::{Cause, blamed, named};
use crate::{Rule, Verdict};

rule! {
    /// A `map` of the input pipeline runs on one thread.
    ///
    /// ## Evidence
    /// The stage that limits the pipeline is a `map` without `num_parallel_calls` (TensorFlow may
    /// have fused it: `MapAndBatch` with a parallelism of 1).
    ///
    /// ## Fix
    /// `num_parallel_calls=tf.data.AUTOTUNE`, and `prefetch` at the end.
    ///
    /// ## When it is wrong
    /// Where the function waits for a lock, as Python does, more calls at once win nothing.
    pub struct InputSerialMap = "input-serial-map";
}

impl Rule for InputSerialMap {
    fn check(&self, tables: &Tables) -> Verdict {
        blamed(tables, |it| matches!(it, Cause::SerialMap(_)), |input, stage| {
        let title = format!(
            "{} runs {} of {} cores and takes {} a step",
            named(stage),
            match stage.parallelism {
                Some(n) if n > 1 => format!("on {n}"),
                _ => "on one".to_owned(),
            },
            input.pipeline.cores.map_or("several".to_owned(), |it| it.to_string()),
            trace::Dur(stage.work_ps),
        );
        let change = format!("parallel {}", stage.path);
        input
            .finding(tables, title, &change)
            .edit(
                "map in parallel, and fetch ahead",
                "ds = ds.map(f, num_parallel_calls=tf.data.AUTOTUNE)\nds = ds.batch(n).prefetch(tf.data.AUTOTUNE)",
            )
            .fix("or keep its result with cache(), if it is the same in every epoch and fits in memory")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::InputSerialMap;
    use crate::Verdict;
    use crate::testing::{finding, missing, verdict};

    const PIPELINE: &str = "
        host/python: train#1 0..100, IteratorGetNext 0..80, Iterator::Root{cpu_budget=4} 1..79, \
        Iterator::Root::Batch 2..78, Iterator::Root::Batch::KIND 3..77, \
        train#2 100..200, IteratorGetNext 100..180, Iterator::Root 101..179, \
        Iterator::Root::Batch 102..178, Iterator::Root::Batch::KIND 103..177, \
        train#3 200..300, IteratorGetNext 200..280, Iterator::Root 201..279, \
        Iterator::Root::Batch 202..278, Iterator::Root::Batch::KIND 203..277
        host/tf_Compute: MatMul:MatMul 80..100, MatMul:MatMul 180..200, MatMul:MatMul 280..300
        ";

    #[test]
    fn a_map_without_parallel_calls_is_found() {
        let found = finding(&InputSerialMap, &PIPELINE.replace("KIND", "Map"));
        assert_eq!(found.title, "Batch ▸ Map runs on one of 4 cores and takes 74.00 µs a step");
        let gain = found.gain.unwrap();
        // Four cores share 74 µs of mapping and 20 of computing.
        assert!(gain.low < 2.0 && 2.5 < gain.speedup && 4.0 < gain.high, "{gain:?}");
    }

    #[test]
    fn reading_is_no_map() {
        let picture = PIPELINE.replace("KIND", "TFRecord");
        assert_eq!(verdict(&InputSerialMap, &picture), Verdict::Clear);
    }

    #[test]
    fn without_stages_it_cannot_know() {
        let picture = PIPELINE.replace("Iterator::Root", "Other");
        assert!(missing(&InputSerialMap, &picture).contains("no events of the input pipeline"));
    }
}
