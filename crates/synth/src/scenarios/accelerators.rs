//! Makes the scenarios in which an accelerator is used badly, each with what would repair it.
//!
//! Every wait has its cause in the events: launches come before what they launch, kernels of a
//! stream follow each other, waits end after what they wait for. So it can be said what a step
//! would take without the cause: `fixed_step_ms` is worked out by hand from the layout.

use super::{Scenario, function_call, one_host, repeat, train_marker};
use crate::rig::{ADAM, ALL_REDUCE, CONV, Dialect, FIRST_STEP_US, GEMM, RELU, Rig, SGEMM, SOFTMAX};
use crate::space::{LineId, Value, text};
use crate::truth::Category::{Collective, Compute, Python, Runtime, TransferIn};
use crate::truth::Direction::HostToDevice;
use crate::truth::{Category, FoundBy, Tiles};

fn scenario(
    name: &'static str,
    about: &'static str,
    rig: Rig,
    first_finding: Option<&'static str>,
    fixed_step_us: Option<u64>,
) -> Scenario {
    let mut scenario = one_host(name, about, FoundBy::Markers, rig.file("trainer-0"));
    scenario.truth.first_finding = first_finding;
    scenario.truth.fixed_step_ms = fixed_step_us.map(|it| it as f64 / 1000.0);
    scenario
}

/// GPUs that run a model of several layers.
fn model_on(n_gpus: usize) -> Rig {
    let mut rig = Rig::new(Dialect::Nvidia, n_gpus);
    rig.layers = 7;
    rig
}

/// The device is fed ahead and never waits.
pub(super) fn well_tuned() -> Scenario {
    let mut rig = model_on(1);
    let stream = rig.stream(0, 13, "Compute");
    let copies = rig.stream(0, 14, "MemcpyH2D");
    let tiles: Tiles<'_> = &[(Compute, 7800), (Runtime, 200)];
    let kernels = [GEMM, CONV, RELU];
    // What the first step runs was launched before it.
    rig.begin_step(0);
    rig.launches_from(2000);
    for (at_us, kernel) in (0..12).map(|it| (FIRST_STEP_US + 650 * it, kernels[it as usize % 3])) {
        rig.kernel(0, stream, kernel, at_us, 650);
    }
    repeat(&mut rig, 10, &[tiles], |rig, step| {
        train_marker(rig, step, 8000);
        function_call(rig, 100, 7900);
        rig.launches_from(110);
        // Launched a step ahead: what this step launches runs in the next.
        for (at_us, kernel) in (0..12).map(|it| (8000 + 650 * it, kernels[it as usize % 3])) {
            rig.kernel(0, stream, kernel, at_us, 650);
        }
        rig.copy(0, copies, HostToDevice, 1 << 22, 2000, 900);
    });
    let about = "nothing is wrong: kernels fill the device, launched a step ahead, copies beneath";
    scenario("well_tuned", about, rig, None, None)
}

/// A copy from pageable memory blocks the host before anything can be launched.
pub(super) fn transfer_bound() -> Scenario {
    let mut rig = model_on(1);
    let stream = rig.stream(0, 13, "Compute,MemcpyH2D");
    let tiles: Tiles<'_> = &[
        (Python, 100),
        (Runtime, 100),
        (TransferIn, 3000),
        (Runtime, 50),
        (Compute, 2000),
        (Runtime, 150),
        (Python, 600),
    ];
    repeat(&mut rig, 10, &[tiles], |rig, step| {
        train_marker(rig, step, 5900);
        function_call(rig, 100, 5300);
        rig.blocking_copy(0, stream, 36 << 20, (190, 3020), (200, 3000));
        rig.launches_from(3220);
        for kernel in 0..4 {
            rig.kernel(0, stream, GEMM, 3250 + 500 * kernel, 500);
        }
        rig.host("cuStreamSynchronize", 3300, 1960, &[]);
    });
    let about = "transfer-bound: half of each step copies the batch from pageable memory";
    scenario("transfer_bound", about, rig, Some("transfer-bound"), Some(3000))
}

