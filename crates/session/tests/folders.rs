//! Folders as they are found: links that loop, files with many names, and what cannot be read.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what cannot be prepared is a failed test")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use session::{Run, Session};
use trace::{NoteKind, TrackKind};

fn profile() -> PathBuf {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    testdata.join("synthetic/two_hosts/plugins/profile/run/host0.xplane.pb")
}

/// A log folder with one run, and that run's folder.
fn log_folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("plugins/profile/1");
    fs::create_dir_all(&run).unwrap();
    fs::copy(profile(), run.join("host.xplane.pb")).unwrap();
    (folder, run)
}

fn names(run: &Run, below: &Path) -> Vec<String> {
    let name = |it: &PathBuf| it.strip_prefix(below).unwrap().display().to_string();
    run.files.iter().map(name).collect()
}

#[test]
fn loops_of_links_end() {
    let (folder, run) = log_folder();
    for at in [folder.path(), &run] {
        for name in ["a", "b", "c", "d"] {
            symlink(".", at.join(name)).unwrap();
        }
        symlink("..", at.join("up")).unwrap();
    }
    let found = Run::find(folder.path()).unwrap();
    assert_eq!(names(&found, folder.path()), ["plugins/profile/1/host.xplane.pb"]);
    assert_eq!((found.others.len(), found.unreadable.len()), (0, 0));
}

#[test]
fn a_link_to_a_run_is_no_other_run_and_doubles_nothing() {
    let (folder, run) = log_folder();
    let alone = Session::open(folder.path()).unwrap();
    symlink("1", run.with_file_name("latest")).unwrap();
    symlink("1", run.with_file_name("0")).unwrap();
    let linked = Session::open(folder.path()).unwrap();
    let own_name = ["plugins/profile/1/host.xplane.pb"];
    assert_eq!(names(&linked.run, folder.path()), own_name);
    assert!(linked.run.others.is_empty());
    assert_eq!(linked.trace().events.len(), alone.trace().events.len());
    // The link can be named all the same.
    let named = Session::open(&run.with_file_name("latest")).unwrap();
    assert_eq!(named.trace().events.len(), alone.trace().events.len());
}

#[test]
fn a_capture_with_a_link_to_its_profile_has_each_host_once() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("profile/1");
    fs::create_dir_all(&run).unwrap();
    fs::write(folder.path().join("manifest.json"), r#"{"schema": 1}"#).unwrap();
    fs::copy(profile(), run.join("host.xplane.pb")).unwrap();
    symlink("1", folder.path().join("profile/latest")).unwrap();
    symlink("profile/1/host.xplane.pb", folder.path().join("newest.xplane.pb")).unwrap();
    fs::hard_link(run.join("host.xplane.pb"), run.join("kept.xplane.pb")).unwrap();
    let session = Session::open(folder.path()).unwrap();
    assert_eq!(names(&session.run, folder.path()), ["profile/1/host.xplane.pb"]);
    assert_eq!(session.trace().tracks_of(TrackKind::Host).count(), 1);
}

#[test]
fn what_lies_behind_a_link_alone_is_found() {
    let (elsewhere, run) = log_folder();
    let folder = tempfile::tempdir().unwrap();
    symlink(elsewhere.path(), folder.path().join("mounted")).unwrap();
    symlink(run.join("host.xplane.pb"), folder.path().join("one.xplane.pb")).unwrap();
    let found = Run::find(folder.path()).unwrap();
    assert_eq!((found.files.len(), found.others.len()), (1, 1));
}

#[test]
fn events_with_two_names_are_one_log() {
    let (folder, run) = log_folder();
    let log = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/captured/scalars/tf2");
    let log = log.join("events.out.tfevents.1.vm");
    fs::copy(log, folder.path().join("events.out.tfevents.1.vm")).unwrap();
    let n_scalars = |path: &Path| Session::open(path).unwrap().trace().scalars.len();
    let alone = n_scalars(&run);
    assert!(alone > 0);
    symlink("events.out.tfevents.1.vm", folder.path().join("last.tfevents")).unwrap();
    assert_eq!(n_scalars(folder.path()), alone, "the log folder was named");
    assert_eq!(n_scalars(&run), alone, "the run was named");
}

#[test]
fn what_cannot_be_looked_into_is_named() {
    let (folder, _) = log_folder();
    symlink("nowhere", folder.path().join("lost")).unwrap();
    symlink("ring", folder.path().join("ring")).unwrap();
    let locked = folder.path().join("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    // Nothing is locked for the superuser.
    let is_locked = fs::read_dir(&locked).is_err();
    let session = Session::open(folder.path()).unwrap();
    let note = session.trace().notes.iter().find(|it| it.kind == NoteKind::UnreadableFile).unwrap();
    assert_eq!(note.count, 2 + u64::from(is_locked), "{note:?}");
    for name in ["lost", "ring"].into_iter().chain(is_locked.then_some("locked")) {
        assert_eq!(note.first.matches(&format!("{name}: ")).count(), 1, "{name}: {}", note.first);
    }
    assert!(note.first.contains("lost: this link leads nowhere"), "{}", note.first);
    assert!(!note.first.contains("IO error for operation"), "{}", note.first);
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_folder_of_which_nothing_can_be_read_says_why() {
    let folder = tempfile::tempdir().unwrap();
    symlink("nowhere", folder.path().join("run")).unwrap();
    let error = Session::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("as far as it can be read") && error.contains("run:"), "{error}");
    assert!(error.lines().last().unwrap().contains("path: "), "the path comes last: {error}");
}
