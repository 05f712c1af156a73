//! AMD's GPUs, by the files of their kernel driver: no library is needed.

use std::path::{Path, PathBuf};

use super::gpu::{Driver, Found, Gpu};
use super::text::{Buffer, Kept, lines, number, number_in, numbers, word_of};
use super::{Machine, Missing};

/// As the PCI registry numbers the vendor.
const VENDOR: &str = "0x1002";

/// A column, the file it is in and how to read that.
struct Field {
    column: String,
    file: Kept,
    read: fn(&[u8]) -> Option<f64>,
}

pub struct Cards {
    fields: Vec<Field>,
    buffer: Buffer,
}

fn scaled(text: &[u8], by: f64) -> Option<f64> {
    Some(numbers(text).next()? as f64 * by)
}

/// The clock that is on, of a list of those there are: `1: 1700Mhz *`.
fn clock(text: &[u8]) -> Option<f64> {
    let on = lines(text).find(|it| it.ends_with(b"*"))?;
    Some(mhz(on)? as f64)
}

fn mhz(line: &[u8]) -> Option<u64> {
    let colon = line.iter().position(|&it| it == b':')?;
    number(line[colon + 1..].trim_ascii_start())
}

pub fn open(machine: &Machine, found: &mut Found) -> Option<Cards> {
    let mut fields = Vec::new();
    for folder in cards(&machine.sys.join("class/drm")) {
        let number = found.gpus.len();
        let hwmon = only_folder(&folder.join("hwmon"));
        let sensor = |name: &str| hwmon.as_ref().map(|it| it.join(name));
        let clocks = std::fs::read(folder.join("pp_dpm_sclk")).unwrap_or_default();
        let watts = |name: &str| Some(number_in(&sensor(name)?)? as f64 / 1e6);
        let device = word_of(&folder.join("device")).unwrap_or_default();
        found.gpus.push(Gpu {
            name: word_of(&folder.join("product_name"))
                .unwrap_or_else(|| format!("AMD GPU {device}").trim_end().to_owned()),
            memory_bytes: number_in(&folder.join("mem_info_vram_total")),
            max_sm_clock_mhz: lines(&clocks)
                .filter_map(mhz)
                .max()
                .and_then(|it| u32::try_from(it).ok()),
            power_limit_w: watts("power1_cap"),
            power_limit_max_w: watts("power1_cap_max"),
        });
        let mut add = |name: &str, paths: &[Option<PathBuf>], read: fn(&[u8]) -> Option<f64>| {
            let what = format!("gpu {number}/{name}");
            let mut last = "no sensors are there".to_owned();
            for path in paths.iter().flatten() {
                match Kept::try_open(path, &mut Buffer::default()) {
                    Ok(file) => return fields.push(Field { column: what, file, read }),
                    Err(why) => last = why,
                }
            }
            found.missing.push(Missing::new(what, last));
        };
        let at = |name: &str| Some(folder.join(name));
        add("busy", &[at("gpu_busy_percent")], |it| scaled(it, 0.01));
        add("memory_busy", &[at("mem_busy_percent")], |it| scaled(it, 0.01));
        add("memory", &[at("mem_info_vram_used")], |it| scaled(it, 1.0));
        add("sm_clock", &[at("pp_dpm_sclk")], clock);
        add("memory_clock", &[at("pp_dpm_mclk")], clock);
        // Newer chips tell the moment's, older ones a mean.
        add("power", &[sensor("power1_average"), sensor("power1_input")], |it| scaled(it, 1e-6));
        add("temperature", &[sensor("temp1_input")], |it| scaled(it, 1e-3));
        // The file that tells of the bus takes a second to read, all of it in the kernel.
        found.missing.push(Missing::new(
            format!("gpu {number}/throttled, gpu {number}/pcie_in, gpu {number}/pcie_out"),
            "the kernel's driver does not tell them cheaply",
        ));
    }
    (!fields.is_empty()).then(|| Cards { fields, buffer: Buffer::default() })
}

