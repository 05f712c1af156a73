//! Opening many small files limits the pipeline.

use analyses::Tables;
use analyses::input_stage::pipeline::{Pipeline, Stage};
use analyses::what_if::Altered;

use crate::input::{Cause, blamed, named_within};
use crate::{Change, Fix, Prediction, Rule, Verdict};

rule! {
    /// The data lies in many small files, and opening them limits the input pipeline.
    ///
    /// ## Evidence
    /// The stage that limits the pipeline opens a file for every few elements.
    ///
    /// ## Fix
    /// Pack the data into fewer, larger files (some 100 MB each, for example as TFRecord). A parallel
    /// `interleave` over many tiny files can make it slower: opening stays, and threads take turns.
    ///
    /// ## When it is wrong
    /// A few large elements in each file, such as videos, take long to read in any format.
    pub struct InputSmallFiles = "input-small-files";
}

impl Rule for InputSmallFiles {
    fn check(&self, tables: &Tables) -> Verdict {
        blamed(
            tables,
            |it| matches!(it, Cause::SmallFiles(_)),
            |input, stage| {
                // A map reads a file for each element that it takes from the stage below.
                let below = |it: &&Stage| {
                    it.parent.is_some_and(|at| input.pipeline.stages[at].path == stage.path)
                };
                let taken =
                    input.pipeline.stages.iter().find(below).map_or(stage.calls, |it| it.calls);
                let files = if stage.reads_files() { stage.iterators } else { taken };
                let per_step = files as f64 / input.pipeline.n_steps.max(1) as f64;
                let what = match stage.reads_files() {
                    true => named_within(tables, stage),
                    false => format!("ReadFile in {}", named_within(tables, stage)),
                };
                let title = format!(
                    "Each step opens {per_step:.0} files and reads only a little from each, in {what}"
                );
                let packed =
                    Prediction::of(tables, &Altered::Cache(opener(&input.pipeline, stage)));
                input.finding(tables, title).fix(
                Fix::new(
                    Change::PackFiles,
                    "Pack the data into fewer, larger files: some 100 MB each, for example as TFRecord",
                )
                .gives(packed),
            )
            },
        )
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("is spent waiting for input")
    }
}

/// The stage whose work goes with the files: the outermost that opens them.
fn opener(pipeline: &Pipeline, reader: &Stage) -> String {
    let opens = |it: &&Stage| {
        it.works_in == reader.works_in
            && reader.path.starts_with(&it.path)
            && ["FlatMap", "Interleave", "ParallelInterleave"].contains(&it.plain_kind())
    };
    let outermost = pipeline.stages.iter().find(opens).unwrap_or(reader);
    outermost.path.clone()
}

#[cfg(test)]
mod tests {
    use super::InputSmallFiles;
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

    /// Every step opens 12 files, of one record each.
    fn picture(kind: &str) -> String {
        let mut text = PIPELINE.replace("KIND", "FlatMap");
        for step in 0..3 {
            let reads: Vec<String> = (0..12)
                .map(|it| {
                    let start = 100 * step + 4 + 6 * it;
                    let file = step * 12 + it;
                    format!("Iterator::Root::Batch::FlatMap[{file}]::{kind} {start}..{}", start + 5)
                })
                .collect();
            let next = format!("train#{}", step + 2);
            let both = format!("{}, {next}", reads.join(", "));
            text = match step {
                2 => text.trim_end().replace(
                    "\n        host/tf",
                    &format!(", {}\n        host/tf", reads.join(", ")),
                ),
                _ => text.replace(&next, &both),
            };
        }
        text
    }

    #[test]
    fn a_file_for_every_element_is_found() {
        let found = finding(&InputSmallFiles, &picture("TFRecord"));
        assert!(found.title.starts_with("Each step opens 12 files"), "{}", found.title);
    }

    #[test]
    fn iterators_that_read_no_files_are_clear() {
        assert_eq!(verdict(&InputSmallFiles, &picture("Range")), Verdict::Clear);
    }

    #[test]
    fn without_stages_it_cannot_know() {
        let picture = PIPELINE.replace("Iterator::Root", "Other");
        assert!(missing(&InputSmallFiles, &picture).contains("does not show the stages"));
    }
}
