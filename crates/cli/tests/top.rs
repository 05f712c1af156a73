//! `strobe top` as scripts meet it: which run it takes, what it prints, when it ends.

#![expect(clippy::unwrap_used, reason = "what cannot be run is a failed test")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A home of its own: runs of whoever tests must not be seen, nor seen by others.
struct Home(TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strobe"));
        command.arg("top").args(args).env("XDG_STATE_HOME", self.0.path());
        command.env_remove("COLUMNS").stdin(Stdio::null());
        command
    }

    fn top(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// A run in the usual place.
    fn run(&self, name: &str) -> Run {
        Run(self.0.path().join("stroboscope/runs").join(name))
    }
}

struct Run(std::path::PathBuf);

impl Run {
    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn manifest(&self, more: Value) {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let mut all = json!({"schema": 1, "command": ["python", "train.py"],
                             "started_unix_ns": now_ns(), "machine": {"host": host.trim()}});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fs::create_dir_all(&self.0).unwrap();
        // As it is written for real: whole or not at all.
        fs::write(self.0.join("part"), all.to_string()).unwrap();
        fs::rename(self.0.join("part"), self.0.join("manifest.json")).unwrap();
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).unwrap();
    }

    /// Forty steps of 50 ms that end now, and two seconds of samples.
    fn fill(&self, pid: u32) {
        let began = now_ns() - 2_000_000_000;
        let mut log = format!(
            "{{\"strobe\":\"python\",\"version\":1,\"pid\":{pid},\"python\":\"3.12.1\",\"script\":\"train.py\"}}\n\
             [\"framework\",\"jax\",\"0.10.2\"]\n[\"step-key\",{began},\"function\",\"train_step\",{pid}]\n"
        );
        let mut samples = format!(
            "{{\"strobe\":\"hardware\",\"version\":1,\"pid\":{pid},\"cores\":8,\
             \"columns\":[\"cpu/process\",\"memory/process\",\"gpu 0/busy\"],\"gpus\":[],\"missing\":[]}}\n"
        );
        for n in 0..40 {
            let at = began + n * 50_000_000;
            log += &format!("[\"step\",{at},{}]\n", n + 1);
            samples += &format!("[{at},3.5,1500000000,null]\n");
        }
        self.write(&format!("python-{pid}.jsonl"), &log);
        self.write("hardware.jsonl", &samples);
    }
}

fn now_ns() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn check_error(done: &Output, said: &[&str]) {
    assert_eq!(done.status.code(), Some(2), "{}", text(&done.stderr));
    assert!(done.stdout.is_empty());
    let error = text(&done.stderr);
    assert!(said.iter().all(|it| error.contains(it)), "{error}");
}

/// A process that is no run of ours, for as long as it is needed.
struct Stranger(Child);

impl Stranger {
    fn start() -> Stranger {
        Stranger(Command::new("sleep").arg("600").spawn().unwrap())
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A pipe, and whether somebody opened it. Who does gets nothing, and need not wait for it.
#[cfg(unix)]
struct Pipe {
    path: std::path::PathBuf,
    writer: Option<std::thread::JoinHandle<()>>,
}

#[cfg(unix)]
impl Pipe {
    /// `None` where there are none.
    fn make(path: std::path::PathBuf) -> Option<Pipe> {
        let _ = fs::remove_file(&path);
        Command::new("mkfifo").arg(&path).status().ok().filter(|it| it.success())?;
        let writer = std::thread::spawn({
            let path = path.clone();
            // Waits until somebody reads.
            move || drop(fs::File::options().write(true).open(path))
        });
        Some(Pipe { path, writer: Some(writer) })
    }

    fn was_opened(mut self) -> bool {
        let writer = self.writer.take().unwrap();
        let was_opened = writer.is_finished();
        // Lets go of the writer where nobody else did.
        let _ = Command::new("sh").args(["-c", "exec 3<>\"$0\""]).arg(&self.path).status();
        writer.join().unwrap();
        was_opened
    }
}

#[cfg(unix)]
#[test]
fn no_pipe_is_opened() {
    let home = Home::new();
    for name in ["manifest.json", "hardware.jsonl", "python-7.jsonl"] {
        let run = home.run(&format!("with-{name}"));
        run.manifest(json!({"ended_unix_ns": now_ns(), "exit": {"code": 0}}));
        run.fill(8);
        let Some(pipe) = Pipe::make(run.0.join(name)) else {
            println!("skipped: mkfifo is not here");
            return;
        };
        let done = home.top(&[run.path(), "--once", "--format", "json"]);
        assert!(!pipe.was_opened(), "{name}");
        let expected = if name == "manifest.json" { 2 } else { 0 };
        assert_eq!(done.status.code(), Some(expected), "{name}: {}", text(&done.stderr));
    }
}

#[test]
fn what_is_no_run_is_refused() {
    let home = Home::new();
    check_error(&home.top(&["no/such/folder"]), &["no such run folder", "no/such/folder"]);
    let other = tempfile::tempdir().unwrap();
    let other = other.path().to_str().unwrap();
    check_error(&home.top(&[other, "--once"]), &["no folder of `strobe run`", other]);
    check_error(&home.top(&["--interval", "0"]), &["--interval"]);
}

#[test]
fn a_process_that_was_not_started_by_us_is_told_apart() {
    let home = Home::new();
    let stranger = Stranger::start();
    let pid = stranger.0.id().to_string();
    check_error(&home.top(&[&pid]), &["`strobe run`", &format!("strobe attach {pid}")]);
    drop(stranger);
    check_error(&home.top(&[&pid]), &[&format!("there is no process {pid}")]);
}

#[test]
fn a_process_leads_to_its_run() {
    let home = Home::new();
    let stranger = Stranger::start();
    let pid = stranger.0.id();
    // It has ended, and had another process.
    let older = home.run("2026-11-16T05-31-07-older");
    older.manifest(json!({"pid": 4_000_000_000_u32, "ended_unix_ns": now_ns()}));
    older.fill(4_000_000_001);
    let run = home.run("2026-11-16T05-31-08-train");
    run.manifest(json!({"pid": pid}));
    run.fill(pid);
    let done = home.top(&[&pid.to_string(), "--once", "--format", "json"]);
    let now: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&now["schema"], &now["run"]["path"]), (&json!(1), &json!(run.path())));
    assert_eq!(now["state"], "warming up");
    assert_eq!((&now["steps"]["count"], &now["steps"]["name"]), (&json!(40), &json!("train_step")));
    assert_eq!(now["steps"]["median_ms"], 50.0);
    assert_eq!(now["hardware"]["cpu_process_cores"], 3.5);
    let gpu = &now["hardware"]["gpus"][0];
    assert!(gpu["busy_share"].is_null() && now["breakdown"].is_null(), "unknown is not zero");
    // One of a run that is over leads to what was kept.
    let done = home.top(&["4000000001", "--once", "--format", "json"]);
    let then: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(then["run"]["path"], older.path());
    assert_eq!(then["state"], "ended");
}

