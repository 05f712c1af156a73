//! Synthetic profiles with one planted cause: the first finding names it, and the predicted range
//! holds what repairing it would win.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::Path;

use analyses::critical_path::CriticalPath;
use analyses::what_if::WhatIf;
use rules::{Diagnosis, Severity};
use session::Session;
use synth::{Scenario, scenarios};

fn open(scenario: &Scenario) -> Session {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/synthetic");
    Session::open(&testdata.join(scenario.name)).unwrap()
}

fn planted() -> impl Iterator<Item = (Scenario, Session)> {
    scenarios().into_iter().filter(|it| it.truth.first_finding.is_some()).map(|it| {
        let session = open(&it);
        (it, session)
    })
}

fn listed(diagnosis: &Diagnosis) -> String {
    let line =
        |it: &rules::Cause| format!("{} {:?} {}", it.rule, it.finding.severity, it.finding.title);
    diagnosis.causes.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_first_finding_is_the_planted_cause() {
    for (scenario, session) in planted() {
        let diagnosis = rules::diagnose(session.tables());
        let first = diagnosis.causes.first().map(|it| it.rule);
        assert_eq!(
            first,
            scenario.truth.first_finding,
            "{}:\n{}",
            scenario.name,
            listed(&diagnosis)
        );
        let severity = diagnosis.causes[0].finding.severity;
        assert!(severity > Severity::Low, "{}:\n{}", scenario.name, listed(&diagnosis));
    }
}

#[test]
fn the_predicted_range_holds_the_true_speedup() {
    for (scenario, session) in planted() {
        let Some(fixed_ms) = scenario.truth.fixed_step_ms else { continue };
        let diagnosis = rules::diagnose(session.tables());
        let gain = diagnosis.causes[0].finding.gain;
        let got = scenario.truth.step_ms / fixed_ms;
        let holds = gain.is_some_and(|it| it.low <= got && got <= it.high);
        assert!(holds, "{}: {got:.3} is not in {gain:?}", scenario.name);
    }
}

#[test]
fn a_healthy_run_has_nothing_above_low() {
    for scenario in scenarios().iter().filter(|it| it.name == "well_tuned") {
        let diagnosis = rules::diagnose(open(scenario).tables());
        let worst = diagnosis.causes.iter().map(|it| it.finding.severity).max();
        assert!(worst <= Some(Severity::Low), "{}", listed(&diagnosis));
    }
}

/// Replaying the unchanged steps gives what was measured, and the path adds to the step.
#[test]
fn unchanged_steps_replay_as_measured() {
    for scenario in scenarios() {
        let session = open(&scenario);
        for row in session.tables().get::<WhatIf>().iter() {
            let error = (row.replayed_ps - row.step_ps).abs() as f64 / row.step_ps as f64;
            assert!(error < 0.01, "{}: {row:?}", scenario.name);
        }
        let path = session.tables().get::<CriticalPath>();
        if !path.is_empty() {
            let share: f64 = path.iter().map(|it| it.share).sum();
            assert!((share - 1.0).abs() < 0.01, "{}: {share}", scenario.name);
        }
    }
}
