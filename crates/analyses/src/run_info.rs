//! What was profiled: frameworks, hosts, devices, and how much of it there is.

use trace::dialect::{self, Dialect};
use trace::{Dur, FactValue, OpKind, Time, Trace, TrackId, TrackKind};

use crate::memory::is_allocator;
use crate::step::Step;
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
        let parts: Vec<&str> = parts(tables).iter().map(|it| it.name()).collect();
        say("run", "has", parts.join(", "));
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

/// What a run may have. Of what it has not, nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// A timeline.
    Events,
    /// Steps found in it, or told by the program itself.
    Steps,
    /// Python stacks, sampled while it ran.
    Stacks,
    /// Samples of the machine.
    Samples,
    /// Counters of single kernels.
    Metrics,
    /// The curves of a training log.
    Scalars,
    /// Compiled programs.
    Programs,
}

impl Part {
    pub fn name(self) -> &'static str {
        match self {
            Part::Events => "events",
            Part::Steps => "steps",
            Part::Stacks => "stacks",
            Part::Samples => "samples",
            Part::Metrics => "metrics",
            Part::Scalars => "scalars",
            Part::Programs => "programs",
        }
    }
}

pub fn parts(tables: &Tables) -> Vec<Part> {
    let trace = tables.trace();
    let told = |it: &trace::Process| !it.steps.is_empty();
    let mut samples = trace.tracks_of(TrackKind::Counter).filter(|&it| !is_allocator(trace, it));
    [
        (Part::Events, !trace.events.is_empty()),
        (Part::Steps, trace.processes.iter().any(told) || !tables.get::<Step>().is_empty()),
        (Part::Stacks, trace.processes.iter().any(|it| !it.stacks.samples.is_empty())),
        (Part::Samples, samples.next().is_some()),
        (Part::Metrics, !trace.metrics.is_empty()),
        (Part::Scalars, !trace.scalars.is_empty()),
        (Part::Programs, trace.programs().next().is_some()),
    ]
    .into_iter()
    .filter_map(|(part, is_there)| is_there.then_some(part))
    .collect()
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
    // Without events, by what processes said: with them that says too much, as who computes with
    // one often imports another for its data.
    if trace.events.is_empty() {
        let imported = |name: &&str| {
            trace.processes.iter().any(|it| it.frameworks.iter().any(|it| it == name))
        };
        return dialect::ALL.iter().map(|it| it.name()).filter(imported).collect();
    }
    let said = |key: &str| trace.facts.iter().any(|it| it.key == key);
    let is_shown = |it: &&&dyn Dialect| {
        it.fact().is_some_and(said) || trace.strings.iter().any(|name| it.shows(name.1))
    };
    dialect::ALL.iter().filter(is_shown).map(|it| it.name()).collect()
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
    /// Whether anything that ran on it was recorded.
    pub used: bool,
    /// Whether it was seen to compute or communicate: a device may get copies alone.
    pub computes: bool,
}

/// All that the profile knows of, in use or not.
pub fn devices(trace: &Trace) -> Vec<Device> {
    let mut used: Vec<Option<TrackId>> = Vec::new();
    used.extend(trace.tracks.iter().filter(|it| !it.events.is_empty()).map(|it| it.parent));
    used.sort_unstable();
    used.dedup();
    let computes = |device: TrackId| {
        trace.tracks_below(device, TrackKind::Stream).any(|it| {
            let it = &trace.tracks[it.row()];
            it.parent == Some(device)
                && (it.kinds.contains(OpKind::Kernel) || it.kinds.contains(OpKind::Collective))
        })
    };
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
                computes: computes(it),
            }
        })
        .collect()
}