/// All devices reduce when all have computed.
pub(super) fn exposed_collective() -> Scenario {
    let mut rig = model_on(2);
    let streams: Vec<(LineId, LineId)> = (0..2)
        .map(|gpu| (rig.stream(gpu, 13, "Compute"), rig.stream(gpu, 20, "Compute")))
        .collect();
    let tiles: Tiles<'_> = &[
        (Python, 50),
        (Runtime, 150),
        (Compute, 3000),
        (Collective, 2500),
        (Compute, 500),
        (Runtime, 100),
        (Python, 200),
    ];
    repeat(&mut rig, 10, &[tiles, tiles], |rig, step| {
        train_marker(rig, step, 6450);
        function_call(rig, 50, 6250);
        rig.launches_from(70);
        for (gpu, &(compute, nccl)) in streams.iter().enumerate() {
            rig.kernel(gpu, compute, CONV, 200, 1500);
            rig.kernel(gpu, compute, GEMM, 1700, 1500);
            rig.kernel(gpu, nccl, ALL_REDUCE, 3200, 2500);
            rig.kernel(gpu, compute, ADAM, 5700, 500);
        }
        rig.host("cuStreamSynchronize", 150, 6070, &[]);
    });
    let about = "exposed collective: both GPUs reduce when all is computed, with nothing beneath";
    scenario("exposed_collective", about, rig, Some("exposed-collective"), Some(4000))
}

/// One of four devices computes half as long again.
pub(super) fn straggler() -> Scenario {
    let mut rig = model_on(4);
    let streams: Vec<(LineId, LineId)> = (0..4)
        .map(|gpu| (rig.stream(gpu, 13, "Compute"), rig.stream(gpu, 20, "Compute")))
        .collect();
    let usual: Tiles<'_> = &[
        (Python, 50),
        (Runtime, 150),
        (Compute, 3000),
        (Collective, 1800),
        (Compute, 200),
        (Runtime, 100),
        (Python, 200),
    ];
    let late: Tiles<'_> = &[
        (Python, 50),
        (Runtime, 150),
        (Compute, 4500),
        (Collective, 300),
        (Compute, 200),
        (Runtime, 100),
        (Python, 200),
    ];
    repeat(&mut rig, 10, &[usual, usual, late, usual], |rig, step| {
        train_marker(rig, step, 5450);
        function_call(rig, 50, 5250);
        rig.launches_from(70);
        for (gpu, &(compute, nccl)) in streams.iter().enumerate() {
            let kernel_us = if gpu == 2 { 750 } else { 500 };
            for kernel in 0..6 {
                rig.kernel(gpu, compute, GEMM, 200 + kernel_us * kernel, kernel_us);
            }
            let came_us = 200 + 6 * kernel_us;
            rig.kernel(gpu, nccl, ALL_REDUCE, came_us, 5000 - came_us);
            rig.kernel(gpu, compute, ADAM, 5000, 200);
        }
        rig.host("cuStreamSynchronize", 198, 5022, &[]);
    });
    let about = "straggler: the third of four GPUs computes half as long again, the others wait";
    scenario("straggler", about, rig, Some("straggler"), Some(4000))
}

/// The host looks at each result before it launches the next.
pub(super) fn sync_stall() -> Scenario {
    const TIMES: u64 = 20;
    let mut rig = model_on(1);
    let stream = rig.stream(0, 13, "Compute");
    let mut tiles: Vec<(Category, u64)> = vec![(Python, 100)];
    for _ in 0..TIMES {
        tiles.extend([(Runtime, 10), (Compute, 100), (Runtime, 110)]);
    }
    tiles.push((Python, 200));
    repeat(&mut rig, 5, &[&tiles], |rig, step| {
        train_marker(rig, step, 4650);
        for time in 0..TIMES {
            let at_us = 100 + 220 * time;
            let stats = [("eager_op", text("Sub")), ("is_func", Value::I64(0))];
            rig.host("EagerExecute", at_us, 220, &stats);
            rig.launches_from(at_us);
            rig.kernel(0, stream, RELU, at_us + 10, 100);
            rig.host("cuStreamSynchronize", at_us + 5, 110, &[]);
        }
    });
    // The host's own 110 us of each time, 20 times, and Python's 300: longer than the device's.
    let about = "sync stall: twenty times a step the host waits for the result it just launched";
    scenario("sync_stall", about, rig, Some("sync-stall"), Some(2500))
}

