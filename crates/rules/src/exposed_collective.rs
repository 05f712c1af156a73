//! Communication that no compute hides.

use analyses::Tables;
use analyses::kernel_time::KernelTime;
use analyses::op_time::OpTime;
use analyses::what_if::Altered;
use hashbrown::HashSet;
use trace::{EventId, OpKind, Trace, TrackKind};

use crate::facts::{Facts, NO_STEPS, facts};
use crate::gpu::{LONGEST_NAME, NO_DEVICE};
use crate::straggler::late;
use crate::{Change, Evidence, Finding, Fix, Prediction, Rule, Verdict, WORTH_SAYING};

rule! {
    /// Devices wait for communication with each other.
    ///
    /// ## Evidence
    /// The time of a step in which a collective or a copy between devices ran and nothing
    /// computed under it.
    ///
    /// ## Fix
    /// Start reducing while the backward pass still runs (smaller buckets), send less (16-bit
    /// gradients, accumulation over several batches), give each device more to compute between
    /// two reductions.
    ///
    /// ## When it is wrong
    /// A collective that waits for a late device looks the same: then `straggler` is the cause.
    /// With one step in the profile nothing tells a first, slow connection from a usual one.
    pub struct ExposedCollective = "exposed-collective";
}

impl Rule for ExposedCollective {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        let all = &tables.trace().tracks;
        if !facts.on_device && !all.iter().any(|it| it.kinds.contains(OpKind::Collective)) {
            return Verdict::unknown(NO_DEVICE);
        }
        let (cost, share) = (facts.of("collective"), facts.share("collective"));
        if share < WORTH_SAYING {
            return Verdict::Clear;
        }
        let mut finding = Finding::new(
            format!(
                "Communication that is not overlapped with compute takes {}",
                facts.per_step(cost)
            ),
            cost,
            facts.step,
        )
        .evidence(
            Evidence::text(format!(
                "{} communicate without computing for {}",
                if facts.on_device { "Devices" } else { "Processes" },
                facts.per_step(cost)
            ))
            .steps("collective", Facts::rows(tables)),
        );
        let gain = Prediction::of(tables, &Altered::Without("collective"));
        // Waiting for a late device looks like communication.
        let late = late(tables, &facts).ok().flatten();
        if late.is_some_and(|it| it.time.0 * 2 >= cost.0) {
            finding = finding.symptom_of(&["straggler"]);
        }
        let rows = tables.get::<KernelTime>();
        let collective = |it: &KernelTime| OpKind::on_device(&it.name) == OpKind::Collective;
        let ops = tables.get::<OpTime>();
        let by_processes =
            if facts.on_device { HashSet::new() } else { of_threads(tables.trace()) };
        let on_host = |it: &OpTime| it.side == "host" && by_processes.contains(it.name.as_str());
        if let Some((row, longest)) = ops.iter().enumerate().find(|it| on_host(it.1)) {
            let text = format!(
                "{} ran {} times ({} each)",
                longest.name,
                longest.count,
                trace::Dur(longest.mean_ps)
            );
            finding = finding.evidence(Evidence::text(text).rows("op_time", vec![row]));
        }
        if let Some((row, longest)) = rows.iter().enumerate().find(|it| collective(it.1)) {
            let name: String =
                longest.name.chars().take_while(|&it| it != '(').take(LONGEST_NAME).collect();
            let (count, mean) = (longest.count, trace::Dur(longest.mean_ps));
            let text = format!("{name} ran {count} times ({mean} each)");
            finding = finding.evidence(Evidence::text(text).rows("kernel_time", vec![row]));
        }
        finding
            .fix(
                Fix::new(
                    Change::OverlapCommunication,
                    "Reduce gradients in smaller buckets while the backward pass still runs",
                )
                .gives(gain),
            )
            .fix(
                Fix::new(
                    Change::OverlapCommunication,
                    "Send less: 16-bit gradients, or accumulate several batches before reducing",
                )
                .untold("it depends on how much less is sent"),
            )
            .found()
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("is communication that nothing overlaps")
    }
}

/// Names of the communication that threads take part in, where there is no device.
fn of_threads(trace: &Trace) -> HashSet<&str> {
    let threads = trace.tracks_of(TrackKind::Thread);
    let rows = threads.flat_map(|it| trace.rows_of(it, OpKind::Collective).take(MOST_OF_THREAD));
    rows.map(|it| trace.name(EventId(it as u32))).collect()
}

/// As many of a thread's collectives are asked for their names.
/// Source: choice, a bound on the work.
const MOST_OF_THREAD: usize = 1000;

#[cfg(test)]
mod tests {
    use super::ExposedCollective;
    use crate::testing::{finding, missing, verdict};
    use crate::{Severity, Verdict};

    #[test]
    fn communication_after_compute_is_exposed() {
        let found = finding(
            &ExposedCollective,
            "
            host/python: train#1 0..100, train#2 100..200, train#3 200..300
            gpu0/s: k 0..60, ncclAllReduce 60..95, k 100..160, ncclAllReduce 160..195
            ",
        );
        assert_eq!(found.severity, Severity::Medium);
        assert!(found.evidence[1].text.starts_with("ncclAllReduce ran 2 times"));
    }

    #[test]
    fn communication_under_compute_is_clear() {
        let picture = "
            host/python: train#1 0..100, train#2 100..200, train#3 200..300
            gpu0/s1: k 0..90, k 100..190
            gpu0/s2: ncclAllReduce 20..90, ncclAllReduce 120..190
            ";
        assert_eq!(verdict(&ExposedCollective, picture), Verdict::Clear);
    }

    #[test]
    fn processes_that_communicate_are_found_without_a_device() {
        let found = finding(
            &ExposedCollective,
            "
            host/python: train#1 0..100, train#2 100..200, train#3 200..300
            host/tf_Compute: MatMul:MatMul 0..40, sum:CollectiveReduceV2 40..90, \
            MatMul:MatMul 100..140, sum:CollectiveReduceV2 140..190, MatMul:MatMul 200..240, \
            sum:CollectiveReduceV2 240..290
            ",
        );
        assert!(found.evidence[0].text.starts_with("Processes communicate"), "{found:?}");
    }

    #[test]
    fn without_device_it_cannot_know() {
        let picture = "host/python: train#1 0..100, train#2 100..200, train#3 200..300";
        assert_eq!(missing(&ExposedCollective, picture), "this profile shows no accelerator");
    }
}
