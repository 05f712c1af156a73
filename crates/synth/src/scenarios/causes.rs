//! Makes the scenarios that differ in what a run waits for.
//!
//! All in the words of TensorFlow on an NVIDIA GPU, as its collector writes today.

use super::{Scenario, function_call, one_host, repeat, train_marker};
use crate::rig::{ADAM, ALL_REDUCE, CONV, Dialect, FIRST_STEP_US, GEMM, RELU, Rig};
use crate::space::{LineId, Value, text};
use crate::truth::Category::{
    Collective, Compile, Compute, Input, Output, Python, Runtime, TransferIn, TransferOut,
};
use crate::truth::Direction::{DeviceToDevice, DeviceToHost, HostToDevice, PeerToPeer};
use crate::truth::{FoundBy, Tiles};

pub(super) fn input_70_rig() -> Rig {
    let mut rig = Rig::new(Dialect::Nvidia, 1);
    let stream = rig.stream(0, 13, "Compute,MemcpyH2D");
    let copy_back = rig.stream(0, 15, "MemcpyD2H");
    let tiles: Tiles<'_> = &[
        (Python, 50),
        (Input, 7000),
        (Python, 50),
        (Runtime, 30),
        (TransferIn, 900),
        (Runtime, 70),
        (Compute, 1350),
        (Runtime, 20),
        (TransferOut, 30),
        (Runtime, 100),
        (Python, 400),
    ];
    repeat(&mut rig, 10, &[tiles], |rig, step| {
        train_marker(rig, step, 9900);
        rig.host("IteratorGetNext:IteratorGetNext", 50, 7000, &[]);
        function_call(rig, 7100, 2500);
        rig.launches_from(7110);
        for copy in 0..3 {
            rig.copy(0, stream, HostToDevice, 1 << 20, 7130 + 300 * copy, 300);
        }
        rig.launches_from(8040);
        for kernel in 0..27 {
            let which = if kernel % 9 == 8 { RELU } else { GEMM };
            rig.kernel(0, stream, which, 8100 + 50 * kernel, 50);
        }
        rig.copy(0, copy_back, DeviceToHost, 4, 9470, 30);
        rig.host("cuStreamSynchronize", 9400, 180, &[]);
    });
    rig
}

pub(super) fn input_70() -> Scenario {
    let about = "input-bound: 7 of 10 ms wait for the next batch (NVIDIA, TensorFlow of today)";
    one_host("input_70", about, FoundBy::Markers, input_70_rig().file("trainer-0"))
}

pub(super) fn overlap_streams() -> Scenario {
    let mut rig = Rig::new(Dialect::Nvidia, 1);
    let worker = rig.plane.line(1002, "tf_Compute/1002", 1_200_000);
    let first = rig.stream(0, 13, "Compute");
    let second = rig.stream(0, 14, "Compute,Memset,MemcpyD2D");
    let copies = rig.stream(0, 15, "MemcpyH2D,MemcpyD2H");
    let tiles: Tiles<'_> = &[
        (Python, 100),
        (Runtime, 200),
        (Compute, 1800),
        (TransferIn, 400),
        (Compute, 650),
        (TransferOut, 150),
        (Runtime, 200),
        (Python, 500),
    ];
    repeat(&mut rig, 8, &[tiles], |rig, step| {
        train_marker(rig, step, 3900);
        function_call(rig, 100, 3400);
        rig.host_on(worker, "ExecutorState::Process", 150, 1000, &[("id", Value::U64(7))]);
        rig.launches_on(worker, 200);
        rig.kernel(0, first, GEMM, 300, 1000);
        // Hidden altogether under the first kernel.
        rig.copy(0, copies, HostToDevice, 2 << 20, 400, 400);
        rig.kernel(0, second, CONV, 900, 1200);
        // Two of its six tenths are hidden under the convolution.
        rig.copy(0, copies, HostToDevice, 3 << 20, 1900, 600);
        rig.kernel(0, first, GEMM, 2500, 500);
        rig.kernel(0, second, RELU, 2500, 400);
        rig.memset(0, second, 1 << 16, 3000, 50);
        rig.copy(0, second, DeviceToDevice, 1 << 18, 3050, 100);
        rig.copy(0, copies, DeviceToHost, 1 << 19, 3100, 200);
        rig.host("cuStreamSynchronize", 1200, 2200, &[]);
    });
    let about = "two compute streams overlap and copies hide under them: sums over streams mislead";
    one_host("overlap_streams", about, FoundBy::Markers, rig.file("trainer-0"))
}

