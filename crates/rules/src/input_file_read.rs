//! Reading files limits the pipeline.

use analyses::Tables;
use analyses::what_if::Altered;
use trace::Dur;

use crate::dialect::Edit;
use crate::input::{Cause, blamed, named_within};
use crate::samples::Samples;
use crate::{Change, Finding, Fix, Gain, Prediction, Rule, Verdict};

rule! {
    /// Reading files limits the input pipeline.
    ///
    /// ## Evidence
    /// The stage that limits the pipeline reads records, and there are many of them in a file. Where
    /// it was sampled, what the disks delivered, how long something waited for them, and which file
    /// systems the files lie on.
    ///
    /// ## Fix
    /// Read several files at once with `interleave(num_parallel_calls=…)`; store them uncompressed
    /// where reading is decompressing; put them on a faster disk.
    ///
    /// ## When it is wrong
    /// Where the disk or the network is the limit, reading side by side wins less than the cores
    /// would allow.
    pub struct InputFileRead = "input-file-read";
}

impl Rule for InputFileRead {
    fn check(&self, tables: &Tables) -> Verdict {
        blamed(
            tables,
            |it| matches!(it, Cause::FileRead(_)),
            |input, stage| {
                let title = format!(
                    "Reading files limits the input: {} needs {} per step",
                    named_within(tables, stage),
                    Dur(stage.work_ps)
                );
                let samples = Samples::of(tables);
                let storage = samples.as_ref().and_then(Samples::of_storage);
                let finding =
                    storage.into_iter().fold(input.finding(tables, title), Finding::evidence);
                let parallel = Prediction::of(tables, &Altered::Parallel(stage.path.clone()));
                // At best there is hardly anything left to read or unpack.
                let gone = Gain::of_change(tables, &Altered::WithoutStage(stage.path.clone()));
                let parallel = parallel.map(|it| {
                    let high = gone.map_or(it.gain.high, |gone| it.gain.high.max(gone.high));
                    Prediction { gain: Gain { high, ..it.gain }, ..it }
                });
                let finding = finding.fix(
                    Fix::new(
                        Change::ParallelInterleave,
                        "Read several files at the same time, and prefetch",
                    )
                    .edit(Edit::ParallelReads)
                    .gives(parallel),
                );
                let storage = "it depends on how fast the other storage is";
                let finding = match samples.as_ref().and_then(Samples::read_from_afar) {
                Some((at, kind)) => finding.fix(
                    Fix::new(
                        Change::FasterStorage,
                        format!("Copy the files to a local disk before training: {at} is {kind}, behind a network"),
                    )
                    .untold(storage),
                ),
                None => finding,
            };
                finding.fix(
                Fix::new(
                    Change::FasterStorage,
                    "If the files are compressed, store them uncompressed: each is unpacked by one thread",
                )
                .untold("the profile does not show how much of the reading is unpacking"),
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
    use super::InputFileRead;
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

    /// A file of many records: one iterator asked very often.
    fn picture(kind: &str) -> String {
        let mut text = PIPELINE.replace("Batch::KIND 3..77", "Batch::FlatMap 3..77");
        text = text.replace("Batch::KIND", "Batch::FlatMap");
        let reads: Vec<String> = (0..140)
            .map(|it| {
                format!(
                    "Iterator::Root::Batch::FlatMap[1]::{kind} {}..{}",
                    3.1 + 0.5 * f64::from(it),
                    3.5 + 0.5 * f64::from(it)
                )
            })
            .collect();
        text.replace("train#2", &format!("{}, train#2", reads.join(", ")))
    }

    #[test]
    fn a_slow_reader_is_found() {
        let found = finding(&InputFileRead, &picture("TFRecord"));
        assert!(found.title.starts_with(
            "Reading files limits the input: the input stage Batch ▸ FlatMap ▸ TFRecord"
        ));
    }

    #[test]
    fn a_range_reads_no_file() {
        assert_eq!(verdict(&InputFileRead, &picture("Range")), Verdict::Clear);
    }

    #[test]
    fn without_stages_it_cannot_know() {
        let picture = PIPELINE.replace("Iterator::Root", "Other");
        assert!(missing(&InputFileRead, &picture).contains("does not show the stages"));
    }
}
