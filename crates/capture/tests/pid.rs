//! Samples a real Python process.

use std::cell::Cell;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use capture::pid::{Options, PidError, sample};
use serde_json::Value;

const SCRIPT: &str = "\
import threading

there = threading.Event()

def wait_for_ever():
    there.set()
    threading.Event().wait()

class Model:
    def spin(self):
        n = 0
        print('ready', flush=True)
        while True:
            n = (n + 1) % 1000

def main():
    threading.Thread(target=wait_for_ever, daemon=True).start()
    there.wait()
    Model().spin()

main()
";
/// Lines of the loop that never ends.
const LOOP: std::ops::RangeInclusive<i64> = 13..=14;

/// Ended with the test, however that ends.
struct Python(Child);

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(python: &str, script: &std::path::Path) -> Option<Python> {
    let child = Command::new(python).arg(script).stdout(Stdio::piped()).spawn().ok()?;
    let mut child = Python(child);
    let mut line = String::new();
    BufReader::new(child.0.stdout.take()?).read_line(&mut line).ok()?;
    (line.trim() == "ready").then_some(child)
}

/// Says stop after so many looks.
fn after(n: u32) -> impl Fn() -> bool {
    let left = Cell::new(n);
    move || left.replace(left.get().saturating_sub(1)) == 0
}

#[test]
fn the_hot_function_and_its_line_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("train.py");
    std::fs::write(&script, SCRIPT).unwrap();
    // Other versions can be tried with `PYTHON=…`.
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let Some(child) = start(&python, &script) else {
        eprintln!("skipped: there is no {python}");
        return;
    };
    let pid = child.0.id();
    let options = Options { every: Duration::from_millis(2), ..Options::default() };
    let sampled = match sample(pid, &options, folder.path(), &after(50)) {
        Err(PidError::Denied { why, .. }) => {
            eprintln!("skipped: {why}");
            return;
        }
        other => other.unwrap(),
    };
    assert_eq!(sampled.readings, 50);
    assert!(sampled.missed < 10, "{sampled:?}");
    assert_eq!(sampled.ended_early, None);

    let text = std::fs::read_to_string(folder.path().join(&sampled.file)).unwrap();
    let mut lines = text.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
    let head = lines.next().unwrap();
    assert_eq!(head["strobe"], "python");
    assert_eq!(
        (head["pid"].as_u64(), head["thread"].as_u64()),
        (Some(pid.into()), Some(pid.into()))
    );
    assert_eq!(head["python"], sampled.python.as_str());
    assert!(sampled.python.starts_with("3."));

    let (mut frames, mut nodes, mut stacks) = (Vec::new(), Vec::new(), Vec::new());
    for record in lines {
        match record[0].as_str().unwrap() {
            "frame" => {
                assert_eq!(record[1], frames.len(), "numbered in order");
                frames.push(record);
            }
            "node" => {
                assert_eq!(record[1], nodes.len(), "numbered in order");
                nodes.push(record);
            }
            "sample" if record[2] == pid => stacks.push(record[3].as_u64().unwrap() as usize),
            "sample" => (),
            other => panic!("{other}"),
        }
    }
    assert!(stacks.len() >= 40);
    // From the innermost call outwards.
    let mut names = Vec::new();
    let mut node = Some(*stacks.last().unwrap());
    while let Some(at) = node {
        let frame = &frames[nodes[at][3].as_u64().unwrap() as usize];
        names.push((frame[3].as_str().unwrap(), frame[4].clone(), nodes[at][4].clone()));
        node = nodes[at][2].as_u64().map(|it| it as usize);
    }
    let [spin, main, module] = names.as_slice() else { panic!("{names:?}") };
    let in_loop = spin.2.as_i64().is_some_and(|it| LOOP.contains(&it));
    assert!(spin.0.ends_with("spin") && spin.1 == 10 && in_loop, "{spin:?}");
    assert!(frames.iter().any(|it| it[2] == script.to_str().unwrap()), "{frames:?}");
    assert_eq!(main, &("main", 16.into(), 19.into()));
    assert_eq!(module, &("<module>", 1.into(), 21.into()));
    let waiting =
        frames.iter().any(|it| it[3].as_str().is_some_and(|it| it.contains("wait_for_ever")));
    assert!(waiting, "the other thread is there too: {frames:?}");
}

#[test]
fn a_process_that_ends_leaves_its_samples() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("train.py");
    std::fs::write(&script, SCRIPT).unwrap();
    let Some(child) = start("python3", &script) else {
        eprintln!("skipped: there is no python3");
        return;
    };
    let pid = child.0.id();
    let child = Cell::new(Some(child));
    let looks = Cell::new(0);
    let stop = || {
        looks.set(looks.get() + 1);
        if looks.get() == 20 {
            drop(child.take());
        }
        false
    };
    match sample(pid, &Options::default(), folder.path(), &stop) {
        Err(PidError::Denied { why, .. }) => eprintln!("skipped: {why}"),
        other => {
            let sampled = other.unwrap();
            assert_eq!(sampled.ended_early.as_deref(), Some("the process ended"));
            let text = std::fs::read_to_string(folder.path().join(&sampled.file)).unwrap();
            assert!(text.contains("spin\"") && text.contains("[\"sample\""), "{text}");
        }
    }
}

#[test]
fn what_is_not_there_or_no_python_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let stop = || true;
    let options = Options::default();
    let error = sample(u32::MAX, &options, folder.path(), &stop).unwrap_err();
    assert!(matches!(error, PidError::NoProcess { .. }), "{error}");
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let outcome = sample(sleeper.id(), &options, folder.path(), &stop);
    let _ = sleeper.kill();
    let _ = sleeper.wait();
    match outcome.unwrap_err() {
        PidError::Denied { why, .. } => eprintln!("skipped: {why}"),
        error => {
            assert!(matches!(error, PidError::NoPython { .. }), "{error}");
            assert!(error.to_string().contains("(sleep)"), "{error}");
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
