//! Threads that wait for a core.

use analyses::Tables;
use trace::Dur;

use crate::confidence;
use crate::dialect::Edit;
use crate::facts::{Facts, NO_STEPS, facts, percent};
use crate::samples::{NO_SAMPLES, Samples};
use crate::{Change, Evidence, Finding, Fix, Rule, Severity, Verdict, WORTH_SAYING};

rule! {
    /// The training waits for cores that others use, or that a quota keeps from it.
    ///
    /// ## Evidence
    /// Samples during the steps: cores that are busy beyond what the process and its children use,
    /// while threads wait (as the kernel counts for each thread of the training; else its CPU
    /// pressure, or more threads ready to run than cores); the
    /// periods in which the container's quota was used up; time that the hypervisor gave to others.
    /// A training that uses all cores by itself is not contention, unless it has twice as many
    /// threads ready to run as there are cores.
    ///
    /// ## Fix
    /// Other jobs elsewhere, more cores for the container; fewer threads (`tf.config.threading`,
    /// `OMP_NUM_THREADS`, `private_threadpool_size`) where they are the training's own.
    ///
    /// ## When it is wrong
    /// Workers of the same training that are no children of the process (a tf.data service, Ray)
    /// count as others. Threads that spin while they wait count as ready to run, and take no core
    /// from others for long. The thread that waited most may be one that nobody waits for, as of
    /// data that is made ahead of time.
    pub struct CpuContention = "cpu-contention";
}

/// Interrupts, the kernel's own threads and a shell take a few hundredths of a machine; what a
/// quarter of it does beside a training is somebody's work.
/// Source: choice, a guess.
const OTHERS_SHARE: f64 = 0.25;
/// And on a small machine some tenths of a core are a browser or an editor.
/// Source: choice, a guess.
const OTHERS_CORES: f64 = 0.5;
/// Where the training's own waiting was not measured: a thread that waits for a core holds the step
/// only while nobody of the same step works or sleeps meanwhile. Half of it can be vouched for.
/// Source: choice, a guess.
const OF_WAITING: f64 = 0.5;
/// Below this share of the time in which a thread waits, waking up is all it is.
/// Source: choice, a guess.
const WAITED: f64 = 0.10;
/// Below this share of the step, what others take is said, not alarmed about.
/// Source: choice, a guess.
const MUCH: f64 = 0.20;
/// A quota that is used up now and then, as while a program starts, holds nothing back.
/// Source: choice, a guess.
const QUOTA_USED_UP: f64 = 0.10;
/// A period without quota left was cut off anywhere between its begin and its end.
/// Source: physical, the mean of all moments of a period.
const OF_A_PERIOD: f64 = 0.5;
/// Each thread beyond twice the cores finds two before it; below that, threads of several pools
/// that take turns are common and harmless.
/// Source: choice, a guess.
const MANY_THREADS: f64 = 2.0;
/// What switching between its own threads costs a program: some hundredths, and more only where
/// they wait for each other.
/// Source: choice, a guess: a switch itself takes 4 µs, by `bench/costs/run`.
const OF_SWITCHING: f64 = 0.10;

impl Rule for CpuContention {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        let Some(seen) = CoreUse::of(tables) else {
            return Verdict::unknown(NO_SAMPLES);
        };
        let on_host = Dur((facts.step.0 - facts.of("compute").0).max(0));
        let host = if facts.on_device { on_host } else { facts.step };
        let Some(cause) = seen.cause() else { return Verdict::Clear };
        let cost = Dur((host.0 as f64 * cause.share) as i64);
        if facts.share_of(cost) < WORTH_SAYING {
            return Verdict::Clear;
        }
        // What other programs take is no fault of the training: what is wrong with its own code
        // comes first, whatever this costs.
        let (in_code, severity) = match cause.is_own {
            true => (cost, Severity::Low),
            false if cause.share < MUCH => (Dur(0), Severity::Low),
            false => (Dur(0), Severity::of(cost, facts.step)),
        };
        let cost = format!("The training may lose up to {} to it", facts.per_step(cost));
        let finding = Finding::new(cause.title, in_code, facts.step)
            .severity(severity)
            .confidence(cause.confidence)
            .evidence(seen.evidence())
            .evidence(Evidence::text(cost).rows("step_time", Facts::rows(tables)));
        match cause.is_own {
            true => finding.fix(
                Fix::new(Change::FewerThreads, "Use as many threads as there are cores")
                    .edit(Edit::FewerThreads.with(seen.cores))
                    .untold("switching between threads costs little by itself"),
            ),
            false => finding.fix(
                Fix::new(Change::Machine, cause.fix).untold("it depends on what the others do"),
            ),
        }
        .found()
    }
}