pub(super) fn nccl_two_gpus() -> Scenario {
    let mut rig = Rig::new(Dialect::Nvidia, 2);
    let streams: Vec<(LineId, LineId, LineId)> = (0..2)
        .map(|gpu| {
            let compute = rig.stream(gpu, 13, "Compute");
            (compute, rig.stream(gpu, 20, "Compute"), rig.stream(gpu, 21, "MemcpyP2P"))
        })
        .collect();
    let gpu_0: Tiles<'_> = &[
        (Python, 50),
        (Input, 150),
        (Runtime, 100),
        (Compute, 3000),
        (Collective, 1500),
        (Compute, 500),
        (Collective, 50),
        (Runtime, 150),
        (Python, 500),
    ];
    let gpu_1: Tiles<'_> = &[
        (Python, 50),
        (Input, 150),
        (Runtime, 100),
        (Compute, 3700),
        (Collective, 800),
        (Compute, 500),
        (Runtime, 200),
        (Python, 500),
    ];
    repeat(&mut rig, 10, &[gpu_0, gpu_1], |rig, step| {
        train_marker(rig, step, 5950);
        rig.host("IteratorGetNext:IteratorGetNext", 50, 150, &[]);
        function_call(rig, 200, 5300);
        rig.launches_from(210);
        for (gpu, backward_us, reduce_at_us) in [(0, 500, 2800), (1, 1200, 2900)] {
            let (compute, nccl, _) = streams[gpu];
            rig.kernel(gpu, compute, CONV, 300, 1500);
            rig.kernel(gpu, compute, GEMM, 1800, 1000);
            rig.kernel(gpu, compute, RELU, 2800, backward_us);
            rig.kernel(gpu, nccl, ALL_REDUCE, reduce_at_us, 4800 - reduce_at_us);
            rig.kernel(gpu, compute, ADAM, 4800, 500);
        }
        rig.copy(0, streams[0].2, PeerToPeer, 1 << 20, 5300, 50);
        rig.host("cuStreamSynchronize", 1000, 4400, &[]);
    });
    let about = "all-reduce partly hidden under compute, less so on the GPU that is done first";
    one_host("nccl_two_gpus", about, FoundBy::Markers, rig.file("trainer-0"))
}

pub(super) fn two_hosts() -> Scenario {
    // The second host loads twice as long, so the first waits for it in the all-reduce;
    // its profile also began 2.5 ms later, on the clock of its Task Environment.
    let hosts = [(0, 2000), (2500, 4000)].map(|(began_us, input_us)| {
        let mut rig = Rig::new(Dialect::Nvidia, 1);
        rig.began_us = began_us;
        let compute = rig.stream(0, 13, "Compute");
        let nccl = rig.stream(0, 20, "Compute");
        let reduce_us = 5000 - input_us;
        let tiles: Tiles<'_> = &[
            (Python, 100),
            (Input, input_us),
            (Runtime, 100),
            (Compute, 4000),
            (Collective, reduce_us),
            (Runtime, 300),
            (Python, 500),
        ];
        repeat(&mut rig, 10, &[tiles], |rig, step| {
            train_marker(rig, step, 9900);
            rig.host("IteratorGetNext:IteratorGetNext", 100, input_us, &[]);
            let call_us = 100 + input_us;
            function_call(rig, call_us, 9500 - call_us);
            rig.launches_from(call_us + 20);
            for kernel in 0..8 {
                rig.kernel(0, compute, GEMM, call_us + 100 + 500 * kernel, 500);
            }
            rig.kernel(0, nccl, ALL_REDUCE, call_us + 4100, reduce_us);
            rig.host("cuStreamSynchronize", call_us + 100, 9300 - call_us, &[]);
        });
        rig
    });
    let [first, second] = hosts;
    let (first_bytes, mut ledger) = first.file("trainer-0");
    let (second_bytes, second_ledger) = second.file("trainer-1");
    ledger.join(second_ledger);
    Scenario {
        name: "two_hosts",
        about: "two hosts of one GPU: the second loads longer, the first waits in the all-reduce",
        files: vec![
            ("host0.xplane.pb".to_owned(), first_bytes),
            ("host1.xplane.pb".to_owned(), second_bytes),
        ],
        truth: ledger.truth(FoundBy::Markers, 2),
    }
}

