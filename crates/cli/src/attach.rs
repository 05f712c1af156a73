//! `strobe attach`: captures running jobs on demand, then reports as `strobe report` does.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use capture::Manifest;
use capture::folder::new_run_folder;
use capture::hardware::{EVERY, Sampler};
use capture::pid::{self, PidError, Sampled};
use capture::remote::{self, Captured, RemoteError, SERVERS, Said, Server};
use serde_json::{Value, json};

use crate::output::{Format, Output, note};
use crate::report;

/// Capture running jobs on demand and say why they are slow
#[derive(Debug, clap::Args)]
pub struct Args {
    /// HOST:PORT of a TensorFlow or JAX profiler server (:PORT on this machine), or the PID of a
    /// Python process
    #[arg(required = true, value_name = "PID|HOST:PORT")]
    targets: Vec<Target>,
    /// How long to record
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "2")]
    duration: Duration,
    /// A new folder for what is captured [default: one below ~/.local/state/stroboscope/runs]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How long to wait for servers that are not there yet, or busy
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "5")]
    wait: Duration,
    /// How long a server may take to hand over its profile
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "60")]
    grace: Duration,
    /// The most that is taken from one target
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30)]
    max_bytes: u64,
    /// Servers also record calls of Python functions, which slows the job down
    #[arg(long)]
    python_calls: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Pid(u32),
    Server(Server),
}

impl FromStr for Target {
    type Err = remote::NoServer;

    fn from_str(text: &str) -> Result<Target, remote::NoServer> {
        match text.parse() {
            Ok(pid) => Ok(Target::Pid(pid)),
            Err(_) => text.parse().map(Target::Server),
        }
    }
}

/// Longer than anybody records; longer times overflow clocks.
const LONGEST_SECONDS: f64 = 86_400.0;

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(it) if (0.0..=LONGEST_SECONDS).contains(&it) => Ok(Duration::from_secs_f64(it)),
        _ => Err(format!("not a number of seconds from 0 to {LONGEST_SECONDS}")),
    }
}

/// What came of a target.
struct Outcome {
    target: String,
    kind: &'static str,
    got: Result<Got, String>,
}

enum Got {
    Profile(Captured),
    Samples(Sampled),
}

pub fn run(args: &Args, out: &mut Output) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(args.duration > Duration::ZERO, "--duration 0 would record nothing");
    let folder = new_run_folder(args.out.as_deref(), "attach")?.path;
    let manifest = Manifest::begin("attach");
    let outcomes = capture(args, &folder)?;
    for outcome in &outcomes {
        say(outcome);
    }
    if outcomes.iter().any(|it| matches!(it.got, Ok(Got::Samples(_)))) {
        note(format!(
            "note: from outside only Python's own lines can be seen, not steps, ops or input; for \
             those start the job with strobe run, or add one line to it and attach to that port: \
             {SERVERS}"
        ));
    }
    let got = outcomes.iter().filter(|it| it.got.is_ok()).count();
    if got == 0 && args.out.is_none() {
        // Nobody named it, and nothing of the job is in it.
        let _ = std::fs::remove_dir_all(&folder);
    } else {
        write_manifest(&folder, args, manifest, &outcomes)?;
        capture::seal(&folder, &redact::Mask::new(&[], std::iter::empty()));
    }
    anyhow::ensure!(got > 0, "nothing was captured");
    note(format!("captured {got} of {} into {}", outcomes.len(), folder.display()));

    let report = report::Args {
        path: folder.clone(),
        format: args.format,
        no_findings: false,
        all: false,
        strict: false,
        diff: false,
    };
    report::run(&report, out)
}

/// Captures from all targets at once.
fn capture(args: &Args, folder: &Path) -> anyhow::Result<Vec<Outcome>> {
    let mut servers: Vec<Server> = Vec::new();
    let mut pids: Vec<u32> = Vec::new();
    for target in &args.targets {
        match target {
            Target::Server(it) if !servers.contains(it) => servers.push(it.clone()),
            Target::Pid(it) if !pids.contains(it) => pids.push(*it),
            _ => (),
        }
    }
    let servers_done = AtomicBool::new(false);
    // Of this machine, and of the first process named: a server may be anywhere.
    let hardware = pids.first().and_then(|&pid| Sampler::start(folder, pid, EVERY).ok());
    let outcomes = thread::scope(|scope| {
        let sampling: Vec<_> = pids
            .iter()
            .map(|&pid| {
                let done = &servers_done;
                scope.spawn(move || sample(pid, args, folder, done))
            })
            .collect();
        let captured = capture_servers(&servers, args, folder);
        servers_done.store(true, Ordering::Relaxed);

        let of_server = |(server, got): (&Server, Result<Captured, RemoteError>)| Outcome {
            target: server.to_string(),
            kind: "server",
            got: got.map(Got::Profile).map_err(|error| error.to_string()),
        };
        let mut outcomes: Vec<Outcome> = servers.iter().zip(captured?).map(of_server).collect();
        for (pid, sampling) in pids.iter().zip(sampling) {
            let got = match sampling.join() {
                Ok(got) => got.map(Got::Samples).map_err(|error| error.to_string()),
                Err(_) => Err("sampling failed".to_owned()),
            };
            outcomes.push(Outcome { target: pid.to_string(), kind: "pid", got });
        }
        Ok(outcomes)
    });
    if let Some(it) = hardware {
        it.stop();
    }
    outcomes
}

