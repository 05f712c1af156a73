//! Tables in, findings out: one file per problem, each a documented question with three answers.
//!
//! ```text
//! tables ──check──▶ Found | Clear | Unknown ──diagnose──▶ findings by cost, symptoms below causes
//! ```
//!
//! Rules do no I/O and print nothing: same trace, same verdict. What a rule's doc says is what
//! `strobe explain` prints.

mod edits;
mod facts;
mod gpu;
mod input;
mod launches;
mod lines;
mod samples;
mod slow_steps;
pub mod testing;

use std::collections::BTreeMap;

use analyses::Tables;
use analyses::input_stage::pipeline::Pipeline;
use analyses::what_if::WhatIf;
use trace::{Dur, EventId};

pub use facts::{Facts, Op, facts};

/// What a rule is called and what it says of itself. Written by `rule!`.
pub trait Documented {
    fn name(&self) -> &'static str;
    fn doc(&self) -> &'static str;
}

/// A question asked of every trace, and how to answer it.
pub trait Rule: Documented + Sync {
    fn check(&self, tables: &Tables) -> Verdict;

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

/// A problem: what it costs, how it shows, what to change, what that wins.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// One sentence, with the user's own names.
    pub title: String,
    /// Time of a mean step that the problem holds.
    pub cost: Dur,
    pub severity: Severity,
    /// How sure, 0 to 1.
    pub confidence: f64,
    /// What the first fix wins; absent where no model can say.
    pub gain: Option<Gain>,
    pub evidence: Vec<Evidence>,
    /// The most worthwhile first.
    pub fix: Vec<Fix>,
    /// Rules that, where they find something, are this one's cause.
    pub symptom_of: Vec<&'static str>,
}

impl Finding {
    /// A finding whose severity follows from its cost.
    pub fn new(title: impl Into<String>, cost: Dur, step: Dur) -> Finding {
        Finding {
            title: title.into(),
            cost,
            severity: Severity::of(cost, step),
            confidence: 0.9,
            gain: None,
            evidence: Vec::new(),
            fix: Vec::new(),
            symptom_of: Vec::new(),
        }
    }

    #[must_use]
    pub fn severity(self, severity: Severity) -> Finding {
        Finding { severity, ..self }
    }

    #[must_use]
    pub fn confidence(self, confidence: f64) -> Finding {
        Finding { confidence, ..self }
    }

    #[must_use]
    pub fn gain(self, gain: Option<Gain>) -> Finding {
        Finding { gain, ..self }
    }

    #[must_use]
    pub fn evidence(mut self, evidence: Evidence) -> Finding {
        self.evidence.push(evidence);
        self
    }

    /// Advice in words.
    #[must_use]
    pub fn fix(mut self, text: impl Into<String>) -> Finding {
        self.fix.push(Fix { text: text.into(), edit: None });
        self
    }

    /// Advice as the edit itself.
    #[must_use]
    pub fn edit(mut self, text: impl Into<String>, edit: impl Into<String>) -> Finding {
        self.fix.push(Fix { text: text.into(), edit: Some(edit.into()) });
        self
    }

    #[must_use]
    pub fn symptom_of(mut self, causes: &[&'static str]) -> Finding {
        self.symptom_of.extend(causes);
        self
    }

    pub fn found(self) -> Verdict {
        Verdict::Found(Box::new(self))
    }
}

/// How much a problem matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Low,
    Medium,
    High,
}

/// Below this share of the step nothing is said: run-to-run noise on a quiet machine is as large.
pub const WORTH_SAYING: f64 = 0.03;
/// Below this share the fix often costs more than it wins; the vendor's own tool also uses 10 %.
pub const WORTH_FIXING: f64 = 0.10;
/// A quarter of the step is felt by everybody who waits for the run.
const SEVERE: f64 = 0.25;

impl Severity {
    pub fn of(cost: Dur, step: Dur) -> Severity {
        match cost.0 as f64 / step.0.max(1) as f64 {
            share if share >= SEVERE => Severity::High,
            share if share >= WORTH_FIXING => Severity::Medium,
            _ => Severity::Low,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
        }
    }
}

