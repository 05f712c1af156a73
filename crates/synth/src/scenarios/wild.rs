//! Makes the profiles that people publish: short, ended by a callback, with a device that recorded
//! nothing or keeps another time.
//!
//! Unlike the others they may have a single step, launches after their kernels, or a last step that
//! the profiler's stop cuts off, so what holds for all others does not hold for them.

use super::{Scenario, function_call, one_host, train_marker};
use crate::rig::{CONV, DEVICE_LINE_NS, Dialect, FIRST_STEP_US, GEMM, Kernel, Rig};
use crate::space::{Value, text};
use crate::truth::Category::{Compute, Input, Python, Runtime};
use crate::truth::{FoundBy, Tiles};

/// What Keras' callback does after the last batch: it asks whether to write, writes the graph, and
/// stops the profiler.
const LOGICAL_AND: Kernel = Kernel {
    name: "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<logical_and>, long>",
    op: "LogicalAnd:LogicalAnd",
};

/// A call of Keras' function for a batch.
fn batch_call(rig: &mut Rig, dur_us: u64) {
    let stats = [("tf_function_call", text("notTraced-nonXla"))];
    rig.host("train_function", 0, dur_us, &stats);
    function_call(rig, 100, dur_us - 200);
}

fn callback(rig: &mut Rig, at_us: u64, with_kernel: bool) {
    rig.host("tf.constant", at_us, 200, &[]);
    let stats = [("eager_op", text("LogicalAnd")), ("is_func", Value::I64(0))];
    rig.host("EagerExecute", at_us + 200, 300, &stats);
    if with_kernel {
        let stream = rig.stream(0, 13, "Compute");
        rig.launches_from(at_us + 250);
        rig.kernel(0, stream, LOGICAL_AND, at_us + 400, 2);
    }
    rig.host("EagerLocalExecute: WriteSummary", at_us + 700, 100, &[]);
    rig.host("EagerLocalExecute: FlushSummaryWriter", at_us + 6_500, 1_000, &[]);
}

/// One batch on a GPU: 8.3 ms, whatever the collector's own line of steps says.
pub(super) fn keras_one_batch() -> Scenario {
    let mut rig = Rig::new(Dialect::Nvidia, 1);
    let steps = rig.gpus[0].line(-559_038_737, "Steps", DEVICE_LINE_NS);
    let stream = rig.stream(0, 13, "Compute");
    let tiles: Tiles<'_> = &[(Runtime, 600), (Compute, 7_600), (Runtime, 100)];
    rig.begin_step(FIRST_STEP_US);
    batch_call(&mut rig, 5_500);
    rig.launches_from(500);
    for kernel in 0..4 {
        rig.kernel(0, stream, if kernel == 3 { CONV } else { GEMM }, 600 + 1_900 * kernel, 1_900);
    }
    rig.host("cuStreamSynchronize", 5_600, 2_700, &[]);
    rig.end_step(&[tiles]);
    callback(&mut rig, 33_500, true);
    rig.device(0, steps, "0", 600, 33_302, &[("group_id", Value::I64(0))]);
    let about = "one batch of Keras, and the callback that ends the profile 25 ms later";
    one_host("keras_one_batch", about, FoundBy::Calls, rig.file("trainer-0"))
}

/// One batch and a GPU of which nothing was recorded.
pub(super) fn keras_silent_gpu() -> Scenario {
    let mut rig = Rig::new(Dialect::Nvidia, 1);
    let fetching = rig.plane.line(2001, "tf_data_iterator_get_next/77", crate::rig::HOST_LINE_NS);
    let tiles: Tiles<'_> = &[(Runtime, 300), (Input, 43_200), (Runtime, 11_000)];
    rig.begin_step(FIRST_STEP_US);
    batch_call(&mut rig, 54_500);
    rig.host_on(fetching, "IteratorGetNextOp::DoCompute", 300, 43_200, &[]);
    rig.end_step(&[tiles]);
    callback(&mut rig, 744_000, false);
    let about = "one batch of Keras that waits for input; a GPU is there, but recorded nothing";
    one_host("keras_silent_gpu", about, FoundBy::Calls, rig.file("trainer-0"))
}

/// The device's clock is 0.3 ms behind: kernels lie before their launches, the first in the step
/// before.
pub(super) fn skewed_clock() -> Scenario {
    let mut rig = Rig::new(Dialect::Nvidia, 1);
    rig.behind_us = 300;
    let stream = rig.stream(0, 13, "Compute");
    let tiles: Tiles<'_> =
        &[(Python, 100), (Runtime, 120), (Compute, 3_200), (Runtime, 380), (Python, 200)];
    super::repeat(&mut rig, 8, &[tiles], |rig, step| {
        train_marker(rig, step, 3_900);
        function_call(rig, 100, 3_700);
        rig.launches_from(215);
        for kernel in 0..8 {
            rig.kernel(
                0,
                stream,
                if kernel % 2 == 0 { GEMM } else { CONV },
                220 + 400 * kernel,
                400,
            );
        }
        rig.host("cuStreamSynchronize", 400, 3_030, &[]);
    });
    let about = "the GPU's clock is 0.3 ms behind the host's: kernels before their launches";
    one_host("skewed_clock", about, FoundBy::Markers, rig.file("trainer-0"))
}

/// The profiler is stopped while the last step computes.
pub(super) fn stop_inside() -> Scenario {
    const N_STEPS: u64 = 5;
    const STEP_US: u64 = 5_000;
    let mut rig = Rig::new(Dialect::Amd, 1);
    let stream = rig.stream(0, 17, "Kernel");
    let fusion = Kernel { name: "loop_add_fusion", op: "loop_add_fusion" };
    let tiles: Tiles<'_> = &[(Runtime, 300), (Compute, 4_000), (Runtime, 100), (Python, 600)];
    for step in 0..=N_STEPS {
        rig.begin_step(FIRST_STEP_US + step * STEP_US);
        rig.host("PjitFunction(train_step)", 0, 500, &[]);
        rig.launches_from(200);
        for kernel in 0..4 {
            rig.kernel(0, stream, fusion, 300 + 1_000 * kernel, 1_000);
        }
        if step < N_STEPS {
            rig.host("hipStreamSynchronize", 550, 3_850, &[]);
            rig.end_step(&[tiles]);
        } else {
            rig.host("$profiler.py:213 stop_trace", 2_500, 60_000, &[]);
            // What the stop itself computes is no step.
            rig.host("PjitFunction(train_step)", 30_000, 400, &[]);
        }
    }
    let about = "JAX: stop_trace begins inside the sixth step, and runs for 60 ms";
    one_host("stop_inside", about, FoundBy::Calls, rig.file("trainer-0"))
}
