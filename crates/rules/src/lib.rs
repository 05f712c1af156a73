//! Tables in, findings out: one file per problem, each a documented question with three answers.
//!
//! ```text
//! tables ──check──▶ Found | Clear | Unknown ──diagnose──▶ findings by cost, symptoms below causes
//! ```
//!
//! Rules do no I/O and print nothing: same trace, same verdict. What a rule's doc says is what
//! `strobe explain` prints.

pub mod change;
mod confidence;
pub mod dialect;
mod facts;
mod finding;
pub mod gain;
mod gpu;
mod input;
mod launches;
mod lines;
mod loader;
pub mod plan;
mod samples;
mod slow_steps;
pub mod testing;

use std::collections::BTreeMap;

use analyses::Tables;

pub use change::Change;
pub use facts::{Facts, Op, counted, facts, percent, thousands};
pub use finding::{Evidence, Finding, Fix, Severity, WORTH_FIXING, WORTH_SAYING};
pub use gain::{Gain, Prediction, StepAfter, bottleneck};
pub use plan::{Plan, PlanStep};

use dialect::Words;

/// What a rule is called and what it says of itself. Written by `rule!`.
pub trait Documented {
    fn name(&self) -> &'static str;
    fn doc(&self) -> &'static str;
}

/// A question asked of every trace, and how to answer it.
pub trait Rule: Documented + Sync {
    fn check(&self, tables: &Tables) -> Verdict;

    /// What the first sentence says of the time that this problem takes, after "4 ms (40%) …".
    fn in_headline(&self) -> Option<&'static str> {
        None
    }

    /// Worth saying only where nothing else is: the good end.
    fn is_good_end(&self) -> bool {
        false
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    Found(Box<Finding>),
    Clear,
    /// The trace lacks what the rule needs; says what.
    Unknown(String),
}

impl Verdict {
    pub fn unknown(why: impl Into<String>) -> Verdict {
        Verdict::Unknown(why.into())
    }
}

/// Declares a rule, lifting its doc comment into data.
macro_rules! rule {
    (
        $(#[doc = $doc:literal])*
        pub struct $rule:ident = $name:literal;
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug)]
        pub struct $rule;

        impl $crate::Documented for $rule {
            fn name(&self) -> &'static str {
                $name
            }

            fn doc(&self) -> &'static str {
                concat!($($doc, "\n",)*)
            }
        }
    };
}

pub mod checkpoint_stall;
pub mod clock_throttled;
pub mod compute_bound;
pub mod cpu_contention;
pub mod dominant_op;
pub mod eager_ops;
pub mod exposed_collective;
pub mod fp32_only;
pub mod input_bound;
pub mod input_cpu_starved;
pub mod input_file_read;
pub mod input_no_prefetch;
pub mod input_python;
pub mod input_serial_map;
pub mod input_small_files;
pub mod latency_tail;
pub mod low_occupancy;
pub mod memory_leak;
pub mod memory_pressure;
pub mod no_tensor_cores;
pub mod profiler_overhead;
pub mod python_overhead;
pub mod recompilation;
pub mod retracing;
pub mod small_batch;
pub mod step_outliers;
pub mod straggler;
pub mod sync_stall;
pub mod tiny_ops;
pub mod transfer_bound;
pub mod uncoalesced_access;

/// Every rule.
pub static ALL: &[&dyn Rule] = &[
    &checkpoint_stall::CheckpointStall,
    &clock_throttled::ClockThrottled,
    &compute_bound::ComputeBound,
    &cpu_contention::CpuContention,
    &dominant_op::DominantOp,
    &eager_ops::EagerOps,
    &exposed_collective::ExposedCollective,
    &fp32_only::Fp32Only,
    &input_bound::InputBound,
    &input_cpu_starved::InputCpuStarved,
    &input_file_read::InputFileRead,
    &input_no_prefetch::InputNoPrefetch,
    &input_python::InputPython,
    &input_serial_map::InputSerialMap,
    &input_small_files::InputSmallFiles,
    &latency_tail::LatencyTail,
    &low_occupancy::LowOccupancy,
    &memory_leak::MemoryLeak,
    &memory_pressure::MemoryPressure,
    &no_tensor_cores::NoTensorCores,
    &profiler_overhead::ProfilerOverhead,
    &python_overhead::PythonOverhead,
    &recompilation::Recompilation,
    &retracing::Retracing,
    &small_batch::SmallBatch,
    &step_outliers::StepOutliers,
    &straggler::Straggler,
    &sync_stall::SyncStall,
    &tiny_ops::TinyOps,
    &transfer_bound::TransferBound,
    &uncoalesced_access::UncoalescedAccess,
];

pub fn find(name: &str) -> Option<&'static dyn Rule> {
    ALL.iter().copied().find(|it| it.name() == name)
}

/// What all rules say of a trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Diagnosis {
    /// Causes, the most costly first.
    pub causes: Vec<Cause>,
    /// The order of edits worth making.
    pub plan: Plan,
    /// Rules that could not be asked, and why.
    pub not_checked: Vec<(&'static str, String)>,
}

/// A finding, and others that follow from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    pub rule: &'static str,
    pub finding: Finding,
    pub symptoms: Vec<(&'static str, Finding)>,
}

/// Asks every rule.
pub fn diagnose(tables: &Tables) -> Diagnosis {
    diagnose_by(ALL, tables)
}

