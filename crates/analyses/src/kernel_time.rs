//! Adds up the kernels of the GPUs by name, launch shape and op.
//!
//! As the framework's own profiler does, every event with launch details counts, AMD's copies by
//! kernel included. Recorded graphs that ran as a whole have no details: they are kernels without
//! a shape. Ops of a TPU are no kernels; they are in `op_time`.

mod occupancy;

use hashbrown::HashMap;
use trace::dialect;
use trace::{Detail, EventId, FactValue, KernelShape, OpKind, StrId, Trace, TrackId, TrackKind};

use self::occupancy::occupancy;
use crate::stream_sum::{StreamSum, StreamSums};
use crate::{Analysis, Tables};

table! {
    /// The time of each kernel, by how it was launched and for which op, over all GPUs.
    pub struct KernelTime = "kernel_time" {
        /// The kernel.
        name: String,
        /// The framework's op that launched it, or the compiled program's; null if not known.
        op: Option<String>,
        /// Blocks in the grid, as x,y,z.
        grid: Option<String>,
        /// Threads in a block, as x,y,z.
        block: Option<String>,
        /// Registers of a thread.
        registers: Option<i64>,
        /// Shared memory of a block that the kernel fixes.
        static_shared_bytes: Option<i64>,
        /// Shared memory of a block that the launch asks for.
        dynamic_shared_bytes: Option<i64>,
        /// Theoretical occupancy, 0 to 1: the profiler's figure, else computed from the launch and
        /// the device's compute capability; null for AMD.
        occupancy: Option<f64>,
        /// What keeps it below 1: registers, shared memory, block size (warps do not fit evenly)
        /// or blocks (too small ones).
        occupancy_limit: Option<&'static str>,
        /// Whether it computes on matrix units (tensor cores, MFMA), told from its name; null where
        /// the name does not say, as for compiled kernels.
        uses_tensor_cores: Option<bool>,
        /// How often it ran.
        count: i64,
        /// Time from start to end, added over streams and devices.
        total_ps: i64,
        /// The shortest run.
        min_ps: i64,
        /// The longest run.
        max_ps: i64,
        /// The mean run.
        mean_ps: i64,
        /// Its part of all kernels' time, 0 to 1.
        share: f64,
    }
}

impl Analysis for KernelTime {
    fn run(tables: &Tables) -> Vec<KernelTime> {
        let trace = tables.trace();
        let sums = tables.model::<StreamSums>();
        let of_gpus = sums.iter().filter_map(|(stream, sums)| {
            let device = trace.ancestor(stream, TrackKind::Device)?;
            (!trace.track_name(device).contains("TPU")).then_some((device, sums))
        });
        let mut index: HashMap<Key<'_>, usize> = HashMap::new();
        let mut all: Vec<(Key<'_>, Sum)> = Vec::new();
        for (device, sums) in of_gpus {
            let capability = capability(trace, device);
            for sum in sums {
                let detail = &trace.details[sum.detail.row()];
                let is_kernel = matches!(sum.kind, OpKind::Kernel | OpKind::Collective);
                if !is_kernel && detail.kernel.is_none() {
                    continue;
                }
                let key = Key::new(trace, sum.name, detail, capability);
                let at = *index.entry(key).or_insert_with(|| {
                    all.push((key, Sum::NONE));
                    all.len() - 1
                });
                all[at].1.add(sum);
            }
        }
        all.sort_by(|a, b| (b.1.total, &a.0).cmp(&(a.1.total, &b.0)));
        let total = all.iter().fold(0_i64, |sum, it| sum.saturating_add(it.1.total)).max(1) as f64;
        all.iter().map(|(key, sum)| key.row(sum, total)).collect()
    }
}

/// A device's compute capability, if it is one of NVIDIA's.
pub fn capability(trace: &Trace, device: TrackId) -> Option<(i64, i64)> {
    let number = |key: &str| match trace.fact(device, key) {
        Some(FactValue::Int(it)) => Some(*it),
        _ => None,
    };
    match trace.fact(device, "device_vendor") {
        // Before 2021 profilers wrote no vendor, and knew only this one.
        Some(FactValue::Text(it)) if !it.eq_ignore_ascii_case("nvidia") => None,
        _ => Some((number("compute_cap_major")?, number("compute_cap_minor")?)),
    }
}

/// The op that a kernel or copy works for, as this table names it; its own name where none is
/// known.
pub fn op_of(trace: &Trace, event: EventId) -> &str {
    op_in(trace, trace.detail(event)).unwrap_or_else(|| trace.name(event))
}

fn op_in<'a>(trace: &'a Trace, detail: &Detail) -> Option<&'a str> {
    let op = detail.op.map(|it| trace.text(it)).filter(|op| !dialect::any(|it| it.is_no_op(op)));
    // The type after the colon is in `op_time`.
    let op = op.map(|it| match it.split_once(':') {
        // In `aten::mm` that is no type.
        Some((name, op_type)) if !op_type.starts_with(':') => name,
        _ => it,
    });
    op.or_else(|| detail.hlo_op.map(|it| trace.text(it)))
}