/// Folders of AMD's devices, by number. `card0-DP-1` is a connector.
fn cards(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let number = |name: &str| name.strip_prefix("card")?.parse::<u32>().ok();
    let mut cards: Vec<(u32, PathBuf)> = entries
        .filter_map(|it| {
            let it = it.ok()?;
            Some((number(it.file_name().to_str()?)?, it.path().join("device")))
        })
        .filter(|it| word_of(&it.1.join("vendor")).as_deref() == Some(VENDOR))
        .collect();
    cards.sort();
    cards.into_iter().map(|it| it.1).collect()
}

fn only_folder(folder: &Path) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).ok()?.filter_map(|it| Some(it.ok()?.path())).collect();
    entries.sort();
    entries.into_iter().next()
}

impl Driver for Cards {
    fn columns(&self) -> Vec<String> {
        self.fields.iter().map(|it| it.column.clone()).collect()
    }

    fn read(&mut self, out: &mut [Option<f64>]) {
        for (out, field) in out.iter_mut().zip(&self.fields) {
            *out = field.file.read(&mut self.buffer).ok().and_then(field.read);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Driver, clock, open};
    use crate::hardware::Machine;
    use crate::hardware::gpu::Found;

    #[test]
    fn the_clock_that_is_on_has_a_star() {
        assert_eq!(clock(b"0: 500Mhz\n1: 1700Mhz *\n2: 2100Mhz\n"), Some(1700.0));
        assert_eq!(clock(b"0: 500Mhz\n"), None);
        assert_eq!(clock(b"*"), None);
    }

    #[test]
    fn cards_are_found_and_read() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join("class/drm").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("card0/device/vendor", "0x10de\n");
        write("card0-DP-1/status", "connected\n");
        write("card1/device/vendor", "0x1002\n");
        write("card1/device/product_name", "AMD Instinct MI300X\n");
        write("card1/device/gpu_busy_percent", "87\n");
        write("card1/device/mem_info_vram_total", "206141652992\n");
        write("card1/device/mem_info_vram_used", "1024\n");
        write("card1/device/pp_dpm_sclk", "0: 132Mhz\n1: 1200Mhz *\n2: 2100Mhz\n");
        write("card1/device/hwmon/hwmon3/power1_input", "350000000\n");
        write("card1/device/hwmon/hwmon3/power1_cap", "750000000\n");
        write("card1/device/hwmon/hwmon3/temp1_input", "61000\n");
        let machine = Machine { sys: root.path().to_owned(), ..Machine::default() };
        let mut found = Found::default();
        let mut cards = open(&machine, &mut found).unwrap();
        let gpu = &found.gpus[0];
        assert_eq!((gpu.name.as_str(), gpu.max_sm_clock_mhz), ("AMD Instinct MI300X", Some(2100)));
        assert_eq!((gpu.power_limit_w, gpu.memory_bytes), (Some(750.0), Some(206_141_652_992)));
        let columns = cards.columns();
        let mut values = vec![None; columns.len()];
        cards.read(&mut values);
        let read: Vec<_> = columns.iter().map(String::as_str).zip(values).collect();
        assert_eq!(
            read,
            [
                ("gpu 0/busy", Some(0.87)),
                ("gpu 0/memory", Some(1024.0)),
                ("gpu 0/sm_clock", Some(1200.0)),
                ("gpu 0/power", Some(350.0)),
                ("gpu 0/temperature", Some(61.0)),
            ]
        );
        let missing: Vec<&str> = found.missing.iter().map(|it| it.what.as_str()).collect();
        assert_eq!(missing[..2], ["gpu 0/memory_busy", "gpu 0/memory_clock"]);
        // Gone while it runs: unknown, not the last value.
        std::fs::write(root.path().join("class/drm/card1/device/gpu_busy_percent"), "").unwrap();
        let mut values = vec![None; columns.len()];
        cards.read(&mut values);
        assert_eq!(values[0], None);
    }
}
