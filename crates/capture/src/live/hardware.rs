//! The machine as it goes on, of `hardware.jsonl`.

use serde_json::Value;

use super::cells::{Cells, second_of};
use super::tail::Lines;
use super::{Gpu, Hardware, Memory, Series};

/// What is asked seldom is in few rows; older than this it says nothing of now.
const STALE_NS: i64 = 10_000_000_000;
/// Rates and shares of a twentieth of a second jump: a person reads their mean over this.
const NOW_OVER_S: i64 = 2;

#[derive(Debug, Clone, Default)]
pub struct Machine {
    header: Option<Value>,
    columns: Vec<Column>,
    pub last_row_ns: Option<i64>,
    pub damaged: u64,
}

#[derive(Debug, Clone)]
struct Column {
    name: String,
    /// Single cores are not shown.
    is_kept: bool,
    cells: Cells,
    last: Option<(i64, f64)>,
}

impl Lines for Machine {
    fn anew(&mut self) {
        *self = Machine::default();
    }

    fn line(&mut self, line: &[u8]) {
        let is_read = match line.first() {
            None => true,
            Some(b'{') => self.header(line),
            _ => self.row(line).is_some(),
        };
        self.damaged += u64::from(!is_read);
    }

    fn damaged(&mut self) {
        self.damaged += 1;
    }
}

impl Machine {
    fn header(&mut self, line: &[u8]) -> bool {
        let Ok(header) = serde_json::from_slice::<Value>(line) else { return false };
        // Said between rows: which file systems are read.
        if header.get("files").is_some() {
            return true;
        }
        let Some(columns) = header["columns"].as_array() else { return false };
        self.columns = columns
            .iter()
            .map(|it| {
                let name = it.as_str().unwrap_or_default().to_owned();
                let is_kept = !name.starts_with("cpu/core ");
                Column { name, is_kept, cells: Cells::default(), last: None }
            })
            .collect();
        self.header = Some(header);
        true
    }

    /// `[TIME,VALUE,…]`: numbers and nulls only, so commas part them.
    fn row(&mut self, line: &[u8]) -> Option<()> {
        let line = str::from_utf8(line.strip_prefix(b"[")?.strip_suffix(b"]")?).ok()?;
        let (time, values) = line.split_once(',')?;
        let unix_ns: i64 = time.trim().parse().ok()?;
        if values.split(',').count() != self.columns.len() {
            return None;
        }
        for (column, value) in self.columns.iter_mut().zip(values.split(',')) {
            let value = value.trim();
            if !column.is_kept || value == "null" {
                continue;
            }
            let value: f64 = value.parse().ok().filter(|it: &f64| it.is_finite())?;
            column.cells.add(second_of(unix_ns), value);
            column.last = Some((unix_ns, value));
        }
        self.last_row_ns = Some(unix_ns);
        Some(())
    }

    fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|it| it.name == name)
    }

    fn fresh(&self, name: &str) -> Option<f64> {
        let (unix_ns, value) = self.column(name)?.last?;
        (self.last_row_ns?.saturating_sub(unix_ns) <= STALE_NS).then_some(value)
    }

    /// What flows: bytes, shares of time.
    fn flow(&self, name: &str, last_second: i64) -> Series {
        let now = self.last_row_ns.zip(self.column(name)).and_then(|(row_ns, it)| {
            let mean = it.cells.mean_of_last(second_of(row_ns), NOW_OVER_S);
            mean.or_else(|| self.fresh(name))
        });
        Series { now, cells: self.cells(name, last_second) }
    }

    /// What stands: memory in use, a clock.
    fn level(&self, name: &str, last_second: i64) -> Series {
        Series { now: self.fresh(name), cells: self.cells(name, last_second) }
    }

    fn cells(&self, name: &str, last_second: i64) -> Vec<Option<f64>> {
        self.column(name).map(|it| it.cells.means(last_second)).unwrap_or_default()
    }

    /// The first of these that the file has.
    fn flow_of(&self, names: [&str; 2], last_second: i64) -> Series {
        let name = names.into_iter().find(|it| self.column(it).is_some());
        name.map(|it| self.flow(it, last_second)).unwrap_or_default()
    }

    /// `None` where there are no samples.
    pub fn hardware(&self, now_ns: Option<i64>, last_second: i64) -> Option<Hardware> {
        let header = self.header.as_ref()?;
        let row_ns = self.last_row_ns?;
        let number = |name: &str| header[name].as_f64().filter(|&it| it > 0.0);
        // A quota or a mask makes fewer of the machine's cores.
        let cores = ["cores", "cores_allowed", "cores_quota"].into_iter().filter_map(number);
        let limit = self.fresh("memory/limit").filter(|&it| it > 0.0);
        Some(Hardware {
            silent_ns: now_ns.map(|it| it.saturating_sub(row_ns)).filter(|&it| it > STALE_NS),
            cores: cores.reduce(f64::min),
            cpu_process: self.flow("cpu/process", last_second),
            cpu_all: self.flow("cpu/all", last_second),
            memory: Memory {
                process: self.level("memory/process", last_second),
                of_bytes: limit.or_else(|| number("memory_bytes")),
                is_limit: limit.is_some(),
            },
            disk_read: self.flow_of(["disk/read", "process/read"], last_second),
            disk_write: self.flow_of(["disk/write", "process/write"], last_second),
            network_in: self.flow("network/in", last_second),
            network_out: self.flow("network/out", last_second),
            gpus: self.gpus(header, last_second),
            missing: header["missing"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|it| {
                    let text = |name: &str| it[name].as_str().unwrap_or_default().to_owned();
                    (text("what"), text("why"))
                })
                .collect(),
        })
    }

    fn gpus(&self, header: &Value, last_second: i64) -> Vec<Gpu> {
        let described = header["gpus"].as_array().map_or(0, Vec::len);
        let in_columns = self.columns.iter().filter_map(|it| {
            let (number, _) = it.name.strip_prefix("gpu ")?.split_once('/')?;
            number.parse::<usize>().ok()
        });
        let n = in_columns.map(|it| it.saturating_add(1)).max().unwrap_or(0);
        let n = n.max(described).min(MOST_GPUS);
        let gpu = |at: usize| {
            let about = &header["gpus"][at];
            let column = |name: &str| format!("gpu {at}/{name}");
            let level = |name: &str| self.level(&column(name), last_second);
            Gpu {
                name: about["name"].as_str().unwrap_or_default().to_owned(),
                memory_bytes: about["memory_bytes"].as_f64(),
                max_clock_mhz: about["max_sm_clock_mhz"].as_f64(),
                power_limit_w: about["power_limit_w"].as_f64(),
                busy: self.flow(&column("busy"), last_second),
                memory: level("memory"),
                clock: level("sm_clock"),
                power: self.flow(&column("power"), last_second),
                temperature: level("temperature"),
                throttled: self.fresh(&column("throttled")).map(|it| reasons(it as u64)),
            }
        };
        (0..n).map(gpu).collect()
    }
}

/// No machine has more; a file that says so is damaged.
const MOST_GPUS: usize = 64;

/// NVML's bits for a lower clock, in words. Idle (1) and what somebody set (2, 16, 256) hold
/// nothing back. https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html
fn reasons(bits: u64) -> Vec<&'static str> {
    const REASONS: [(u64, &str); 4] = [
        (0x04, "power limit"),
        (0x20 | 0x40, "heat"),
        (0x80, "power brake"),
        (0x08, "hardware slowdown"),
    ];
    REASONS.into_iter().filter(|it| bits & it.0 != 0).map(|it| it.1).collect()
}
