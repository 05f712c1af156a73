//! Makes the scenarios that differ in how a GPU run was written down.
//!
//! Other vendors, years and frameworks, steps without markers, unusual bytes.

use super::causes::input_70_rig;
use super::{Scenario, function_call, one_host, repeat, train_marker};
use crate::rig::{
    ADAM, CONV, DEVICE_LINE_NS, Dialect, FIRST_STEP_US, GEMM, Kernel, PROFILE_START_UNIX_NS,
    PS_PER_US, RELU, Rig, gpu_plane, task_environment,
};
use crate::space::{Oddities, Space, Value, inline_text, text};
use crate::truth::Category::{Compute, Idle, Input, Python, Runtime, TransferIn, TransferOut};
use crate::truth::Direction::{DeviceToHost, HostToDevice};
use crate::truth::{FoundBy, Ledger, Tiles};

pub(super) fn cuda_graph() -> Scenario {
    const WHOLE_GRAPH: &str = "CudaGraphExec:9";
    let kernels = [GEMM, RELU, CONV];
    let mut rig = Rig::new(Dialect::Nvidia, 1);
    let stream = rig.stream(0, 13, "Compute");
    let tiles: Tiles<'_> = &[
        (Python, 150),
        (Runtime, 70),
        (Compute, 600),
        // Gaps of 2 us between the later nodes of the graph, while the host waits in a driver call.
        (Runtime, 12),
        (Compute, 600),
        (Runtime, 68),
        (Compute, 300),
        (Runtime, 50),
        (Python, 150),
    ];
    repeat(&mut rig, 12, &[tiles], |rig, step| {
        train_marker(rig, step, 1950);
        function_call(rig, 150, 1700);
        rig.launches_from(200);
        let correlation = rig.launch("cuGraphLaunch", 0);
        let mut at_us = 220;
        for node in 0..12 {
            let kernel = kernels[node % kernels.len()];
            let stats = [
                ("correlation_id", Value::U64(correlation)),
                ("cuda_graph_id", Value::U64(7)),
                ("cuda_graph_node_id", Value::U64(30_064_771_072 + node as u64)),
                ("tf_op", text(kernel.op)),
                (
                    "kernel_details",
                    text(
                        "regs:32 static_shared:0 dynamic_shared:8192 grid:1728,1,1 block:256,1,1 occ_pct:50",
                    ),
                ),
            ];
            if node >= 6 {
                at_us += 2;
            }
            rig.device(0, stream, kernel.name, at_us, 100, &stats);
            rig.ledger.kernel(kernel.name, 100);
            at_us += 100;
        }
        rig.host("cuStreamSynchronize", 300, 1140, &[]);
        // Traced as a whole, a graph shows one event without kernels.
        rig.launches_from(1450);
        let correlation = rig.launch("cuGraphLaunch", 0);
        let stats =
            [("correlation_id", Value::U64(correlation)), ("cuda_graph_exec_id", Value::U64(9))];
        rig.device(0, stream, WHOLE_GRAPH, 1500, 300, &stats);
        rig.ledger.kernel(WHOLE_GRAPH, 300);
    });
    let about =
        "a CUDA graph traced per node (one launch, twelve kernels) and one traced as a whole";
    one_host("cuda_graph", about, FoundBy::Markers, rig.file("trainer-0"))
}

pub(super) fn rocm() -> Scenario {
    let gemm = Kernel { name: "Cijk_Ailk_Bljk_SB_MT128x128x16_SE_1LDSB0_APM1", op: "dot.17" };
    let fusion = Kernel { name: "loop_add_fusion", op: "loop_add_fusion" };
    let mut rig = Rig::new(Dialect::Amd, 1);
    let stream = rig.stream(0, 17, "Kernel");
    let copies = rig.stream(0, 18, "MemcpyH2D");
    let tiles: Tiles<'_> = &[
        (Python, 200),
        (Runtime, 200),
        (TransferIn, 300),
        (Compute, 3500),
        (Runtime, 300),
        (Python, 500),
    ];
    repeat(&mut rig, 10, &[tiles], |rig, step| {
        // JAX's StepTraceAnnotation.
        rig.host("train", 0, 4800, &[("_r", Value::U64(1)), ("step_num", Value::U64(step))]);
        rig.host("PjitFunction(train_step)", 200, 4300, &[]);
        rig.launches_from(300);
        rig.copy(0, copies, HostToDevice, 3 << 20, 400, 300);
        for pair in 0..5 {
            rig.kernel(0, stream, gemm, 700 + 700 * pair, 500);
            rig.kernel(0, stream, fusion, 1200 + 700 * pair, 200);
        }
        rig.host("hipStreamSynchronize", 1000, 3400, &[]);
    });
    let about = "JAX on an AMD GPU: hlo_op in place of tf_op, hip calls, the step number unsigned";
    one_host("rocm", about, FoundBy::Markers, rig.file("trainer-0"))
}

