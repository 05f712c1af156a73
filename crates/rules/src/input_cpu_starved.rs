//! The pipeline already uses all cores, and they are too few.

use analyses::Tables;
use trace::Dur;

use crate::input::{Cause, blamed, named};
use crate::samples::Samples;
use crate::{Change, Finding, Fix, Rule, Verdict};

rule! {
    /// The input pipeline works in parallel already and needs more CPU than there is.
    ///
    /// ## Evidence
    /// The slowest stage of the pipeline runs as many calls at once as there are cores, or lets
    /// TensorFlow choose how many, and its buffer is still empty. Where the machine was sampled:
    /// how busy the cores were, and who used them.
    ///
    /// ## Fix
    /// Do less of it: `cache()` what is the same in every epoch, precompute it, make it cheaper,
    /// vectorise it (map after `batch`), or move it to the accelerator or to other machines.
    ///
    /// ## When it is wrong
    /// On a machine whose cores other programs use, the pipeline is not to blame.
    pub struct InputCpuStarved = "input-cpu-starved";
}

impl Rule for InputCpuStarved {
    fn check(&self, tables: &Tables) -> Verdict {
        blamed(
            tables,
            |it| matches!(it, Cause::CpuStarved(_)),
            |input, stage| {
                let busy = match input.pipeline.cores {
                    Some(1) => "its core".to_owned(),
                    Some(n) => format!("all {n} cores"),
                    None => "its threads".to_owned(),
                };
                let title = format!(
                    "{} keeps {busy} busy and is still too slow: it needs {} of CPU per step",
                    named(tables, stage),
                    Dur(stage.work_ps),
                );
                let cores = Samples::of(tables).and_then(|it| it.of_cores());
                let finding =
                    cores.into_iter().fold(input.finding(tables, title), Finding::evidence);
                let finding = input.shuffled_first(tables).into_iter().fold(finding, Finding::fix);
                let finding = input.cached(tables, stage).into_iter().fold(finding, Finding::fix);
                finding.fix(
                Fix::new(
                    Change::CheaperInput,
                    "Do less per element: map after batch(), use cheaper ops, or precompute files",
                )
                .untold("it depends on how much cheaper the work can be made"),
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
    use super::InputCpuStarved;
    use crate::Verdict;
    use crate::testing::{finding, missing, verdict};

    /// A pool of as many threads as cores, always at work, for a consumer that waits.
    fn picture(parallelism: u32, autotune: &str) -> String {
        let mut text = String::new();
        let (mut asks, mut makes) = (Vec::new(), Vec::new());
        let mut pools = [Vec::new(), Vec::new()];
        for step in 0..4 {
            let at = 100 * step;
            asks.push(format!(
                "train#{step} {at}..{0}, IteratorGetNext {at}..{1}, \
                 Iterator::Root{{cpu_budget=2}} {at}..{1}, \
                 Iterator::Root::ParallelMapV2{{parallelism={parallelism};autotune={autotune}}} {at}..{1}",
                at + 100,
                at + 80
            ));
            for half in 0..2 {
                let (call, key) = (at + 50 * half, 2 * step + half);
                makes.push(format!(
                    "ParallelMapProduce {call}..{0}, Iterator::Root::ParallelMapV2::Range {call}..{1}, \
                     InstantiatedCapturedFunction::RunAsync>{key} {1}..{0}",
                    call + 2,
                    call + 1
                ));
                pools[half as usize].push(format!(
                    "ExecutorState::Process<{key} {0}..{1}",
                    at + 2,
                    at + 98
                ));
            }
        }
        text +=
            &format!("host/python: {}\nhost/tf_data_a: {}\n", asks.join(", "), makes.join(", "));
        text += &format!(
            "host/tf_data_b: {}\nhost/tf_data_c: {}\n",
            pools[0].join(", "),
            pools[1].join(", ")
        );
        text
    }

    #[test]
    fn a_pipeline_that_takes_all_cores_is_found() {
        let found = finding(&InputCpuStarved, &picture(2, "true"));
        assert!(
            found.title.starts_with("The input stage ParallelMapV2 keeps all 2 cores busy"),
            "{}",
            found.title
        );
    }

    #[test]
    fn one_call_at_a_time_is_another_matter() {
        assert_eq!(verdict(&InputCpuStarved, &picture(1, "false")), Verdict::Clear);
    }

    #[test]
    fn without_stages_it_cannot_know() {
        let picture = picture(2, "true").replace("Iterator::Root", "Other");
        assert!(missing(&InputCpuStarved, &picture).contains("does not show the stages"));
    }
}
