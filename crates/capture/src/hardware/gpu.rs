//! Asks GPUs in threads of their own: a driver may take milliseconds, or hang.
//!
//! ```text
//! thread "strobe-gpu":  load drivers, list GPUs ─▶ read all, each tick ──┐
//! others: what takes 20 ms a call, and what is counted between two looks ┴─▶ boards ─▶ rows
//! ```
//!
//! Nobody waits for these threads when sampling ends: one that hangs in a driver ends with the
//! process.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    BUDGET, Machine, Missing, Moment, Opened, Reader, Rhythm, Shared, amd, nvidia, thread_time,
};

/// A GPU, as far as its driver tells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Gpu {
    pub name: String,
    pub memory_bytes: Option<u64>,
    pub max_sm_clock_mhz: Option<u32>,
    /// What holds now, and the most that could be set.
    pub power_limit_w: Option<f64>,
    pub power_limit_max_w: Option<f64>,
}

impl Gpu {
    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "memory_bytes": self.memory_bytes,
            "max_sm_clock_mhz": self.max_sm_clock_mhz,
            "power_limit_w": self.power_limit_w,
            "power_limit_max_w": self.power_limit_max_w,
        })
    }
}

/// What a vendor's GPUs are asked: all their columns at once.
pub trait Driver {
    fn columns(&self) -> Vec<String>;
    fn read(&mut self, out: &mut [Option<f64>]);
}

/// The GPUs found, before anything of them was read.
#[derive(Default)]
pub struct Found {
    pub gpus: Vec<Gpu>,
    pub missing: Vec<Missing>,
    boards: Vec<Board>,
}

/// Columns that a thread fills and the sampler takes.
#[derive(Clone)]
struct Board {
    columns: Vec<String>,
    values: Arc<Mutex<Values>>,
}

#[derive(Default)]
struct Values {
    values: Vec<Option<f64>>,
    is_new: bool,
}

impl Board {
    fn new(columns: Vec<String>) -> Board {
        let values = Values { values: vec![None; columns.len()], is_new: false };
        Board { columns, values: Arc::new(Mutex::new(values)) }
    }

    fn values(&self) -> MutexGuard<'_, Values> {
        self.values.lock().unwrap_or_else(|it| it.into_inner())
    }

    /// Reads into it, in this thread, until sampling ends.
    fn fill(&self, driver: &mut dyn Driver, fastest: Duration, shared: &Shared) {
        let mut rhythm = Rhythm::new(fastest, BUDGET / 4.0);
        let mut values = vec![None; self.columns.len()];
        loop {
            let now = Instant::now();
            if rhythm.is_due(now) {
                let before = thread_time();
                driver.read(&mut values);
                rhythm.spent(now, thread_time().saturating_sub(before));
                let mut board = self.values();
                board.values.copy_from_slice(&values);
                board.is_new = true;
            }
            if !shared.sleep_from(now) {
                return;
            }
        }
    }
}

impl Reader for Board {
    fn columns(&self) -> Vec<String> {
        self.columns.clone()
    }

    fn read(&mut self, _: Moment, out: &mut [Option<f64>]) -> bool {
        let mut board = self.values();
        out.copy_from_slice(&board.values);
        std::mem::take(&mut board.is_new)
    }
}

/// Drivers that are being asked what there is.
pub struct Gpus(Receiver<Found>);

/// Each of two calls for every GPU takes 20 ms and is of a mean over as much.
const PCIE_EVERY: Duration = Duration::from_millis(900);
/// Counters that moved for a shorter time say little.
const COUNTED_EVERY: Duration = Duration::from_millis(200);

impl Gpus {
    pub fn start(machine: &Machine, shared: &Arc<Shared>) -> Gpus {
        let (say, hear) = channel();
        let (machine, shared) = (machine.clone(), shared.clone());
        let thread = std::thread::Builder::new().name("strobe-gpu".to_owned());
        // Where no thread can be started, nobody says anything: the one who waits is told so.
        let _ = thread.spawn(move || {
            let mut found = Found::default();
            let nvidia = nvidia::load(&machine);
            let mut nvidia = match &nvidia {
                Ok(nvml) => nvidia::open(nvml, &mut found),
                Err(why) => {
                    found.missing.push(Missing::new("NVIDIA GPUs", why.clone()));
                    None
                }
            };
            let mut amd = amd::open(&machine, &mut found);
            let board =
                Board::new(both(&mut nvidia, &mut amd).flat_map(|it| it.columns()).collect());
            if board.columns.is_empty() {
                let _ = say.send(found);
                return;
            }
            found.boards.push(board.clone());
            std::thread::scope(|threads| {
                let mut apart: Vec<(Box<dyn Driver + Send>, Duration)> = Vec::new();
                if let Some(it) = nvidia.as_ref().and_then(nvidia::Devices::pcie) {
                    apart.push((Box::new(it), PCIE_EVERY));
                }
                if let Some(it) = nvidia.as_ref().and_then(nvidia::Devices::counting) {
                    apart.push((Box::new(it), COUNTED_EVERY));
                }
                for (mut driver, every) in apart {
                    let board = Board::new(driver.columns());
                    found.boards.push(board.clone());
                    let shared = shared.clone();
                    threads.spawn(move || board.fill(&mut *driver, every, &shared));
                }
                let _ = say.send(found);
                let mut all = Vec::new();
                for driver in both(&mut nvidia, &mut amd) {
                    all.push((driver.columns().len(), driver));
                }
                let mut all = All(all);
                board.fill(&mut all, Duration::ZERO, &shared);
            });
        });
        Gpus(hear)
    }
}

fn both<'a>(
    nvidia: &'a mut Option<nvidia::Devices<'_>>,
    amd: &'a mut Option<amd::Cards>,
) -> impl Iterator<Item = &'a mut dyn Driver> {
    let nvidia = nvidia.as_mut().map(|it| it as &mut dyn Driver);
    nvidia.into_iter().chain(amd.as_mut().map(|it| it as &mut dyn Driver))
}

/// Drivers one after the other, each with its number of columns.
struct All<'a>(Vec<(usize, &'a mut dyn Driver)>);

impl Driver for All<'_> {
    fn columns(&self) -> Vec<String> {
        self.0.iter().flat_map(|it| it.1.columns()).collect()
    }

    fn read(&mut self, mut out: &mut [Option<f64>]) {
        for (n, driver) in &mut self.0 {
            let (own, rest) = out.split_at_mut(*n);
            driver.read(own);
            out = rest;
        }
    }
}

/// A driver that wakes its GPUs takes some hundred milliseconds; one that takes longer hangs.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Takes what was found, as soon as it is known.
pub fn open(gpus: Gpus, shared: &Shared, opened: &mut Opened) {
    let began = Instant::now();
    let found = loop {
        match gpus.0.recv_timeout(Duration::from_millis(20)) {
            Ok(found) => break Some(found),
            Err(RecvTimeoutError::Timeout) => {
                if shared.state().stop || began.elapsed() >= LONGEST_WAIT {
                    break None;
                }
            }
            Err(RecvTimeoutError::Disconnected) => break None,
        }
    };
    let found = found.unwrap_or_else(|| Found {
        missing: vec![Missing::new("GPUs", "their driver did not answer in time")],
        ..Found::default()
    });
    if !found.gpus.is_empty() {
        let gpus: Vec<Value> = found.gpus.iter().map(Gpu::json).collect();
        opened.facts.insert("gpus".to_owned(), json!(gpus));
    }
    opened.missing.extend(found.missing);
    opened.readers.extend(found.boards.into_iter().map(|it| Box::new(it) as Box<dyn Reader>));
}
