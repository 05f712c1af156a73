//! Two runs, measure by measure: what differs, and by how much.
//!
//! ```text
//! tables of a ┐
//!             ├▶ steps, categories, ops, facts, findings: of a, of b, and b less a
//! tables of b ┘
//! ```
//!
//! Whether a difference is real is not judged here: that takes several runs of each
//! (`statistics::compare`).

use std::collections::BTreeSet;

use analyses::op_time::OpTime;
use analyses::run_info::RunInfo;
use analyses::step::Step;
use analyses::step_spread::StepSpread;
use hashbrown::HashMap;
use serde::Serialize;
use trace::Dur;

use crate::Session;
use crate::report::json::{Category, ms};
use crate::report::words::plain;
use crate::report::{Report, Share};

/// What differs between two runs, `a` and `b`. A difference is that of b less that of a.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub step: Vec<StepDifference>,
    /// Steps that are slow, of the first host.
    pub slow_steps: SlowSteps,
    /// Categories of the mean step that take any time in one of the runs.
    pub by_category: Vec<CategoryDifference>,
    /// The largest differences first; empty where one run has no steps.
    pub by_op: Vec<OpDifference>,
    /// What is known of both or one, and not the same.
    pub facts: Vec<FactDifference>,
    pub findings: FindingsDifference,
}

/// One measure of the steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepDifference {
    pub measure: Measure,
    pub a_ms: Option<f64>,
    pub b_ms: Option<f64>,
    pub delta_ms: Option<f64>,
    /// Of a's.
    pub delta_share: Option<f64>,
}

/// What is measured of steps: `typical` is an ordinary step of the first host, `spread` how far
/// steps are from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    Median,
    Mean,
    P95,
    Stdev,
    Typical,
    Spread,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlowSteps {
    pub a: Option<i64>,
    pub b: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CategoryDifference {
    pub category: Category,
    pub a_ms: Option<f64>,
    pub b_ms: Option<f64>,
    /// Absent where one of the runs cannot tell.
    pub delta_ms: Option<f64>,
}

/// Self time of ops of one name in a step: over the whole capture, divided by its steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OpDifference {
    pub side: &'static str,
    /// Without what the framework puts in front of it.
    pub name: String,
    #[serde(rename = "type")]
    pub op_type: Option<String>,
    /// Absent where the run has no such op.
    pub a_ms: Option<f64>,
    pub b_ms: Option<f64>,
    /// An op that a run does not have counts as nothing there.
    pub delta_ms: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactDifference {
    /// What it is a fact of: `run`, or a host, device or process.
    pub of: String,
    pub key: String,
    pub a: Option<String>,
    pub b: Option<String>,
}

/// Rules that found something.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FindingsDifference {
    /// In a alone.
    pub fixed: Vec<&'static str>,
    /// In b alone.
    pub new: Vec<&'static str>,
    /// In both.
    pub kept: Vec<&'static str>,
}

/// As many ops as a person reads.
const MOST_OPS: usize = 100;

impl Comparison {
    pub fn of(a: &Session, b: &Session) -> Comparison {
        let reports = (&a.report(), &b.report());
        let spreads = (a.tables().get::<StepSpread>(), b.tables().get::<StepSpread>());
        let spreads = (spreads.0.first(), spreads.1.first());
        Comparison {
            step: steps(reports, spreads),
            slow_steps: SlowSteps {
                a: spreads.0.map(|it| it.slow),
                b: spreads.1.map(|it| it.slow),
            },
            by_category: categories(reports),
            by_op: ops(a, b),
            facts: facts(&a.tables().get::<RunInfo>(), &b.tables().get::<RunInfo>()),
            findings: findings(reports),
        }
    }
}

fn steps(
    (a, b): (&Report, &Report),
    spreads: (Option<&StepSpread>, Option<&StepSpread>),
) -> Vec<StepDifference> {
    let measures = |report: &Report, spread: Option<&StepSpread>| {
        let steps = report.steps.as_ref();
        [
            (Measure::Median, steps.map(|it| it.median)),
            (Measure::Mean, steps.map(|it| it.mean)),
            (Measure::P95, steps.map(|it| it.p95)),
            (Measure::Stdev, steps.and_then(|it| it.stdev)),
            (Measure::Typical, spread.map(|it| Dur(it.typical_ps))),
            (Measure::Spread, spread.map(|it| Dur(it.spread_ps))),
        ]
    };
    let pairs = measures(a, spreads.0).into_iter().zip(measures(b, spreads.1));
    let difference = |((measure, a), (_, b)): ((Measure, Option<Dur>), (Measure, Option<Dur>))| {
        let (a_ms, b_ms) = (a.map(ms), b.map(ms));
        let delta_ms = a_ms.zip(b_ms).map(|(a, b)| b - a);
        let delta_share = a_ms.filter(|it| *it > 0.0).zip(delta_ms).map(|(a, delta)| delta / a);
        StepDifference { measure, a_ms, b_ms, delta_ms, delta_share }
    };
    pairs.map(difference).collect()
}

