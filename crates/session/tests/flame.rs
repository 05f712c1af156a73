//! What flame graphs are drawn of, over real profiles: times add up, whatever of a log is left.

#![expect(clippy::unwrap_used, reason = "what cannot be opened is a failed test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use analyses::python_stack::PythonStack;
use analyses::scope_step::ScopeStep;
use analyses::scope_time::ScopeTime;
use analyses::step::Step;
use session::Session;

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

/// Children are inside of their callers; self times add to the time sampled.
fn check(calls: &[PythonStack]) {
    let mut inside = vec![0; calls.len()];
    for call in calls {
        if let Some(parent) = call.parent {
            let around = &calls[usize::try_from(parent).unwrap()];
            assert!(call.start_ps >= around.start_ps, "{call:?}");
            assert!(call.start_ps + call.dur_ps <= around.start_ps + around.dur_ps, "{call:?}");
            inside[usize::try_from(parent).unwrap()] += call.dur_ps;
        }
    }
    for (call, inside) in calls.iter().zip(inside) {
        assert_eq!(call.dur_ps - inside, call.self_ps, "{call:?}");
    }
    let outermost: i64 = calls.iter().filter(|it| it.depth == 0).map(|it| it.dur_ps).sum();
    assert_eq!(calls.iter().map(|it| it.self_ps).sum::<i64>(), outermost);
}

#[test]
fn stacks_of_a_run_are_calls_with_their_lines() {
    let run = Session::open(&testdata("captured/run_folder")).unwrap();
    let calls = run.tables().get::<PythonStack>();
    check(&calls);
    let roles: Vec<_> = calls.chunk_by(|a, b| a.lane == b.lane).map(|it| it[0].role).collect();
    assert_eq!(roles, ["driving", "input", "input"], "none of our own threads");
    assert!(calls.iter().all(|it| !it.file.contains("/.hook/")), "none of our own frames");
    // What was sampled in a step is no longer than the step.
    let mut in_steps: BTreeMap<i64, i64> = BTreeMap::new();
    for call in calls.iter().filter(|it| it.depth == 0 && it.lane == 0) {
        if let Some(step) = call.step {
            *in_steps.entry(step).or_default() += call.dur_ps;
        }
    }
    assert!(in_steps.len() > 10, "{in_steps:?}");
    for step in run.tables().get::<Step>().iter() {
        let sampled = in_steps.get(&step.step).copied().unwrap_or(0);
        assert!(sampled <= step.dur_ps, "{step:?}");
    }
    // The program says where its Python goes: into this line of the log.
    let own = calls.iter().filter(|it| it.lane == 0 && it.own && it.step.is_some());
    let longest = own.max_by_key(|it| it.self_ps).unwrap();
    assert_eq!((&*longest.function, longest.line), ("standardize", Some(33)));
    assert_eq!(longest.text.as_deref(), Some("values[i % 8] += i ^ 7"));
}

#[test]
fn a_log_that_was_cut_or_damaged_still_adds_up() {
    let from = testdata("captured/run_folder");
    let name = "stacks-18756.jsonl";
    let log = fs::read(from.join(name)).unwrap();
    let damaged = |at: usize, how: usize| -> Vec<u8> {
        let mut log = log.clone();
        match how {
            0 => log.truncate(at),
            1 => drop(log.drain(at..(at + 900).min(log.len()))),
            _ => log[at] = b'9',
        }
        log
    };
    let folder = tempfile::tempdir().unwrap();
    fs::copy(from.join("manifest.json"), folder.path().join("manifest.json")).unwrap();
    let python = "python-18756.jsonl";
    fs::copy(from.join(python), folder.path().join(python)).unwrap();
    let mut most = 0;
    for nth in 0..30 {
        let log = damaged(log.len() * (nth + 1) / 31, nth % 3);
        fs::write(folder.path().join(name), log).unwrap();
        let run = Session::open(folder.path()).unwrap();
        let calls = run.tables().get::<PythonStack>();
        check(&calls);
        most = most.max(calls.len());
    }
    assert!(most > 500, "{most}");
}

#[test]
fn a_log_without_source_lines_is_read_as_before() {
    let from = testdata("captured/run_folder");
    let folder = tempfile::tempdir().unwrap();
    for name in ["manifest.json", "python-18756.jsonl", "stacks-18756.jsonl"] {
        let text = fs::read_to_string(from.join(name)).unwrap();
        let old: Vec<&str> = text.lines().filter(|it| !it.starts_with("[\"source\"")).collect();
        fs::write(folder.path().join(name), old.join("\n") + "\n").unwrap();
    }
    let run = Session::open(folder.path()).unwrap();
    let calls = run.tables().get::<PythonStack>();
    check(&calls);
    assert!(calls.iter().any(|it| &*it.function == "standardize" && it.text.is_none()));
    assert_eq!(run.report().notes, []);
}

#[test]
fn scopes_of_steps_add_to_scopes_in_every_profile() {
    let mut n_scopes = 0;
    for group in ["captured", "synthetic"] {
        for entry in fs::read_dir(testdata(group)).unwrap() {
            let Ok(run) = Session::open(&entry.unwrap().path()) else { continue };
            let steps = run.tables().get::<ScopeStep>();
            let mut sums: BTreeMap<(&str, &str), i64> = BTreeMap::new();
            for it in steps.iter() {
                *sums.entry((it.side, &it.scope)).or_default() += it.total_ps;
            }
            for all in run.tables().get::<ScopeTime>().iter() {
                n_scopes += 1;
                let of = |side| sums.get(&(side, all.scope.as_str())).copied().unwrap_or(0);
                let found = (of("host"), of("device"));
                let expected = (all.total_ps, all.device_ps.unwrap_or(0));
                assert_eq!(found, expected, "{}: {all:?}", run.run.name);
            }
        }
    }
    assert!(n_scopes > 300, "{n_scopes}");
}