/// Ids that TensorFlow gives to the lines it derives itself: 0xdeadbeef and up, as an int32.
const DERIVED_LINES: i64 = -559_038_737;

pub(super) fn tf2020() -> Scenario {
    let gemm = Kernel { name: "volta_sgemm_128x64_nn", op: "sequential/dense/MatMul:MatMul" };
    let relu = Kernel { name: RELU.name, op: "sequential/dense/Relu:Relu" };
    let mut rig = Rig::new(Dialect::Nvidia2020, 1);
    let gpu = &mut rig.gpus[0];
    let steps = gpu.line(DERIVED_LINES, "Steps", DEVICE_LINE_NS);
    let scopes = gpu.line(DERIVED_LINES + 2, "TensorFlow Name Scope", DEVICE_LINE_NS);
    let ops = gpu.line(DERIVED_LINES + 3, "TensorFlow Ops", DEVICE_LINE_NS);
    let compute = rig.stream(0, 13, "Compute");
    let copies = rig.stream(0, 14, "MemcpyHToD,MemcpyDToH");
    let tiles: Tiles<'_> = &[
        (Python, 100),
        (Input, 1000),
        (Runtime, 200),
        (TransferIn, 400),
        (Compute, 4500),
        (TransferOut, 100),
        (Runtime, 700),
        (Python, 1000),
    ];
    repeat(&mut rig, 8, &[tiles], |rig, step| {
        let stats = [("graph_type", inline_text("train")), ("step_num", Value::I64(step as i64))];
        rig.host("TraceContext", 0, 7900, &stats);
        rig.host("IteratorGetNext", 100, 1000, &[]);
        function_call(rig, 1100, 5900);
        rig.launches_from(1150);
        rig.copy(0, copies, HostToDevice, 1 << 21, 1300, 400);
        for kernel in 0..9 {
            let (which, scope) = if kernel % 3 == 2 { (relu, "Relu") } else { (gemm, "MatMul") };
            let at_us = 1700 + 500 * kernel;
            rig.kernel(0, compute, which, at_us, 500);
            rig.device(0, ops, scope, at_us, 500, &[]);
            rig.device(0, scopes, "dense", at_us, 500, &[]);
        }
        rig.device(0, scopes, "sequential", 1700, 4500, &[]);
        rig.copy(0, copies, DeviceToHost, 112, 6200, 100);
        let group = [("group_id", Value::I64(step as i64))];
        rig.device(0, steps, &step.to_string(), 1300, 5000, &group);
        rig.host("cuStreamSynchronize", 2000, 4900, &[]);
    });
    let (space, ledger) = rig.space();
    let about = "TensorFlow 2.2 of 2020: old keys and names, lines the collector derived itself";
    one_host("tf2020", about, FoundBy::Markers, (space.encode(Oddities::default()), ledger))
}

pub(super) fn keras3() -> Scenario {
    let mut rig = Rig::new(Dialect::Nvidia, 1);
    let stream = rig.stream(0, 13, "Compute");
    let tiles: Tiles<'_> = &[
        (Python, 50),
        (Runtime, 10),
        (Input, 1000),
        (Runtime, 190),
        (Compute, 2400),
        (Runtime, 150),
        // The last millisecond lies between two markers: callbacks.
        (Python, 1200),
    ];
    repeat(&mut rig, 10, &[tiles], |rig, step| {
        rig.host("Profiled batch", 0, 4000, &[("step_num", Value::I64(step as i64))]);
        function_call(rig, 50, 3750);
        let stats = [("id", Value::U64(7)), ("iter_num", Value::U64(step))];
        rig.host("IteratorGetNextOp::DoCompute", 60, 1000, &stats);
        rig.launches_from(1100);
        for kernel in 0..8 {
            rig.kernel(0, stream, if kernel == 7 { ADAM } else { GEMM }, 1250 + 300 * kernel, 300);
        }
        rig.host("cuStreamSynchronize", 1300, 2400, &[]);
    });
    let about = "Keras 3: markers without _r, and callbacks in the gaps between them";
    one_host("keras3", about, FoundBy::Markers, rig.file("trainer-0"))
}

