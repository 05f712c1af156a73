//! What the rules about accelerators ask first: which device it is, and what its kernels do.

use analyses::Tables;
use analyses::kernel_time::{KernelTime, capability};
use analyses::replay::Replay;
use trace::{Dur, FactValue, OpKind, Trace, TrackId, TrackKind};

use crate::Gain;
use crate::facts::Facts;

/// Why a rule about accelerators cannot look.
pub const NO_DEVICE: &str = "this profile shows no accelerator";
/// Why a rule about kernels cannot look.
pub const NO_KERNELS: &str = "this profile shows no GPU kernels";

/// A GPU that runs kernels; where there are several, the busiest stands for all.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpu {
    /// NVIDIA's compute capability; `None` for other vendors.
    pub capability: Option<(i64, i64)>,
    /// AMD's version of the instruction set, as 9.4 for the MI300.
    pub gfx: Option<(i64, i64)>,
    /// Streaming multiprocessors, or compute units.
    pub processors: Option<u64>,
}

/// `None` where no kernels ran.
pub fn gpu(trace: &Trace) -> Option<Gpu> {
    let kernels = |device: TrackId| -> usize {
        let streams = trace.tracks_below(device, TrackKind::Stream);
        streams.map(|it| trace.tracks[it.row()].events.len()).sum()
    };
    let device = trace
        .tracks_of(TrackKind::Device)
        .filter(|&it| !trace.track_name(it).contains("TPU"))
        .max_by_key(|&it| (kernels(it), std::cmp::Reverse(it)))
        .filter(|&it| kernels(it) > 0)?;
    let number = |key: &str| match trace.fact(device, key) {
        Some(FactValue::Int(it)) => Some(*it),
        _ => None,
    };
    let capability = capability(trace, device);
    let version = number("compute_cap_major").zip(number("compute_cap_minor"));
    Some(Gpu {
        capability,
        gfx: version.filter(|_| capability.is_none()),
        processors: number("core_count").and_then(|it| u64::try_from(it).ok()).filter(|&it| it > 0),
    })
}

/// The first compute capability with tensor cores.
/// Source: document, the CUDA programming guide's table of compute capabilities.
const VOLTA: i64 = 7;
/// The first compute capability with TF32.
/// Source: document, the CUDA programming guide's table of compute capabilities.
const AMPERE: i64 = 8;
/// The first version of AMD's architecture of which all products have matrix units.
/// Source: document, AMD's table of accelerators and their LLVM targets.
const MI300: (i64, i64) = (9, 4);
/// Threads that a multiprocessor of Turing, of small chips since Ampere, and of all others holds.
/// Source: document, the CUDA programming guide's table of compute capabilities.
const THREADS: [u64; 3] = [1024, 1536, 2048];

impl Gpu {
    /// Whether it has matrix units: NVIDIA's since Volta, AMD's since the MI100 (gfx908).
    pub fn has_tensor_cores(&self) -> Option<bool> {
        match (self.capability, self.gfx) {
            (Some((major, _)), _) => Some(major >= VOLTA),
            // gfx90x is 9.0 for the MI25 as for the MI100; from 9.4 on there is no doubt.
            (None, Some(version)) => (version >= MI300).then_some(true),
            (None, None) => None,
        }
    }

    /// Whether fp32 matrix products can run on tensor cores, as TF32: since Ampere.
    pub fn has_tf32(&self) -> bool {
        self.capability.is_some_and(|it| it.0 >= AMPERE)
    }

    /// Threads a multiprocessor holds, by the CUDA guide's table of compute capabilities.
    pub fn threads_per_processor(&self) -> Option<u64> {
        Some(match self.capability? {
            (7, 5) => THREADS[0],
            (8, 6..=9) | (10, 1) | (11 | 12, _) => THREADS[1],
            _ => THREADS[2],
        })
    }
}

/// What kind of number a kernel computes with, told from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precision {
    Single,
    /// Single precision on tensor cores, rounded to 19 bits.
    Tf32,
    /// fp16, bf16 or less.
    Half,
    Double,
}

