//! A device with tensor cores that computes in 32 bits only.

use analyses::Tables;
use analyses::kernel_time::KernelTime;
use trace::Dur;

use crate::confidence;
use crate::dialect::Edit;
use crate::facts::{MOST_NAMED, NO_STEPS, facts};
use crate::gpu::{
    NO_KERNELS, Precision, cost_of, faster_kernels, gpu, is_matrix_math, kernels, precision,
};
use crate::no_tensor_cores::IN_16_BITS;
use crate::{Change, Evidence, Finding, Fix, Rule, Severity, Verdict, WORTH_SAYING};

rule! {
    /// All math is done in 32 bits, on a device made for 16.
    ///
    /// ## Evidence
    /// Every kernel whose name tells its precision computes in fp32, at best rounded to TF32; none
    /// in 16 bits or less. Half of the matrix math's time counts as cost: TF32 has half the rate
    /// of 16 bits, and twice the bytes.
    ///
    /// ## Fix
    /// `keras.mixed_precision.set_global_policy("mixed_bfloat16")`, or `mixed_float16` with loss
    /// scaling before Ampere; in JAX, keep parameters in fp32 and compute in bfloat16.
    ///
    /// ## When it is wrong
    /// Where the model needs 32 bits. That 16 bits suffice is known of most networks, not of all:
    /// so this is said in a low voice.
    pub struct Fp32Only = "fp32-only";
}

/// Of the matrix kernels' time, this much must tell its precision before the rest is believed.
/// Source: choice, more than half.
const TOLD: f64 = 0.5;

impl Rule for Fp32Only {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(gpu) = gpu(tables.trace()) else {
            return Verdict::unknown(NO_KERNELS);
        };
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        match gpu.has_tensor_cores() {
            Some(true) => (),
            Some(false) => return Verdict::Clear,
            None => return Verdict::unknown("this profile does not say which GPU it is"),
        }
        let all = kernels(tables);
        let matrix: Vec<_> = all.iter().filter(|it| is_matrix_math(&it.1)).collect();
        let sum = |rows: &mut dyn Iterator<Item = &KernelTime>| rows.map(|it| it.total_ps).sum();
        let time_ps: i64 = sum(&mut matrix.iter().map(|it| &it.1));
        let held = cost_of(&facts, time_ps, &all);
        let names: Vec<&str> = matrix.iter().map(|it| it.1.name.as_str()).collect();
        let faster = faster_kernels(tables, &names, IN_16_BITS);
        let most = Dur((held.0 as f64 * (1.0 - IN_16_BITS)) as i64);
        let cost = faster.map_or(most, |it| it.0.min(most));
        if matrix.is_empty() || facts.share_of(cost) < WORTH_SAYING {
            return Verdict::Clear;
        }
        let is = |it: &KernelTime, which: Precision| precision(&it.name) == Some(which);
        if all.iter().any(|it| is(&it.1, Precision::Half)) {
            return Verdict::Clear;
        }
        let told = |it: &&KernelTime| is(it, Precision::Single) || is(it, Precision::Tf32);
        let told_ps: i64 = sum(&mut matrix.iter().map(|it| &it.1).filter(told));
        if (told_ps as f64) < TOLD * time_ps as f64 {
            return Verdict::unknown("the names of the kernels do not show their precision");
        }
        let tf32 = matrix.iter().any(|it| is(&it.1, Precision::Tf32));
        let how = if tf32 { "in TF32 at best" } else { "in fp32" };
        Finding::new(
            format!("All matrix math runs {how} and takes {}", facts.per_step(held)),
            cost,
            facts.step,
        )
        // Precision is the user's choice, and a healthy run may have made it.
        .severity(Severity::Low)
        .confidence(confidence::RATHER)
        .evidence(
            Evidence::text(format!("None of {} kernels computes in 16 bits", all.len()))
                .rows("kernel_time", matrix.iter().take(MOST_NAMED).map(|it| it.0).collect()),
        )
        .fix(
            Fix::new(Change::HalfPrecision, "Compute in 16 bits")
                .edit(Edit::Bfloat16)
                .gives(faster.map(|it| it.1)),
        )
        .symptom_of(&["no-tensor-cores"])
        .found()
    }

    /// Advice for a run with which nothing else is wrong.
    fn is_good_end(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Fp32Only;
    use crate::testing::{finding, missing, verdict};
    use crate::{Severity, Verdict};

    const FACTS: &str = "
        fact gpu0 compute_cap_major=8
        fact gpu0 compute_cap_minor=0
        host/python: train#1 0..100, train#2 100..200, train#3 200..300";

    #[test]
    fn tf32_at_best_is_said_in_a_low_voice() {
        let kernels = "gpu0/s: sm80_xmma_gemm_f32f32_tf32f32_f32_tn 0..80, \
                       sm80_xmma_gemm_f32f32_tf32f32_f32_tn 100..180";
        let found = finding(&Fp32Only, &format!("{FACTS}\n{kernels}"));
        assert_eq!(found.severity, Severity::Low);
        assert!(found.title.contains("in TF32 at best"), "{}", found.title);
    }

    #[test]
    fn one_kernel_in_framework_is_a_choice_made() {
        let kernels = "gpu0/s: ampere_sgemm_64x64 0..50, ampere_fp16_s16816gemm_fp16 50..80";
        assert_eq!(verdict(&Fp32Only, &format!("{FACTS}\n{kernels}")), Verdict::Clear);
    }

    #[test]
    fn names_that_do_not_tell_leave_it_open() {
        let kernels = "gpu0/s: gemm_fusion_dot_1 0..80, gemm_fusion_dot_1 100..180";
        let why = missing(&Fp32Only, &format!("{FACTS}\n{kernels}"));
        assert_eq!(why, "the names of the kernels do not show their precision");
    }
}
