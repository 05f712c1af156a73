//! Disks that are full: whoever asked for an answer hears that it could not be written.

#![cfg(target_os = "linux")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn profile() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/captured/keras_fit")
}

fn check_error(what: &str, done: &Output, said: &str) {
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{what}: {}: {error}", done.status);
    assert!(error.contains(said), "{what}: {error}");
}

#[test]
fn what_cannot_be_printed_is_an_error() {
    let profile = profile();
    let profile = profile.to_str().unwrap();
    for command in [
        vec!["report", profile],
        vec!["report", profile, "--format", "json"],
        vec!["table", profile, "step", "--format", "csv"],
        vec!["sql", profile, "select * from step"],
        vec!["export", profile, "--to", "html", "--out", "-"],
        vec!["licenses"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut strobe = Command::new(env!("CARGO_BIN_EXE_strobe"));
        let done = strobe.args(&command).stdout(full).output().unwrap();
        check_error(&command.join(" "), &done, "No space left on device");
    }
}

/// No file may be larger than 100 blocks, and nobody is killed for trying.
#[test]
fn half_a_page_does_not_stay() {
    let folder = tempfile::tempdir().unwrap();
    for force in ["", "--force"] {
        let line = format!(
            "trap '' XFSZ; ulimit -f 100; exec \"$0\" export \"$1\" --to html -o a {force}"
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &line, env!("CARGO_BIN_EXE_strobe")]).arg(profile());
        let done = shell.current_dir(folder.path()).output().unwrap();
        check_error(&line, &done, "cannot write the page: File too large");
        assert!(!folder.path().join("a").exists());
    }
}