pub(super) fn compile_every_step() -> Scenario {
    let mut rig = Rig::new(Dialect::Nvidia, 1);
    let stream = rig.stream(0, 13, "Compute");
    let tiles: Tiles<'_> = &[
        (Python, 500),
        (Compile, 12_000),
        (Runtime, 200),
        (Compute, 2000),
        (Runtime, 100),
        (Python, 1200),
    ];
    repeat(&mut rig, 8, &[tiles], |rig, step| {
        train_marker(rig, step, 15_900);
        let stats = [
            ("tf_function_call", text("traced-nonXla")),
            ("tracing_count", Value::I64(step as i64 + 1)),
        ];
        rig.host("train_step", 500, 14_300, &stats);
        rig.host("tf.function-graph_building", 500, 12_000, &[]);
        function_call(rig, 12_500, 2300);
        rig.launches_from(12_550);
        for kernel in 0..10 {
            rig.kernel(0, stream, GEMM, 12_700 + 200 * kernel, 200);
        }
        rig.host("cuStreamSynchronize", 12_800, 1950, &[]);
    });
    let about = "retracing: each step builds the graph of its tf.function anew";
    one_host("compile_every_step", about, FoundBy::Markers, rig.file("trainer-0"))
}

pub(super) fn checkpoint() -> Scenario {
    let mut rig = Rig::new(Dialect::Nvidia, 1);
    let stream = rig.stream(0, 13, "Compute");
    let usual: Tiles<'_> = &[
        (Python, 100),
        (Input, 400),
        (Runtime, 200),
        (Compute, 4500),
        (Runtime, 200),
        (Python, 600),
    ];
    let saving: Tiles<'_> = &[
        (Python, 100),
        (Input, 400),
        (Runtime, 200),
        (Compute, 4500),
        (Runtime, 200),
        (Python, 300),
        (Output, 9000),
        (Python, 300),
    ];
    let mut start_us = FIRST_STEP_US;
    for step in 0..=9 {
        let saves = step % 3 == 2;
        rig.begin_step(start_us);
        train_marker(&mut rig, step, if saves { 14_900 } else { 5900 });
        rig.host("IteratorGetNext:IteratorGetNext", 100, 400, &[]);
        function_call(&mut rig, 500, 4900);
        rig.launches_from(550);
        for kernel in 0..9 {
            rig.kernel(0, stream, GEMM, 700 + 500 * kernel, 500);
        }
        rig.host("cuStreamSynchronize", 800, 4500, &[]);
        if saves {
            rig.host("save/SaveV2:SaveV2", 5700, 7500, &[]);
            rig.host("MergeV2Checkpoints:MergeV2Checkpoints", 13_200, 1500, &[]);
        }
        if step < 9 {
            rig.end_step(&[if saves { saving } else { usual }]);
        }
        start_us += if saves { 15_000 } else { 6000 };
    }
    let about = "every third step writes a checkpoint for 9 ms while the GPU waits";
    one_host("checkpoint", about, FoundBy::Markers, rig.file("trainer-0"))
}

pub(super) fn warmup() -> Scenario {
    const N_STEPS: u64 = 12;
    const N_WARMUP: u64 = 2;
    const COMPILE_US: u64 = 35_000;
    let mut rig = Rig::new(Dialect::Nvidia, 1);
    let stream = rig.stream(0, 13, "Compute");
    let steady: Tiles<'_> = &[
        (Python, 100),
        (Input, 200),
        (Runtime, 150),
        (Compute, 3800),
        (Runtime, 150),
        (Python, 600),
    ];
    let mut start_us = FIRST_STEP_US;
    for step in 0..=N_STEPS {
        let compile_us = if step < N_WARMUP { COMPILE_US } else { 0 };
        rig.begin_step(start_us);
        train_marker(&mut rig, step, 4900 + compile_us);
        rig.host("IteratorGetNext:IteratorGetNext", 100, 200, &[]);
        if compile_us > 0 {
            rig.host("XlaCompile", 300, compile_us, &[]);
        }
        let call_us = 300 + compile_us;
        function_call(&mut rig, call_us, 4100);
        rig.launches_from(call_us + 50);
        for kernel in 0..4 {
            rig.kernel(0, stream, CONV, call_us + 150 + 950 * kernel, 950);
        }
        rig.host("cuStreamSynchronize", call_us + 200, 3800, &[]);
        if (N_WARMUP..N_STEPS).contains(&step) {
            rig.end_step(&[steady]);
        }
        start_us += 5000 + compile_us;
    }
    let about = "the first two of twelve steps compile and take eight times as long";
    let mut scenario = one_host("warmup", about, FoundBy::Markers, rig.file("trainer-0"));
    scenario.truth.warmup_steps = N_WARMUP;
    scenario
}