/// Old step time over predicted new step time: a promise, with its range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    pub speedup: f64,
    pub low: f64,
    pub high: f64,
}

/// How much of what a fix takes away may stay: moving work elsewhere leaves a little behind.
const LEFT_BEHIND: f64 = 0.10;
/// How much shorter the rest of the step may be without a profiler, which slows what it records.
const PROFILED: f64 = 0.10;

/// What is left of a part of a step that stays, when neither a profiler nor the problem is there
/// any more: at worst, likely, at best.
struct Left {
    part: [f64; 3],
    /// No more than this goes, but for what recording took.
    most_ps: [i64; 3],
}

/// Of the host's part: a host that waits, saves or computes in Python comes back to cold caches
/// and sleeping threads, and every event recorded takes its time. Measured with `bench/diagnosis`:
/// steps after the fix took 0.4 to 0.85 of what was left of the profiled step, where that was
/// short; filling caches of some tens of megabytes and waking all threads takes milliseconds,
/// however long the step.
const UNDISTURBED: Left = Left { part: [1.0, 0.6, 0.4], most_ps: DISTURBANCE_PS };
const DISTURBANCE_PS: [i64; 3] = [0, 4_000_000_000, 8_000_000_000];
/// The same where the problem is Python, which leaves more of the caches, and the threads, as they
/// were than saving or a large op does: steps after the fix took 0.7 to 0.93 of what was left.
const AFTER_PYTHON: Left = Left { part: [1.0, 0.75, 0.45], most_ps: DISTURBANCE_PS };
/// The same where the problem is input: that the pipeline takes cores is in its model already.
const NOT_CROWDED: Left = Left { part: [1.0, 0.8, 0.45], most_ps: DISTURBANCE_PS };
/// The same where the problem is compiling: the first run of a new program is its slowest, in all
/// of its parts.
const NOT_COMPILED_ANEW: Left = Left { part: [1.0, 0.62, 0.25], most_ps: [i64::MAX; 3] };
/// Of a device's, or of threads that are all busy before and after: they are slowed alike.
const AS_IT_IS: Left = Left { part: [1.0, 1.0, 1.0 - PROFILED], most_ps: [0; 3] };

impl Gain {
    /// What a change of the table `what_if` wins; absent where it predicts nothing.
    pub fn of_change(tables: &Tables, change: &str) -> Option<Gain> {
        let rows = tables.get::<WhatIf>();
        let row = rows.iter().find(|it| it.change == change)?;
        let new = [row.worst_ps, row.new_step_ps, row.best_ps];
        let on_device = facts(tables)?.on_device;
        let of_input = !change.starts_with("without ") || change.contains("Iterator::");
        let recorded = if of_input { tables.model::<Pipeline>().recorded_ps() } else { 0 };
        let old = row.step_ps - recorded;
        let left = match row.limited_by.as_str() {
            "the rest of the step" if !on_device => match change {
                "without compile" => NOT_COMPILED_ANEW,
                "without python" => AFTER_PYTHON,
                _ if of_input => NOT_CROWDED,
                _ => UNDISTURBED,
            },
            _ => AS_IT_IS,
        };
        Some(Gain::between(old, new, &left))
    }

    /// From a step time to another, both as profiled, with a device or all of the host busy.
    pub fn of_times(old_ps: i64, new_ps: i64) -> Gain {
        Gain::between(old_ps, [new_ps; 3], &AS_IT_IS)
    }

    /// The same on a host that will be less disturbed.
    pub fn on_host(old_ps: i64, new_ps: [i64; 3]) -> Gain {
        Gain::between(old_ps, new_ps, &UNDISTURBED)
    }

    /// The same on a host that will no longer run Python for most of a step.
    pub fn after_python(old_ps: i64, new_ps: i64) -> Gain {
        Gain::between(old_ps, [new_ps; 3], &AFTER_PYTHON)
    }

