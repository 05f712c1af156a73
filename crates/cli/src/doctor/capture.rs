//! After a capture: is it fit to be judged.

use std::path::Path;

use analyses::run_step::Overhead;
use session::Session;
use trace::{Dur, NoteKind, OpKind, TrackKind};

use super::Check;
use session::report::words::{percent, thousands};

pub fn checks(session: &Session, path: &Path) -> Vec<Check> {
    let trace = session.trace();
    let report = session.report();
    let mut checks = Vec::new();

    let events = trace.events.len();
    checks.push(match events {
        0 => Check::bad(
            "events",
            "none",
            "capture while the loop runs: strobe run -- python train.py",
        ),
        _ => Check::good("events", thousands(events)),
    });
    let steps = report.steps.as_ref();
    let more = "capture 10 steps or more: strobe run --steps 10 -- python train.py, or \
                profile_batch=(10, 20)";
    checks.push(match steps.map_or(0, |it| it.count) {
        0 => Check::bad("steps", "none told apart", more),
        n @ 1..5 => Check::weak("steps", format!("{n} steady"), more),
        n => Check::good("steps", format!("{n} steady")),
    });
    if let Some(steps) = steps {
        let seen = format!("found by {} ({})", steps.found_by, steps.marker);
        checks.push(match steps.found_by {
            "markers" | "calls" => Check::good("step markers", seen),
            _ => Check::weak(
                "step markers",
                seen,
                "put `with tf.profiler.experimental.Trace('train', step_num=i, _r=1):` or \
                 `with jax.profiler.StepTraceAnnotation('train', step_num=i):` around the step",
            ),
        });
        let spread = steps.stdev.map_or(0.0, |it| it.0 as f64 / steps.mean.0.max(1) as f64);
        let seen = format!("steps vary by {}", percent(spread));
        checks.push(match spread > 0.3 {
            false => Check::good("spread", seen),
            true => Check::weak(
                "spread",
                seen,
                "capture more steps (strobe run --steps 50), or on a quieter machine: small \
                 differences cannot be told apart",
            ),
        });
    }
    if let Some(it) = Overhead::of(session.tables()) {
        checks.push(overhead(it));
    }
    checks.extend(windows(path));
    let has = |kind| trace.tracks_of(kind).any(|it| !trace.tracks[it.row()].events.is_empty());
    checks.push(match has(TrackKind::Thread) {
        true => Check::good("host events", "there"),
        false => Check::weak(
            "host events",
            "none",
            "set host_tracer_level=2: without host events an idle device cannot be explained",
        ),
    });
    let sampled: usize = trace.processes.iter().map(|it| it.stacks.samples.len()).sum();
    let recorded = trace.events.kind.contains(&OpKind::Python);
    checks.push(match (sampled, recorded) {
        (0, false) => Check::weak(
            "lines of Python",
            "none",
            "strobe run -- python train.py samples them during the profile",
        ),
        (0, true) => Check::good("lines of Python", "calls were recorded"),
        (n, _) => Check::good("lines of Python", format!("{} samples", thousands(n))),
    });
    let listeners = trace.events.kind.iter().filter(|it| **it == OpKind::Listener).count();
    let share = listeners as f64 / events.max(1) as f64;
    let seen = format!("{} of events are thread-pool records", percent(share));
    checks.push(match share > 0.9 {
        false => Check::good("noise", seen),
        true => Check::weak(
            "noise",
            seen,
            "capture fewer steps: these records fill the file and slow the run",
        ),
    });
    let notes = trace.notes_so_far();
    let lost: u64 = notes
        .iter()
        .filter(|it| !matches!(it.kind, NoteKind::ProfilerWarning | NoteKind::BadText))
        .map(|it| it.count)
        .sum();
    let first = notes.first().map(|it| format!(": {}", it.first)).unwrap_or_default();
    checks.push(match lost {
        0 => Check::good("damage", format!("none{first}")),
        _ => Check::bad(
            "damage",
            format!("{lost} notes{first}"),
            "capture a shorter window (strobe run --steps 10), and let the profiler stop before \
             the job ends",
        ),
    });
    checks
}

/// Beyond this the profile shows another run than the one without a profiler.
const MUCH: f64 = 0.15;

fn overhead(it: Overhead) -> Check {
    let share = (it.on_ps - it.off_ps) as f64 / it.off_ps.max(1) as f64;
    let seen = format!(
        "{} a step inside the window, {} outside ({:+.1} %)",
        Dur(it.on_ps),
        Dur(it.off_ps),
        share * 100.0
    );
    match share > MUCH {
        false => Check::good("overhead", seen),
        true => Check::weak(
            "overhead",
            seen,
            "absolute times are too long; record less: strobe run --no-python, or \
             host_tracer_level=1 in your own capture",
        ),
    }
}

/// What `strobe run` decided, where it made this capture.
fn windows(path: &Path) -> Vec<Check> {
    let mut checks = Vec::new();
    for log in ::capture::process_logs(path) {
        if let Some(it) = log.last("window-start") {
            let steady = !it.text.contains("no steady pace");
            checks.push(match steady {
                true => Check::good("warm-up", &*it.text),
                false => Check::weak(
                    "warm-up",
                    &*it.text,
                    "let more steps pass first: strobe run --warmup 200 -- python train.py",
                ),
            });
        }
        if let Some(it) = log.last("failed").or_else(|| log.last("not-watched")) {
            let mend = "this version of the framework is not known; the window still opens by time";
            checks.push(Check::weak("hook", &*it.text, mend));
        }
    }
    checks
}
