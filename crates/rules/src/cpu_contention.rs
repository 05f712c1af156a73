//! Threads that wait for a core.

use analyses::Tables;
use trace::{Dur, FactValue, TrackId};

use crate::facts::{NO_STEPS, facts};
use crate::{Evidence, Finding, Rule, Verdict, WORTH_SAYING};

rule! {
    /// More threads want to run than there are cores.
    ///
    /// ## Evidence
    /// Samples of how many threads are ready to run, against the number of cores. An event that
    /// takes long may have worked or waited for a core: without samples nothing tells.
    ///
    /// ## Fix
    /// Fewer threads (`tf.config.threading`, `OMP_NUM_THREADS`, `private_threadpool_size`), other
    /// jobs elsewhere, more cores for the container.
    ///
    /// ## When it is wrong
    /// Threads that spin while they wait count as ready to run, and take no core from others for
    /// long.
    pub struct CpuContention = "cpu-contention";
}

impl Rule for CpuContention {
    fn check(&self, tables: &Tables) -> Verdict {
        let trace = tables.trace();
        let counts_ready = |track: TrackId| {
            let name = trace.track_name(track).to_ascii_lowercase();
            ["runnable", "run queue", "procs_running"].iter().any(|it| name.contains(it))
        };
        let ready: Vec<f64> =
            trace.counters.iter().filter(|it| counts_ready(it.track)).map(|it| it.value).collect();
        let cores = trace.facts.iter().find_map(|it| match (&*it.key, &it.value) {
            ("cpu_count" | "cpu_cores", FactValue::Int(n)) if *n > 0 => Some(*n),
            _ => None,
        });
        let (false, Some(cores)) = (ready.is_empty(), cores) else {
            return Verdict::unknown(
                "no samples of the run queue; `vmstat 1` beside the run shows it in column r",
            );
        };
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        let mean = ready.iter().sum::<f64>() / ready.len() as f64;
        // Of so many threads that want to run, those beyond the cores wait.
        let waiting = 1.0 - cores as f64 / mean.max(1.0);
        let on_host = Dur((facts.step.0 - facts.of("compute").0).max(0));
        let host = if facts.on_device { on_host } else { facts.step };
        let cost = Dur((host.0 as f64 * waiting.max(0.0)) as i64);
        if facts.share_of(cost) < WORTH_SAYING {
            return Verdict::Clear;
        }
        Finding::new(
            format!("{mean:.1} threads want to run on {cores} cores"),
            cost,
            facts.step,
        )
        .confidence(0.5)
        .evidence(Evidence::text(format!("{} samples of the run queue", ready.len())))
        .edit("use as many threads as cores", format!("tf.config.threading.set_intra_op_parallelism_threads({cores})"))
        .found()
    }
}

#[cfg(test)]
mod tests {
    use super::CpuContention;
    use crate::Verdict;
    use crate::testing::{missing, sampled};

    #[test]
    fn more_ready_threads_than_cores_wait() {
        let Verdict::Found(found) = sampled(&CpuContention, "procs_running", &[8.0, 8.0]) else {
            unreachable!("two cores, eight threads")
        };
        assert_eq!(found.title, "8.0 threads want to run on 2 cores");
    }

    #[test]
    fn fewer_are_clear() {
        assert_eq!(sampled(&CpuContention, "procs_running", &[1.0, 2.0]), Verdict::Clear);
    }

    #[test]
    fn without_samples_it_says_how_to_get_them() {
        let why = missing(&CpuContention, "host/python: train#1 0..100, train#2 100..200");
        assert!(why.starts_with("no samples of the run queue"), "{why}");
    }
}
