//! What the machine as a whole has left, moves and waits for: memory, disks, network, pressure.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::cpu::share_of_us;
use super::text::{Buffer, Growth, Kept, lines, number, number_of, numbers, words};
use super::{Machine, Missing, Moment, Opened, Reader};

pub fn open(machine: &Machine, root_pid: u32, opened: &mut Opened) {
    let memory = Memory::open(machine);
    if let Ok(memory) = &memory {
        opened.facts.insert("memory_bytes".to_owned(), json!(memory.total_bytes));
    }
    opened.add("memory/available", memory);
    pressure(&machine.proc.join("pressure"), "", "pressure", opened);
    opened.add("disk", Disks::open(machine));
    opened.add("network", Network::open(machine, root_pid));
}

const SECTOR_BYTES: f64 = 512.0;

/// Bytes that are free or can be made so without swapping.
struct Memory {
    file: Kept,
    buffer: Buffer,
    total_bytes: u64,
}

impl Memory {
    fn open(machine: &Machine) -> Result<Memory, String> {
        let mut buffer = Buffer::default();
        let file = Kept::try_open(&machine.proc.join("meminfo"), &mut buffer)?;
        let text = file.read(&mut buffer).map_err(|it| it.to_string())?;
        let total = number_of(text, "MemTotal").ok_or("/proc/meminfo has no MemTotal")?;
        Ok(Memory { file, buffer, total_bytes: total.saturating_mul(1024) })
    }
}

impl Reader for Memory {
    fn columns(&self) -> Vec<String> {
        vec!["memory/available".to_owned()]
    }

    fn fastest(&self) -> Duration {
        Duration::from_millis(90)
    }

    fn read(&mut self, _: Moment, out: &mut [Option<f64>]) -> bool {
        let text = self.file.read(&mut self.buffer).ok();
        let kilobytes = text.and_then(|it| number_of(it, "MemAvailable"));
        out[0] = kilobytes.map(|it| it as f64 * 1024.0);
        true
    }
}

/// Adds a reader for each file of pressure there is; names what is missing.
pub fn pressure(folder: &Path, suffix: &str, prefix: &str, opened: &mut Opened) {
    let mut files = Vec::new();
    let mut buffer = Buffer::default();
    for what in ["cpu", "io", "memory"] {
        let path = folder.join(format!("{what}{suffix}"));
        match Kept::try_open(&path, &mut buffer) {
            Ok(file) => files.push((format!("{prefix}/{what}"), file, Growth::default())),
            Err(why) => {
                let why = format!("{why}; the kernel needs psi=1");
                opened.missing.push(Missing::new(format!("{prefix}/{what}"), why));
            }
        }
    }
    if !files.is_empty() {
        opened.readers.push(Box::new(Pressure { files, buffer }));
    }
}

/// Shares of time in which something waited.
struct Pressure {
    files: Vec<(String, Kept, Growth)>,
    buffer: Buffer,
}

impl Reader for Pressure {
    fn columns(&self) -> Vec<String> {
        self.files.iter().map(|it| it.0.clone()).collect()
    }

    /// Three files, for each of which the kernel adds up what all cores counted.
    fn part(&self) -> f64 {
        0.08
    }