/// Kernels shorter than the launch of the next.
pub(super) fn tiny_ops() -> Scenario {
    const KERNELS: u64 = 300;
    let mut rig = model_on(1);
    let stream = rig.stream(0, 13, "Compute");
    let mut tiles: Vec<(Category, u64)> = vec![(Python, 100), (Runtime, 7)];
    for _ in 0..KERNELS {
        tiles.extend([(Compute, 3), (Runtime, 9)]);
    }
    tiles.extend([(Runtime, 93), (Python, 200)]);
    repeat(&mut rig, 4, &[&tiles], |rig, step| {
        train_marker(rig, step, 3950);
        function_call(rig, 100, 3700);
        for kernel in 0..KERNELS {
            rig.launches_from(102 + 12 * kernel);
            rig.kernel(0, stream, RELU, 107 + 12 * kernel, 3);
        }
        rig.host("cuStreamSynchronize", 3705, 10, &[]);
    });
    // In one program: 300 kernels of 3 us one after the other, and Python's 300 us.
    let about = "tiny ops: three hundred kernels of 3 us, each launched 12 us after the last";
    scenario("tiny_ops", about, rig, Some("tiny-ops"), Some(1400))
}

/// Four examples a step.
pub(super) fn small_batch() -> Scenario {
    const KERNELS: u64 = 60;
    let mut rig = model_on(1);
    let stream = rig.stream(0, 13, "Compute");
    let pipeline = rig.plane.line(1003, "tf_data_iterator_get_next/1003", 1_200_000);
    let mut tiles: Vec<(Category, u64)> = vec![(Python, 40), (Runtime, 10)];
    for _ in 0..KERNELS {
        tiles.extend([(Compute, 8), (Runtime, 12)]);
    }
    tiles.extend([(Runtime, 50), (Python, 100)]);
    repeat(&mut rig, 10, &[&tiles], |rig, step| {
        train_marker(rig, step, 1390);
        let stats = [("batch_size", Value::I64(4)), ("shapes", text("[4,32,32,3] [4]"))];
        rig.host_on(pipeline, "Iterator::Root::Prefetch::BatchV2", 20, 10, &stats);
        function_call(rig, 40, 1260);
        for kernel in 0..KERNELS {
            rig.launches_from(45 + 20 * kernel);
            rig.kernel(0, stream, GEMM, 50 + 20 * kernel, 8);
        }
        rig.host("cuStreamSynchronize", 1240, 10, &[]);
    });
    // Sixteen times the batch has the 780 us of the runtime once for sixteen: 620 and 49 for each.
    let about = "small batch: four examples a step, sixty kernels of 8 us, 12 us between them";
    scenario("small_batch", about, rig, Some("small-batch"), Some(669))
}

/// Single precision on ordinary units, though the device has tensor cores.
pub(super) fn no_tensor_cores() -> Scenario {
    let mut rig = model_on(1);
    let stream = rig.stream(0, 13, "Compute");
    let tiles: Tiles<'_> =
        &[(Python, 30), (Runtime, 70), (Compute, 7700), (Runtime, 100), (Python, 100)];
    repeat(&mut rig, 10, &[tiles], |rig, step| {
        train_marker(rig, step, 7950);
        function_call(rig, 30, 7870);
        rig.launches_from(50);
        for kernel in 0..10 {
            rig.kernel(0, stream, SGEMM, 100 + 770 * kernel, 700);
            rig.kernel(0, stream, RELU, 800 + 770 * kernel, 70);
        }
        rig.host("cuStreamSynchronize", 150, 7670, &[]);
    });
    let about = "no tensor cores: matrix products in single precision on a device made for less";
    scenario("no_tensor_cores", about, rig, Some("no-tensor-cores"), Some(4500))
}

/// A quarter of the device is enough for each kernel's blocks.
pub(super) fn low_occupancy() -> Scenario {
    let mut rig = model_on(1);
    let stream = rig.stream(0, 13, "Compute");
    let tiles: Tiles<'_> =
        &[(Python, 30), (Runtime, 70), (Compute, 5000), (Runtime, 100), (Python, 100)];
    repeat(&mut rig, 10, &[tiles], |rig, step| {
        train_marker(rig, step, 5250);
        function_call(rig, 30, 5170);
        rig.launches_from(50);
        rig.grid = 27;
        for kernel in 0..10 {
            rig.kernel(0, stream, SOFTMAX, 100 + 500 * kernel, 500);
        }
        rig.host("cuStreamSynchronize", 150, 4970, &[]);
    });
    let about = "low occupancy: 27 blocks of each kernel on 108 multiprocessors";
    scenario("low_occupancy", about, rig, Some("low-occupancy"), None)
}
