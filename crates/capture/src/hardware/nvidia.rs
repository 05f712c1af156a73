//! NVIDIA's GPUs, by the management library (NVML) that comes with the driver, loaded at run time.

use nvml_wrapper::enum_wrappers::device::{Clock, PcieUtilCounter, TemperatureSensor};
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::{GpmSample, gpm_metrics_get};
use nvml_wrapper::{Device, Nvml};

use super::gpu::{Driver, Found, Gpu};
use super::{Machine, Missing};

/// The driver's own name; without the number it is only there where developers' files are.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// Loads the library, or says in words why it cannot be asked.
pub fn load(machine: &Machine) -> Result<Nvml, String> {
    let path = machine.nvml.as_ref().map_or(LIBRARY.as_ref(), |it| it.as_os_str());
    Nvml::builder().lib_path(path).init().map_err(|error| match error {
        NvmlError::LibloadingError(it) => {
            let text = it.to_string();
            let name = path.display();
            if text.contains("No such file") {
                format!(
                    "{name} is not there: no driver is installed, or it is not in this container"
                )
            } else {
                format!("{name} cannot be loaded: {text}")
            }
        }
        it => why(&it),
    })
}

/// An error, as a person would say it.
fn why(error: &NvmlError) -> String {
    match error {
        NvmlError::NotSupported => "this GPU does not tell".to_owned(),
        NvmlError::NoPermission => "no permission to ask the driver".to_owned(),
        NvmlError::DriverNotLoaded => "the driver is not loaded".to_owned(),
        NvmlError::LibRmVersionMismatch => {
            "library and driver are of different versions; restart the machine".to_owned()
        }
        NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => {
            "the driver is too old to be asked".to_owned()
        }
        it => it.to_string(),
    }
}

type Answer = Result<f64, NvmlError>;

/// A column, and how a device is asked for it.
#[derive(Clone, Copy)]
struct Field {
    name: &'static str,
    ask: fn(&Device<'_>) -> Answer,
}

/// Both shares come with one call.
const SHARES: [&str; 2] = ["busy", "memory_busy"];

const FIELDS: [Field; 6] = [
    Field { name: "memory", ask: |it| Ok(it.memory_info()?.used as f64) },
    Field { name: "sm_clock", ask: |it| Ok(f64::from(it.clock_info(Clock::SM)?)) },
    Field { name: "memory_clock", ask: |it| Ok(f64::from(it.clock_info(Clock::Memory)?)) },
    Field { name: "power", ask: |it| Ok(f64::from(it.power_usage()?) / 1e3) },
    Field { name: "temperature", ask: |it| Ok(f64::from(it.temperature(TemperatureSensor::Gpu)?)) },
    Field { name: "throttled", ask: |it| Ok(it.current_throttle_reasons()?.bits() as f64) },
];

/// The driver counts kilobytes a second.
const PCIE: [Field; 2] = [
    Field {
        name: "pcie_in",
        ask: |it| Ok(f64::from(it.pcie_throughput(PcieUtilCounter::Receive)?) * 1e3),
    },
    Field {
        name: "pcie_out",
        ask: |it| Ok(f64::from(it.pcie_throughput(PcieUtilCounter::Send)?) * 1e3),
    },
];

/// What a GPU counts of its own work (GPM), and what one of theirs is in our units: they say
/// percent, and MiB a second.
const COUNTED: [(&str, GpmMetricId, f64); 6] = [
    ("sm_busy", GpmMetricId::SmUtil, 0.01),
    ("sm_occupancy", GpmMetricId::SmOccupancy, 0.01),
    ("tensor_busy", GpmMetricId::AnyTensorUtil, 0.01),
    ("memory_bandwidth", GpmMetricId::DramBwUtil, 0.01),
    ("nvlink_in", GpmMetricId::NvlinkTotalRxPerSec, 1_048_576.0),
    ("nvlink_out", GpmMetricId::NvlinkTotalTxPerSec, 1_048_576.0),
];

/// The GPUs, and what each of them answers.
pub struct Devices<'nvml> {
    asked: Vec<Asked<'nvml>>,
    nvml: &'nvml Nvml,
}

struct Asked<'nvml> {
    number: usize,
    index: u32,
    device: Device<'nvml>,
    shares: bool,
    fields: Vec<Field>,
    pcie: Vec<Field>,
    counts: bool,
}