/// Means over the steps.
struct CoreUse<'t> {
    samples: Samples<'t>,
    cores: f64,
    allowed: f64,
    /// Threads ready to run.
    runnable: f64,
    /// Cores that others use; unknown where the process was not seen.
    others: Option<f64>,
    waited: Option<f64>,
    /// Of the time, by the thread of the training that waited most.
    held_up: Option<f64>,
    own_waited: Option<f64>,
    stolen: f64,
    quota_used_up: f64,
}

struct Cause {
    title: String,
    /// Of the host's part of the step.
    share: f64,
    confidence: f64,
    fix: &'static str,
    is_own: bool,
}

impl<'t> CoreUse<'t> {
    fn of(tables: &'t Tables) -> Option<CoreUse<'t>> {
        let samples = Samples::of(tables)?;
        let cores = samples.fact("cpu_count").filter(|&it| it >= 1.0)?;
        let busy = samples.mean("cpu/all");
        Some(CoreUse {
            cores,
            allowed: samples.fact("cpu_allowed").unwrap_or(cores).min(cores),
            runnable: samples.mean("cpu/runnable")?,
            others: busy
                .zip(samples.mean("cpu/process"))
                .map(|(busy, own)| (busy * cores - own).max(0.0)),
            waited: samples.pressure("cpu"),
            held_up: samples.mean("cpu/waiting"),
            own_waited: samples.mean("pressure/own/cpu"),
            stolen: samples.mean("cpu/stolen").unwrap_or(0.0),
            quota_used_up: samples.mean("cpu/throttled").unwrap_or(0.0),
            samples,
        })
    }

    fn cause(&self) -> Option<Cause> {
        let from_outside = [self.quota(), self.hypervisor(), self.others()].into_iter().flatten();
        let worst = from_outside.max_by(|a, b| a.share.total_cmp(&b.share));
        worst.or_else(|| self.own())
    }

    fn quota(&self) -> Option<Cause> {
        let quota = self.samples.fact("cpu_quota");
        let worth = quota.map(|it| format!(" of {it:.1} cores")).unwrap_or_default();
        (self.quota_used_up >= QUOTA_USED_UP).then(|| Cause {
            title: format!(
                "The container uses up its CPU quota{worth} in {} of the periods",
                percent(self.quota_used_up)
            ),
            share: self.quota_used_up * OF_A_PERIOD,
            confidence: confidence::RATHER,
            fix: "Give the container more CPU (`--cpus`, `resources.limits.cpu`), or use fewer threads",
            is_own: false,
        })
    }

    fn hypervisor(&self) -> Option<Cause> {
        (self.stolen >= WORTH_SAYING).then(|| Cause {
            title: format!(
                "Other virtual machines take {} of the CPU time of this one",
                percent(self.stolen)
            ),
            share: self.stolen,
            confidence: confidence::LIKELY,
            fix: "Use a machine with dedicated cores",
            is_own: false,
        })
    }

    fn others(&self) -> Option<Cause> {
        let others =
            self.others.filter(|&it| it >= (OTHERS_SHARE * self.cores).max(OTHERS_CORES))?;
        // Others' cores are no loss to a process that is kept to its own: only its own waiting is.
        let waited =
            if self.allowed < self.cores { self.own_waited? } else { self.waited.unwrap_or(1.0) };
        // Without others the training has their cores: it cannot win more.
        let most = others / self.cores;
        let (share, sure) = match self.held_up {
            Some(it) => (it.min(most), confidence::MEASURED),
            None => {
                let sure =
                    if self.waited.is_some() { confidence::RATHER } else { confidence::EVEN };
                (self.waiting().min(most) * OF_WAITING, sure)
            }
        };
        if waited < WAITED || share <= 0.0 {
            return None;
        }
        Some(Cause {
            title: format!(
                "Other programs use {others:.1} of {} cores; about {:.0} runnable threads compete for them",
                self.cores, self.runnable
            ),
            share,
            confidence: sure,
            fix: "Find them with `top`, and run them elsewhere or later",
            is_own: false,
        })
    }

    /// Of so many threads that want to run, those beyond the cores wait.
    fn waiting(&self) -> f64 {
        1.0 - self.cores / self.runnable.max(1.0)
    }

    fn own(&self) -> Option<Cause> {
        let waited = self.waited.is_none_or(|it| it >= WAITED);
        (waited && self.runnable >= MANY_THREADS * self.cores + 1.0).then(|| Cause {
            title: format!(
                "About {:.0} runnable threads of the training compete for {} cores",
                self.runnable, self.cores
            ),
            share: self.waiting().min(OF_SWITCHING),
            confidence: confidence::DOUBTFUL,
            fix: "",
            is_own: true,
        })
    }

    fn evidence(&self) -> Evidence {
        let mut text = format!("{:.1} runnable threads on {} cores", self.runnable, self.cores);
        if let Some(others) = self.others {
            text += &format!("; other programs used {others:.1} cores");
        }
        if let Some(held_up) = self.held_up {
            text += &format!(
                "; a thread of the training waited for a core {} of the time",
                percent(held_up)
            );
        } else if let Some(waited) = self.waited {
            text += &format!("; something waited for a core {} of the time", percent(waited));
        }
        let counters = [
            "cpu/runnable",
            "cpu/all",
            "cpu/process",
            "cpu/stolen",
            "cpu/throttled",
            "cpu/waiting",
            "pressure/cpu",
            "pressure/own/cpu",
        ];
        self.samples.evidence(text, &counters)
    }
}

#[cfg(test)]
mod tests {
    use super::CpuContention;
    use crate::testing::{Beside, missing};
    use crate::{Severity, Verdict};

