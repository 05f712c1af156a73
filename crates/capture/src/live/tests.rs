use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use tempfile::TempDir;

use super::{Live, LiveError, Snapshot, State};

const MS: i64 = 1_000_000;
const S: i64 = 1_000 * MS;

/// A run folder written bit by bit, as this process were the one that runs.
struct Fixture {
    folder: TempDir,
    began_ns: i64,
    live: Option<Live>,
}

impl Fixture {
    fn new() -> Fixture {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let fixture = Fixture {
            folder: tempfile::tempdir().unwrap(),
            began_ns: i64::try_from(now.as_nanos()).unwrap() / S * S,
            live: None,
        };
        fixture.manifest(json!({}));
        fixture
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn manifest(&self, more: serde_json::Value) {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let mut all = json!({"schema": 1, "started_unix_ns": self.began_ns, "command": ["python", "train.py"],
            "pid": std::process::id(), "machine": {"host": host.trim(), "memory_bytes": 8_000_000_000_i64}});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fs::write(self.path().join("manifest.json"), all.to_string()).unwrap();
    }

    fn append(&self, file: &str, text: &str) {
        let path = self.path().join(file);
        let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn python(&self, text: &str) {
        self.append("python-7.jsonl", text);
    }

    /// Steps `from..until`, each `each_ns` long, from a time after the beginning.
    fn steps(&self, from: i64, until: i64, at_ns: i64, each_ns: i64) {
        let line =
            |n: i64| format!("[\"step\",{},{n}]\n", self.began_ns + at_ns + (n - from) * each_ns);
        self.python(&(from..until).map(line).collect::<String>());
    }

    /// How things stand so long after the beginning.
    fn at(&mut self, after_ns: i64) -> Snapshot {
        let live = match self.live.take() {
            None => Live::open(self.folder.path()).unwrap(),
            Some(mut live) => {
                live.look().unwrap();
                live
            }
        };
        self.live.insert(live).snapshot_at(self.began_ns + after_ns)
    }
}

const HEADER: &str = "{\"strobe\":\"python\",\"version\":1,\"pid\":7,\"python\":\"3.12.1\",\"script\":\"train.py\"}\n\
                      [\"framework\",\"jax\",\"0.10.2\"]\n";

fn key(name: &str) -> String {
    format!("[\"step-key\",0,\"function\",\"{name}\",7]\n")
}

fn said(what: &str, text: &str) -> String {
    format!("[\"said\",5,\"{what}\",\"{text}\"]\n")
}

#[test]
fn states_follow_what_is_said() {
    let mut run = Fixture::new();
    let it = run.at(S);
    assert_eq!((it.state, it.name.as_str()), (State::Searching, "python train.py"));
    assert!(it.steps.is_none() && it.hardware.is_none());
    assert_eq!(it.elapsed_ns, Some(S));
    run.python(HEADER);
    let it = run.at(S);
    assert_eq!((it.state, it.name.as_str(), it.pid), (State::Searching, "train.py", Some(7)));
    assert_eq!(it.frameworks["jax"], "0.10.2");
    run.python(&key("f"));
    assert_eq!(run.at(S).state, State::WarmingUp);
    run.python(&said(
        "window-start",
        "steps are steady: 31.0 ms after 5; the profiler took 0.1 s to start",
    ));
    let it = run.at(S);
    assert_eq!(
        (it.state, it.reason.as_str()),
        (State::Capturing, "steps are steady: 31.0 ms after 5")
    );
    run.python(&said("window-end", "12 steps"));
    assert_eq!(run.at(S).reason, "12 steps; the profile is being saved");
    assert_eq!(run.at(S).saved_unix_ns, None);
    run.python(&said("saved", "the profiler took 0.1 s to save"));
    let it = run.at(S);
    assert_eq!((it.state, it.reason.as_str()), (State::Captured, "12 steps"));
    assert_eq!(it.saved_unix_ns, Some(5));
    run.manifest(json!({"ended_unix_ns": run.began_ns + 3 * S, "exit": {"code": 7}}));
    let it = run.at(60 * S);
    assert_eq!(it.state, State::Ended);
    assert_eq!(it.reason, "with exit code 7; its steps are captured");
    assert_eq!(it.elapsed_ns, Some(3 * S));
}

#[test]
fn nothing_is_captured_and_that_is_said() {
    let mut run = Fixture::new();
    run.manifest(json!({"settings": {"capture": false}}));
    run.python(&(HEADER.to_owned() + &key("f")));
    assert_eq!(run.at(S).state, State::OnlyTimed);
    run.python(&said("own-profiler", "tensorflow into logs"));
    assert!(run.at(S).reason.contains("uses the profiler itself"));
    // No process lives, and no end was written.
    run.manifest(json!({"pid": u32::MAX}));
    fs::rename(run.path().join("python-7.jsonl"), run.path().join("python-4294967295.jsonl"))
        .unwrap();
    run.live = None;
    let it = run.at(S);
    assert_eq!(it.state, State::Ended);
    assert!(it.reason.contains("processes are gone"), "{}", it.reason);
}

#[test]
fn what_a_process_says_is_one_line_and_no_command_to_a_terminal() {
    let mut run = Fixture::new();
    run.python(&(HEADER.replace("train.py", "a\\u001b[2Jb") + &key("f\\r\\ng")));
    run.python(&said("failed", "RuntimeError: first\\n\\nsecond\\u0007"));
    run.steps(1, 3, 0, S);
    let it = run.at(2 * S);
    assert_eq!(it.reason, "not captured: RuntimeError: first second");
    assert_eq!((it.name.as_str(), it.steps.unwrap().name.as_str()), ("a [2Jb", "f g"));
}

#[test]
fn rates_and_times_grow_with_the_file() {
    let mut run = Fixture::new();
    run.python(&(HEADER.to_owned() + &key("train_step") + "[\"examples\",32]\n"));
    run.steps(1, 101, 0, 100 * MS);
    let steps = run.at(10 * S).steps.unwrap();
    assert_eq!((steps.count, steps.name.as_str()), (100, "train_step"));
    assert!((steps.rate_now.unwrap() - 10.0).abs() < 1e-9);
    assert_eq!(steps.median_ns, Some(100 * MS));
    assert!((steps.examples_now.unwrap() - 320.0).abs() < 1e-6);
    // Twice as fast from here; the last hundred are all of that kind, the run is of both.
    run.steps(101, 501, 10 * S, 50 * MS);
    let steps = run.at(30 * S).steps.unwrap();
    assert!((steps.rate_now.unwrap() - 20.0).abs() < 0.2, "{:?}", steps.rate_now);
    let over_all = 499.0 / 29.95;
    assert!((steps.rate_run.unwrap() - over_all).abs() < 1e-6, "{:?}", steps.rate_run);
    assert_eq!((steps.median_ns, steps.p95_ns), (Some(50 * MS), Some(50 * MS)));
    assert_eq!((steps.statistics_over, steps.silent_ns), (100, None));
    let slowest = &steps.slowest_ns;
    assert_eq!(slowest[slowest.len() - 25..][..2], [Some(100e6), Some(100e6)]);
    assert_eq!(slowest.last(), Some(&Some(50e6)));
    assert_eq!(slowest.first(), Some(&None), "before the run");
}

#[test]
fn steps_that_stop_are_seen() {
    let mut run = Fixture::new();
    run.python(&(HEADER.to_owned() + &key("f")));
    run.steps(1, 101, 0, 100 * MS);
    let steps = run.at(20 * S).steps.unwrap();
    assert_eq!(steps.silent_ns, Some(10 * S + 100 * MS));
    assert_eq!(steps.rate_now, Some(0.0), "known, and none");
    let steps = run.at(14 * S).steps.unwrap();
    assert!((4.0..7.0).contains(&steps.rate_now.unwrap()), "{:?}", steps.rate_now);
}

#[test]
fn a_line_that_is_cut_waits_and_damage_is_counted() {
    let mut run = Fixture::new();
    run.python(&(HEADER.to_owned() + &key("f")));
    run.steps(1, 4, 0, S);
    run.python("[\"step\",");
    let it = run.at(3 * S);
    assert_eq!((it.steps.unwrap().count, it.damaged_lines), (3, 0));
    run.python(&format!("{},4]\n", run.began_ns + 3 * S));
    assert_eq!(run.at(3 * S).steps.unwrap().count, 4);
    run.python("[\"step\",1\n\u{0}\u{1}garbage\n[\"step\",\"a\",\"b\"]\n[\"sample\",1,2\n");
    run.steps(5, 6, 4 * S, S);
    let it = run.at(4 * S);
    assert_eq!((it.steps.unwrap().count, it.damaged_lines), (5, 3));
}

#[test]
fn one_record_may_stand_for_many_steps() {
    let mut run = Fixture::new();
    run.python(&(HEADER.to_owned() + &key("f")));
    let thinned: String = (0..200)
        .map(|it| format!("[\"step\",{},{}]\n", run.began_ns + it * 100 * MS, 20_000 + it * 50))
        .collect();
    run.python(&thinned);
    let steps = run.at(20 * S).steps.unwrap();
    assert_eq!(steps.median_ns, Some(2 * MS));
    assert!((steps.rate_now.unwrap() - 500.0).abs() < 1e-6);
    assert!((100..150).contains(&steps.statistics_over), "{}", steps.statistics_over);
}

#[test]
fn another_kind_of_step_begins_anew() {
    let mut run = Fixture::new();
    run.python(&(HEADER.to_owned() + &key("evaluate")));
    run.steps(1, 101, 0, 10 * MS);
    run.python(&key("train"));
    run.steps(101, 104, 20 * S, S);
    let steps = run.at(22 * S).steps.unwrap();
    assert_eq!((steps.name.as_str(), steps.count), ("train", 103));
    assert_eq!((steps.median_ns, steps.p95_ns), (Some(S), None), "too few for one of twenty");
    assert!((steps.rate_run.unwrap() - 1.0).abs() < 1e-9);
    // A process that replaced itself by another counts from one again.
    run.steps(1, 3, 30 * S, 2 * S);
    let steps = run.at(32 * S).steps.unwrap();
    assert_eq!((steps.count, steps.median_ns), (2, Some(2 * S)));
}

#[test]
fn the_process_with_most_steps_is_shown() {
    let mut run = Fixture::new();
    run.python(&(HEADER.to_owned() + &key("f")));
    run.steps(1, 5, 0, S);
    run.append("python-8.jsonl", &HEADER.replace("\"pid\":7", "\"pid\":8"));
    let it = run.at(5 * S);
    assert_eq!((it.pid, it.n_stepping), (Some(7), 1));
    run.append("python-8.jsonl", &format!("{}[\"step\",{},9]\n", key("g"), run.began_ns));
    let it = run.at(5 * S);
    assert_eq!((it.pid, it.n_stepping), (Some(8), 2));
}

const SAMPLES: &str = r#"{"strobe":"hardware","version":1,"pid":7,"cores":8,"cores_allowed":4,"columns":["cpu/all","cpu/core 0","cpu/process","memory/process","disk/read","gpu 0/busy","gpu 0/throttled"],"gpus":[{"name":"NVIDIA T4","memory_bytes":16106127360,"max_sm_clock_mhz":1590,"power_limit_w":70}],"missing":[{"what":"cpu/clock","why":"the kernel shows none"}]}
"#;

#[test]
fn samples_become_numbers_and_what_is_null_stays_unknown() {
    let mut run = Fixture::new();
    run.append("hardware.jsonl", SAMPLES);
    assert_eq!(run.at(S).hardware, None, "there is no row yet");
    for tick in 0..200_i64 {
        let time = run.began_ns + tick * 50 * MS;
        // Memory is asked every second, the disk never answers.
        let memory = if tick % 20 == 0 { "1000000" } else { "null" };
        let cpu = if tick < 100 { 1.0 } else { 3.0 };
        run.append("hardware.jsonl", &format!("[{time},0.5,1,{cpu},{memory},null,0.9,36]\n"));
    }
    let hardware = run.at(11 * S).hardware.unwrap();
    assert_eq!((hardware.cores, hardware.silent_ns), (Some(4.0), None));
    assert_eq!((hardware.cpu_all.now, hardware.cpu_process.now), (Some(0.5), Some(3.0)));
    let cells = &hardware.cpu_process.cells;
    assert_eq!(cells[cells.len() - 6..], [1.0, 3.0, 3.0, 3.0, 3.0, 3.0].map(Some));
    assert_eq!(hardware.memory.process.now, Some(1e6));
    assert_eq!((hardware.memory.of_bytes, hardware.memory.is_limit), (Some(8e9), false));
    assert!(hardware.disk_read.is_unknown() && hardware.network_in.is_unknown());
    let gpu = &hardware.gpus[0];
    assert_eq!(gpu.throttled, Some(vec!["power limit", "heat"]));
    assert!((gpu.busy.now.unwrap() - 0.9).abs() < 1e-9);
    assert!(gpu.power.is_unknown());
    assert_eq!(hardware.missing[0].0, "cpu/clock");
    assert!(run.at(40 * S).hardware.unwrap().silent_ns.is_some());
}

#[test]
fn samples_that_are_damaged_are_counted() {
    let mut run = Fixture::new();
    run.append("hardware.jsonl", SAMPLES);
    let row = |values: &str| format!("[{},{values}]\n", run.began_ns);
    run.append(
        "hardware.jsonl",
        &(row("0.5,1,2,3,4,5,6") + &row("0.5") + &row("x,1,2,3,4,5,6") + "[\n{\"a\"\n"),
    );
    let it = run.at(S);
    assert_eq!(it.damaged_lines, 4);
    assert_eq!(it.hardware.unwrap().cpu_all.now, Some(0.5));
}

#[test]
fn other_folders_are_no_runs() {
    let folder = tempfile::tempdir().unwrap();
    let error = Live::open(&folder.path().join("none")).unwrap_err();
    assert!(matches!(error, LiveError::Missing { .. }));
    fs::write(folder.path().join("manifest.json"), "{\"name\": \"app\"}").unwrap();
    assert!(matches!(Live::open(folder.path()).unwrap_err(), LiveError::NoRun { .. }));
}