/// Lists the GPUs and asks each for everything once.
pub fn open<'nvml>(nvml: &'nvml Nvml, found: &mut Found) -> Option<Devices<'nvml>> {
    let count = match nvml.device_count() {
        Ok(0) => {
            found.missing.push(Missing::new("NVIDIA GPUs", "the driver knows of none"));
            return None;
        }
        Ok(count) => count,
        Err(error) => {
            found.missing.push(Missing::new("NVIDIA GPUs", why(&error)));
            return None;
        }
    };
    let mut asked = Vec::new();
    for index in 0..count {
        let number = found.gpus.len();
        let mut lacks = |what: &str, error: &NvmlError| {
            found.missing.push(Missing::new(format!("gpu {number}/{what}"), why(error)));
        };
        let device = match nvml.device_by_index(index) {
            Ok(device) => device,
            Err(error) => {
                found.missing.push(Missing::new(format!("NVIDIA GPU {index}"), why(&error)));
                continue;
            }
        };
        let shares = device.utilization_rates().inspect_err(|it| {
            SHARES.iter().for_each(|name| lacks(name, it));
        });
        let mut answered = |it: &Field| match (it.ask)(&device) {
            Ok(_) => true,
            Err(error) => {
                lacks(it.name, &error);
                false
            }
        };
        let fields = FIELDS.into_iter().filter(&mut answered).collect();
        let pcie = PCIE.into_iter().filter(&mut answered).collect();
        let counts = match device.gpm_support() {
            Ok(true) => true,
            Ok(false) => {
                let why = "GPUs count it from Hopper on".to_owned();
                found.missing.push(Missing::new(format!("gpu {number}/sm_busy and the like"), why));
                false
            }
            Err(error) => {
                lacks("sm_busy and the like", &error);
                false
            }
        };
        let watts = |it: u32| f64::from(it) / 1e3;
        found.gpus.push(Gpu {
            name: device.name().unwrap_or_else(|_| "NVIDIA GPU".to_owned()),
            memory_bytes: device.memory_info().ok().map(|it| it.total),
            max_sm_clock_mhz: device.max_clock_info(Clock::SM).ok(),
            power_limit_w: device.enforced_power_limit().ok().map(watts),
            power_limit_max_w: device
                .power_management_limit_constraints()
                .ok()
                .map(|it| watts(it.max_limit)),
        });
        asked.push(Asked { number, index, device, shares: shares.is_ok(), fields, pcie, counts });
    }
    (!asked.is_empty()).then_some(Devices { asked, nvml })
}

impl<'nvml> Devices<'nvml> {
    /// The same GPUs, asked for what they count of their work.
    pub fn counting(&self) -> Option<Counting<'nvml>> {
        let counting: Vec<_> = self
            .asked
            .iter()
            .filter(|it| it.counts)
            .filter_map(|it| {
                let device = self.nvml.device_by_index(it.index).ok()?;
                Some(OneCounts { number: it.number, device, last: None })
            })
            .collect();
        (!counting.is_empty()).then_some(Counting { counting, nvml: self.nvml })
    }

    /// The same GPUs, asked for what takes long.
    pub fn pcie(&self) -> Option<Pcie<'nvml>> {
        let asked: Vec<_> = self
            .asked
            .iter()
            .filter(|it| !it.pcie.is_empty())
            .filter_map(|it| {
                Some((it.number, self.nvml.device_by_index(it.index).ok()?, it.pcie.clone()))
            })
            .collect();
        (!asked.is_empty()).then_some(Pcie(asked))
    }
}

impl Driver for Devices<'_> {
    fn columns(&self) -> Vec<String> {
        let mut columns = Vec::new();
        for it in &self.asked {
            let shares = if it.shares { &SHARES[..] } else { &[] };
            let names = shares.iter().copied().chain(it.fields.iter().map(|it| it.name));
            columns.extend(names.map(|name| format!("gpu {}/{name}", it.number)));
        }
        columns
    }

    fn read(&mut self, out: &mut [Option<f64>]) {
        let mut out = out.iter_mut();
        let mut say = |value: Option<f64>| {
            if let Some(out) = out.next() {
                *out = value;
            }
        };
        for it in &self.asked {
            if it.shares {
                let both = it.device.utilization_rates().ok();
                let share = |percent: u32| (f64::from(percent) / 100.0).min(1.0);
                say(both.as_ref().map(|it| share(it.gpu)));
                say(both.as_ref().map(|it| share(it.memory)));
            }
            for field in &it.fields {
                say((field.ask)(&it.device).ok());
            }
        }
    }
}

/// How much goes over the bus.
pub struct Pcie<'nvml>(Vec<(usize, Device<'nvml>, Vec<Field>)>);

impl Driver for Pcie<'_> {
    fn columns(&self) -> Vec<String> {
        let names = |(number, _, fields): &(usize, Device<'_>, Vec<Field>)| {
            fields.iter().map(|it| format!("gpu {number}/{}", it.name)).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(names).collect()
    }

    fn read(&mut self, out: &mut [Option<f64>]) {
        let fields = self
            .0
            .iter()
            .flat_map(|(_, device, fields)| fields.iter().map(move |it| (it.ask)(device).ok()));
        for (out, value) in out.iter_mut().zip(fields) {
            *out = value;
        }
    }
}

/// What GPUs count of their work: how far the counters moved between two looks.
pub struct Counting<'nvml> {
    counting: Vec<OneCounts<'nvml>>,
    nvml: &'nvml Nvml,
}

struct OneCounts<'nvml> {
    number: usize,
    device: Device<'nvml>,
    last: Option<GpmSample<'nvml>>,
}

impl Driver for Counting<'_> {
    fn columns(&self) -> Vec<String> {
        let of = |it: &OneCounts<'_>| COUNTED.map(|field| format!("gpu {}/{}", it.number, field.0));
        self.counting.iter().flat_map(of).collect()
    }

    fn read(&mut self, out: &mut [Option<f64>]) {
        for (one, out) in self.counting.iter_mut().zip(out.chunks_mut(COUNTED.len())) {
            let now = one.device.gpm_sample().ok();
            let ids = COUNTED.map(|it| it.1);
            let between = match (&one.last, &now) {
                (Some(last), Some(now)) => gpm_metrics_get(self.nvml, last, now, &ids).ok(),
                _ => None,
            };
            let mut said = between.into_iter().flatten();
            for (out, (_, _, unit)) in out.iter_mut().zip(COUNTED) {
                let value = said.next().and_then(|it| it.ok()).map(|it| it.value * unit);
                *out = value.filter(|it| it.is_finite() && *it >= 0.0);
            }
            one.last = now;
        }
    }
}