fn diagnose_by(rules: &[&'static dyn Rule], tables: &Tables) -> Diagnosis {
    let mut found: Vec<(&'static dyn Rule, Finding)> = Vec::new();
    let mut not_checked = Vec::new();
    let words = Words::of(tables);
    for &rule in rules {
        match rule.check(tables) {
            Verdict::Found(mut finding) => {
                words.put_into(&mut finding.fix);
                finding.settle(tables);
                found.push((rule, *finding));
            }
            Verdict::Clear => (),
            Verdict::Unknown(why) => not_checked.push((rule.name(), why)),
        }
    }
    // The good end is none where it has found cheaper math.
    let is_end = |it: &(&dyn Rule, Finding)| it.0.is_good_end() && it.1.severity == Severity::Low;
    if found.iter().any(|it| it.1.severity > Severity::Low) {
        found.retain(|it| !is_end(it));
    }
    // What may be nothing comes last, however much of the step it is.
    found.sort_by_key(|it| (it.1.severity == Severity::Low, std::cmp::Reverse(it.1.cost)));
    let causes = hang_symptoms(found);
    Diagnosis { plan: Plan::of(tables, &causes), causes, not_checked }
}

/// Puts each symptom below the most costly of its causes; a symptom of a symptom belongs to the
/// same cause.
fn hang_symptoms(found: Vec<(&'static dyn Rule, Finding)>) -> Vec<Cause> {
    let cause_of = |at: usize| {
        let causes = &found[at].1.symptom_of;
        found.iter().position(|it| causes.contains(&it.0.name())).filter(|&it| it != at)
    };
    let root_of = |symptom: usize| {
        let mut at = symptom;
        for _ in 0..found.len() {
            match cause_of(at) {
                Some(cause) => at = cause,
                None => return at,
            }
        }
        // Causes that go round in circles explain nothing.
        symptom
    };
    let roots: Vec<usize> = (0..found.len()).map(root_of).collect();
    let mut causes: BTreeMap<usize, Cause> = BTreeMap::new();
    let mut symptoms = Vec::new();
    for ((at, (rule, finding)), root) in found.into_iter().enumerate().zip(roots) {
        let rule = rule.name();
        if at == root {
            causes.insert(at, Cause { rule, finding, symptoms: Vec::new() });
        } else {
            symptoms.push((root, (rule, finding)));
        }
    }
    for (root, symptom) in symptoms {
        if let Some(it) = causes.get_mut(&root) {
            it.symptoms.push(symptom);
        }
    }
    causes.into_values().collect()
}

#[cfg(test)]
mod tests {
    use trace::Dur;

    use super::{ALL, Finding, Severity, hang_symptoms};

    #[test]
    fn every_file_is_registered() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|it| it.unwrap().path())
            .filter(|it| it.extension().is_some())
            .map(|it| it.file_stem().unwrap().to_string_lossy().replace('_', "-"))
            .filter(|it| {
                let helpers = [
                    "change",
                    "confidence",
                    "dialect",
                    "facts",
                    "finding",
                    "gain",
                    "gpu",
                    "input",
                    "launches",
                    "lib",
                    "lines",
                    "loader",
                    "plan",
                    "samples",
                    "slow-steps",
                    "testing",
                ];
                !helpers.contains(&it.as_str())
            })
            .collect();
        files.sort();
        let mut names: Vec<&str> = ALL.iter().map(|it| it.name()).collect();
        names.sort_unstable();
        assert_eq!(files, names);
    }

    #[test]
    fn every_rule_says_how_it_shows_what_to_do_and_when_it_is_wrong() {
        for rule in ALL {
            for section in ["## Evidence", "## Fix", "## When it is wrong"] {
                assert!(rule.doc().contains(section), "{} lacks {section}", rule.name());
            }
        }
    }

    #[test]
    fn severity_follows_from_the_share_of_the_step() {
        let of = |cost| Severity::of(Dur(cost), Dur(100));
        assert_eq!([of(9), of(10), of(25)], [Severity::Low, Severity::Medium, Severity::High]);
    }

    #[test]
    fn a_symptom_hangs_below_its_cause() {
        let [a, b] = [ALL[0], ALL[1]];
        let symptom = Finding::new("a", Dur(9), Dur(10)).symptom_of(&[b.name()]);
        let cause = Finding::new("b", Dur(8), Dur(10));
        let causes = hang_symptoms(vec![(a, symptom.clone()), (b, cause)]);
        assert_eq!(causes.len(), 1);
        assert_eq!(causes[0].rule, b.name());
        assert_eq!(causes[0].symptoms, [(a.name(), symptom.clone())]);
        let alone = hang_symptoms(vec![(a, symptom.clone())]);
        assert_eq!(alone[0].rule, a.name(), "without its cause it stands for itself");
    }

    #[test]
    fn a_symptom_of_a_symptom_hangs_below_the_cause_whatever_it_costs() {
        let [a, b, c] = [ALL[0], ALL[1], ALL[2]];
        let farther = Finding::new("a", Dur(9), Dur(10)).symptom_of(&[b.name()]);
        let nearer = Finding::new("b", Dur(8), Dur(10)).symptom_of(&[c.name()]);
        let cause = Finding::new("c", Dur(7), Dur(10));
        let causes = hang_symptoms(vec![(a, farther.clone()), (b, nearer), (c, cause)]);
        let rules: Vec<_> = causes[0].symptoms.iter().map(|it| it.0).collect();
        assert_eq!((causes.len(), causes[0].rule, rules), (1, c.name(), vec![a.name(), b.name()]));
        // Two that blame each other are both said.
        let other = Finding::new("b", Dur(8), Dur(10)).symptom_of(&[a.name()]);
        assert_eq!(hang_symptoms(vec![(a, farther), (b, other)]).len(), 2);
    }
}