    fn read(&mut self, now: Moment, out: &mut [Option<f64>]) -> bool {
        for ((_, file, growth), out) in self.files.iter_mut().zip(out) {
            let text = file.read(&mut self.buffer).ok();
            *out = share_of_us(growth, now, text.and_then(waited_us));
        }
        true
    }
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`
fn waited_us(text: &[u8]) -> Option<u64> {
    let line = lines(text).find(|it| it.starts_with(b"some"))?;
    words(line).find_map(|it| number(it.strip_prefix(b"total=")?))
}

/// Bytes that all disks moved.
struct Disks {
    file: Kept,
    buffer: Buffer,
    names: Vec<Vec<u8>>,
    read: Growth,
    written: Growth,
}

impl Disks {
    fn open(machine: &Machine) -> Result<Disks, String> {
        let mut buffer = Buffer::default();
        let file = Kept::try_open(&machine.proc.join("diskstats"), &mut buffer)?;
        let text = file.read_pages(&mut buffer).map_err(|it| it.to_string())?;
        let blocks = machine.sys.join("block");
        let listed = lines(text).filter_map(|it| words(it).nth(2));
        let names: Vec<Vec<u8>> =
            listed.filter(|it| is_disk(&blocks, it)).map(<[u8]>::to_vec).collect();
        if names.is_empty() {
            return Err("no disks are listed in /proc/diskstats".into());
        }
        let (read, written) = Default::default();
        Ok(Disks { file, buffer, names, read, written })
    }
}

/// Whole disks only: not their partitions, nor what is put together of other disks (LVM, RAID,
/// encryption), nor what lies in a file or in memory. All of those would count twice.
fn is_disk(blocks: &Path, name: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else { return false };
    // Slashes in a device's name are shown as exclamation marks.
    let folder: PathBuf = blocks.join(name.replace('/', "!"));
    let made_of_others = ["loop", "ram", "zram", "dm-", "md", "nbd"];
    folder.is_dir() && !made_of_others.iter().any(|it| name.starts_with(it))
}

impl Reader for Disks {
    fn columns(&self) -> Vec<String> {
        ["disk/read", "disk/write"].map(str::to_owned).to_vec()
    }

    fn fastest(&self) -> Duration {
        Duration::from_millis(90)
    }

    fn read(&mut self, now: Moment, out: &mut [Option<f64>]) -> bool {
        let text = self.file.read_pages(&mut self.buffer).ok();
        let totals = text.map(|text| {
            let (mut read, mut written) = (0_u64, 0_u64);
            for line in lines(text) {
                let mut words = words(line);
                let Some(name) = words.nth(2) else { continue };
                if self.names.iter().any(|it| it == name) {
                    // Behind the name: reads, merged, sectors read, ms, writes, merged, sectors.
                    let mut sectors = words.map_while(number);
                    read = read.wrapping_add(sectors.nth(2).unwrap_or(0));
                    written = written.wrapping_add(sectors.nth(3).unwrap_or(0));
                }
            }
            (read as f64 * SECTOR_BYTES, written as f64 * SECTOR_BYTES)
        });
        out[0] = self.read.per_second(now.at, totals.map(|it| it.0)).map(f64::round);
        out[1] = self.written.per_second(now.at, totals.map(|it| it.1)).map(f64::round);
        true
    }
}

/// Bytes through the interfaces that the training process sees.
struct Network {
    file: Kept,
    buffer: Buffer,
    /// Those of real hardware; empty where there are none, as in a container: then all but loopback.
    physical: Vec<Vec<u8>>,
    received: Growth,
    sent: Growth,
}

impl Network {
    fn open(machine: &Machine, root_pid: u32) -> Result<Network, String> {
        let mut buffer = Buffer::default();
        let file = Kept::try_open(&machine.proc.join(format!("{root_pid}/net/dev")), &mut buffer)?;
        let text = file.read_pages(&mut buffer).map_err(|it| it.to_string())?;
        let folder = machine.sys.join("class/net");
        let is_physical = |name: &&[u8]| {
            let name = std::str::from_utf8(name).unwrap_or("");
            folder.join(name).join("device").exists()
        };
        let physical = interfaces(text).map(|it| it.0).filter(is_physical);
        let physical = physical.map(<[u8]>::to_vec).collect();
        let (received, sent) = Default::default();
        Ok(Network { file, buffer, physical, received, sent })
    }
}

fn interfaces(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    lines(text).filter_map(|it| {
        let colon = it.iter().position(|&it| it == b':')?;
        Some((it[..colon].trim_ascii(), &it[colon + 1..]))
    })
}

impl Reader for Network {
    fn columns(&self) -> Vec<String> {
        ["network/in", "network/out"].map(str::to_owned).to_vec()
    }

    fn fastest(&self) -> Duration {
        Duration::from_millis(90)
    }

    fn read(&mut self, now: Moment, out: &mut [Option<f64>]) -> bool {
        let physical = &self.physical;
        let counts = |name: &[u8]| match physical.is_empty() {
            true => name != b"lo",
            false => physical.iter().any(|it| it == name),
        };
        let totals = self.file.read_pages(&mut self.buffer).ok().map(|text| {
            let (mut received, mut sent) = (0_u64, 0_u64);
            for (_, line) in interfaces(text).filter(|it| counts(it.0)) {
                let mut figures = numbers(line);
                received = received.wrapping_add(figures.next().unwrap_or(0));
                sent = sent.wrapping_add(figures.nth(7).unwrap_or(0));
            }
            (received as f64, sent as f64)
        });
        out[0] = self.received.per_second(now.at, totals.map(|it| it.0)).map(f64::round);
        out[1] = self.sent.per_second(now.at, totals.map(|it| it.1)).map(f64::round);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{interfaces, is_disk, waited_us};

    #[test]
    fn pressure_is_what_some_waited() {
        let text = b"some avg10=0.00 avg60=0.12 avg300=0.02 total=1234\nfull avg10=0 total=99\n";
        assert_eq!(waited_us(text), Some(1234));
        assert_eq!(waited_us(b"full avg10=0 total=99"), None);
    }

    #[test]
    fn disks_are_counted_once() {
        let blocks = tempfile::tempdir().unwrap();
        for name in ["sda", "nvme0n1", "dm-0", "md127", "loop0", "zram0", "cciss!c0d0"] {
            std::fs::create_dir(blocks.path().join(name)).unwrap();
        }
        let counted = |it: &&str| is_disk(blocks.path(), it.as_bytes());
        let all = ["sda", "sda1", "nvme0n1", "nvme0n1p1", "dm-0", "md127", "loop0", "cciss/c0d0"];
        let found: Vec<&str> = all.iter().copied().filter(counted).collect();
        assert_eq!(found, ["sda", "nvme0n1", "cciss/c0d0"]);
    }

    #[test]
    fn interfaces_have_names_before_colons() {
        let text = b"Inter-| Receive\n face |bytes\n  lo:  40 1\n eth0:654 2\n";
        let found: Vec<_> = interfaces(text).collect();
        assert_eq!(found, [(&b"lo"[..], &b"  40 1"[..]), (&b"eth0"[..], &b"654 2"[..])]);
    }
}