pub(super) fn unmarked_calls() -> Scenario {
    let mut rig = Rig::new(Dialect::Nvidia, 1);
    let stream = rig.stream(0, 13, "Compute");
    let tiles: Tiles<'_> = &[
        (Runtime, 200),
        (Compute, 3600),
        (Runtime, 200),
        (Python, 200),
        (Runtime, 20),
        (Input, 660),
        (Runtime, 20),
        (Python, 100),
    ];
    repeat(&mut rig, 10, &[tiles], |rig, _| {
        function_call(rig, 0, 4000);
        rig.launches_from(50);
        for kernel in 0..6 {
            rig.kernel(0, stream, if kernel == 5 { ADAM } else { CONV }, 200 + 600 * kernel, 600);
        }
        rig.host("cuStreamSynchronize", 400, 3500, &[]);
        let stats = [("eager_op", text("IteratorGetNext")), ("is_func", Value::I64(0))];
        rig.host("EagerExecute", 4200, 700, &stats);
        rig.host("EagerLocalExecute: IteratorGetNext", 4200, 700, &[]);
        rig.host("EagerKernelExecute", 4200, 700, &[]);
        rig.host("IteratorGetNextOp::DoCompute", 4220, 660, &[]);
    });
    let about =
        "no markers: a step is a call of the same tf.function, the batch fetched in between";
    one_host("unmarked_calls", about, FoundBy::Calls, rig.file("trainer-0"))
}

pub(super) fn unmarked_kernels() -> Scenario {
    const STEP_US: u64 = 3_000;
    const N_STEPS: u64 = 11;
    let mut ledger = Ledger::default();
    let mut plane = gpu_plane(Dialect::Nvidia, 0);
    let stream = plane.line(13, "Stream #13(Compute)", DEVICE_LINE_NS);
    let mut correlation = 100;
    for step in 0..=N_STEPS {
        let mut at_us = FIRST_STEP_US + step * STEP_US;
        for layer in 0..20 {
            let name = format!("layer_{layer:02}_forward_kernel<float, {}>", 32 + layer);
            let dur_us = 50 + 5 * layer;
            correlation += 1;
            let stats = [
                ("correlation_id", Value::U64(correlation)),
                (
                    "kernel_details",
                    text(
                        "regs:40 static_shared:0 dynamic_shared:0 grid:80,1,1 block:128,1,1 occ_pct:75",
                    ),
                ),
            ];
            plane.event(stream, &name, at_us * PS_PER_US, dur_us * PS_PER_US, &stats);
            ledger.kernel(&name, dur_us);
            at_us += dur_us;
        }
        if step < N_STEPS {
            ledger.step(&[&[(Compute, 1950), (Idle, 1050)]]);
        }
    }
    // Absolute time in the lines, as some collectors leave it: picoseconds of it overflow 64 bits.
    let epoch_ns = PROFILE_START_UNIX_NS as i64;
    let space = Space {
        planes: vec![plane],
        hostnames: vec!["trainer-0".to_owned()],
        epoch_ns,
        ..Space::default()
    };
    let about = "a device and no host: the same twenty kernels twelve times, then nothing for 1 ms";
    one_host(
        "unmarked_kernels",
        about,
        FoundBy::Period,
        (space.encode(Oddities::default()), ledger),
    )
}

pub(super) fn odd_encodings() -> Scenario {
    let (mut space, ledger) = input_70_rig().space();
    space.planes.push(task_environment(PROFILE_START_UNIX_NS));
    space.hostnames.push("trainer-0".to_owned());
    space.errors.push("7 events were dropped: the buffer of the collector was full".to_owned());
    space.warnings.push("the profiler was started while a step was running".to_owned());
    let odd = Oddities {
        unknown_fields: true,
        maps_last: true,
        mixed_values: true,
        negative_ids: true,
        split_lines: true,
    };
    let about = "input_70 in legal but unusual bytes: a reader must find the same in it";
    one_host("odd_encodings", about, FoundBy::Markers, (space.encode(odd), ledger))
}
