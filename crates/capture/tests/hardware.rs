//! Samples of this machine and of real processes, held against what the kernel says itself.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed helper is a failed test")]

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use capture::hardware::{Machine, SampleError, Sampler};
use serde_json::Value;

/// A shell that ends with the test.
struct Shell(Child);

impl Shell {
    fn start(script: &str) -> Shell {
        // What outlives a failed test must not hold its output open.
        let null = std::process::Stdio::null;
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(null()).stdout(null()).stderr(null());
        Shell(command.spawn().unwrap())
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(120), "{what} did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The header, and rows of time and values.
fn read(folder: &Path) -> (Value, Vec<Vec<Option<f64>>>) {
    let text = std::fs::read_to_string(folder.join("hardware.jsonl")).unwrap();
    let mut lines = text.lines();
    let header = serde_json::from_str(lines.next().unwrap()).unwrap();
    // A line that is an object names files: a child may have inherited some that are open.
    let rows = lines.filter(|it| !it.starts_with('{'));
    (header, rows.map(|it| serde_json::from_str(it).unwrap()).collect())
}

/// Times in seconds and values of a column, where it has some.
fn column(header: &Value, rows: &[Vec<Option<f64>>], name: &str) -> Vec<(f64, f64)> {
    let names = header["columns"].as_array().unwrap();
    let at = names.iter().position(|it| it == name).unwrap_or_else(|| panic!("no {name}"));
    rows.iter().filter_map(|it| Some((it[0].unwrap() / 1e9, it[at + 1]?))).collect()
}

/// Processor seconds of a process and its children that have ended, by the kernel's word.
fn used_seconds(pid: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let behind = text.rsplit_once(')').unwrap().1;
    let ticks = behind.split_whitespace().skip(11).take(4);
    ticks.map(|it| it.parse::<f64>().unwrap()).sum::<f64>()
        / rustix::param::clock_ticks_per_second() as f64
}

#[test]
fn the_work_of_short_lived_workers_is_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let done = folder.path().join("done");
    let go = folder.path().join("go");
    // Each worker, and the shell between, lives for less than a sample.
    let shell = Shell::start(&format!(
        "while [ ! -e {} ]; do sleep 0.05; done; i=0; while [ $i -lt 100 ]; do i=$((i+1)); \
         sh -c 'sh -c \"j=0; while [ \\$j -lt 4000 ]; do j=\\$((j+1)); done\"; true'; done; \
         touch {}; exec sleep 1000",
        go.display(),
        done.display()
    ));
    let sampler = Sampler::start(folder.path(), shell.0.id(), Duration::from_millis(50)).unwrap();
    until("the first sample", || sampler.latest().is_some());
    let before = used_seconds(shell.0.id());
    std::fs::write(go, "").unwrap();
    until("the end of the work", || done.exists());
    let ended = sampler.latest().unwrap().time_unix_ns;
    until("a sample of the time after", || {
        let sample = sampler.latest().unwrap();
        sample.time_unix_ns > ended && sample.get("cpu/process") == Some(0.0)
    });
    let expected = used_seconds(shell.0.id()) - before;
    sampler.stop();
    let (header, rows) = read(folder.path());
    let samples = column(&header, &rows, "cpu/process");
    let counted: f64 = samples.windows(2).map(|it| it[1].1 * (it[1].0 - it[0].0)).sum();
    assert!(expected > 0.1, "the workers did work: {expected} s");
    let error = (counted - expected).abs();
    assert!(error < 0.1 * expected + 0.05, "{counted} s counted, {expected} s used");
}

#[test]
fn a_tree_is_found_down_to_its_leaves() {
    let folder = tempfile::tempdir().unwrap();
    // The shell, two below it, and one below each of those.
    let below = "sh -c 'sleep 1000 & wait' &";
    let shell = Shell::start(&format!("{below} {below} wait"));
    let sampler = Sampler::start(folder.path(), shell.0.id(), Duration::from_millis(20)).unwrap();
    until("five processes", || {
        sampler.latest().is_some_and(|it| it.get("process/count") == Some(5.0))
    });
    let sample = sampler.latest().unwrap();
    assert_eq!(sample.get("process/threads"), Some(5.0));
    let resident = sample.get("memory/process").unwrap();
    assert!((1e6..1e9).contains(&resident), "{resident} bytes for five small processes");
    sampler.stop();
    // The leaves would outlive the shell.
    for pid in descendants(shell.0.id()) {
        let _ = Command::new("kill").arg(pid.to_string()).status();
    }
}

fn descendants(pid: u32) -> Vec<u32> {
    let listed = Command::new("ps").args(["-e", "-o", "pid=,ppid="]).output();
    let text = listed.map(|it| String::from_utf8(it.stdout).unwrap()).unwrap_or_default();
    let pairs: Vec<(u32, u32)> = text
        .lines()
        .filter_map(|it| {
            let mut words = it.split_whitespace().map(|it| it.parse().ok());
            Some((words.next()??, words.next()??))
        })
        .collect();
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(pairs.iter().filter(|it| it.1 == parent).map(|it| it.0));
        at += 1;
    }
    found.split_off(1)
}