#[derive(Debug, Clone, Copy)]
struct Sum {
    count: i64,
    total: i64,
    min: i64,
    max: i64,
}

impl Sum {
    /// The sum of no kernels.
    /// Source: physical, nothing was added yet.
    const NONE: Sum = Sum { count: 0, total: 0, min: i64::MAX, max: 0 };

    fn add(&mut self, other: &StreamSum) {
        self.count += other.count;
        self.total = self.total.saturating_add(other.total_ps);
        self.min = self.min.min(other.min_ps);
        self.max = self.max.max(other.max_ps);
    }
}

/// What makes rows differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key<'a> {
    name: &'a str,
    op: Option<&'a str>,
    shape: Option<KernelShape>,
    capability: Option<(i64, i64)>,
}

impl<'a> Key<'a> {
    fn new(
        trace: &'a Trace,
        name: StrId,
        detail: &'a Detail,
        capability: Option<(i64, i64)>,
    ) -> Key<'a> {
        let op = op_in(trace, detail);
        Key { name: trace.text(name), op, shape: detail.kernel.map(plausible), capability }
    }

    fn row(&self, sum: &Sum, total: f64) -> KernelTime {
        let shape = self.shape.as_ref();
        let said = shape.and_then(|it| it.occupancy_ppm).map(|it| f64::from(it) / 1e6);
        let computed = shape.and_then(|it| occupancy(it, self.capability?));
        let list = |[x, y, z]: [u64; 3]| format!("{x},{y},{z}");
        let number = |of: fn(&KernelShape) -> Option<u64>| {
            shape.and_then(of).and_then(|it| i64::try_from(it).ok())
        };
        KernelTime {
            name: self.name.to_owned(),
            op: self.op.map(str::to_owned),
            grid: shape.map(|it| list(it.grid)),
            block: shape.map(|it| list(it.block)),
            registers: number(|it| it.registers),
            static_shared_bytes: number(|it| it.static_shared_bytes),
            dynamic_shared_bytes: number(|it| it.dynamic_shared_bytes),
            occupancy: said.or(computed.map(|it| it.share)),
            occupancy_limit: computed.and_then(|it| it.limit).filter(|_| said != Some(1.0)),
            uses_tensor_cores: uses_tensor_cores(self.name),
            count: sum.count,
            total_ps: sum.total,
            min_ps: sum.min,
            max_ps: sum.max,
            mean_ps: sum.total / sum.count.max(1),
            share: sum.total as f64 / total,
        }
    }
}

/// No GPU has more registers to a thread.
/// Source: document, AMD's CDNA instruction set: 512 vector registers; NVIDIA's have 255.
const MOST_REGISTERS: u64 = 512;

