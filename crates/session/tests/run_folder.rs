//! A run folder is opened as one run: the profile and what was sampled beside it.

#![expect(clippy::unwrap_used, reason = "a failed helper is a failed test")]

use std::path::{Path, PathBuf};

use analyses::hardware::Hardware;
use analyses::run_info::window;
use session::Session;

/// A real profile in a run folder, with samples from long before to long after it.
fn run_folder(folder: &Path) -> (PathBuf, Session) {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/captured");
    let profile = testdata.join("retrace_loop/plugins/profile/run/host.xplane.pb");
    let alone = Session::open(&profile).unwrap();
    let below = folder.join("profile/7/plugins/profile/run");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::copy(&profile, below.join("vm.xplane.pb")).unwrap();
    std::fs::write(folder.join("manifest.json"), r#"{"schema": 1}"#).unwrap();
    let host = alone.trace().tracks_of(trace::TrackKind::Host).next().unwrap();
    let mut text = format!(
        "{{\"strobe\":\"hardware\",\"version\":1,\"host\":{:?},\"cores\":2,\
         \"columns\":[\"cpu/all\",\"memory/process\"]}}\n",
        alone.trace().track_name(host)
    );
    let origin = alone.trace().origin_unix_ns.unwrap();
    for at in -1000..5000_i64 {
        text += &format!("[{},0.5,{}]\n", origin + at * 10_000_000, 1_000_000 + at);
    }
    std::fs::write(folder.join("hardware.jsonl"), text).unwrap();
    (profile, alone)
}

#[test]
fn samples_join_the_profile_and_do_not_stretch_it() {
    let folder = tempfile::tempdir().unwrap();
    let (_, alone) = run_folder(folder.path());
    let run = Session::open(folder.path()).unwrap();
    assert_eq!(run.run.files.len(), 2);
    assert_eq!(run.trace().counters.len() - alone.trace().counters.len(), 12_000);
    assert_eq!(run.trace().origin_unix_ns, alone.trace().origin_unix_ns);
    assert_eq!(run.trace().notes, alone.trace().notes);
    assert_eq!(run.trace().tracks_of(trace::TrackKind::Host).count(), 1, "one host, not two");
    assert_eq!(window(run.trace()), window(alone.trace()));
    let (with, without) = (run.report(), alone.report());
    assert_eq!(with.breakdown, without.breakdown);
    let rows = run.tables().get::<Hardware>();
    let steps = run.tables().get::<analyses::step::Step>();
    let n_counted = steps.iter().filter(|it| it.counts()).count();
    assert!(n_counted > 2);
    assert_eq!(rows.len(), 2 * (n_counted + 1), "each step knows its resources");
    assert!(rows.iter().filter(|it| &*it.counter == "cpu/all").all(|it| it.mean == 0.5));
}

#[test]
fn samples_without_a_profile_are_opened_too() {
    let folder = tempfile::tempdir().unwrap();
    run_folder(folder.path());
    std::fs::remove_dir_all(folder.path().join("profile")).unwrap();
    let run = Session::open(folder.path()).unwrap();
    let rows = run.tables().get::<Hardware>();
    let seen: Vec<_> = rows.iter().map(|it| (it.step, &*it.counter, it.n)).collect();
    assert_eq!(seen, [(None, "cpu/all", 6000), (None, "memory/process", 6000)]);
}
