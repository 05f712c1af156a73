//! Kernels that leave most of the device empty.

use analyses::Tables;
use analyses::kernel_time::KernelTime;
use trace::Dur;

use crate::confidence;
use crate::dialect::Edit;
use crate::facts::{MOST_NAMED, NO_STEPS, facts, percent};
use crate::gpu::{Gpu, NO_KERNELS, cost_of, faster_kernels, gpu, is_matrix_math, kernels, label};
use crate::samples::Samples;
use crate::{Change, Evidence, Finding, Fix, Rule, Severity, Verdict, WORTH_SAYING};

rule! {
    /// Kernels leave most of the device empty.
    ///
    /// ## Evidence
    /// Kernels with a grid of fewer blocks than the device has multiprocessors, with a last wave
    /// of blocks that is mostly empty, or of which a multiprocessor can hold only few warps
    /// (registers, shared memory, block size). The cost is half the time that the empty part of the
    /// device could have saved at best.
    ///
    /// ## Fix
    /// More work in each launch: a larger batch, batched or fused ops (`jit_compile=True`); for a
    /// kernel of one's own, smaller blocks, fewer registers (`__launch_bounds__`), less shared
    /// memory.
    ///
    /// ## When it is wrong
    /// Occupancy is not speed: a kernel bound by memory or one that keeps its data in registers,
    /// as matrix products do, is fast with few warps. So only grids count for those. Where two
    /// streams run at once, another kernel may fill what one leaves empty.
    pub struct LowOccupancy = "low-occupancy";
}

/// The CUDA best practices guide: beyond half, more occupancy rarely helps, but low occupancy
/// always interferes with hiding latency. A quarter is low for any device.
/// Source: choice, half of what the guide says.
const LOW: f64 = 0.25;
/// Below this a kernel is too short for its shape to matter: the launch is the cost.
/// Source: document, Holistic Trace Analysis: launching takes 5 to 20 µs.
const SHORT: Dur = Dur(10_000_000);
/// How much of what the empty part could have done at best is counted: what binds the kernel,
/// only counters could tell.
/// Source: choice, a guess.
const LIKELY: f64 = 0.5;
/// Nsight Compute names a tail from a fifth of the kernel's time on.
/// Source: document, Nsight Compute's advice on tail effects.
const TAIL: f64 = 0.2;

impl Rule for LowOccupancy {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(gpu) = gpu(tables.trace()) else {
            return Verdict::unknown(NO_KERNELS);
        };
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        let all = kernels(tables);
        if all.iter().all(|it| it.1.grid.is_none()) {
            return Verdict::unknown("this profile does not show the launch shapes of kernels");
        }
        if gpu.processors.is_none() && all.iter().all(|it| it.1.occupancy.is_none()) {
            return Verdict::unknown(
                "this profile does not say how many multiprocessors the GPU has",
            );
        }
        let mut empty: Vec<(usize, &KernelTime, Empty)> = all
            .iter()
            .filter(|it| it.1.mean_ps >= SHORT.0)
            .filter_map(|(row, it)| Some((*row, it, emptiness(it, &gpu)?)))
            .collect();
        let lost =
            |it: &(usize, &KernelTime, Empty)| (it.1.total_ps as f64 * it.2.part * LIKELY) as i64;
        let lost_ps: i64 = empty.iter().map(lost).sum();
        let held_ps: i64 = empty.iter().map(|it| it.1.total_ps).sum();
        let names: Vec<&str> = empty.iter().map(|it| it.1.name.as_str()).collect();
        let faster = faster_kernels(tables, &names, 1.0 - lost_ps as f64 / held_ps.max(1) as f64);
        let most = cost_of(&facts, lost_ps, &all);
        let cost = faster.map_or(most, |it| it.0.min(most));
        if facts.share_of(cost) < WORTH_SAYING {
            return Verdict::Clear;
        }
        empty.sort_by_key(|it| std::cmp::Reverse(lost(it)));
        let held = cost_of(&facts, held_ps, &all);
        let mut finding = Finding::new(
            format!("Kernels that leave most of the device empty take {}", facts.per_step(held)),
            cost,
            facts.step,
        )
        // Only counters could say whether the empty part would have helped.
        .confidence(confidence::EVEN)
        .symptom_of(&["small-batch", "tiny-ops"]);
        if finding.severity > Severity::Medium {
            finding = finding.severity(Severity::Medium);
        }
        for (row, kernel, empty) in empty.iter().take(MOST_NAMED) {
            let text = format!("{}: {}", label(kernel), empty.why);
            finding = finding.evidence(Evidence::text(text).rows("kernel_time", vec![*row]));
        }
        let counted = Samples::of(tables).and_then(|it| it.of_gpus());
        finding = counted.into_iter().fold(finding, Finding::evidence);
        let counters = "only the device's own counters could tell";
        finding
            .fix(
                Fix::new(
                    Change::FillDevice,
                    "Give each launch more work: a larger batch, or batched ops",
                )
                .untold(counters),
            )
            .fix(
                Fix::new(Change::Fuse, "Fuse small ops into one kernel")
                    .edit(Edit::Fuse)
                    .untold(counters),
            )
            .found()
    }
}

