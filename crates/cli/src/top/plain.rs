//! The live view without a screen: a line for a log, JSON for a script, the page once.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use capture::live::{Gpu, Hardware, Series, Snapshot};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::{Value, json};

use super::breakdown::Breakdown;
use super::screen::{self, View};
use super::words::{UNKNOWN, bytes, short, time_and_unit};
use crate::output::Output;
use session::report::json::ms;
use session::report::words::{percent, thousands};

/// One line: when, how many steps, how fast, what the machine does, and how far it is.
pub fn line(snapshot: &Snapshot) -> String {
    let unknown = || UNKNOWN.to_owned();
    let steps = snapshot.steps.as_ref();
    let count = steps.map_or_else(unknown, |it| thousands(usize::try_from(it.count).unwrap_or(0)));
    let rate = steps.and_then(|it| it.rate_now).map_or_else(unknown, short);
    let median = steps.and_then(|it| it.median_ns).map_or_else(unknown, time_and_unit);
    let hardware = snapshot.hardware.as_ref();
    let cpu = hardware.and_then(|it| it.cpu_process.now).map_or_else(unknown, short);
    let memory = hardware.and_then(|it| it.memory.process.now).map_or_else(unknown, |it| {
        let (number, unit) = bytes(it, it);
        format!("{number} {unit}")
    });
    let mut line = format!(
        "{}  {count:>7} steps  {rate:>6}/s  {median:>8}  CPU {cpu:>5} cores  memory {memory:>8}",
        clock(snapshot.unix_ns)
    );
    for (at, gpu) in hardware.map(|it| it.gpus.as_slice()).unwrap_or_default().iter().enumerate() {
        let busy = gpu.busy.now.map_or_else(unknown, percent);
        let _ = write!(line, "  GPU {at} {busy:>5}");
    }
    let _ = write!(line, "  {}", snapshot.state.in_words());
    if !snapshot.reason.is_empty() {
        let _ = write!(line, ": {}", snapshot.reason);
    }
    line
}

/// `2026-11-16T05:31:07Z`.
fn clock(unix_ns: i64) -> String {
    let since = Duration::from_nanos(u64::try_from(unix_ns).unwrap_or(0));
    let name = capture::folder::time_name(UNIX_EPOCH + since, '-');
    match name.split_at_checked("2026-11-16".len()) {
        Some((date, time)) => format!("{date}T{}Z", time[1..].replace('-', ":")),
        None => name,
    }
}

/// The screen as text, as high as it needs to be.
pub fn page(view: &View<'_>, out: &mut Output) -> std::io::Result<()> {
    let width = u16::try_from(out.width).unwrap_or(80).max(screen::SMALLEST.0);
    let gpus = view.snapshot.hardware.as_ref().map_or(0, |it| it.gpus.len());
    let rows = PAGE_ROWS + GPU_ROWS * u16::try_from(gpus).unwrap_or(0);
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, rows));
    screen::render(&mut buffer, view);
    let mut lines = screen::text_of(&buffer);
    // A page has no keys.
    lines.pop();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.iter().try_for_each(|it| writeln!(out, "{it}"))
}

/// What a page has room for without leaving anything out.
const PAGE_ROWS: u16 = 24;
const GPU_ROWS: u16 = 5;

pub fn as_json(snapshot: &Snapshot, breakdown: &Breakdown) -> Value {
    let ns = |it: i64| it as f64 / 1e6;
    let seconds = |it: i64| it as f64 / 1e9;
    let steps = snapshot.steps.as_ref().map(|it| {
        json!({
            "count": it.count,
            "kind": it.kind,
            "name": it.name,
            "per_second_now": it.rate_now,
            "per_second_run": it.rate_run,
            "median_ms": it.median_ns.map(ns),
            "p95_ms": it.p95_ns.map(ns),
            "statistics_over": it.statistics_over,
            "examples_per_step": it.examples_per_step,
            "examples_per_second": it.examples_now,
            "silent_s": it.silent_ns.map(seconds),
        })
    });
    json!({
        "schema": 1,
        "unix_ns": snapshot.unix_ns,
        "run": {
            "path": snapshot.folder.display().to_string(),
            "name": snapshot.name,
            "command": snapshot.command,
            "host": snapshot.host,
            "pid": snapshot.pid,
            "python": snapshot.python,
            "frameworks": snapshot.frameworks,
            "processes_stepping": snapshot.n_stepping,
            "elapsed_s": snapshot.elapsed_ns.map(seconds),
        },
        "state": snapshot.state.in_words(),
        "reason": snapshot.reason,
        "steps": steps,
        "breakdown": breakdown_json(breakdown),
        "hardware": snapshot.hardware.as_ref().map(hardware_json),
        "damaged_lines": snapshot.damaged_lines,
    })
}

/// Null until a profile is read.
fn breakdown_json(breakdown: &Breakdown) -> Value {
    let Breakdown::Read(parts) = breakdown else { return Value::Null };
    let share = |it: &session::report::Share| json!({"category": it.category, "ms_per_step": ms(it.per_step), "share": it.share});
    json!(parts.shares.iter().map(share).collect::<Vec<_>>())
}

fn hardware_json(hardware: &Hardware) -> Value {
    let now = |it: &Series| it.now;
    let missing: Vec<Value> =
        hardware.missing.iter().map(|it| json!({"what": it.0, "why": it.1})).collect();
    json!({
        "silent_s": hardware.silent_ns.map(|it| it as f64 / 1e9),
        "cores": hardware.cores,
        "cpu_process_cores": now(&hardware.cpu_process),
        "cpu_machine_share": now(&hardware.cpu_all),
        "memory_process_bytes": now(&hardware.memory.process),
        "memory_of_bytes": hardware.memory.of_bytes,
        "memory_is_limited": hardware.memory.is_limit,
        "disk_read_bytes_per_s": now(&hardware.disk_read),
        "disk_write_bytes_per_s": now(&hardware.disk_write),
        "network_in_bytes_per_s": now(&hardware.network_in),
        "network_out_bytes_per_s": now(&hardware.network_out),
        "gpus": hardware.gpus.iter().map(gpu_json).collect::<Vec<_>>(),
        "missing": missing,
    })
}

fn gpu_json(gpu: &Gpu) -> Value {
    json!({
        "name": gpu.name,
        "busy_share": gpu.busy.now,
        "memory_bytes": gpu.memory.now,
        "memory_of_bytes": gpu.memory_bytes,
        "clock_mhz": gpu.clock.now,
        "max_clock_mhz": gpu.max_clock_mhz,
        "power_w": gpu.power.now,
        "power_limit_w": gpu.power_limit_w,
        "temperature_c": gpu.temperature.now,
        "throttled": gpu.throttled,
    })
}
