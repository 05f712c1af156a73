//! Stands in for libnvidia-ml.so.1: the functions that are called, as nvml.h declares them.
//!
//! What they answer is read anew at each call from the file that `NVML_SCRIPT` named when this was
//! compiled. A line is a name and a value; a value `!15` is NVML's error 15. `1.*` stands for all
//! of GPU 1. With `--cfg old_driver` functions are missing, as in drivers before 510.

#![allow(non_snake_case, clippy::missing_safety_doc)]

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

type Device = *mut c_void;

const SUCCESS: c_int = 0;
const NOT_SUPPORTED: c_int = 3;
const NOT_FOUND: c_int = 6;

fn script(name: &str) -> Option<String> {
    let text = std::fs::read_to_string(env!("NVML_SCRIPT")).ok()?;
    let value = |wanted: &str| {
        let line = text.lines().find(|it| it.split(' ').next() == Some(wanted))?;
        Some(line.split_once(' ')?.1.trim().to_owned())
    };
    let all = name.split_once('.').map(|it| format!("{}.*", it.0));
    all.and_then(|it| value(&it)).or_else(|| value(name))
}

fn text(name: &str) -> Result<String, c_int> {
    let value = script(name).ok_or(NOT_SUPPORTED)?;
    match value.strip_prefix('!') {
        Some(code) => Err(code.parse().unwrap_or(999)),
        None => Ok(value),
    }
}

fn number(name: &str) -> Result<u64, c_int> {
    text(name)?.parse().map_err(|_| 999)
}

fn of(device: Device, field: &str) -> String {
    format!("{}.{field}", device as usize - 1)
}

fn answer<T>(to: *mut T, value: Result<T, c_int>) -> c_int {
    match value {
        Ok(value) => {
            // SAFETY: the caller's place, as nvml.h wants it.
            unsafe { to.write(value) };
            SUCCESS
        }
        Err(code) => code,
    }
}

fn small(device: Device, field: &str, to: *mut c_uint) -> c_int {
    answer(to, number(&of(device, field)).map(|it| it as c_uint))
}

