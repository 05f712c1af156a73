//! `strobe run` leaves the training alone: how it ends, what signals reach it, and what it runs in,
//! whatever happens to the run folder.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what cannot be run is a failed test")]

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// A folder to run in.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// `strobe run OPTIONS -- sh -c SCRIPT`.
    fn command(&self, options: &[&str], script: &str) -> Command {
        let mut command = with_all_signals();
        command.arg("run").args(options).args(["--", "sh", "-c", script]);
        command.current_dir(self.path()).env("XDG_STATE_HOME", self.path().join("state"));
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, options: &[&str], script: &str) -> Output {
        self.command(options, script).output().unwrap()
    }
}

/// The program, with no signal ignored: `nohup` and a shell's `&` hand down that some are.
fn with_all_signals() -> Command {
    let program = env!("CARGO_BIN_EXE_strobe");
    if !cfg!(target_os = "linux") {
        return Command::new(program);
    }
    let mut command = Command::new("env");
    command.args(["--default-signal", program]);
    command
}

/// Waits for a signal, but not for ever.
const WAITS: &str = "n=0; while [ $n -lt 1000 ]; do sleep 0.02; n=$((n + 1)); done";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a line of shell in which `$strobe` is the program.
fn shell(place: &Place, line: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(place.path()).stdin(Stdio::null());
    command.env("strobe", env!("CARGO_BIN_EXE_strobe")).output().unwrap()
}

