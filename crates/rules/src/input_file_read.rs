//! Reading files limits the pipeline.

use analyses::Tables;

use crate::input::{Cause, blamed, named};
use crate::samples::Samples;
use crate::{Finding, Gain, Rule, Verdict};

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
        blamed(tables, |it| matches!(it, Cause::FileRead(_)), |input, stage| {
        let title = format!("reading limits the input: {} takes {} a step", named(stage), trace::Dur(stage.work_ps));
        let change = format!("parallel {}", stage.path);
        // Read side by side; at best there is hardly anything left to read or unpack.
        let gone = Gain::of_change(tables, &format!("without {}", stage.path));
        let finding = input.finding(tables, title, &change);
        let gain = finding.gain.map(|it| Gain { high: gone.map_or(it.high, |gone| it.high.max(gone.high)), ..it });
        let samples = Samples::of(tables);
        let storage = samples.as_ref().and_then(Samples::of_storage);
        let finding = storage.into_iter().fold(finding, Finding::evidence);
        let finding = match samples.as_ref().and_then(Samples::read_from_afar) {
            Some((at, kind)) => finding.fix(format!(
                "copy the files to a local disk before training: {at} is {kind}, behind a network"
            )),
            None => finding,
        };
        finding
            .gain(gain)
            .edit(
                "read several files at once, and fetch ahead",
                "ds = files.interleave(tf.data.TFRecordDataset,\n                      num_parallel_calls=tf.data.AUTOTUNE)",
            )
            .fix("store the files uncompressed if they are compressed: one thread unpacks each")
        })
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
            .map(|it| format!("Iterator::Root::Batch::FlatMap[1]::{kind} {}..{}", 3.1 + 0.5 * f64::from(it), 3.5 + 0.5 * f64::from(it)))
            .collect();
        text.replace("train#2", &format!("{}, train#2", reads.join(", ")))
    }

    #[test]
    fn a_slow_reader_is_found() {
        let found = finding(&InputFileRead, &picture("TFRecord"));
        assert!(found.title.starts_with("reading limits the input: Batch ▸ FlatMap ▸ TFRecord"));
    }

    #[test]
    fn a_range_reads_no_file() {
        assert_eq!(verdict(&InputFileRead, &picture("Range")), Verdict::Clear);
    }

    #[test]
    fn without_stages_it_cannot_know() {
        let picture = PIPELINE.replace("Iterator::Root", "Other");
        assert!(missing(&InputFileRead, &picture).contains("no events of the input pipeline"));
    }
}