/// Some profilers for AMD write memory never set in place of registers and shared memory.
fn plausible(shape: KernelShape) -> KernelShape {
    if shape.registers.is_none_or(|it| it <= MOST_REGISTERS) {
        return shape;
    }
    KernelShape { registers: None, static_shared_bytes: None, dynamic_shared_bytes: None, ..shape }
}

/// Whether a kernel of this name computes on matrix units.
///
/// The first list is that of the framework's own profiler; it ends with Ampere.
fn uses_tensor_cores(name: &str) -> Option<bool> {
    const TO_AMPERE: &[&str] = &[
        "16816",
        "c1688",
        "conv1x1",
        "conv2d_c1_k1",
        "dgrad_1x1_stride_2x2",
        "direct_group",
        "first_layer_wgrad_kernel",
        "h1688",
        "h884",
        "hmma",
        "i16832",
        "i8816",
        "s884",
        "s1688",
        "xmma_gemm",
        "xmma_implicit_gemm",
        "xmma_sparse_conv",
        "xmma_sparse_gemm",
        "xmma_warp_specialized_implicit_gemm",
    ];
    // Hopper's and Blackwell's instructions, and the libraries built on them or on matrix units
    // in general. `gmma` is in wgmma, qgmma, igmma; flash attention has no other kind.
    const SINCE: &[&str] = &[
        "gmma",
        "tcgen05",
        "utcmma",
        "nvjet",
        "tensorop",
        "sm90_xmma",
        "sm100_xmma",
        "sm120_xmma",
        "sm90_gemm",
        "sm100_gemm",
        "imma",
        "bmma_",
        "dmma",
        "flash_fwd",
        "flash_bwd",
        "fmha",
    ];
    // AMD: MFMA by name, Composable Kernel's xdlops, assembly implicit GEMMs, and the shape of
    // the instruction in Tensile's names (`_MI16x16x16x1_`).
    const AMD: &[&str] =
        &["mfma", "xdlops", "_xdl_", "igemm_fwd_gtc", "igemm_bwd_gtc", "igemm_wrw_gtc"];
    const TENSILE: &[&str] = &["_MI16x16", "_MI32x32", "_MI4x4"];
    // Generated kernels choose while they are compiled, and do not say; a graph is many kernels.
    const UNTOLD: &[&str] =
        &["triton", "gemm_fusion", "cutlass", "cute", "CudaGraphExec", "cudnn_generated"];

    let has = |list: &[&str]| list.iter().any(|it| name.contains(it));
    let lower = name.to_ascii_lowercase();
    let tensile = name.starts_with("Cijk_") && has(TENSILE);
    if has(TO_AMPERE) || tensile || SINCE.iter().chain(AMD).any(|it| lower.contains(it)) {
        Some(true)
    } else if has(UNTOLD) && !lower.contains("simt") {
        None
    } else {
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::{Detail, Dur, FactValue, KernelShape, Time, TraceBuilder, TrackKind};

    use super::{KernelTime, uses_tensor_cores};
    use crate::Tables;

    const SHAPE: KernelShape = KernelShape {
        grid: [16, 1, 1],
        block: [256, 1, 1],
        registers: Some(64),
        static_shared_bytes: Some(0),
        dynamic_shared_bytes: Some(0),
        occupancy_ppm: None,
    };

    /// Runs the kernels, each for 10 ps, on a device of this vendor and compute capability 7.0.
    fn run(vendor: &str, kernels: &[(&str, Option<&str>, Option<KernelShape>)]) -> Vec<KernelTime> {
        let mut out = TraceBuilder::new();
        let host = out.track(None, TrackKind::Host, "h");
        let gpu = out.track(Some(host), TrackKind::Device, "/device:GPU:0");
        out.fact(gpu, "device_vendor", FactValue::Text(vendor.to_owned()));
        out.fact(gpu, "compute_cap_major", FactValue::Int(7));
        out.fact(gpu, "compute_cap_minor", FactValue::Int(0));
        let stream = out.track(Some(gpu), TrackKind::Stream, "s");
        for (at, (name, op, kernel)) in (0..).zip(kernels) {
            let event = out.event(stream, name, Time(at * 10), Dur(10));
            let op = op.map(|it| out.text(it));
            out.describe(event, Detail { op, kernel: *kernel, ..Detail::default() });
        }
        Tables::new(Arc::new(out.finish())).get::<KernelTime>().to_vec()
    }

    #[test]
    fn shape_and_op_tell_kernels_apart() {
        let wide = KernelShape { grid: [32, 1, 1], ..SHAPE };
        let rows = run(
            "Nvidia",
            &[
                ("gemm", Some("a/MatMul:MatMul"), Some(SHAPE)),
                ("gemm", Some("a/MatMul:MatMul"), Some(SHAPE)),
                ("gemm", Some("b/MatMul:MatMul"), Some(SHAPE)),
                ("gemm", Some("a/MatMul:MatMul"), Some(wide)),
                ("MemcpyH2D", None, None),
            ],
        );
        let found: Vec<(Option<&str>, Option<&str>, i64, i64)> = rows
            .iter()
            .map(|it| (it.op.as_deref(), it.grid.as_deref(), it.count, it.total_ps))
            .collect();
        assert_eq!(
            found,
            [
                (Some("a/MatMul"), Some("16,1,1"), 2, 20),
                (Some("a/MatMul"), Some("32,1,1"), 1, 10),
                (Some("b/MatMul"), Some("16,1,1"), 1, 10),
            ]
        );
        assert_eq!(rows[0].share, 0.5);
    }

    #[test]
    fn occupancy_is_the_profilers_or_computed() {
        let of = |vendor, shape| {
            let row = run(vendor, &[("k", None, Some(shape))]).remove(0);
            (row.occupancy, row.occupancy_limit)
        };
        assert_eq!(of("Nvidia", SHAPE), (Some(0.5), Some("registers")));
        let said = KernelShape { occupancy_ppm: Some(375_000), ..SHAPE };
        assert_eq!(of("Nvidia", said), (Some(0.375), Some("registers")));
        assert_eq!(of("AMD", SHAPE), (None, None));
    }

    #[test]
    fn memory_never_set_is_not_known() {
        let unset = KernelShape { registers: Some(2_191_500_840), ..SHAPE };
        let row = run("AMD", &[("k", None, Some(unset))]).remove(0);
        assert_eq!((row.registers, row.static_shared_bytes), (None, None));
    }

    #[test]
    fn a_graph_without_details_is_a_kernel() {
        let row = run("Nvidia", &[("CudaGraphExec:9", None, None)]).remove(0);
        assert_eq!((row.grid, row.uses_tensor_cores, row.count), (None, None, 1));
    }

    #[test]
    fn names_tell_tensor_cores() {
        let check = |name: &str, uses| assert_eq!(uses_tensor_cores(name), uses, "{name}");
        check("ampere_sgemm_128x64_nn", Some(false));
        check("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn", Some(true));
        check("turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_f2f_exp_medium", Some(true));
        check("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4", Some(true));
        check("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", Some(true));
        check("void cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_32x3_nn_align8", Some(true));
        check("cutlass_80_simt_sgemm_128x64_8x5_nn_align1", Some(false));
        check("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", Some(true));
        check("sm100_fp8_gmma_gemm", Some(true));
        check("gemm_fusion_dot_general_1", None);
        check("triton_gemm_dot.3", None);
        check("void cutlass::Kernel2<Foo>(Foo::Params)", None);
        check("Cijk_Ailk_Bljk_BBS_BH_MT256x128x64_MI16x16x16x1_SN_1LDSB0", Some(true));
        check("Cijk_Ailk_Bljk_SB_MT64x64x8_SE_1LDSB0", Some(false));
        check("void Eigen::internal::EigenMetaKernel<relu>", Some(false));
    }
}
