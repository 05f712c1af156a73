//! Kernels, copies and busy time of synthetic profiles: exactly as they were made.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analyses::copy::Copy;
use analyses::device_use::{DeviceUse, Work};
use analyses::kernel_time::KernelTime;
use analyses::op_time::OpTime;
use analyses::span::covered;
use analyses::step::Step;
use session::Session;
use synth::{Scenario, scenarios};
use trace::TrackKind;

/// A scenario's files on disk, removed at the end.
struct OnDisk(PathBuf);

impl OnDisk {
    fn of(scenario: &Scenario, test: &str) -> OnDisk {
        let name = format!("strobe-{test}-{}-{}", scenario.name, std::process::id());
        let folder = std::env::temp_dir().join(name);
        for (path, bytes) in scenario.tree() {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        OnDisk(folder)
    }

    fn open(&self) -> Session {
        Session::open(Path::new(&self.0)).unwrap()
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn kernels_are_all_counted() {
    for scenario in scenarios() {
        let on_disk = OnDisk::of(&scenario, "kernels");
        let session = on_disk.open();
        let mut found: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let mut add = |name: &str, count: i64, total_ps: i64| {
            let sum = found.entry(name.to_owned()).or_default();
            *sum = (sum.0 + count as u64, sum.1 + total_ps as u64 / 1000);
        };
        let is_tpu = scenario.name == "tpu";
        if is_tpu {
            // A TPU runs ops, not kernels, and the framework's names of them join several; the
            // generator leaves out the infeed.
            let rows = session.tables().get::<OpTime>();
            for row in rows.iter().filter(|it| it.side == "device") {
                if row.op_type.as_deref() != Some("infeed") {
                    add("ops", row.count, row.total_ps);
                }
            }
        }
        for row in session.tables().get::<KernelTime>().iter() {
            add(&row.name, row.count, row.total_ps);
        }
        let mut made: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for it in &scenario.truth.kernels {
            let name = if is_tpu { "ops" } else { &it.name };
            let sum = made.entry(name.to_owned()).or_default();
            *sum = (sum.0 + it.count, sum.1 + it.total_ns);
        }
        assert_eq!(found, made, "{}", scenario.name);
    }
}

/// Whatever runs on a device is in `op_time` once, under an op or its own name.
#[test]
fn device_time_of_ops_is_that_of_their_kernels() {
    for scenario in scenarios().into_iter().filter(|it| it.name != "tpu") {
        let on_disk = OnDisk::of(&scenario, "ops");
        let session = on_disk.open();
        let by_op = session.tables().get::<OpTime>();
        let by_op = by_op.iter().filter(|it| it.side == "device").map(|it| it.total_ps);
        let kernels = session.tables().get::<KernelTime>();
        let copies = session.tables().get::<Copy>();
        let work = kernels.iter().map(|it| it.total_ps).chain(copies.iter().map(|it| it.total_ps));
        assert_eq!(by_op.sum::<i64>(), work.sum::<i64>(), "{}", scenario.name);
    }
}

#[test]
fn copies_are_all_counted() {
    for scenario in scenarios() {
        let on_disk = OnDisk::of(&scenario, "copies");
        let session = on_disk.open();
        let mut found: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
        let mut memsets = 0;
        for row in session.tables().get::<Copy>().iter() {
            if row.direction == "memset" {
                memsets += row.count as u64;
                continue;
            }
            let bytes = row.bytes.unwrap() as u64;
            let sum = found.entry(row.direction).or_default();
            let total_ns = row.total_ps as u64 / 1000;
            *sum = (sum.0 + row.count as u64, sum.1 + bytes, sum.2 + total_ns);
            let bytes_per_s = bytes as f64 / row.total_ps as f64 * 1e12;
            assert!((row.bytes_per_s.unwrap() / bytes_per_s - 1.0).abs() < 1e-9);
        }
        let made = scenario.truth.copies.iter();
        let made = made.map(|it| (it.direction.name(), (it.count, it.bytes, it.total_ns)));
        assert_eq!(found, made.collect(), "{}", scenario.name);
        assert_eq!(memsets, scenario.truth.memsets, "{}", scenario.name);
    }
}

#[test]
fn devices_are_as_busy_as_made() {
    for scenario in scenarios() {
        let truth = &scenario.truth;
        let on_disk = OnDisk::of(&scenario, "busy");
        let session = on_disk.open();
        let trace = session.trace();
        let steps = session.tables().get::<Step>();
        let mut busy_ps = 0;
        let mut n_devices = 0;
        for device in trace.tracks_of(TrackKind::Device) {
            let host = trace.ancestor(device, TrackKind::Host).unwrap();
            let busy = Work::of(trace, device).busy();
            n_devices += 1;
            let steps = steps.iter().filter(|it| it.host == trace.track_name(host) && !it.warmup);
            // The generator writes one step more than it counts, since nothing ends it.
            let steps = steps.take(truth.steps as usize);
            busy_ps += steps.map(|it| covered(it.span(), &busy)).sum::<i64>();
        }
        assert_eq!(n_devices, truth.devices, "{}", scenario.name);
        let made = truth.busy_ms_per_step * (truth.steps * truth.devices) as f64 * 1e9;
        assert_eq!(busy_ps, made.round() as i64, "{}", scenario.name);
    }
}

#[test]
fn parts_of_a_device_fit_its_whole() {
    for scenario in scenarios() {
        let on_disk = OnDisk::of(&scenario, "parts");
        let session = on_disk.open();
        for row in session.tables().get::<DeviceUse>().iter() {
            let parts = [row.compute_ps, row.collective_ps, row.copy_ps];
            let most = parts.iter().max().unwrap();
            assert!(*most <= row.busy_ps && row.busy_ps <= parts.iter().sum(), "{row:?}");
            assert!(row.busy_ps <= row.window_ps && row.streams_overlap_ps >= 0, "{row:?}");
            let overlaps = scenario.name == "overlap_streams";
            assert!(!overlaps || row.streams_overlap_ps > 0, "{row:?}");
        }
    }
}
