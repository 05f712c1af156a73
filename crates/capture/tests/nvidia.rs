//! NVIDIA's GPUs through the real loading of a library that stands in for the driver's.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a failed helper is a failed test")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use capture::hardware::{Machine, Sample, Sampler};
use serde_json::Value;
use tempfile::TempDir;

const T4: &str = "
0.name NVIDIA T4
0.busy 97
0.memory_busy 40
0.memory_total 16106127360
0.memory 8000000000
0.sm_clock 900
0.max_sm_clock 1590
0.memory_clock 5000
0.power_mw 69500
0.power_limit_mw 70000
0.power_limit_max_mw 70000
0.temperature 84
0.throttled 36
0.pcie_in_kb 1200
0.pcie_out_kb 300
";

/// A folder with the stand-in and its script; `None` where there is no compiler to make it.
struct Driver {
    folder: TempDir,
    library: PathBuf,
}

impl Driver {
    fn new(script: &str, options: &[&str]) -> Option<Driver> {
        let folder = tempfile::tempdir().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stand_in/nvml.rs");
        let library = folder.path().join("libnvidia-ml.so.1");
        let driver = Driver { folder, library };
        driver.script(script);
        let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let made = Command::new(compiler)
            .args(["--crate-type", "cdylib", "--edition", "2024", "--crate-name", "nvml"])
            .args(options)
            .arg("-o")
            .arg(&driver.library)
            .arg(source)
            .env("NVML_SCRIPT", driver.folder.path().join("script"))
            .status();
        match made {
            Ok(it) => assert!(it.success(), "the stand-in does not compile"),
            Err(error) => {
                eprintln!("skipped: no rustc to make the stand-in for NVML with ({error})");
                return None;
            }
        }
        Some(driver)
    }

    /// What it answers from now on; written beside and moved, so that no half is ever read.
    fn script(&self, text: &str) {
        let at = |name: &str| self.folder.path().join(name);
        std::fs::write(at("new"), text).unwrap();
        std::fs::rename(at("new"), at("script")).unwrap();
    }

    fn start(&self) -> Sampler {
        start(self.library.clone(), self.folder.path())
    }

    fn header(&self) -> Value {
        header(self.folder.path())
    }
}

fn start(library: PathBuf, folder: &Path) -> Sampler {
    let machine = Machine { nvml: Some(library), ..Machine::default() };
    Sampler::start_on(machine, folder, std::process::id(), Duration::from_millis(20)).unwrap()
}

fn header(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("hardware.jsonl")).unwrap();
    serde_json::from_str(text.lines().next().unwrap()).unwrap()
}