/// Samples for as long as asked, and until the servers have recorded.
fn sample(
    pid: u32,
    args: &Args,
    folder: &Path,
    servers_done: &AtomicBool,
) -> Result<Sampled, PidError> {
    let begun = OnceCell::new();
    // Asked for the first time when the process has been found: that can take a while.
    let stop = || {
        let begun = begun.get_or_init(Instant::now);
        begun.elapsed() >= args.duration && servers_done.load(Ordering::Relaxed)
    };
    let options = pid::Options { max_bytes: args.max_bytes, ..pid::Options::default() };
    pid::sample(pid, &options, folder, &stop)
}

fn capture_servers(
    servers: &[Server],
    args: &Args,
    folder: &Path,
) -> anyhow::Result<Vec<Result<Captured, RemoteError>>> {
    if servers.is_empty() {
        return Ok(Vec::new());
    }
    let options = remote::Options {
        duration: args.duration,
        wait: args.wait,
        grace: args.grace,
        max_bytes: args.max_bytes,
        python_calls: args.python_calls,
    };
    let say = |server: &Server, it: Said<'_>| match it {
        Said::Waiting(error) => {
            let why = error.to_string();
            let why = why.lines().next().unwrap_or_default();
            note(format!("{server}: {why}; trying again"));
        }
        Said::Recording { common_start } => {
            let together = if common_start { ", from one common start" } else { "" };
            note(format!("{server}: recording {} s{together}", args.duration.as_secs_f64()));
        }
    };
    remote::capture(servers, &options, folder, &say).context("the network could not be used")
}

/// Says on stderr what came of a target.
fn say(outcome: &Outcome) {
    let target = &outcome.target;
    match &outcome.got {
        Ok(Got::Profile(it)) => note(format!("{target}: a profile of {}", size(it.bytes))),
        Ok(Got::Samples(it)) => {
            let missed = match it.missed {
                0 => String::new(),
                n => format!(", {n} could not be read"),
            };
            let early = it.ended_early.as_ref().map(|why| format!("; {why}")).unwrap_or_default();
            note(format!(
                "process {target}: {} samples of Python {}{missed}{early}",
                it.readings - it.missed,
                it.python
            ));
        }
        Err(why) => note(format!("error: {target}: {why}")),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        ..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

fn write_manifest(
    folder: &Path,
    args: &Args,
    mut manifest: Manifest,
    outcomes: &[Outcome],
) -> anyhow::Result<()> {
    let targets: Vec<Value> = outcomes
        .iter()
        .map(|it| {
            let mut value = json!({"target": it.target, "kind": it.kind});
            let more = match &it.got {
                Ok(Got::Profile(got)) => json!({
                    "outcome": "captured", "file": got.file, "bytes": got.bytes,
                    "attempts": got.attempts, "common_start_unix_ns": got.common_start_unix_ns,
                }),
                Ok(Got::Samples(got)) => json!({
                    "outcome": "captured", "file": got.file, "python": got.python,
                    "readings": got.readings, "missed": got.missed,
                    "ended_early": got.ended_early,
                }),
                Err(why) => json!({"outcome": "failed", "why": why}),
            };
            if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
                value.extend(more);
            }
            value
        })
        .collect();
    manifest
        .set("duration_ms", json!(u64::try_from(args.duration.as_millis()).unwrap_or(u64::MAX)));
    manifest.set("targets", json!(targets));
    manifest.end(None, &[]);
    capture::write_manifest(folder, &manifest).with_context(|| {
        format!("the manifest could not be written\n  folder: {}", folder.display())
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Target, seconds};

    #[test]
    fn numbers_are_processes_and_the_rest_servers() {
        assert_eq!("4711".parse(), Ok(Target::Pid(4711)));
        assert!(matches!(":6009".parse(), Ok(Target::Server(it)) if it.host == "127.0.0.1"));
        assert!(matches!("grpc://box:6009".parse(), Ok(Target::Server(it)) if it.port == 6009));
        assert!("train.py".parse::<Target>().is_err());
    }

    #[test]
    fn times_are_sane() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["-1", "1e9", "inf", "NaN", "2s", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