fn copy(to: *mut c_char, length: c_uint, value: Result<String, c_int>) -> c_int {
    match value {
        Ok(value) => {
            for (at, byte) in value.bytes().take(length as usize - 1).chain([0]).enumerate() {
                // SAFETY: within the caller's length.
                unsafe { to.add(at).write(byte as c_char) };
            }
            SUCCESS
        }
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> c_int {
    match number("init") {
        Err(NOT_SUPPORTED) | Ok(_) => SUCCESS,
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> c_int {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlSystemGetDriverVersion(to: *mut c_char, length: c_uint) -> c_int {
    copy(to, length, Ok("550.54.14".to_owned()))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetCount_v2(to: *mut c_uint) -> c_int {
    answer(to, number("count").map(|it| it as c_uint))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, to: *mut Device) -> c_int {
    let known = number("count").is_ok_and(|it| u64::from(index) < it);
    let handle = match script(&format!("{index}.handle")) {
        Some(code) => Err(code.trim_start_matches('!').parse().unwrap_or(999)),
        None if known => Ok((index as usize + 1) as Device),
        None => Err(NOT_FOUND),
    };
    answer(to, handle)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetName(device: Device, to: *mut c_char, length: c_uint) -> c_int {
    copy(to, length, text(&of(device, "name")))
}

#[repr(C)]
pub struct Utilization {
    gpu: c_uint,
    memory: c_uint,
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetUtilizationRates(device: Device, to: *mut Utilization) -> c_int {
    let gpu = number(&of(device, "busy"));
    let memory = number(&of(device, "memory_busy")).unwrap_or(0) as c_uint;
    answer(to, gpu.map(|it| Utilization { gpu: it as c_uint, memory }))
}

#[repr(C)]
pub struct Memory {
    version: c_uint,
    total: c_ulonglong,
    reserved: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

#[cfg(not(old_driver))]
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: Device, to: *mut Memory) -> c_int {
    // SAFETY: the caller's struct says which version it is.
    let version = unsafe { (*to).version };
    let total = number(&of(device, "memory_total")).unwrap_or(0);
    let used = number(&of(device, "memory"));
    answer(to, used.map(|used| Memory { version, total, reserved: 0, free: total - used, used }))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetClockInfo(device: Device, kind: c_int, to: *mut c_uint) -> c_int {
    small(device, if kind == 1 { "sm_clock" } else { "memory_clock" }, to)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMaxClockInfo(device: Device, kind: c_int, to: *mut c_uint) -> c_int {
    small(device, if kind == 1 { "max_sm_clock" } else { "max_memory_clock" }, to)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetPowerUsage(device: Device, to: *mut c_uint) -> c_int {
    small(device, "power_mw", to)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetEnforcedPowerLimit(device: Device, to: *mut c_uint) -> c_int {
    small(device, "power_limit_mw", to)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetPowerManagementLimitConstraints(
    device: Device,
    least: *mut c_uint,
    most: *mut c_uint,
) -> c_int {
    small(device, "power_limit_mw", least);
    small(device, "power_limit_max_mw", most)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetTemperature(device: Device, _: c_int, to: *mut c_uint) -> c_int {
    small(device, "temperature", to)
}

#[cfg(not(old_driver))]
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetCurrentClocksThrottleReasons(
    device: Device,
    to: *mut c_ulonglong,
) -> c_int {
    answer(to, number(&of(device, "throttled")))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetPcieThroughput(
    device: Device,
    kind: c_int,
    to: *mut c_uint,
) -> c_int {
    // The real one looks at the bus for as long.
    std::thread::sleep(std::time::Duration::from_millis(20));
    small(device, if kind == 1 { "pcie_in_kb" } else { "pcie_out_kb" }, to)
}

#[repr(C)]
pub struct GpmSupport {
    version: c_uint,
    is_supported: c_uint,
}

#[cfg(not(old_driver))]
#[unsafe(no_mangle)]
pub extern "C" fn nvmlGpmQueryDeviceSupport(device: Device, to: *mut GpmSupport) -> c_int {
    // SAFETY: the caller's struct says which version it is.
    let version = unsafe { (*to).version };
    let is_supported = c_uint::from(script(&of(device, "gpm_2")).is_some());
    answer(to, Ok(GpmSupport { version, is_supported }))
}

/// A sample is the GPU it was taken of; none before it was.
type Sample = *mut usize;

#[unsafe(no_mangle)]
pub extern "C" fn nvmlGpmSampleAlloc(to: *mut Sample) -> c_int {
    answer(to, Ok(Box::into_raw(Box::new(0))))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlGpmSampleFree(sample: Sample) -> c_int {
    // SAFETY: made above, freed once.
    drop(unsafe { Box::from_raw(sample) });
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlGpmSampleGet(device: Device, sample: Sample) -> c_int {
    answer(sample, text(&of(device, "name")).map(|_| device as usize))
}

#[repr(C)]
pub struct GpmMetric {
    id: c_uint,
    result: c_int,
    value: f64,
    names: [*mut c_char; 3],
}

#[repr(C)]
pub struct GpmMetrics {
    version: c_uint,
    count: c_uint,
    samples: [Sample; 2],
    metrics: [GpmMetric; 210],
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlGpmMetricsGet(to: *mut GpmMetrics) -> c_int {
    // SAFETY: the caller's struct, and two samples made above.
    let (asked, devices) = unsafe { (&mut *to, (*to).samples.map(|it| *it)) };
    if devices[0] == 0 || devices[0] != devices[1] {
        return 2;
    }
    for metric in &mut asked.metrics[..asked.count as usize] {
        match number(&of(devices[0] as Device, &format!("gpm_{}", metric.id))) {
            Ok(value) => (metric.result, metric.value) = (SUCCESS, value as f64),
            Err(code) => metric.result = code,
        }
    }
    SUCCESS
}