#[test]
fn whatever_happens_to_the_folder_the_end_is_the_commands() {
    let place = Place::new();
    for (script, said) in [
        (r#"until rm -rf "$STROBE_RUN_FOLDER"; do :; done"#, "the run folder was removed"),
        (
            r#"until rm -rf "$STROBE_RUN_FOLDER"; do :; done; echo > "$STROBE_RUN_FOLDER""#,
            "of this run was recorded",
        ),
        (r#"mkdir "$STROBE_RUN_FOLDER/manifest.json.part""#, "of this run was recorded"),
        (r#"rm -rf "$STROBE_RUN_FOLDER/.hook""#, "with code 7"),
    ] {
        let out = format!("run{}", script.len());
        for (end, code, signal) in [("exit 7", Some(7), None), ("kill -KILL $$", None, Some(9))] {
            let done = place.run(&["--out", &out], &format!("{script}; echo trained; {end}"));
            assert_eq!((done.status.code(), done.status.signal()), (code, signal), "{script}");
            assert_eq!(text(&done.stdout), "trained\n");
            let says = code.is_none() || text(&done.stderr).contains(said);
            assert!(says, "{script}: {}", text(&done.stderr));
            let _ = fs::remove_dir_all(place.path().join(&out));
            let _ = fs::remove_file(place.path().join(&out));
        }
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_said_and_the_command_runs() {
    let place = Place::new();
    fs::write(place.path().join("file"), "").unwrap();
    for out in ["/proc/run", "file/run"] {
        let done = place.run(&["--out", out], "echo trained; exit 4");
        assert_eq!((done.status.code(), text(&done.stdout).as_str()), (Some(4), "trained\n"));
        let said = text(&done.stderr);
        assert!(said.starts_with("warning: this run is not recorded: "), "{said}");
    }
}

#[test]
fn a_full_disk_is_said() {
    let place = Place::new();
    // No file may be larger than one block: what strobe writes fails as on a full disk.
    let done = shell(
        &place,
        r#"ulimit -f 1; "$strobe" run --out run -- sh -c 'sleep 1; echo trained; exit 6'"#,
    );
    assert_eq!((done.status.code(), text(&done.stdout).as_str()), (Some(6), "trained\n"));
    let said = text(&done.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("not all of this run was recorded"), "{said}");

    // A disk of its own, where we may have one.
    let done = shell(
        &place,
        r#"mkdir disk; exec unshare -m sh -c '
            mount -t tmpfs -o size=128k disk disk || exit 99
            "$strobe" run --out disk/run -- sh -c "cat /dev/zero > disk/fill; echo trained; exit 6"
        '"#,
    );
    if !text(&done.stdout).contains("trained") {
        println!("skipped: no file system can be mounted here: {}", text(&done.stderr));
        return;
    }
    assert_eq!(done.status.code(), Some(6), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("the disk is full"), "{}", text(&done.stderr));
}

#[test]
fn a_command_that_does_not_start_deletes_nothing() {
    let place = Place::new();
    let own = place.path().join("own");
    fs::create_dir(&own).unwrap();
    fs::write(place.path().join("no-program"), "").unwrap();
    for (program, code) in [("no-such-command", 127), ("./no-program", 126), ("./nothing", 127)] {
        for out in ["own", "new"] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_strobe"));
            command.args(["run", "--out", out, "--", program]).current_dir(place.path());
            let done = command.output().unwrap();
            assert_eq!(done.status.code(), Some(code), "{}", text(&done.stderr));
            assert!(own.exists(), "{program}");
            assert!(!place.path().join("new").exists(), "{program}");
        }
    }
    // Nor is anything touched where the folder is in use.
    fs::write(own.join("thesis.tex"), "mine").unwrap();
    let done = place.run(&["--out", "own"], "echo trained");
    assert_eq!((done.status.code(), text(&done.stdout).as_str()), (Some(2), ""));
    assert_eq!(fs::read_dir(&own).unwrap().count(), 1);
}

#[test]
fn nothing_of_the_repository_runs_or_holds_up_the_command() {
    let place = Place::new();
    let made = shell(
        &place,
        r#"git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m a &&
           printf '#!/bin/sh\ntouch ran\nsleep 1000\n' > monitor && chmod +x monitor &&
           git config core.fsmonitor ./monitor && git config core.hooksPath ."#,
    );
    if !made.status.success() {
        println!("skipped: no git: {}", text(&made.stderr));
        return;
    }
    let done = place.run(&["--out", "run"], "exit 5");
    assert_eq!(done.status.code(), Some(5));
    assert!(!place.path().join("ran").exists());
    let manifest = fs::read_to_string(place.path().join("run/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["git"]["commit"].as_str().unwrap().len(), 40, "{manifest}");
}

/// A command that waits, with traps; ended when dropped.
struct Waiting(Child);

impl Waiting {
    fn start(place: &Place, out: &str, script: &str) -> Waiting {
        let mut command = place.command(&["--out", out], script);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        // Byte by byte: what follows is read by others.
        let mut out = BufReader::with_capacity(1, child.stdout.as_mut().unwrap());
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Waiting(child)
    }

    fn signal(&self, signal: &str) {
        let kill = format!("kill -{signal} {}", self.0.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    fn end(mut self) -> (Option<i32>, Option<i32>, String) {
        let mut out = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        let status = self.0.wait().unwrap();
        (status.code(), status.signal(), out)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            self.signal("TERM");
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

#[test]
fn signals_reach_the_command() {
    let place = Place::new();
    let signals = ["HUP", "INT", "QUIT", "ALRM", "TERM", "USR1", "URG", "WINCH", "TSTP", "VTALRM"];
    for signal in signals.into_iter().chain(["34", "50", "64"]) {
        let script = format!("trap 'echo got {signal}; exit 9' {signal}; echo ready; {WAITS}");
        let waiting = Waiting::start(&place, &format!("run{signal}"), &script);
        waiting.signal(signal);
        assert_eq!(waiting.end(), (Some(9), None, format!("got {signal}\n")));
    }
}

#[test]
fn the_end_by_a_signal_is_the_commands() {
    let place = Place::new();
    for (signal, number) in [("ALRM", 14), ("HUP", 1), ("TERM", 15), ("34", 34)] {
        let script = format!("echo ready; {WAITS}");
        let waiting = Waiting::start(&place, &format!("run{signal}"), &script);
        waiting.signal(signal);
        assert_eq!(waiting.end(), (None, Some(number), String::new()), "{signal}");
    }
}

#[test]
fn a_session_of_outside_the_container_is_no_harm() {
    let place = Place::new();
    let line = r#"unshare -pf "$strobe" run --out run -- \
        sh -c 'trap "echo got; exit 9" TERM; kill -TERM $PPID; n=0
            while [ $n -lt 500 ]; do sleep 0.02; n=$((n + 1)); done'"#;
    let done = shell(&place, line);
    if text(&done.stderr).contains("unshare") {
        println!("skipped: no container can be made here: {}", text(&done.stderr));
        return;
    }
    let said = (done.status.code(), text(&done.stdout));
    assert_eq!(said, (Some(9), "got\n".to_owned()), "{}", text(&done.stderr));
    assert!(!text(&done.stderr).contains("panicked"), "{}", text(&done.stderr));
}

#[test]
fn what_was_ignored_stays_ignored() {
    let place = Place::new();
    let done = shell(
        &place,
        r#"trap '' HUP; exec "$strobe" run --out run -- sh -c 'kill -HUP $$ $PPID; echo alive'"#,
    );
    assert_eq!((done.status.code(), text(&done.stdout).as_str()), (Some(0), "alive\n"));
}

fn check_private(path: &Path) {
    let mode = fs::symlink_metadata(path).unwrap().mode() & 0o777;
    match path.is_dir() {
        true => {
            assert_eq!(mode, 0o700, "{}", path.display());
            for entry in fs::read_dir(path).unwrap() {
                check_private(&entry.unwrap().path());
            }
        }
        false => assert_eq!(mode, 0o600, "{}", path.display()),
    }
}

#[test]
fn run_folders_are_private_whatever_the_umask() {
    let place = Place::new();
    for umask in ["0", "077", "0777"] {
        let line = format!(
            r#"umask {umask}; "$strobe" run --out run{umask} -- sh -c '
                stat -c %a "$STROBE_RUN_FOLDER/.hook" "$STROBE_RUN_FOLDER/.hook/sitecustomize.py"
                umask 0; mkdir "$STROBE_RUN_FOLDER/profile"; echo x > "$STROBE_RUN_FOLDER/profile/x"'"#
        );
        let done = shell(&place, &line);
        // While it runs and afterwards.
        assert_eq!(text(&done.stdout), "700\n600\n", "umask {umask}: {}", text(&done.stderr));
        check_private(&place.path().join(format!("run{umask}")));
    }
}

#[test]
fn nobody_else_brings_the_hook() {
    let place = Place::new();
    // Made by somebody else for us: it may be theirs, or a link, or in a folder of everybody.
    let all = Permissions::from_mode(0o777);
    let open = place.path().join("open");
    fs::create_dir_all(open.join("run")).unwrap();
    fs::set_permissions(&open, all.clone()).unwrap();
    fs::create_dir(place.path().join("theirs")).unwrap();
    fs::set_permissions(place.path().join("theirs"), all).unwrap();
    std::os::unix::fs::symlink("open/run", place.path().join("link")).unwrap();
    let mut outs = vec!["open/run", "open/new", "link"];
    match std::os::unix::fs::chown(place.path().join("theirs"), Some(12345), None) {
        Ok(()) => outs.push("theirs"),
        Err(_) => println!("skipped: only root can give a folder to another user"),
    }
    for out in outs {
        let done = place.run(&["--out", out], "echo trained");
        assert_eq!((done.status.code(), text(&done.stdout).as_str()), (Some(2), ""), "{out}");
    }
}

#[test]
fn a_program_that_fails_hears_no_word_about_steps() {
    let place = Place::new();
    let done = place.run(&["--out", "run"], "echo 'ImportError: no module' >&2; exit 1");
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(1));
    assert!(!said.contains("step") && !said.contains("TensorFlow"), "{said}");
    assert!(said.contains("the command ended with code 1"), "{said}");
}