    /// From a step time to new ones, at worst, likely, at best, of which a part is left: what is
    /// not left of the new step was not in the old one either.
    fn between(old_ps: i64, new_ps: [i64; 3], left: &Left) -> Gain {
        let old = old_ps as f64;
        let of = |at: usize, stays: f64| {
            let new = (new_ps[at].max(1) as f64).min(old);
            let recorded = if at == 2 { new * PROFILED } else { 0.0 };
            let gone = new * (1.0 - left.part[at]);
            let gone = gone.min(recorded.max(left.most_ps[at] as f64));
            (old - gone) / (new - gone + (old - new) * stays)
        };
        let (low, speedup, high) = (of(0, LEFT_BEHIND), of(1, 0.0), of(2, 0.0));
        Gain { speedup, low: low.min(speedup), high: high.max(speedup) }
    }
}

/// Something seen that a person can open: a sentence, rows of a table, events.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    pub text: String,
    pub table: Option<&'static str>,
    pub rows: Vec<usize>,
    pub events: Vec<EventId>,
}

impl Evidence {
    pub fn text(text: impl Into<String>) -> Evidence {
        Evidence { text: text.into(), ..Evidence::default() }
    }

    #[must_use]
    pub fn rows(self, table: &'static str, rows: Vec<usize>) -> Evidence {
        Evidence { table: Some(table), rows, ..self }
    }

    #[must_use]
    pub fn events(self, events: Vec<EventId>) -> Evidence {
        Evidence { events, ..self }
    }
}

/// What to do, and where it can be written, the code to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    pub text: String,
    pub edit: Option<String>,
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

/// Every rule. The list is the `mod` line and the registration.
macro_rules! registry {
    ($($module:ident :: $rule:ident),* $(,)?) => {
        $(pub mod $module;)*
        pub static ALL: &[&dyn Rule] = &[$(&$module::$rule),*];
    };
}

registry![
    checkpoint_stall::CheckpointStall,
    clock_throttled::ClockThrottled,
    compute_bound::ComputeBound,
    cpu_contention::CpuContention,
    dominant_op::DominantOp,
    eager_ops::EagerOps,
    exposed_collective::ExposedCollective,
    fp32_only::Fp32Only,
    input_bound::InputBound,
    input_cpu_starved::InputCpuStarved,
    input_file_read::InputFileRead,
    input_no_prefetch::InputNoPrefetch,
    input_python::InputPython,
    input_serial_map::InputSerialMap,
    input_small_files::InputSmallFiles,
    latency_tail::LatencyTail,
    low_occupancy::LowOccupancy,
    memory_leak::MemoryLeak,
    memory_pressure::MemoryPressure,
    no_tensor_cores::NoTensorCores,
    profiler_overhead::ProfilerOverhead,
    python_overhead::PythonOverhead,
    recompilation::Recompilation,
    retracing::Retracing,
    small_batch::SmallBatch,
    step_outliers::StepOutliers,
    straggler::Straggler,
    sync_stall::SyncStall,
    tiny_ops::TinyOps,
    transfer_bound::TransferBound,
    uncoalesced_access::UncoalescedAccess,
];

pub fn find(name: &str) -> Option<&'static dyn Rule> {
    ALL.iter().copied().find(|it| it.name() == name)
}

/// What all rules say of a trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Diagnosis {
    /// Causes, the most costly first.
    pub causes: Vec<Cause>,
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
    for &rule in rules {
        match rule.check(tables) {
            Verdict::Found(finding) => found.push((rule, *finding)),
            Verdict::Clear => (),
            Verdict::Unknown(why) => not_checked.push((rule.name(), why)),
        }
    }
    let problem = |it: &(&dyn Rule, Finding)| !it.0.is_good_end() && it.1.severity > Severity::Low;
    if found.iter().any(problem) {
        found.retain(|it| !it.0.is_good_end());
    }
    found.sort_by_key(|it| std::cmp::Reverse(it.1.cost));
    Diagnosis { causes: hang_symptoms(found), not_checked }
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
    use super::{ALL, Dur, Finding, Severity, hang_symptoms};

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
                    "edits",
                    "facts",
                    "gpu",
                    "input",
                    "launches",
                    "lib",
                    "lines",
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
