//! Makes the truth of a scenario of what its author declared while laying it out.
//!
//! The author says, per step and device, which category each stretch of time
//! belongs to; nothing here looks at the events. That the events agree is
//! checked in `tests/truth.rs`, by brute force over the written bytes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// What a moment of a step was spent on; the names are those of CONTRACT.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    Input,
    TransferIn,
    Compile,
    Python,
    Runtime,
    Compute,
    Collective,
    TransferOut,
    Output,
    Idle,
}

impl Category {
    pub const ALL: [Category; 10] = [
        Category::Input,
        Category::TransferIn,
        Category::Compile,
        Category::Python,
        Category::Runtime,
        Category::Compute,
        Category::Collective,
        Category::TransferOut,
        Category::Output,
        Category::Idle,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Category::Input => "input",
            Category::TransferIn => "transfer_in",
            Category::Compile => "compile",
            Category::Python => "python",
            Category::Runtime => "runtime",
            Category::Compute => "compute",
            Category::Collective => "collective",
            Category::TransferOut => "transfer_out",
            Category::Output => "output",
            Category::Idle => "idle",
        }
    }

    fn is_device_busy(self) -> bool {
        use Category::{Collective, Compute, TransferIn, TransferOut};
        matches!(self, Compute | Collective | TransferIn | TransferOut)
    }
}

/// How the steps can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    Markers,
    Calls,
    Period,
}

impl FoundBy {
    pub fn name(self) -> &'static str {
        match self {
            FoundBy::Markers => "markers",
            FoundBy::Calls => "calls",
            FoundBy::Period => "period",
        }
    }
}

/// Where a copy went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
    PeerToPeer,
}

impl Direction {
    pub fn name(self) -> &'static str {
        match self {
            Direction::HostToDevice => "h2d",
            Direction::DeviceToHost => "d2h",
            Direction::DeviceToDevice => "d2d",
            Direction::PeerToPeer => "p2p",
        }
    }
}

/// All events of one kernel name (on TPU: of one op), in the whole profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelTruth {
    pub name: String,
    pub count: u64,
    pub total_ns: u64,
}

/// All copies of one direction, in the whole profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyTruth {
    pub direction: Direction,
    pub count: u64,
    pub bytes: u64,
    pub total_ns: u64,
}

/// What an analysis of the profile should say.
///
/// Everything "per step" is the mean over `steps`; kernels, copies and memsets
/// count the whole profile, the unfinished last step and the warm-up included.
#[derive(Clone, Debug)]
pub struct Truth {
    /// Complete steps, start to start, after the warm-up: one less than step starts in the file.
    pub steps: u64,
    /// Slow steps before those.
    pub warmup_steps: u64,
    pub step_ms: f64,
    pub step_ms_each: Vec<f64>,
    /// Mean over devices; all ten categories, adding to `step_ms`.
    pub breakdown_ms: BTreeMap<&'static str, f64>,
    /// The same for each device, hosts in file order, then by device number.
    pub breakdown_ms_by_device: Vec<BTreeMap<&'static str, f64>>,
    pub found_by: FoundBy,
    pub devices: u64,
    pub hosts: u64,
    pub kernels: Vec<KernelTruth>,
    pub copies: Vec<CopyTruth>,
    pub memsets: u64,
    /// Something but an infeed runs on the device, on whatever stream; mean over devices.
    pub busy_ms_per_step: f64,
    /// What is wrong, by the name of the rule that must say it first; empty in a healthy run.
    pub first_finding: Option<&'static str>,
    /// How long a step would be with that repaired and nothing else, where that is known.
    pub fixed_step_ms: Option<f64>,
}

impl Truth {
    pub fn to_json(&self) -> Value {
        let kernels = self
            .kernels
            .iter()
            .map(|it| json!({"name": it.name, "count": it.count, "total_ns": it.total_ns}));
        let copies = self.copies.iter().map(|it| {
            json!({"direction": it.direction.name(), "count": it.count, "bytes": it.bytes,
                   "total_ns": it.total_ns})
        });
        let mut truth = json!({
            "steps": self.steps,
            "warmup_steps": self.warmup_steps,
            "step_ms": self.step_ms,
            "step_ms_each": self.step_ms_each,
            "breakdown_ms": self.breakdown_ms,
            "breakdown_ms_by_device": self.breakdown_ms_by_device,
            "found_by": self.found_by.name(),
            "devices": self.devices,
            "hosts": self.hosts,
            "kernels": kernels.collect::<Vec<_>>(),
            "copies": copies.collect::<Vec<_>>(),
            "memsets": self.memsets,
            "busy_ms_per_step": self.busy_ms_per_step,
        });
        if let Some(rule) = self.first_finding {
            truth["first_finding"] = rule.into();
        }
        if let Some(ms) = self.fixed_step_ms {
            truth["fixed_step_ms"] = ms.into();
        }
        truth
    }
}

