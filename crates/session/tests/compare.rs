//! Two runs, compared measure by measure.

#![expect(clippy::unwrap_used, reason = "what cannot be opened is a failed test")]

use std::path::Path;

use session::Session;
use session::compare::{Comparison, Measure};

fn open(name: &str) -> Session {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/synthetic").join(name);
    Session::open(&path).unwrap()
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let run = open("input_70");
    let same = Comparison::of(&run, &run);
    assert!(same.step.iter().all(|it| it.delta_ms.is_none_or(|it| it == 0.0)), "{:?}", same.step);
    assert!(same.by_category.iter().all(|it| it.delta_ms == Some(0.0)));
    assert!(same.by_op.iter().all(|it| it.delta_ms == 0.0));
    assert_eq!(same.facts, []);
    assert_eq!((same.findings.fixed.len(), same.findings.new.len()), (0, 0));
    assert!(!same.findings.kept.is_empty());
}

#[test]
fn a_difference_is_what_the_second_takes_more() {
    let (tuned, slow) = (open("well_tuned"), open("input_70"));
    let (there, back) = (Comparison::of(&tuned, &slow), Comparison::of(&slow, &tuned));
    let mean = there.step.iter().find(|it| it.measure == Measure::Mean).unwrap();
    assert_eq!(mean.delta_ms, Some(mean.b_ms.unwrap() - mean.a_ms.unwrap()));
    for (x, y) in there.step.iter().zip(&back.step) {
        assert_eq!(x.delta_ms, y.delta_ms.map(|it| -it), "{:?}", x.measure);
    }
    let categories: f64 = there.by_category.iter().filter_map(|it| it.delta_ms).sum();
    assert!((categories - mean.delta_ms.unwrap()).abs() < 1e-6, "categories add to the mean step");
    assert!(there.findings.new.contains(&"input-bound"), "{:?}", there.findings);
    assert_eq!(there.findings.new, back.findings.fixed);
    assert!(there.by_op.is_sorted_by(|x, y| x.delta_ms.abs() >= y.delta_ms.abs()));
}
