//! `strobe attach` as users meet it: against profiler servers and Python processes on this
//! machine.

#![expect(clippy::unwrap_used, reason = "what cannot be run is a failed test")]

#[path = "../../capture/tests/servers/mod.rs"]
#[expect(dead_code, reason = "the hostile ones are for the tests of the crate that meets them")]
mod servers;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use self::servers::{Reply, dead_port, profiler, real_profile};

fn attach(args: &[&str], state: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strobe"));
    command.arg("attach").args(args).args(["--duration", "0.05"]);
    command.env("XDG_STATE_HOME", state).env_remove("COLUMNS").env_remove("NO_COLOR");
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn hosts_are_reported_together_and_the_dead_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let good = || profiler(|_| Reply::profile(real_profile())).0.to_string();
    let (first, second, dead) = (good(), good(), dead_port().to_string());
    let run = folder.path().join("run");
    let out = run.to_str().unwrap();
    let args = [&first, &dead, &second, "--out", out, "--format", "json", "--wait", "3"];
    let done = attach(&args, folder.path());
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains(&format!("error: {dead}: nothing listens there")), "{said}");
    assert!(said.contains("captured 2 of 3"), "{said}");

    let report = json(&done.stdout);
    assert_eq!(report["schema"], 1);
    let hosts = report["run"]["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 2, "two processes of one machine are told apart: {hosts:?}");
    assert_eq!(report["steps"]["found_by"], "markers");

    let manifest = json(&std::fs::read(run.join("manifest.json")).unwrap());
    assert_eq!((&manifest["schema"], &manifest["kind"]), (&1.into(), &"attach".into()));
    let targets = manifest["targets"].as_array().unwrap();
    let outcomes: Vec<_> = targets.iter().map(|it| it["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["captured", "failed", "captured"]);
    for target in targets.iter().filter(|it| it["outcome"] == "captured") {
        assert!(run.join(target["file"].as_str().unwrap()).is_file());
        assert_eq!(target["bytes"], real_profile().len());
    }

    // The folder opens again as one run, and is not used twice.
    let report = Command::new(env!("CARGO_BIN_EXE_strobe"))
        .args(["report", out, "--format", "json"])
        .output()
        .unwrap();
    assert_eq!(json(&report.stdout)["run"]["hosts"], json(&done.stdout)["run"]["hosts"]);
    let again = attach(&[&first, "--out", out], folder.path());
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("the run folder is not empty"));
}

#[test]
fn nothing_captured_is_an_error_that_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (garbage, _) = profiler(|_| Reply::profile(vec![0xFF; 1000]));
    let args = [&garbage.to_string(), &dead_port().to_string(), "--wait", "3"];
    let done = attach(&args, folder.path());
    assert_eq!(done.status.code(), Some(2));
    assert!(done.stdout.is_empty());
    let said = text(&done.stderr);
    assert!(said.contains("its 1000 bytes are no profile"), "{said}");
    assert!(said.ends_with("error: nothing was captured\n"), "{said}");
    let runs = folder.path().join("stroboscope/runs");
    assert_eq!(std::fs::read_dir(runs).unwrap().count(), 0);
}

#[test]
fn the_default_folder_is_named_by_time() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _) = profiler(|_| Reply::profile(real_profile()));
    let done = attach(&[&server.to_string()], folder.path());
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(text(&done.stdout).contains("Each step takes "));
    let runs = std::fs::read_dir(folder.path().join("stroboscope/runs")).unwrap();
    let names: Vec<_> = runs.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.len(), 1);
    assert!(names[0].starts_with("20") && names[0].ends_with("-attach"), "{names:?}");
}

#[test]
fn a_python_process_says_where_it_is_and_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let script = "def spin():\n  print('ready', flush=True)\n  while True: pass\nspin()\n";
    let python = Command::new("python3").args(["-c", script]).stdout(Stdio::piped()).spawn();
    let Ok(mut python) = python else {
        eprintln!("skipped: there is no python3");
        return;
    };
    let mut line = String::new();
    BufReader::new(python.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let pid = python.id().to_string();
    let run = folder.path().join("run");
    let args = [&pid, "--out", run.to_str().unwrap(), "--format", "json"];
    let done = attach(&args, folder.path());
    let _ = python.kill();
    let _ = python.wait();
    let said = text(&done.stderr);
    if said.contains("does not allow reading") {
        eprintln!("skipped: {said}");
        return;
    }
    assert_eq!(done.status.code(), Some(3), "{said}");
    assert!(said.contains("jax.profiler.start_server(6009)"), "{said}");
    assert!(run.join(format!("python-{pid}.jsonl")).is_file());
    let hottest = &json(&done.stdout)["beside"]["python_lines"][0];
    assert_eq!((&hottest["function"], &hottest["line"]), (&"spin".into(), &3.into()));
    assert_eq!(hottest["activity"], "driving");
    // Whoever opens the folder later is told the same.
    let report = |format: &str| {
        let args = ["report", run.to_str().unwrap(), "--format", format];
        Command::new(env!("CARGO_BIN_EXE_strobe")).args(args).output().unwrap()
    };
    assert_eq!(json(&report("json").stdout), json(&done.stdout));
    let shown = report("text");
    assert_eq!(shown.status.code(), Some(3));
    assert!(text(&shown.stdout).contains(" spin "), "{}", text(&shown.stdout));
}
