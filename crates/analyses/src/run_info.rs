//! What was profiled: frameworks, hosts, devices, and how much of it there is.

use trace::{Dur, FactValue, Time, Trace, TrackId, TrackKind};

use crate::memory::is_allocator;
use crate::{Analysis, Tables};

table! {
    /// Facts about the run, one a row.
    pub struct RunInfo = "run_info" {
        /// Where it was said: a host, device or process, a training log, or `run`.
        of: String,
        /// What is said.
        key: String,
        /// As text.
        value: String,
    }
}

impl Analysis for RunInfo {
    fn run(tables: &Tables) -> Vec<RunInfo> {
        let trace = tables.trace();
        let mut rows = Vec::new();
        let mut say = |of: &str, key: &str, value: String| {
            rows.push(RunInfo { of: of.to_owned(), key: key.to_owned(), value });
        };
        let frameworks = frameworks(trace);
        if !frameworks.is_empty() {
            say("run", "frameworks", frameworks.join(", "));
        }
        say("run", "events", trace.events.len().to_string());
        say("run", "window", window(trace).to_string());
        if let Some(origin) = trace.origin_unix_ns {
            say("run", "started_unix_ns", origin.to_string());
        }
        for device in devices(trace) {
            say(&device.track, "name", device.name.clone());
            say(&device.track, "kind", device.kind.to_owned());
        }
        for fact in &trace.facts {
            say(trace.track_name(fact.track), &fact.key, fact.value.to_string());
        }
        for (track, peak) in counter_peaks(trace) {
            say(trace.track_name(track), "peak_bytes", format!("{peak:.0}"));
        }
        for blob in &trace.blobs {
            say("run", blob.kind, blob.name.clone());
        }
        if !trace.scalars.is_empty() {
            say("run", "scalars", trace.scalars.len().to_string());
        }
        for it in &trace.left_out {
            say(&format!("log {}", it.run), &format!("not read/{}", it.kind), it.count.to_string());
        }
        rows
    }
}

fn counter_peaks(trace: &Trace) -> Vec<(TrackId, f64)> {
    let mut peaks: Vec<(TrackId, f64)> = Vec::new();
    for counter in trace.counters.iter().filter(|it| is_allocator(trace, it.track)) {
        match peaks.last_mut() {
            Some(last) if last.0 == counter.track => last.1 = last.1.max(counter.value),
            _ => peaks.push((counter.track, counter.value)),
        }
    }
    peaks
}

/// Which frameworks left their names in the trace.
pub fn frameworks(trace: &Trace) -> Vec<&'static str> {
    let any = |test: &dyn Fn(&str) -> bool| trace.strings.iter().any(|it| test(it.1));
    let mut found = Vec::new();
    if any(&|it| {
        it.starts_with("TFE_")
            || it.starts_with("EagerExecute")
            || it == "SessionRun"
            || it.starts_with("ExecutorState::Process")
            || it.starts_with("Iterator::")
            || it.starts_with("IteratorGetNext")
    }) {
        found.push("tensorflow");
    }
    // Without events, by what processes said: with them that says too much, as who computes with
    // one often imports another for its data.
    if trace.events.is_empty() {
        let imported = |name: &&str| {
            trace.processes.iter().any(|it| it.frameworks.iter().any(|it| it == name))
        };
        return ["tensorflow", "jax", "torch"].into_iter().filter(imported).collect();
    }
    let said = |key: &str| trace.facts.iter().any(|it| it.key == key);
    if said("jax_version") || any(&|it| it.starts_with("PjitFunction(")) {
        found.push("jax");
    }
    found
}

/// How long the capture lasted: by the profiler's word, else by its events.
pub fn window(trace: &Trace) -> Dur {
    let used = trace.tracks.iter().filter(|it| !it.events.is_empty());
    let first = used.map(|it| trace.events.start[it.rows().start]).min().unwrap_or(Time(0));
    let last = trace.tracks.iter().filter_map(|it| it.over).max();
    trace.window.unwrap_or_else(|| last.unwrap_or(first) - first)
}

/// An accelerator of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    pub track: String,
    pub name: String,
    pub kind: &'static str,
    pub host: String,
    /// Whether anything ran on it.
    pub used: bool,
}

pub fn devices(trace: &Trace) -> Vec<Device> {
    let mut used: Vec<Option<TrackId>> = Vec::new();
    used.extend(trace.tracks.iter().filter(|it| !it.events.is_empty()).map(|it| it.parent));
    used.sort_unstable();
    used.dedup();
    trace
        .tracks_of(TrackKind::Device)
        .map(|it| {
            let track = trace.track_name(it);
            let kind = if track.contains("TPU") { "tpu" } else { "gpu" };
            let host = trace.ancestor(it, TrackKind::Host);
            Device {
                name: device_name(trace, it),
                track: track.to_owned(),
                kind,
                host: host.map(|it| trace.track_name(it).to_owned()).unwrap_or_default(),
                used: used.binary_search(&Some(it)).is_ok(),
            }
        })
        .collect()
}

/// The product's name where the profile has it, else what can be said for sure.
fn device_name(trace: &Trace, device: TrackId) -> String {
    let text = |key: &str| match trace.fact(device, key) {
        Some(FactValue::Text(it)) if !it.is_empty() => Some(it.clone()),
        _ => None,
    };
    if let Some(name) = text("gpu_device_name").or_else(|| text("device_type_string")) {
        return name;
    }
    let number = |key: &str| match trace.fact(device, key) {
        Some(FactValue::Int(it)) => Some(*it),
        _ => None,
    };
    let track = trace.track_name(device).trim_start_matches("/device:");
    let vendor = text("device_vendor");
    match (vendor, number("compute_cap_major"), number("compute_cap_minor")) {
        (Some(vendor), Some(major), Some(minor)) => format!("{vendor} {track}, {major}.{minor}"),
        (None, Some(major), Some(minor)) => format!("{track}, {major}.{minor}"),
        (Some(vendor), _, _) => format!("{vendor} {track}"),
        _ => track.to_owned(),
    }
}