/// The part of a kernel's time that is lost to an empty device, and why it is empty.
struct Empty {
    part: f64,
    why: String,
}

fn emptiness(row: &KernelTime, gpu: &Gpu) -> Option<Empty> {
    let product = |text: &Option<String>| -> Option<u64> {
        let mut sides = text.as_ref()?.split(',').map(|it| it.trim().parse::<u64>().ok());
        sides.try_fold(1_u64, |product, it| Some(product.saturating_mul(it?)))
    };
    let (blocks, threads) = (product(&row.grid)?, product(&row.block)?);
    if let Some(processors) = gpu.processors.filter(|&it| blocks < it) {
        return Some(Empty {
            part: 1.0 - blocks as f64 / processors as f64,
            why: format!("{blocks} blocks for {processors} multiprocessors"),
        });
    }
    let occupancy = row.occupancy?;
    // Matrix kernels of libraries hold their tiles in registers by design.
    if occupancy > 0.0 && occupancy < LOW && !is_matrix_math(row) {
        let limit =
            row.occupancy_limit.map(|it| format!(", limited by its {it}")).unwrap_or_default();
        return Some(Empty {
            part: 1.0 - occupancy / LOW,
            why: format!("occupancy {}{limit}", percent(occupancy)),
        });
    }
    let held = gpu.threads_per_processor()? as f64 * occupancy / threads.max(1) as f64;
    let wave = (held.floor().max(1.0)) * gpu.processors? as f64;
    let waves = blocks as f64 / wave;
    let part = 1.0 - waves / waves.ceil();
    (waves > 1.0 && part >= TAIL).then(|| Empty {
        part,
        why: format!("{waves:.1} waves of blocks: the last is mostly empty"),
    })
}

#[cfg(test)]
mod tests {
    use super::LowOccupancy;
    use crate::Verdict;
    use crate::testing::{finding, missing, verdict};

    const FACTS: &str = "
        fact gpu0 compute_cap_major=8
        fact gpu0 compute_cap_minor=0
        fact gpu0 core_count=108
        host/python: train#1 0..100, train#2 100..200, train#3 200..300";

    #[test]
    fn a_grid_smaller_than_the_device_leaves_it_empty() {
        let kernels = "gpu0/s: softmax{grid=27;block=256;registers=32;shared=0} 0..80, \
                       softmax{grid=27;block=256;registers=32;shared=0} 100..180";
        let found = finding(&LowOccupancy, &format!("{FACTS}\n{kernels}"));
        assert!(found.evidence[0].text.contains("27 blocks for 108 multiprocessors"));
    }

    #[test]
    fn a_last_wave_that_is_mostly_empty_is_a_tail() {
        let kernels = "gpu0/s: norm{grid=900;block=256;registers=32;shared=0} 0..80, \
                       norm{grid=900;block=256;registers=32;shared=0} 100..180";
        let found = finding(&LowOccupancy, &format!("{FACTS}\n{kernels}"));
        assert!(found.evidence[0].text.contains("1.0 waves"), "{:?}", found.evidence);
    }

    #[test]
    fn a_full_device_is_clear() {
        let kernels = "gpu0/s: softmax{grid=8640;block=256;registers=32;shared=0} 0..80";
        assert_eq!(verdict(&LowOccupancy, &format!("{FACTS}\n{kernels}")), Verdict::Clear);
    }

    #[test]
    fn without_launch_shapes_it_cannot_know() {
        let why = missing(&LowOccupancy, &format!("{FACTS}\ngpu0/s: softmax 0..80"));
        assert_eq!(why, "this profile does not show the launch shapes of kernels");
    }
}