fn categories((a, b): (&Report, &Report)) -> Vec<CategoryDifference> {
    let of = |report: &Report, category| {
        let is_it = |it: &&Share| it.category == category;
        report.breakdown.iter().find(is_it).map(|it| ms(it.per_step))
    };
    let all = analyses::step_time::CATEGORIES.map(|(category, _)| {
        let (a_ms, b_ms) = (of(a, category), of(b, category));
        let delta_ms = a_ms.zip(b_ms).map(|(a, b)| b - a);
        CategoryDifference { category, a_ms, b_ms, delta_ms }
    });
    let takes_time = |it: &Option<f64>| it.is_some_and(|it| it > 0.0);
    all.into_iter().filter(|it| takes_time(&it.a_ms) || takes_time(&it.b_ms)).collect()
}

fn ops(a: &Session, b: &Session) -> Vec<OpDifference> {
    let (Some(n_a), Some(n_b)) = (n_steps(a), n_steps(b)) else { return Vec::new() };
    let (ops_a, ops_b) = (a.tables().get::<OpTime>(), b.tables().get::<OpTime>());
    let mut all: Vec<OpDifference> = Vec::new();
    let mut places: HashMap<(&str, &str), usize> = HashMap::new();
    let each = ops_b.iter().map(|it| (it, false)).chain(ops_a.iter().map(|it| (it, true)));
    for (op, is_a) in each {
        let name = plain(&op.name);
        let place = *places.entry((op.side, name)).or_insert_with(|| {
            all.push(OpDifference {
                side: op.side,
                name: name.to_owned(),
                op_type: op.op_type.clone(),
                a_ms: None,
                b_ms: None,
                delta_ms: 0.0,
            });
            all.len() - 1
        });
        let it = &mut all[place];
        let (sum, n) = if is_a { (&mut it.a_ms, n_a) } else { (&mut it.b_ms, n_b) };
        *sum = Some(sum.unwrap_or(0.0) + ms(Dur(op.self_ps)) / n as f64);
    }
    for it in &mut all {
        it.delta_ms = it.b_ms.unwrap_or(0.0) - it.a_ms.unwrap_or(0.0);
    }
    all.sort_by(|x, y| y.delta_ms.abs().total_cmp(&x.delta_ms.abs()));
    all.truncate(MOST_OPS);
    all
}

/// Steps in the capture, of all hosts together; `None` where there are none.
fn n_steps(session: &Session) -> Option<usize> {
    let steps: BTreeSet<i64> = session.tables().get::<Step>().iter().map(|it| it.step).collect();
    (!steps.is_empty()).then_some(steps.len())
}

fn facts(a: &[RunInfo], b: &[RunInfo]) -> Vec<FactDifference> {
    let mut all: Vec<FactDifference> = Vec::new();
    let mut places: HashMap<(&str, &str), usize> = HashMap::new();
    let each = b.iter().map(|it| (it, false)).chain(a.iter().map(|it| (it, true)));
    for (fact, is_a) in each.filter(|it| !is_moment(&it.0.key)) {
        let place = *places.entry((&fact.of, &fact.key)).or_insert_with(|| {
            let (of, key) = (fact.of.clone(), fact.key.clone());
            all.push(FactDifference { of, key, a: None, b: None });
            all.len() - 1
        });
        let it = &mut all[place];
        *(if is_a { &mut it.a } else { &mut it.b }) = Some(fact.value.clone());
    }
    all.retain(|it| it.a != it.b);
    all
}

/// Moments always differ, and say nothing.
fn is_moment(key: &str) -> bool {
    key.ends_with("_time") || key.ends_with("_unix_ns")
}

fn findings((a, b): (&Report, &Report)) -> FindingsDifference {
    let rules = |it: &Report| it.diagnosis.causes.iter().map(|it| it.rule).collect::<Vec<_>>();
    let (in_a, in_b) = (rules(a), rules(b));
    let (kept, new): (Vec<_>, Vec<_>) = in_b.iter().partition(|it| in_a.contains(it));
    let fixed = in_a.into_iter().filter(|it| !in_b.contains(it)).collect();
    FindingsDifference { fixed, new, kept }
}

#[cfg(test)]
mod tests {
    use analyses::run_info::RunInfo;

    use super::{FactDifference, facts};

    fn info(rows: &[(&str, &str, &str)]) -> Vec<RunInfo> {
        let row = |it: &(&str, &str, &str)| RunInfo {
            of: it.0.to_owned(),
            key: it.1.to_owned(),
            value: it.2.to_owned(),
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn facts_that_differ_are_listed_but_for_moments() {
        let a =
            info(&[("run", "events", "10"), ("run", "started_unix_ns", "1"), ("cpu", "n", "2")]);
        let b =
            info(&[("run", "events", "20"), ("run", "started_unix_ns", "2"), ("cpu", "n", "2")]);
        let events = FactDifference {
            of: "run".to_owned(),
            key: "events".to_owned(),
            a: Some("10".to_owned()),
            b: Some("20".to_owned()),
        };
        assert_eq!(facts(&a, &b), [events]);
        assert_eq!(facts(&a, &[]).len(), 2, "what only one run knows differs");
    }
}
