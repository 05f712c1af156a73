//! Matrix products on a device's ordinary units, though it has tensor cores.

use analyses::Tables;
use trace::Dur;

use crate::confidence;
use crate::dialect::Edit;
use crate::facts::{MOST_NAMED, NO_STEPS, facts, percent};
use crate::gpu::{
    NO_KERNELS, Precision, cost_of, faster_kernels, gpu, is_matrix_math, kernels, label, precision,
};
use crate::samples::Samples;
use crate::{Change, Evidence, Finding, Fix, Rule, Severity, Verdict, WORTH_SAYING};

rule! {
    /// Matrix products and convolutions do not run on tensor cores.
    ///
    /// ## Evidence
    /// Kernels of matrix products and convolutions, on a device that has matrix units, whose
    /// names say that they use ordinary ones. Half of their time counts as cost: 16-bit numbers
    /// halve what has to be moved even where the math is free.
    ///
    /// ## Fix
    /// Compute in 16 bits (`mixed_float16`, `mixed_bfloat16`), or allow TF32 on Ampere and later;
    /// make sizes multiples of 8, which NVIDIA's guide asks for.
    ///
    /// ## When it is wrong
    /// Names do not say it for generated kernels; those are left out. Models that need the whole
    /// precision (solvers, some losses) must stay as they are.
    pub struct NoTensorCores = "no-tensor-cores";
}

/// What stays of a matrix kernel's time in 16 bits, at worst: half the bytes, whatever the math.
/// NVIDIA's mixed-precision guide tells of 8 times the math and half the memory traffic.
/// Source: document, NVIDIA's guide to mixed-precision training.
pub const IN_16_BITS: f64 = 0.5;

impl Rule for NoTensorCores {
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
        let idle: Vec<_> = all
            .iter()
            .filter(|it| it.1.uses_tensor_cores == Some(false) && is_matrix_math(&it.1))
            // TF32 is there on tensor cores only, though not every such name is in the list.
            .filter(|it| precision(&it.1.name) != Some(Precision::Tf32))
            .collect();
        let time_ps: i64 = idle.iter().map(|it| it.1.total_ps).sum();
        let held = cost_of(&facts, time_ps, &all);
        let names: Vec<&str> = idle.iter().map(|it| it.1.name.as_str()).collect();
        let faster = faster_kernels(tables, &names, IN_16_BITS);
        let most = Dur((held.0 as f64 * (1.0 - IN_16_BITS)) as i64);
        let cost = faster.map_or(most, |it| it.0.min(most));
        if idle.is_empty() || facts.share_of(cost) < WORTH_SAYING {
            return Verdict::Clear;
        }
        let mut finding = Finding::new(
            format!("Matrix math takes {} and does not use the tensor cores", facts.per_step(held)),
            cost,
            facts.step,
        )
        // Precision is a choice; what it saves is an estimate.
        .confidence(confidence::LIKELY);
        let gain = faster.map(|it| it.1);
        if finding.severity > Severity::Medium {
            finding = finding.severity(Severity::Medium);
        }
        for (row, kernel) in idle.iter().take(MOST_NAMED) {
            let text = format!("{}: {} of the kernels' time", label(kernel), percent(kernel.share));
            finding = finding.evidence(Evidence::text(text).rows("kernel_time", vec![*row]));
        }
        let counted = Samples::of(tables).and_then(|it| it.of_gpus());
        finding = counted.into_iter().fold(finding, Finding::evidence);
        finding = finding.fix(
            Fix::new(Change::HalfPrecision, "Compute in 16 bits")
                .edit(Edit::HalfPrecision)
                .gives(gain),
        );
        let estimate = "it depends on which products then use the tensor cores";
        if gpu.has_tf32() {
            finding = finding.fix(
                Fix::new(Change::HalfPrecision, "Or let fp32 products round to TF32")
                    .edit(Edit::Tf32)
                    .untold(estimate),
            );
        }
        finding
            .fix(
                Fix::new(Change::FillDevice, "Make layer sizes and the batch multiples of 8")
                    .untold(estimate),
            )
            .found()
    }
}

#[cfg(test)]
mod tests {
    use super::NoTensorCores;
    use crate::Verdict;
    use crate::testing::{finding, missing, verdict};

    const FACTS: &str = "
        fact gpu0 compute_cap_major=8
        fact gpu0 compute_cap_minor=0
        host/python: train#1 0..100, train#2 100..200, train#3 200..300";

    #[test]
    fn plain_sgemm_on_ampere_leaves_them_unused() {
        let kernels = "gpu0/s: ampere_sgemm_128x64_nn 0..80, ampere_sgemm_128x64_nn 100..180, \
                       ampere_sgemm_128x64_nn 200..280";
        let found = finding(&NoTensorCores, &format!("{FACTS}\n{kernels}"));
        assert!(found.title.contains("does not use the tensor cores"), "{}", found.title);
        assert_eq!(found.cost.0, 40_000_000, "half of the kernels' time");
    }

    #[test]
    fn tensor_core_kernels_are_clear() {
        let kernels = "gpu0/s: ampere_fp16_s16816gemm_fp16_128x64 0..80, relu 80..90";
        assert_eq!(verdict(&NoTensorCores, &format!("{FACTS}\n{kernels}")), Verdict::Clear);
    }

    #[test]
    fn an_unknown_gpu_cannot_tell() {
        let picture = "
            host/python: train#1 0..100, train#2 100..200, train#3 200..300
            gpu0/s: sgemm 0..80
            ";
        let why = missing(&NoTensorCores, picture);
        assert_eq!(why, "this profile does not say which GPU it is");
    }
}