/// Devices that have no place in the profile of their own and still left a trace in it: their
/// allocators and the threads that wait for them.
pub fn hidden_devices(trace: &Trace) -> Vec<Device> {
    if trace.tracks_of(TrackKind::Device).next().is_some() {
        return Vec::new();
    }
    let host = trace.tracks_of(TrackKind::Host).next();
    let host = host.map(|it| trace.track_name(it).to_owned()).unwrap_or_default();
    let device = |track: String, name: &str| Device {
        track,
        name: name.to_owned(),
        kind: "gpu",
        host: host.clone(),
        used: false,
        computes: false,
    };
    let mut numbers: Vec<u32> = Vec::new();
    let mut pluggable = false;
    for track in trace.track_ids() {
        let name = trace.track_name(track);
        match trace.tracks[track.row()].kind {
            TrackKind::Counter | TrackKind::Thread => {
                numbers.extend(allocator_of_gpu(name));
                pluggable |= name.starts_with("pluggable_device")
                    || name.starts_with("tf_Device_Event_Manager");
            }
            // `/device:CUSTOM:METAL`: shown, but nothing of it is counted.
            TrackKind::Process if name.starts_with("/device:") => {
                let what = name.rsplit(':').next().unwrap_or(name);
                if !what.chars().all(|it| it.is_ascii_digit()) && !is_no_device(name) {
                    return vec![device(name.to_owned(), &format!("{what} device"))];
                }
            }
            _ => (),
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    if !numbers.is_empty() {
        return numbers.into_iter().map(|it| device(format!("GPU:{it}"), "GPU")).collect();
    }
    let names_metal = || trace.strings.iter().any(|it| it.1.contains("METAL"));
    match pluggable {
        true if names_metal() => vec![device("METAL".to_owned(), "Metal GPU")],
        true => {
            vec![device("pluggable device".to_owned(), "pluggable device (Metal, for example)")]
        }
        false => Vec::new(),
    }
}

/// Work that was not recorded, and is hidden in the time of the framework that does it or waits
/// for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    /// There is an accelerator, and nothing that ran on it.
    OnAccelerator,
    /// Compiled programs ran on the host, and no op of them is there: XLA's older runtimes for CPUs
    /// record none.
    OnHost,
}

impl Hidden {
    pub fn of(trace: &Trace) -> Option<Hidden> {
        let mut streams = trace.tracks_of(TrackKind::Stream);
        if streams.any(|it| !trace.tracks[it.row()].events.is_empty()) {
            return None;
        }
        if trace.tracks_of(TrackKind::Device).next().is_some() || !hidden_devices(trace).is_empty()
        {
            return Some(Hidden::OnAccelerator);
        }
        let is_op = [OpKind::Op, OpKind::Program, OpKind::CallOp, OpKind::PythonOp];
        let has_ops = trace.tracks_of(TrackKind::Thread).any(|track| {
            let kinds = trace.tracks[track.row()].kinds;
            let may = is_op.iter().filter(|it| kinds.contains(**it));
            may.into_iter().any(|&it| trace.rows_of(track, it).next().is_some())
        });
        let runs_programs = || trace.strings.iter().any(|it| it.1.contains("Executable::Execute"));
        (!has_ops && runs_programs()).then_some(Hidden::OnHost)
    }

    pub fn why(self) -> &'static str {
        match self {
            Hidden::OnAccelerator => "nothing that ran on the accelerator was recorded",
            Hidden::OnHost => "no op that ran on the CPU was recorded",
        }
    }
}

/// Planes below `/device:` that stand for no accelerator.
fn is_no_device(name: &str) -> bool {
    name.starts_with("/device:CPU") || name.contains("Megascale")
}

/// The number of the GPU whose memory an allocator gives out: `GPU_0_bfc`.
fn allocator_of_gpu(name: &str) -> Option<u32> {
    let (number, _) = name.strip_prefix("GPU_")?.split_once("_bfc")?;
    number.parse().ok()
}

/// What to say of devices that are there and of which nothing was recorded; `None` where there are
/// no such, or none at all.
pub fn unrecorded(present: &[Device]) -> Option<String> {
    let silent: Vec<&Device> = present.iter().filter(|it| !it.used).collect();
    let first = silent.first()?;
    let what = match first.kind {
        "tpu" => "TPU",
        _ if first.name.contains("pluggable") || first.name.contains("Metal") => "pluggable device",
        _ => "GPU",
    };
    if silent.len() < present.len() {
        let verb = if silent.len() == 1 { "is" } else { "are" };
        return Some(format!(
            "{} of {} {what}s {verb} idle: nothing ran there while the profiler was on.",
            silent.len(),
            present.len()
        ));
    }
    let why = match what {
        "pluggable device" => "pluggable devices such as Metal do not record kernels",
        "TPU" => "the profiler of the host alone was on",
        _ => {
            "CUPTI needs permission to record kernels, and pluggable devices such as Metal do not \
             record them"
        }
    };
    Some(match silent.len() {
        1 => format!("A {what} is present, but nothing that ran on it was recorded ({why})."),
        n => format!("{n} {what}s are present, but nothing that ran on them was recorded ({why})."),
    })
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
    let capability = number("compute_cap_major").zip(number("compute_cap_minor"));
    let vendor = text("device_vendor");
    let is_amd = vendor.as_deref().is_some_and(|it| it.eq_ignore_ascii_case("amd"));
    let cores = number("core_count").unwrap_or(0);
    let memory_gb = number("memory_size").unwrap_or(0) >> 30;
    match (vendor, capability) {
        (Some(_), Some((major, minor))) if is_amd => {
            let class = amd_class((major, minor), cores);
            format!("AMD GPU, gfx{major}{minor}x{}", in_brackets(class))
        }
        // Profilers that named no vendor knew one only.
        (_, Some((major, minor))) => {
            let class = nvidia_class((major, minor), cores, memory_gb);
            format!("NVIDIA GPU, compute capability {major}.{minor}{}", in_brackets(class))
        }
        (Some(vendor), None) => format!("{vendor} {track}"),
        (None, None) => track.to_owned(),
    }
}

fn in_brackets(class: Option<&str>) -> String {
    class.map(|it| format!(" ({it} class)")).unwrap_or_default()
}

/// Of two products with the same multiprocessors, the one with more memory than this is the H200.
/// Source: document, NVIDIA's data sheets: 80 GB or 94 GB, and 141 GB.
const MOST_OF_H100_GB: i64 = 100;

