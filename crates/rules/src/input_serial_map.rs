//! A `map` of the pipeline uses fewer cores than there are.

use analyses::Tables;
use analyses::code_site::site_of_stage;
use analyses::what_if::Altered;
use trace::Dur;

use crate::dialect::Edit;
use crate::input::{Cause, blamed, named};
use crate::{Change, Finding, Fix, Prediction, Rule, Verdict};

rule! {
    /// A `map` of the input pipeline runs on one thread.
    ///
    /// ## Evidence
    /// The slowest stage of the pipeline is a `map` without `num_parallel_calls` (TensorFlow may
    /// have fused it: `MapAndBatch` with a parallelism of 1).
    ///
    /// ## Fix
    /// `num_parallel_calls=tf.data.AUTOTUNE`, and `prefetch` at the end. If the result is the same
    /// in every epoch and fits in memory, `cache()` after the map.
    ///
    /// ## When it is wrong
    /// Where the function waits for a lock, such as Python's, more calls at once gain nothing.
    /// `cache()` is wrong after random augmentation: every epoch would see the same images.
    pub struct InputSerialMap = "input-serial-map";
}

impl Rule for InputSerialMap {
    fn check(&self, tables: &Tables) -> Verdict {
        blamed(
            tables,
            |it| matches!(it, Cause::SerialMap(_)),
            |input, stage| {
                let threads = match stage.parallelism {
                    Some(n) if n > 1 => format!("{n} threads"),
                    _ => "one thread".to_owned(),
                };
                let cores = input.pipeline.cores.map(|it| format!(" of {it} cores"));
                let title = format!(
                    "{} runs on {threads}{} and needs {} of CPU per step",
                    named(tables, stage),
                    cores.unwrap_or_default(),
                    Dur(stage.work_ps),
                );
                let parallel = Prediction::of(tables, &Altered::Parallel(stage.path.clone()));
                let finding = input.finding(tables, title).fix(
                    Fix::new(Change::ParallelMap, "Map in parallel, and prefetch")
                        .edit(Edit::ParallelMap)
                        .gives(parallel)
                        .at(site_of_stage(tables, stage)),
                );
                input.cached(tables, stage).into_iter().fold(finding, Finding::fix)
            },
        )
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("is spent waiting for input")
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
        assert_eq!(
            found.title,
            "The input stage Batch ▸ Map runs on one thread of 4 cores and needs 74 µs of CPU per step"
        );
        // Four cores share 74 µs of mapping and 20 of computing.
        let parallel = found.fix[0].gain.unwrap();
        assert!(
            parallel.low < 2.0 && 2.5 < parallel.speedup && 3.5 < parallel.high,
            "{parallel:?}"
        );
        // Nothing is left of it in the second epoch.
        let cached = found.fix[1].gain.unwrap();
        assert!(cached.speedup > parallel.speedup, "{cached:?}");
        assert_eq!(found.gain, Some(cached));
    }

    #[test]
    fn nothing_is_cached_behind_an_endless_repeat() {
        let picture = PIPELINE
            .replace("::KIND 3..77", "::Map 3..77, Iterator::Root::Batch::Map::ForeverRepeat 4..5")
            .replace("KIND", "Map");
        let cached = &finding(&InputSerialMap, &picture).fix[1];
        assert_eq!(cached.edit.as_deref(), Some("ds = ds.map(f).cache().repeat()"));
    }

    #[test]
    fn reading_is_no_map() {
        let picture = PIPELINE.replace("KIND", "TFRecord");
        assert_eq!(verdict(&InputSerialMap, &picture), Verdict::Clear);
    }

    #[test]
    fn without_stages_it_cannot_know() {
        let picture = PIPELINE.replace("Iterator::Root", "Other");
        assert!(missing(&InputSerialMap, &picture).contains("does not show the stages"));
    }
}
