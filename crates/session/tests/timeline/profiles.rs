//! Real and synthetic profiles lose nothing either.

use std::path::{Path, PathBuf};

use session::Session;
use session::timeline::LEVELS;

use crate::model::{check_lanes, check_level};

/// Every run below a folder of test data.
fn runs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(folder);
    let entries = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let mut runs: Vec<PathBuf> =
        entries.filter(|it| it.is_dir() && !it.ends_with("scripts")).collect();
    runs.sort();
    runs
}

fn check(run: &Path) {
    let session = Session::open(run).unwrap();
    let (trace, timeline) = (session.trace(), session.timeline());
    check_lanes(trace, &timeline);
    // Below a microsecond almost every event has a tile of its own, which takes long.
    let is_large = trace.events.len() > 5000;
    for level in LEVELS.filter(|it| !is_large || *it >= 36 || [10, 22, 29].contains(it)) {
        check_level(trace, &timeline, level);
    }
    let overview = timeline.overview();
    for (at, track) in overview.tracks.iter().enumerate() {
        assert_eq!(track.id.row(), at);
        assert!(track.parent.is_none_or(|it| it.row() < at), "parents first");
        assert_eq!(track.lanes > 0, track.n_events > 0);
        let rows = trace.tracks[at].rows();
        let last = rows.clone().map(|it| trace.events.end(trace::EventId(it as u32)).0).max();
        if last.is_some() {
            assert_eq!(track.last_ps, last);
            assert_eq!(track.first_ps, Some(trace.events.start[rows.start].0));
        }
        assert!(last.is_none_or(|it| it <= overview.end_ps));
    }
    for (at, step) in overview.steps.iter().enumerate() {
        assert_eq!(trace.tracks[step.host.row()].kind, trace::TrackKind::Host);
        let same_host = at > 0 && overview.steps[at - 1].host == step.host;
        assert!(!same_host || overview.steps[at - 1].start_ps <= step.start_ps);
    }
    let everything = timeline.range(i64::MIN, i64::MAX, None).unwrap();
    assert_eq!(everything.count as usize, trace.events.len());
    let total: i128 = everything.rows.iter().map(|it| it.total_ps).sum();
    assert_eq!(total, trace.events.dur.iter().map(|it| i128::from(it.0)).sum::<i128>());
}

#[test]
fn captured_profiles_lose_nothing() {
    let runs = runs("captured");
    assert!(runs.len() > 5);
    runs.iter().for_each(|it| check(it));
}

#[test]
fn synthetic_profiles_lose_nothing() {
    let runs = runs("synthetic");
    assert!(runs.len() > 10);
    runs.iter().for_each(|it| check(it));
}

/// What a compiled op is, and which line it came from, as JAX wrote both into the profile.
#[test]
fn an_op_of_a_compiled_program_shows_its_instruction() {
    let run = runs("captured").into_iter().find(|it| it.ends_with("jax_steps")).unwrap();
    let session = Session::open(&run).unwrap();
    let (trace, timeline) = (session.trace(), session.timeline());
    let ids = (0..trace.events.len() as u32).map(trace::EventId);
    let ops: Vec<trace::EventId> = ids.filter(|it| trace.detail(*it).hlo_op.is_some()).collect();
    assert!(ops.len() > 50, "{}", ops.len());
    for op in ops {
        let detail = timeline.event(op).unwrap();
        let (hlo, name) = (detail.hlo.unwrap(), detail.hlo_op.unwrap());
        assert!(hlo.starts_with(&format!("%{name} = ")), "{hlo}");
        if name == "multiply_add_fusion.1" {
            assert!(
                hlo.contains("f32[384,768]{1,0} fusion(%wrapped_tanh.1, %ynn_fusion.2)"),
                "{hlo}"
            );
            assert!(hlo.contains("%add_any.1 = f32[384,768]{1,0} add(%mul.9, %mul.8)"), "{hlo}");
            let source = detail.source.unwrap();
            assert!(source.ends_with("scripts/jax_steps.py:13"), "{source}");
        }
    }
}
