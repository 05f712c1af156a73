//! `strobe doctor`: is this capture fit to be judged; is this machine fit to capture.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use session::Session;
use session::report::words::thousands;
use trace::{NoteKind, OpKind, TrackKind};

use crate::output::{Format, Grid, Output};
use crate::table;

/// Check whether a capture is fit to be judged, or this machine fit to capture
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A profile, a run folder or a log folder; without it, this machine is looked at
    path: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// One thing looked at.
struct Check {
    what: &'static str,
    state: State,
    seen: String,
    mend: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    Weak,
    Bad,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Good => "good",
            State::Weak => "weak",
            State::Bad => "bad",
        }
    }
}

pub fn run(args: &Args, out: &mut Output) -> anyhow::Result<ExitCode> {
    let checks = match &args.path {
        Some(path) => capture(&crate::open(path)?),
        None => machine(),
    };
    let grid = Grid {
        columns: ["check", "state", "seen", "what to do"].map(str::to_owned).to_vec(),
        right: vec![false; 4],
        rows: checks
            .iter()
            .map(|it| {
                let mend = if it.state == State::Good { "" } else { it.mend };
                vec![
                    it.what.to_owned(),
                    it.state.word().to_owned(),
                    it.seen.clone(),
                    mend.to_owned(),
                ]
            })
            .collect(),
    };
    if args.format == Format::Text {
        use std::io::Write as _;
        for check in &checks {
            let state = check.state.word();
            writeln!(out, " {:<16} {:<5} {}", check.what, state, check.seen)?;
            if check.state != State::Good {
                let text = crate::output::wrap(check.mend, out.width, "                        ");
                write!(out, "{text}")?;
            }
        }
    } else {
        table::print(&grid, args.format, out, || {
            let value = |it: &Check| json!({"check": it.what, "state": it.state.word(), "seen": it.seen, "mend": it.mend});
            json!(checks.iter().map(value).collect::<Vec<_>>())
        })?;
    }
    let worst_is_bad = checks.iter().any(|it| it.state == State::Bad);
    let code = if args.path.is_some() && worst_is_bad { crate::NOT_ENOUGH } else { 0 };
    Ok(ExitCode::from(code))
}

fn capture(session: &Session) -> Vec<Check> {
    let trace = session.trace();
    let report = session.report();
    let mut checks = Vec::new();
    let mut check =
        |what, state, seen: String, mend| checks.push(Check { what, state, seen, mend });

    let events = trace.events.len();
    let state = if events == 0 { State::Bad } else { State::Good };
    check("events", state, thousands(events), "capture again while the training loop runs");

    let steps = report.steps.as_ref();
    let count = steps.map_or(0, |it| it.count);
    let state = match count {
        0 => State::Bad,
        1..5 => State::Weak,
        _ => State::Good,
    };
    check(
        "steps",
        state,
        format!("{count} steady"),
        "capture 10 steps or more: profile_batch=(10, 20), or a longer window",
    );
    if let Some(steps) = steps {
        let state = if steps.found_by == "markers" { State::Good } else { State::Weak };
        check(
            "step markers",
            state,
            format!("found by {} ({})", steps.found_by, steps.marker),
            "put `with tf.profiler.experimental.Trace('train', step_num=i, _r=1):` or \
             `jax.profiler.StepTraceAnnotation('train', step_num=i)` around the step",
        );
        let spread = steps.stdev.map_or(0.0, |it| it.0 as f64 / steps.mean.0.max(1) as f64);
        let state = if spread > 0.3 { State::Weak } else { State::Good };
        check(
            "spread",
            state,
            format!("steps vary by {:.0} %", spread * 100.0),
            "capture more steps, or on a quieter machine: small differences cannot be told apart",
        );
    }
    let has = |kind| trace.tracks_of(kind).any(|it| !trace.tracks[it.row()].events.is_empty());
    let state = if has(TrackKind::Thread) { State::Good } else { State::Weak };
    check(
        "host events",
        state,
        if state == State::Good { "there" } else { "none" }.to_owned(),
        "set host_tracer_level=2: without host events an idle device cannot be explained",
    );
    let listeners = trace.events.kind.iter().filter(|it| **it == OpKind::Listener).count();
    let share = listeners as f64 / events.max(1) as f64;
    let state = if share > 0.9 { State::Weak } else { State::Good };
    check(
        "noise",
        state,
        format!("{:.0} % of events are thread-pool records", share * 100.0),
        "capture fewer steps: these records fill the file and slow the run",
    );
    let lost: u64 = trace
        .notes
        .iter()
        .filter(|it| !matches!(it.kind, NoteKind::ProfilerWarning | NoteKind::BadText))
        .map(|it| it.count)
        .sum();
    let state = if lost > 0 { State::Bad } else { State::Good };
    let first = trace.notes.first().map(|it| format!(": {}", it.first)).unwrap_or_default();
    check(
        "damage",
        state,
        format!("{lost} notes{first}"),
        "capture a shorter window, and let the profiler stop before the job ends",
    );
    checks
}

fn machine() -> Vec<Check> {
    let mut checks = Vec::new();
    let mut check =
        |what, state, seen: String, mend| checks.push(Check { what, state, seen, mend });
    let cores = std::thread::available_parallelism().map_or(0, |it| it.get());
    check("cores", State::Good, cores.to_string(), "");
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|it| it.trim().to_owned());
    let gpu = std::path::Path::new("/dev/nvidiactl").exists();
    check("nvidia driver", State::Good, if gpu { "loaded" } else { "none" }.to_owned(), "");
    if let Some(level) = read("/proc/sys/kernel/yama/ptrace_scope") {
        let state = if level == "0" { State::Good } else { State::Weak };
        check(
            "ptrace",
            state,
            format!("scope {level}"),
            "reading another process needs its owner's rights, or: sudo sysctl kernel.yama.ptrace_scope=0",
        );
    }
    if let Some(level) = read("/proc/sys/kernel/perf_event_paranoid") {
        let open = level.parse::<i64>().is_ok_and(|it| it <= 2);
        check(
            "perf events",
            if open { State::Good } else { State::Weak },
            format!("paranoid {level}"),
            "sudo sysctl kernel.perf_event_paranoid=2",
        );
    }
    checks
}