#[test]
fn the_machine_is_seen_as_the_kernel_sees_it() {
    let folder = tempfile::tempdir().unwrap();
    // Not this process: other tests start and end children in it meanwhile.
    let shell = Shell::start("exec sleep 1000");
    let pid = shell.0.id();
    let sampler = Sampler::start(folder.path(), pid, Duration::from_millis(20)).unwrap();
    until("rows in the file, while it runs", || {
        std::fs::read_to_string(folder.path().join("hardware.jsonl"))
            .is_ok_and(|it| it.lines().count() > 10)
    });
    sampler.stop();
    let (header, rows) = read(folder.path());
    assert_eq!((&header["strobe"], &header["version"]), (&"hardware".into(), &1.into()));
    assert_eq!(header["pid"], pid);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert_eq!(header["host"], host.trim());
    let cores = std::fs::read_to_string("/proc/stat").unwrap();
    let cores = cores.lines().filter(|it| it.starts_with("cpu")).count() - 1;
    assert_eq!(header["cores"], cores);
    let columns = header["columns"].as_array().unwrap();
    assert!(rows.iter().all(|it| it.len() == columns.len() + 1), "a value for each column");
    let times: Vec<f64> = rows.iter().map(|it| it[0].unwrap()).collect();
    assert!(times.is_sorted());
    for (name, least, most) in [
        ("cpu/all", 0.0, 1.0),
        ("cpu/core 0", 0.0, 1.0),
        ("cpu/process", 0.0, cores as f64 * 2.0),
        ("cpu/runnable", 0.0, 1e5),
        ("memory/available", 1.0, header["memory_bytes"].as_f64().unwrap()),
        ("process/threads", 1.0, 1e4),
        ("memory/process", 1e5, 1e11),
    ] {
        let values = column(&header, &rows, name);
        assert!(!values.is_empty(), "{name}");
        assert!(values.iter().all(|it| (least..=most).contains(&it.1)), "{name}: {values:?}");
    }
    for missing in header["missing"].as_array().unwrap() {
        assert!(missing["why"].as_str().is_some_and(|it| it.len() > 10), "{missing}");
    }
}

/// What the sampler writes is what the source reads, and what the document describes.
#[test]
fn samples_can_be_read_and_their_columns_are_documented() {
    let folder = tempfile::tempdir().unwrap();
    let own = std::process::id();
    let sampler = Sampler::start(folder.path(), own, Duration::from_millis(20)).unwrap();
    let from = Instant::now();
    until("some rows", || sampler.latest().is_some() && from.elapsed() > Duration::from_secs(1));
    sampler.stop();
    let path = folder.path().join("hardware.jsonl");
    let bytes = std::sync::Arc::new(std::fs::read(&path).unwrap());
    let mut out = trace::TraceBuilder::new();
    let reader = sources::read(&sources::Input { bytes, path: &path }, &mut out).unwrap();
    assert_eq!(reader, "hardware");
    let trace = out.finish();
    assert_eq!(trace.notes, []);
    let (header, rows) = read(folder.path());
    let n_values: usize = rows.iter().map(|it| it.iter().skip(1).flatten().count()).sum();
    assert_eq!(trace.counters.len(), n_values);
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/run-folder.md");
    let document = std::fs::read_to_string(document).unwrap();
    for column in header["columns"].as_array().unwrap() {
        let column = column.as_str().unwrap();
        let column = column.split(' ').next().unwrap();
        assert!(document.contains(&format!("`{column}")), "{column} is not in run-folder.md");
    }
}

#[test]
fn a_process_that_ends_leaves_unknown_values_not_zeros() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Shell::start("exec sleep 1000");
    let sampler = Sampler::start(folder.path(), shell.0.id(), Duration::from_millis(20)).unwrap();
    until("its memory", || sampler.latest().is_some_and(|it| it.get("memory/process").is_some()));
    shell.0.kill().unwrap();
    shell.0.wait().unwrap();
    until("its end", || sampler.latest().is_some_and(|it| it.get("process/count") == Some(0.0)));
    let sample = sampler.latest().unwrap();
    assert_eq!(sample.get("memory/process"), None);
    assert_eq!(sample.get("process/threads"), None);
    // Two samples close to each other may see no tick of its clock pass.
    until("the machine goes on", || sampler.latest().is_some_and(|it| it.get("cpu/all").is_some()));
}

#[test]
fn slowing_down_takes_fewer_samples() {
    let folder = tempfile::tempdir().unwrap();
    let own = std::process::id();
    let sampler = Sampler::start(folder.path(), own, Duration::from_millis(10)).unwrap();
    until("a sample", || sampler.latest().is_some());
    sampler.slow_down(Duration::from_secs(60));
    // One may be on its way.
    std::thread::sleep(Duration::from_millis(300));
    let last = sampler.latest().unwrap().time_unix_ns;
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(sampler.latest().unwrap().time_unix_ns, last);
    sampler.slow_down(Duration::from_millis(10));
    until("the next", || sampler.latest().unwrap().time_unix_ns > last);
}

#[test]
fn what_is_not_there_is_named_and_nothing_fails() {
    let empty = tempfile::tempdir().unwrap();
    let at = |it: &str| empty.path().join(it);
    let machine = Machine { root: at(""), proc: at("proc"), sys: at("sys"), nvml: Some(at("x")) };
    let folder = tempfile::tempdir().unwrap();
    let sampler = Sampler::start_on(machine, folder.path(), 1, Duration::from_millis(20)).unwrap();
    until("an empty sample", || sampler.latest().is_some());
    sampler.stop();
    let (header, _) = read(folder.path());
    let missing = header["missing"].as_array().unwrap();
    for what in ["cpu", "memory/available", "pressure/cpu", "disk", "network", "process"] {
        assert!(missing.iter().any(|it| it["what"] == what), "{what} in {missing:?}");
    }
    assert_eq!(header["columns"].as_array().unwrap().len(), 0);
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let error =
        Sampler::start(Path::new("/nonexistent"), 1, Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, SampleError::File { .. }));
    assert!(error.to_string().ends_with("file: /nonexistent/hardware.jsonl"), "{error}");
}
