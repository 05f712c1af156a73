//! The input pipeline is Python, which runs one thread at a time.

use analyses::Tables;
use analyses::python_line::PythonLine;
use analyses::what_if::Altered;
use trace::Dur;

use crate::dialect::Edit;
use crate::facts::MOST_NAMED;
use crate::input::{Cause, blamed, input, named};
use crate::lines::{busiest, line_in_words, place};
use crate::{Change, Evidence, Fix, Gain, Prediction, Rule, Verdict, loader};

rule! {
    /// Batches are made in Python.
    ///
    /// ## Evidence
    /// Most of what limits the pipeline is time in Python: a generator (`from_generator`, a Keras
    /// `PyDataset`), `tf.py_function` or `tf.numpy_function`. Where stacks were sampled, the
    /// function and its busiest lines are named.
    ///
    /// ## Fix
    /// Write it with TensorFlow ops in a parallel `map`, or precompute it. Where it must be Python,
    /// run several processes, or several generators that wait rather than work.
    ///
    /// ## When it is wrong
    /// Python that sleeps (waiting for a disk or a server) looks the same: there, more workers
    /// help although the interpreter has one lock.
    pub struct InputPython = "input-python";
}

impl Rule for InputPython {
    fn check(&self, tables: &Tables) -> Verdict {
        if let Ok(input) = input(tables)
            && input.cause == Cause::Unseen
            && let Some(finding) = loader::finding(tables, &input)
        {
            return finding.found();
        }
        blamed(
            tables,
            |it| matches!(it, Cause::Python(_)),
            |input, stage| {
                let rows = tables.get::<PythonLine>();
                let function = busiest(&rows, "input");
                let whose = match &function {
                    Some(it) => format!("{} ({})", it.function, place(&rows[it.lines[0]])),
                    None => named(tables, stage),
                };
                let title =
                    format!("{whose} makes batches in Python: {} per step", Dur(stage.work_ps));
                let mut finding = input.finding(tables, title);
                for &at in function.iter().flat_map(|it| it.lines.iter().take(MOST_NAMED)) {
                    let text = line_in_words(&rows[at]);
                    finding = finding.evidence(Evidence::text(text).rows("python_line", vec![at]));
                }
                let native = Prediction::of(tables, &Altered::WithoutPythonIn(stage.path.clone()));
                // At best what stands around the Python in the stage goes with it.
                let whole = Prediction::of(tables, &Altered::WithoutStage(stage.path.clone()));
                let best = whole.map_or(1.0, |it| it.gain.high);
                let native = native.map(|it| {
                    let gain = Gain { high: it.gain.high.max(best), ..it.gain };
                    Prediction { gain, ..it }
                });
                let fix = match stage.plain_kind() {
                    "Generator" => Fix::new(
                        Change::NativeInput,
                        "Replace the generator with arrays or files that the framework reads itself",
                    )
                    .edit(Edit::FromArrays),
                    _ => Fix::new(
                        Change::NativeInput,
                        "Replace the Python function with the framework's ops",
                    )
                    .edit(Edit::NativeInput),
                };
                finding.fix(fix.gives(native)).fix(
                    Fix::new(Change::InputWorkers, "Or run the Python in several worker processes")
                        .untold("it depends on whether this Python works or waits"),
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
    use super::InputPython;
    use crate::Verdict;
    use crate::testing::{finding, missing, verdict, with_stacks};

    const PIPELINE: &str = "
        host/python: train#1 0..100, IteratorGetNext 0..80, Iterator::Root{cpu_budget=4} 1..79, \
        Iterator::Root::Batch 2..78, Iterator::Root::Batch::Generator 3..77, \
        train#2 100..200, IteratorGetNext 100..180, Iterator::Root 101..179, \
        Iterator::Root::Batch 102..178, Iterator::Root::Batch::Generator 103..177, \
        train#3 200..300, IteratorGetNext 200..280, Iterator::Root 201..279, \
        Iterator::Root::Batch 202..278, Iterator::Root::Batch::Generator 203..277
        host/tf_Compute: MatMul:MatMul 80..100, MatMul:MatMul 180..200, MatMul:MatMul 280..300
        ";

    #[test]
    fn a_generator_that_holds_the_lock_costs_more_than_it_is_waited_for() {
        let step = |it: i64| {
            let at = it * 100;
            format!(
                "train#{it} {at}..{}, IteratorGetNext {at}..{}, Iterator::Root{{cpu_budget=4}} {at}..{}, \
                 Iterator::Root::Prefetch {at}..{}, EagerExecute {}..{}",
                at + 100,
                at + 4,
                at + 4,
                at + 3,
                at + 5,
                at + 99
            )
        };
        let makes = |it: i64| {
            let at = it * 100;
            let end = at + 95;
            format!("PrefetchProduce {at}..{end}, Iterator::Root::Prefetch::Generator {at}..{end}")
        };
        let all = |of: &dyn Fn(i64) -> String| (0..5).map(of).collect::<Vec<_>>().join(", ");
        let picture =
            format!("host/python: {}\nhost/tf_data_prefetch: {}", all(&step), all(&makes));
        let found = finding(&InputPython, &picture);
        assert!(found.takes.0 > 30_000_000, "{found:?}");
        assert!(found.evidence[0].text.contains("waiting for Python's lock"), "{found:?}");
    }

    #[test]
    fn a_generator_is_python() {
        let found = finding(&InputPython, PIPELINE);
        assert_eq!(
            found.title,
            "The input stage Batch ▸ Generator makes batches in Python: 74 µs per step"
        );
        let gain = found.gain.unwrap();
        assert!(gain.low < 5.0 && 4.0 < gain.speedup && gain.speedup < 6.0, "{gain:?}");
    }

    #[test]
    fn the_function_is_named_where_stacks_were_sampled() {
        let input =
            ("/v/lib/python3.12/site-packages/tensorflow/python/ops/script_ops.py", "call", 9);
        let load = ("/home/me/data.py", "load", 14);
        let found = with_stacks(&InputPython, PIPELINE, 0, &[&[input, load]]);
        assert!(
            found.title.starts_with("load (data.py:14) makes batches in Python: 74 µs"),
            "{}",
            found.title
        );
        assert!(found.evidence.iter().any(|it| it.text.starts_with("data.py:14 in load: ")));
    }

    #[test]
    fn other_sources_are_clear() {
        let picture = PIPELINE.replace("Generator", "Range");
        assert_eq!(verdict(&InputPython, &picture), Verdict::Clear);
    }

    #[test]
    fn a_generator_in_which_no_python_runs_is_clear() {
        let calls = |op: &str| {
            let mut picture = PIPELINE.to_owned();
            for step in 0..3 {
                let at = step * 100;
                let (asked, call) = (format!("Generator {}..{}", at + 3, at + 77), at + 4);
                let function =
                    format!("InstantiatedCapturedFunction::Run>{step} {call}..{}", at + 76);
                picture = picture.replace(&asked, &format!("{asked}, {function}"));
                picture += &format!(
                    "host/pool{step}: ExecutorState::Process<{step} {}..{}, {op} {}..{}\n",
                    at + 5,
                    at + 75,
                    at + 6,
                    at + 74
                );
            }
            verdict(&InputPython, &picture)
        };
        assert_eq!(calls("RemoteCall:RemoteCall"), Verdict::Clear);
        assert!(matches!(calls("PyFunc:PyFunc"), Verdict::Found(_)));
    }

    /// Steps of 100 µs of which the loader takes 60.
    fn loading(iterator: &str) -> String {
        let step = |at: i64| {
            format!(
                "train#{at} {at}..{}, enumerate(DataLoader)#{iterator}.__next__ {at}..{}, \
                 aten::mm {}..{}",
                at + 100,
                at + 60,
                at + 62,
                at + 98
            )
        };
        format!("host/python: {}", (0..5).map(|it| step(it * 100)).collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn a_loader_in_the_training_process_is_python() {
        let found = finding(&InputPython, &loading("_SingleProcessDataLoaderIter"));
        assert_eq!(
            found.title,
            "The DataLoader makes batches in the training process: 60 µs per step (60%) of waiting"
        );
        assert_eq!(found.fix[0].change.name(), "input-workers");
        // Two cores share the rest and the batches at worst; at best the rest stays.
        let gain = found.fix[0].gain.unwrap();
        assert!((1.2..1.4).contains(&gain.low) && (2.0..2.5).contains(&gain.speedup), "{gain:?}");
    }

    #[test]
    fn workers_that_are_too_slow_say_so() {
        let found = finding(&InputPython, &loading("_MultiProcessingDataLoaderIter"));
        assert!(
            found.title.starts_with("The DataLoader's workers are too slow"),
            "{}",
            found.title
        );
    }

    #[test]
    fn without_stages_it_cannot_know() {
        let picture = PIPELINE.replace("Iterator::Root", "Other");
        assert!(missing(&InputPython, &picture).contains("does not show the stages"));
    }
}
