//! Makes the TPU scenario: steps, modules and ops on lines of the device, facts in the metadata.

use super::{Scenario, one_host};
use crate::rig::{FIRST_STEP_US, PROFILE_START_UNIX_NS, PS_PER_US, task_environment};
use crate::space::{Oddities, Plane, Space, Value, inline_text};
use crate::truth::Category::{Collective, Compute, Idle, Input};
use crate::truth::{FoundBy, Ledger};

/// One op of the TPU program: its name in HLO, what XLA calls it, its category, span and work.
struct TpuOp {
    name: &'static str,
    display_name: &'static str,
    category: &'static str,
    tf_op: &'static str,
    at_us: u64,
    dur_us: u64,
    flops: u64,
    bytes: u64,
}

pub(super) fn tpu() -> Scenario {
    const N_STEPS: u64 = 10;
    const STEP_US: u64 = 10_000;
    let tiles = |infeed_us, reduce_us| {
        [
            (Idle, 100),
            (Input, infeed_us),
            (Compute, 5000),
            (Collective, reduce_us),
            (Compute, 500),
            (Idle, 400),
        ]
    };
    let cores = [(2000, 2000), (2500, 1500)];
    let mut ledger = Ledger::default();
    let mut planes = Vec::new();
    for (core, (infeed_us, reduce_us)) in cores.into_iter().enumerate() {
        let mut plane = Plane::new(1 + core as i64, format!("/device:TPU:{core}"));
        plane.stat("device_type_string", inline_text("TPU v4"));
        plane.stat("peak_teraflops_per_second", Value::F64(275.0));
        // The two cores count from different origins.
        let origin_ns = 2_000_000 + 700_000 * core as i64;
        let steps = plane.line(1, "Steps", origin_ns);
        let modules = plane.line(2, "XLA Modules", origin_ns);
        let ops = plane.line(3, "XLA Ops", origin_ns);
        for step in 0..=N_STEPS {
            let step_us = FIRST_STEP_US + step * STEP_US;
            let mut put = |line, name: &str, at_us: u64, dur_us: u64| {
                let start_ps = (step_us + at_us) * PS_PER_US;
                let stats = [
                    ("group_id", Value::I64(step as i64)),
                    ("device_offset_ps", Value::U64(start_ps - origin_ns as u64 * 1000)),
                    ("device_duration_ps", Value::U64(dur_us * PS_PER_US)),
                ];
                plane.event(line, name, start_ps, dur_us * PS_PER_US, &stats);
            };
            put(steps, &step.to_string(), 0, 9800);
            put(modules, "jit_train_step(3141592653589793238)", 100, 9500);
            for op in tpu_ops(infeed_us, reduce_us) {
                put(ops, op.name, op.at_us, op.dur_us);
                if op.category != "infeed" {
                    ledger.kernel(op.name, op.dur_us);
                }
            }
        }
        planes.push(plane);
    }
    for plane in &mut planes {
        for op in tpu_ops(2000, 2000) {
            let stats = [
                ("hlo_category", inline_text(op.category)),
                ("tf_op", inline_text(op.tf_op)),
                ("flops", Value::U64(op.flops)),
                ("bytes_accessed", Value::U64(op.bytes)),
            ];
            plane.describe_event(op.name, op.display_name, &stats);
        }
    }
    for _ in 0..N_STEPS {
        ledger.step(
            &cores.map(|(infeed, reduce)| tiles(infeed, reduce)).each_ref().map(|it| &it[..]),
        );
    }
    planes.push(task_environment(PROFILE_START_UNIX_NS));
    let space = Space { planes, hostnames: vec!["tpu-vm-0".to_owned()], ..Space::default() };
    let about =
        "two TPU cores: steps from their own line, facts in the metadata, infeed and all-reduce";
    one_host("tpu", about, FoundBy::Markers, (space.encode(Oddities::default()), ledger))
}

fn tpu_ops(infeed_us: u64, reduce_us: u64) -> Vec<TpuOp> {
    let compute_us = 100 + infeed_us;
    let reduce_at_us = compute_us + 5000;
    let conv = |name, display_name, nth: u64| TpuOp {
        name,
        display_name,
        category: "convolution fusion",
        tf_op: "jit(train_step)/jit(main)/conv_general_dilated:",
        at_us: compute_us + 1000 * nth,
        dur_us: 1000,
        flops: 120_000_000_000,
        bytes: 400_000_000,
    };
    vec![
        TpuOp {
            name: "%infeed.1 = ((f32[128,224,224,3]{3,0,2,1}), token[]) infeed(%token.2)",
            display_name: "infeed.1",
            category: "infeed",
            tf_op: "jit(train_step)/jit(main)/infeed:",
            at_us: 100,
            dur_us: infeed_us,
            flops: 0,
            bytes: 77_070_336,
        },
        conv(
            "%fusion.10 = bf16[128,112,112,64]{0,3,2,1} fusion(%copy.1), kind=kOutput",
            "fusion.10",
            0,
        ),
        conv(
            "%fusion.11 = bf16[128,56,56,64]{0,3,2,1} fusion(%fusion.10), kind=kOutput",
            "fusion.11",
            1,
        ),
        conv(
            "%fusion.12 = bf16[128,28,28,128]{0,3,2,1} fusion(%fusion.11), kind=kOutput",
            "fusion.12",
            2,
        ),
        TpuOp {
            name: "%fusion.20 = bf16[128,28,28,128]{0,3,2,1} fusion(%fusion.12), kind=kLoop",
            display_name: "fusion.20",
            category: "loop fusion",
            tf_op: "jit(train_step)/jit(main)/max:",
            at_us: compute_us + 3000,
            dur_us: 2000,
            flops: 12_845_056,
            bytes: 900_000_000,
        },
        TpuOp {
            name: "%all-reduce.5 = f32[25557032]{0} all-reduce(%fusion.20), replica_groups={{0,1}}",
            display_name: "all-reduce.5",
            category: "all-reduce",
            tf_op: "jit(train_step)/jit(main)/psum:",
            at_us: reduce_at_us,
            dur_us: reduce_us,
            flops: 25_557_032,
            bytes: 204_456_256,
        },
        TpuOp {
            name: "%fusion.30 = f32[25557032]{0} fusion(%all-reduce.5), kind=kLoop",
            display_name: "fusion.30",
            category: "loop fusion",
            tf_op: "jit(train_step)/jit(main)/add:",
            at_us: reduce_at_us + reduce_us,
            dur_us: 500,
            flops: 51_114_064,
            bytes: 306_684_384,
        },
    ]
}