/// Products by compute capability and number of multiprocessors.
/// A class, not a name: cut-down parts of other products can have the same numbers.
fn nvidia_class(capability: (i64, i64), cores: i64, memory_gb: i64) -> Option<&'static str> {
    Some(match (capability, cores) {
        ((3, 7), 13) => "K80",
        ((6, 0), 56) => "P100",
        ((6, 1), 28) => "GTX 1080 Ti",
        ((6, 1), 30) => "P40",
        ((7, 0), 80) => "V100",
        ((7, 5), 40) => "T4",
        ((7, 5), 68) => "RTX 2080 Ti",
        ((8, 0), 108) => "A100",
        ((8, 6), 72) => "A10",
        ((8, 6), 82) => "RTX 3090",
        ((8, 6), 84) => "A40",
        ((8, 9), 58) => "L4",
        ((8, 9), 128) => "RTX 4090",
        ((8, 9), 142) => "L40",
        ((9, 0), 114) => "H100 PCIe",
        ((9, 0), 132) if memory_gb > MOST_OF_H100_GB => "H200",
        ((9, 0), 132) => "H100",
        ((10, 0), 148) => "B200",
        _ => return None,
    })
}

/// The same for AMD's, by their number of compute units.
fn amd_class(capability: (i64, i64), cores: i64) -> Option<&'static str> {
    Some(match (capability, cores) {
        ((9, 0), 60) => "MI50",
        ((9, 0), 104) => "MI210",
        ((9, 0), 110) => "MI250X",
        ((9, 0), 120) => "MI100",
        ((9, 4), 228) => "MI300A",
        ((9, 4), 304) => "MI300X",
        ((9, 5), 256) => "MI350X",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use trace::testing::draw;
    use trace::{TraceBuilder, TrackKind};

    use super::{Hidden, devices, hidden_devices, unrecorded};

    #[test]
    fn a_device_has_a_name_that_says_what_it_is() {
        let name = |facts: &[&str]| {
            let facts: Vec<String> = facts.iter().map(|it| format!("fact gpu0 {it}")).collect();
            devices(&draw(&facts.join("\n")))[0].name.clone()
        };
        let v100 = ["compute_cap_major=7", "compute_cap_minor=0", "core_count=80"];
        assert_eq!(name(&v100), "NVIDIA GPU, compute capability 7.0 (V100 class)");
        assert_eq!(name(&v100[..2]), "NVIDIA GPU, compute capability 7.0");
        let amd =
            ["device_vendor=AMD", "compute_cap_major=9", "compute_cap_minor=4", "core_count=304"];
        assert_eq!(name(&amd), "AMD GPU, gfx94x (MI300X class)");
        assert_eq!(name(&["device_type_string=TPU v6 Lite"]), "TPU v6 Lite");
    }

    #[test]
    fn devices_of_which_nothing_was_recorded_are_told() {
        let of = |picture: &str| unrecorded(&devices(&draw(picture)));
        assert_eq!(of("gpu0/s: a 0..1"), None);
        let three = "fact gpu1 clock_rate=1\nfact gpu2 clock_rate=1\n";
        assert_eq!(
            of(&format!("{three}gpu0/s: a 0..1")).as_deref(),
            Some("2 of 3 GPUs are idle: nothing ran there while the profiler was on.")
        );
        let silent = of("fact gpu0 clock_rate=1").unwrap_or_default();
        assert!(silent.starts_with("A GPU is present, but nothing"), "{silent}");
        let copies = devices(&draw("gpu0/s: MemcpyH2D 0..1"));
        assert_eq!((copies[0].used, copies[0].computes), (true, false));
    }

    #[test]
    fn a_device_without_a_plane_is_known_by_its_allocator() {
        let named = |name: &str| {
            let mut out = TraceBuilder::new();
            out.track(None, TrackKind::Host, "mac");
            out.track(None, TrackKind::Counter, name);
            let found = hidden_devices(&out.finish());
            (found.len(), unrecorded(&found))
        };
        let (n, said) = named("pluggable_device_host_bfc bytes_allocated");
        assert_eq!(n, 1);
        assert!(said.is_some_and(|it| it.contains("Metal do not record kernels")));
        assert_eq!(named("GPU_0_bfc bytes_allocated").0, 1);
        assert_eq!(named("cpu bytes_allocated"), (0, None));
    }

    #[test]
    fn work_that_was_not_recorded_is_known_to_be_hidden() {
        let of = |picture: &str| Hidden::of(&draw(picture));
        let call = "host/python: TfrtCpuExecutable::Execute 0..10";
        assert_eq!(of(call), Some(Hidden::OnHost));
        assert_eq!(of(&format!("{call}\nhost/pool: a/MatMul:MatMul 2..8")), None);
        assert_eq!(of(&format!("{call}\ngpu0/s: gemm 2..8")), None);
        assert_eq!(of(&format!("{call}\nfact gpu0 clock_rate=1")), Some(Hidden::OnAccelerator));
        assert_eq!(of("host/python: FunctionRun 0..10"), None);
    }
}