/// Waits for a sample that holds; the machine may be busy, so for long.
fn wait(sampler: &Sampler, what: &str, holds: impl Fn(&Sample) -> bool) -> Sample {
    let began = Instant::now();
    loop {
        if let Some(it) = sampler.latest().filter(&holds) {
            return it;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: {:?}", sampler.latest());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn missing(header: &Value, what: &str) -> String {
    let list = header["missing"].as_array().unwrap();
    let found = list.iter().find(|it| it["what"] == what);
    found.map_or_else(|| format!("nothing of {what} in {list:?}"), |it| it["why"].to_string())
}

#[test]
fn two_gpus_are_read_and_one_falls_off_the_bus() {
    let second = T4.replace("\n0.", "\n1.").replace("1.throttled 36", "1.throttled 0");
    let second = second.replace("1.busy 97", "1.busy 12");
    let healthy = format!("count 2\n{T4}{second}");
    let Some(driver) = Driver::new(&healthy, &[]) else { return };
    let sampler = driver.start();
    let sample = wait(&sampler, "all of both", |it| {
        it.get("gpu 0/busy").and(it.get("gpu 1/busy")).and(it.get("gpu 1/pcie_out")).is_some()
    });
    let values = ["busy", "memory_busy", "memory", "sm_clock", "memory_clock", "power"]
        .map(|it| sample.get(&format!("gpu 0/{it}")).unwrap());
    assert_eq!(values, [0.97, 0.4, 8e9, 900.0, 5000.0, 69.5]);
    let values = ["temperature", "throttled", "pcie_in", "pcie_out"]
        .map(|it| sample.get(&format!("gpu 0/{it}")).unwrap());
    assert_eq!(values, [84.0, 36.0, 1.2e6, 3e5]);
    assert_eq!(sample.get("gpu 1/busy"), Some(0.12));
    let gpus = &driver.header()["gpus"];
    assert_eq!(gpus[1]["name"], "NVIDIA T4");
    assert_eq!(gpus[1]["max_sm_clock_mhz"], 1590);
    assert_eq!(gpus[1]["power_limit_w"], 70.0);
    assert_eq!(gpus[1]["memory_bytes"], 16_106_127_360_u64);

    // Error 15 is NVML_ERROR_GPU_IS_LOST.
    driver.script(&format!("{healthy}1.* !15\n"));
    let sample = wait(&sampler, "one is lost", |it| it.get("gpu 1/busy").is_none());
    assert_eq!(sample.get("gpu 0/sm_clock"), Some(900.0), "the other goes on");
    driver.script(&healthy.replace("0.sm_clock 900", "0.sm_clock 1200"));
    wait(&sampler, "it came back", |it| {
        it.get("gpu 1/busy").is_some() && it.get("gpu 0/sm_clock") == Some(1200.0)
    });
    sampler.stop();
}

#[test]
fn a_gpu_that_counts_its_work_tells_how_much_of_it_worked() {
    // As nvml.h numbers them: multiprocessors, occupancy, tensor cores, memory, NVLink in; NVLink
    // out is not supported here.
    let script =
        format!("count 1\n{T4}0.gpm_2 91\n0.gpm_3 38\n0.gpm_5 12\n0.gpm_10 64\n0.gpm_60 2048\n");
    let Some(driver) = Driver::new(&script, &[]) else { return };
    let sampler = driver.start();
    let sample = wait(&sampler, "two looks", |it| it.get("gpu 0/sm_busy").is_some());
    let of = |name: &str| sample.get(&format!("gpu 0/{name}"));
    assert_eq!([of("sm_busy"), of("sm_occupancy")], [Some(0.91), Some(0.38)]);
    assert_eq!([of("tensor_busy"), of("memory_bandwidth")], [Some(0.12), Some(0.64)]);
    assert_eq!([of("nvlink_in"), of("nvlink_out")], [Some(2048.0 * 1_048_576.0), None]);
    driver.script(&script.replace("0.gpm_5 12", "0.gpm_5 80"));
    wait(&sampler, "later looks", |it| it.get("gpu 0/tensor_busy") == Some(0.8));
    sampler.stop();
}

#[test]
fn what_a_gpu_does_not_tell_is_named() {
    // Errors 3 and 4: not supported, no permission.
    let script = format!("count 1\n{T4}")
        .replace("0.power_mw 69500", "0.power_mw !3")
        .replace("0.pcie_in_kb 1200", "0.pcie_in_kb !4");
    let Some(driver) = Driver::new(&script, &[]) else { return };
    let sampler = driver.start();
    let sample = wait(&sampler, "its clock", |it| it.get("gpu 0/sm_clock").is_some());
    assert!(!sample.columns.iter().any(|it| it == "gpu 0/power"));
    assert!(sample.columns.iter().any(|it| it == "gpu 0/pcie_out"));
    let header = driver.header();
    assert_eq!(missing(&header, "gpu 0/power"), "\"this GPU does not tell\"");
    assert_eq!(missing(&header, "gpu 0/pcie_in"), "\"no permission to ask the driver\"");
    let why = missing(&header, "gpu 0/sm_busy and the like");
    assert_eq!(why, "\"GPUs count it from Hopper on\"");
}

#[test]
fn an_old_driver_lacks_functions() {
    let Some(driver) = Driver::new(&format!("count 1\n{T4}"), &["--cfg", "old_driver"]) else {
        return;
    };
    let sampler = driver.start();
    let sample = wait(&sampler, "what it has", |it| it.get("gpu 0/power").is_some());
    assert_eq!(sample.get("gpu 0/power"), Some(69.5));
    let header = driver.header();
    for what in ["gpu 0/memory", "gpu 0/throttled", "gpu 0/sm_busy and the like"] {
        assert_eq!(missing(&header, what), "\"the driver is too old to be asked\"");
    }
}

#[test]
fn a_gpu_that_may_not_be_used_does_not_hide_the_others() {
    let second = T4.replace("\n0.", "\n1.");
    let Some(driver) = Driver::new(&format!("count 2\n0.handle !4\n{second}"), &[]) else { return };
    let sampler = driver.start();
    wait(&sampler, "the other", |it| it.get("gpu 0/busy") == Some(0.97));
    let header = driver.header();
    assert_eq!(missing(&header, "NVIDIA GPU 0"), "\"no permission to ask the driver\"");
    assert_eq!(header["gpus"].as_array().unwrap().len(), 1);
}

#[test]
fn without_a_driver_the_rest_is_sampled() {
    // Error 9: the library is there, the driver is not loaded.
    for (script, why) in
        [("init !9\n", "the driver is not loaded"), ("count 0\n", "the driver knows of none")]
    {
        let Some(driver) = Driver::new(script, &[]) else { return };
        let sampler = driver.start();
        wait(&sampler, "the machine", |it| it.get("cpu/all").is_some());
        assert_eq!(missing(&driver.header(), "NVIDIA GPUs"), format!("{why:?}"));
    }
}

#[test]
fn a_library_that_is_none_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libnvidia-ml.so.1");
    std::fs::write(&library, "no library").unwrap();
    let sampler = start(library, folder.path());
    wait(&sampler, "the machine", |it| it.get("cpu/all").is_some());
    let why = missing(&header(folder.path()), "NVIDIA GPUs");
    assert!(why.contains("cannot be loaded"), "{why}");
    drop(sampler);
    let sampler = start(folder.path().join("not there"), folder.path());
    wait(&sampler, "the machine", |it| it.get("cpu/all").is_some());
    let why = missing(&header(folder.path()), "NVIDIA GPUs");
    assert!(why.contains("is not there: no driver is installed"), "{why}");
}