/// `None` where the name does not say.
pub fn precision(kernel: &str) -> Option<Precision> {
    let name = kernel.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|it| name.contains(it));
    const HALF: &[&str] = &[
        "fp16", "f16", "bf16", "half", "hgemm", "h884", "h1688", "s884", "16816", "hmma", "fp8",
        "e4m3", "e5m2", "_hsh_", "_tst_", "i8816", "i16832", "imma", "_bbs_", "_hhs_",
    ];
    if has(&["tf32", "s1688", "c1688"]) && !has(&["fp16", "f16f16", "bf16"]) {
        Some(Precision::Tf32)
    } else if has(HALF) {
        Some(Precision::Half)
    } else if has(&["dgemm", "double", "f64", "fp64"]) {
        Some(Precision::Double)
    } else if has(&["sgemm", "float", "f32", "fp32", "scudnn", "_sb_", "_sss_"]) {
        Some(Precision::Single)
    } else {
        None
    }
}

/// Whether a kernel multiplies matrices or convolves: what tensor cores are for.
pub fn is_matrix_math(row: &KernelTime) -> bool {
    let name = row.name.to_ascii_lowercase();
    const KERNELS: &[&str] = &[
        "gemm", "scudnn", "hcudnn", "conv", "fprop", "wgrad", "dgrad", "cijk_", "winograd", "dot_",
    ];
    const OPS: &[&str] = &["MatMul", "Conv2D", "Conv3D", "dot_general", "conv_general", "einsum"];
    // Casts and layout changes carry the op's name too; batched vectors have no matrix to tile.
    const NOT: &[&str] =
        &["gemv", "splitkreduce", "convert", "conversion", "cast", "transpose", "tonhwc", "tonchw"];
    if NOT.iter().any(|it| name.contains(it)) {
        return false;
    }
    let op = row.op.as_deref().unwrap_or("");
    KERNELS.iter().any(|it| name.contains(it))
        || (name.contains("eigen") && OPS.iter().any(|it| op.ends_with(it)))
}

/// Kernels that compute, collectives left out, with their rows in `kernel_time`.
pub fn kernels(tables: &Tables) -> Vec<(usize, KernelTime)> {
    let rows = tables.get::<KernelTime>();
    let computes = |it: &KernelTime| OpKind::on_device(&it.name) == OpKind::Kernel;
    rows.iter().cloned().enumerate().filter(|it| computes(&it.1)).collect()
}

/// A mean step's part of compute that some of all kernels hold, from their part of the kernels'
/// time: kernels are added up over the capture, steps are not all of it.
pub fn cost_of(facts: &Facts, time_ps: i64, kernels: &[(usize, KernelTime)]) -> Dur {
    let all: i128 = kernels.iter().map(|it| i128::from(it.1.total_ps)).sum();
    Dur((i128::from(facts.of("compute").0) * i128::from(time_ps) / all.max(1)) as i64)
}

/// A step's time that is saved when kernels of these names take `part` of theirs, and the gain;
/// absent where the steps cannot be replayed. Kernels that nobody waits for save nothing.
pub fn faster_kernels(tables: &Tables, names: &[&str], part: f64) -> Option<(Dur, Gain)> {
    let replay = tables.model::<Replay>();
    let new_ps = replay.with_kernels(tables.trace(), names, part)?;
    let won = Dur((replay.step_ps() - new_ps).max(0));
    Some((won, Gain::of_times(replay.step_ps(), new_ps)))
}

/// Names of kernels are cut to so many characters.
/// Source: choice, most of a line.
pub const LONGEST_NAME: usize = 60;

/// A kernel as a person would name it: its op first, long template names cut.
pub fn label(row: &KernelTime) -> String {
    let short = |text: &str| -> String {
        let text = text.trim_start_matches("void ");
        let end = text.find(['<', '(']).unwrap_or(text.len());
        text[..end].chars().take(LONGEST_NAME).collect()
    };
    match row.op.as_deref().filter(|it| !it.is_empty()) {
        Some(op) => {
            let op = op.trim_start_matches("StatefulPartitionedCall/");
            format!("{op} ({})", short(&row.name))
        }
        None => short(&row.name),
    }
}

#[cfg(test)]
mod tests {
    use super::{Precision, precision};

    #[test]
    fn names_tell_the_precision() {
        for (name, expected) in [
            ("ampere_sgemm_128x64_nn", Some(Precision::Single)),
            ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn", Some(Precision::Half)),
            (
                "sm80_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc",
                Some(Precision::Tf32),
            ),
            ("cutlass_tensorop_s1688tf32gemm_128x128_16x4_nn_align4", Some(Precision::Tf32)),
            ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_nn", Some(Precision::Half)),
            ("turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu", Some(Precision::Half)),
            ("void ApplyAdamKernel<float>(int, float*)", Some(Precision::Single)),
            ("loop_fusion_3", None),
        ] {
            assert_eq!(precision(name), expected, "{name}");
        }
    }
}