#[test]
fn a_run_that_has_ended_is_shown_as_it_ended() {
    let home = Home::new();
    let run = home.run("ended");
    run.manifest(json!({"ended_unix_ns": now_ns() + 1_000_000_000, "exit": {"code": 7}}));
    run.fill(4_000_000_000);
    let done = home.top(&[run.path(), "--once"]);
    assert_eq!(done.status.code(), Some(0));
    let page = text(&done.stdout);
    assert!(page.contains(" ended  with exit code 7; nothing was captured\n"), "{page}");
    assert!(page.contains("20.0 at the end"), "{page}");
    assert!(page.contains("50.0 ms median"), "{page}");
    assert!(page.contains("3.50 of 8 cores"), "{page}");
    assert!(page.contains("not known: nothing was captured"), "{page}");
    assert!(page.lines().all(|it| it.chars().count() <= 80), "{page}");
    assert!(!page.contains('\u{1b}'));
    // Lines for a log: one, as there is nothing to wait for.
    let done = home.top(&[run.path()]);
    assert_eq!(done.status.code(), Some(0));
    let lines = text(&done.stdout);
    assert_eq!(lines.lines().count(), 1, "{lines}");
    for said in ["     40 steps", "20.0/s", "50.0 ms", "CPU  3.50 cores", "1.50 GB", "GPU 0     –"]
    {
        assert!(lines.contains(said), "{said}: {lines}");
    }
    assert!(lines.ends_with("ended: with exit code 7; nothing was captured\n"), "{lines}");
}

#[test]
fn lines_go_on_until_the_run_ends() {
    use std::io::{BufRead as _, BufReader};
    let home = Home::new();
    let run = home.run("going-on");
    run.manifest(json!({"pid": std::process::id()}));
    let args = [run.path(), "--plain", "--interval", "0.1"];
    let mut top = home.command(&args).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.contains("      – steps"), "{first}");
    assert!(first.contains("CPU     – cores"), "{first}");
    assert!(first.contains("searching for steps: "), "{first}");
    run.fill(std::process::id());
    let grown = lines.by_ref().map(|it| it.unwrap()).find(|it| it.contains("40 steps"));
    assert!(grown.unwrap().ends_with("warming up: until steps keep their pace"));
    run.manifest(
        json!({"pid": std::process::id(), "ended_unix_ns": now_ns(), "exit": {"signal": 9}}),
    );
    let last = lines.map(|it| it.unwrap()).last().unwrap();
    assert!(last.ends_with("ended: by signal 9; nothing was captured"), "{last}");
    assert_eq!(top.wait().unwrap().code(), Some(0));
}

#[test]
fn where_the_time_goes_is_read_from_the_profile() {
    let home = Home::new();
    let run = home.run("captured");
    run.manifest(json!({"strobe": "0", "ended_unix_ns": now_ns(), "exit": {"code": 0}}));
    run.write(
        "python-1.jsonl",
        "[\"said\",5,\"window-end\",\"10 steps\"]\n[\"said\",6,\"saved\",\"\"]\n",
    );
    let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/synthetic/input_70");
    copy(&profile, &run.0.join("profile/1"));
    let done = home.top(&[run.path(), "--once"]);
    let page = text(&done.stdout);
    assert!(page.contains(" where 10 ms go, of "), "{page}");
    assert!(page.contains("█ input 70%   ▒ compute"), "{page}");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|it| it.unwrap()) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}