/// Stretches of one step of one device, in microseconds, in order and without gaps.
pub(crate) type Tiles<'a> = &'a [(Category, u64)];

/// Declared time and work, added up exactly.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// Length of each complete step; of the first host where there are several.
    steps_us: Vec<u64>,
    devices: Vec<BTreeMap<Category, u64>>,
    kernels: BTreeMap<String, (u64, u64)>,
    copies: BTreeMap<Direction, (u64, u64, u64)>,
    memsets: u64,
}

impl Ledger {
    /// Declares one complete step: one list of tiles per device, equally long.
    pub(crate) fn step(&mut self, devices: &[Tiles<'_>]) {
        self.devices.resize_with(devices.len(), BTreeMap::new);
        let lengths: Vec<u64> =
            devices.iter().map(|tiles| tiles.iter().map(|it| it.1).sum()).collect();
        assert!(lengths.iter().all(|it| *it == lengths[0]), "one step, but {lengths:?}");
        self.steps_us.push(lengths[0]);
        for (spent, tiles) in self.devices.iter_mut().zip(devices) {
            for &(category, dur_us) in *tiles {
                *spent.entry(category).or_default() += dur_us;
            }
        }
    }

    pub(crate) fn kernel(&mut self, name: &str, dur_us: u64) {
        let (count, total_ns) = self.kernels.entry(name.to_owned()).or_default();
        *count += 1;
        *total_ns += dur_us * 1000;
    }

    pub(crate) fn copy(&mut self, direction: Direction, n_bytes: u64, dur_us: u64) {
        let (count, bytes, total_ns) = self.copies.entry(direction).or_default();
        *count += 1;
        *bytes += n_bytes;
        *total_ns += dur_us * 1000;
    }

    pub(crate) fn memset(&mut self) {
        self.memsets += 1;
    }

    /// Adds the devices and the work of another host that took the same steps.
    pub(crate) fn join(&mut self, other: Ledger) {
        assert_eq!(self.steps_us, other.steps_us, "hosts step together");
        self.devices.extend(other.devices);
        for (name, (count, total_ns)) in other.kernels {
            let mine = self.kernels.entry(name).or_default();
            *mine = (mine.0 + count, mine.1 + total_ns);
        }
        for (direction, (count, bytes, total_ns)) in other.copies {
            let mine = self.copies.entry(direction).or_default();
            *mine = (mine.0 + count, mine.1 + bytes, mine.2 + total_ns);
        }
        self.memsets += other.memsets;
    }

    pub(crate) fn truth(self, found_by: FoundBy, hosts: u64) -> Truth {
        let n_steps = self.steps_us.len() as u64;
        let n_devices = self.devices.len() as u64;
        // One division per number, so that whole microseconds stay as exact as a double can be.
        let mean_ms = |total_us: u64, over: u64| total_us as f64 / (over * 1000) as f64;
        let spent =
            |category| move |it: &BTreeMap<Category, u64>| it.get(&category).copied().unwrap_or(0);

        let by_category = |devices: &[BTreeMap<Category, u64>]| {
            let over = n_steps * devices.len() as u64;
            let of = |category| mean_ms(devices.iter().map(spent(category)).sum(), over);
            Category::ALL.into_iter().map(|it| (it.name(), of(it))).collect::<BTreeMap<_, _>>()
        };
        let busy_us: u64 = Category::ALL
            .into_iter()
            .filter(|it| it.is_device_busy())
            .map(|it| self.devices.iter().map(spent(it)).sum::<u64>())
            .sum();

        Truth {
            steps: n_steps,
            warmup_steps: 0,
            step_ms: mean_ms(self.steps_us.iter().sum(), n_steps),
            step_ms_each: self.steps_us.iter().map(|&it| mean_ms(it, 1)).collect(),
            breakdown_ms: by_category(&self.devices),
            breakdown_ms_by_device: self
                .devices
                .iter()
                .map(|it| by_category(std::slice::from_ref(it)))
                .collect(),
            found_by,
            devices: n_devices,
            hosts,
            kernels: self
                .kernels
                .into_iter()
                .map(|(name, (count, total_ns))| KernelTruth { name, count, total_ns })
                .collect(),
            copies: self
                .copies
                .into_iter()
                .map(|(direction, (count, bytes, total_ns))| CopyTruth {
                    direction,
                    count,
                    bytes,
                    total_ns,
                })
                .collect(),
            memsets: self.memsets,
            busy_ms_per_step: mean_ms(busy_us, n_steps * n_devices),
            first_finding: None,
            fixed_step_ms: None,
        }
    }
}