    /// Two cores: those busy, those of the process, threads ready to run, and pressure.
    fn machine(all: f64, own: f64, runnable: f64, pressure: Option<f64>) -> Beside {
        let beside = Beside::cpu()
            .counter("cpu/all", &[all; 8])
            .counter("cpu/process", &[own; 8])
            .counter("cpu/runnable", &[runnable; 8]);
        match pressure {
            Some(it) => beside.counter("pressure/cpu", &[it; 8]),
            None => beside,
        }
    }

    #[test]
    fn others_that_take_cores_are_found() {
        let found = machine(1.0, 1.0, 6.0, Some(0.9)).finding(&CpuContention);
        assert_eq!(
            found.title,
            "Other programs use 1.0 of 2 cores; about 6 runnable threads compete for them"
        );
        assert_eq!(found.severity, Severity::High, "half of the step");
        assert_eq!(
            found.evidence[0].text,
            "6.0 runnable threads on 2 cores; other programs used 1.0 cores; something waited for a \
             core 90% of the time"
        );
        assert_eq!(found.evidence[0].rows.len(), 4);
        // What the training's own threads waited says how much of it holds the step.
        let measured = machine(1.0, 1.0, 6.0, Some(0.9)).counter("cpu/waiting", &[0.3; 8]);
        let measured = measured.finding(&CpuContention);
        assert_eq!((found.cost.0, measured.cost.0), (0, 0), "no edit of the program saves it");
        assert!(
            measured.evidence[1].text.ends_with("300 µs per step (30%) to it"),
            "{:?}",
            measured.evidence
        );
        assert!(
            measured.evidence[0]
                .text
                .ends_with("of the training waited for a core 30% of the time")
        );
        let unhurt = machine(1.0, 1.0, 6.0, Some(0.9)).counter("cpu/waiting", &[0.01; 8]);
        assert_eq!(unhurt.verdict(&CpuContention), Verdict::Clear);
        // A kernel without pressure tells by the threads alone.
        machine(1.0, 1.0, 6.0, None).finding(&CpuContention);
    }

    #[test]
    fn a_quota_and_a_hypervisor_are_named() {
        let found = machine(0.5, 1.0, 1.0, Some(0.5))
            .fact("cpu_quota", 1.5)
            .counter("cpu/throttled", &[0.6; 8])
            .finding(&CpuContention);
        assert_eq!(
            found.title,
            "The container uses up its CPU quota of 1.5 cores in 60% of the periods"
        );
        let found = machine(0.8, 1.5, 2.0, Some(0.5)).counter("cpu/stolen", &[0.2; 8]);
        let found = found.finding(&CpuContention);
        assert_eq!(found.title, "Other virtual machines take 20% of the CPU time of this one");
        // Of several causes the worst is named.
        let found = machine(1.0, 1.0, 6.0, Some(0.9)).counter("cpu/stolen", &[0.06; 8]);
        let found = found.finding(&CpuContention);
        assert!(found.title.starts_with("Other programs use 1.0 of 2 cores"), "{}", found.title);
    }

    #[test]
    fn too_many_threads_of_its_own_are_worth_a_word() {
        let found = machine(1.0, 2.0, 12.0, Some(1.0)).finding(&CpuContention);
        assert_eq!(found.title, "About 12 runnable threads of the training compete for 2 cores");
        assert_eq!(found.severity, Severity::Low);
    }

    #[test]
    fn a_training_that_uses_all_cores_is_clear() {
        for beside in [
            machine(1.0, 1.97, 4.0, Some(0.8)),
            machine(0.97, 1.9, 3.0, None),
            // Others work, and cores are left.
            machine(0.6, 0.5, 1.5, Some(0.02)),
            // Others work, and nobody waits.
            machine(1.0, 1.4, 2.5, Some(0.04)),
            // The process has cores of its own, and does not wait for them.
            machine(1.0, 1.0, 6.0, Some(0.9))
                .fact("cpu_allowed", 1.0)
                .counter("pressure/own/cpu", &[0.01; 8]),
        ] {
            assert_eq!(beside.verdict(&CpuContention), Verdict::Clear);
        }
    }

    #[test]
    fn without_samples_it_says_how_to_get_them() {
        let why = missing(
            &CpuContention,
            "host/python: train#1 0..100, train#2 100..200, train#3 200..300",
        );
        assert!(why.contains("`strobe run` takes them"), "{why}");
    }
}
