//! What recording itself adds to a step.

use analyses::Tables;
use analyses::replay::rows_in;
use analyses::run_step::{Overhead, RunStep};
use analyses::step::{HostSteps, Step};
use analyses::step_time::HostTimes;
use trace::{Dur, Note, NoteKind, TrackKind};

use crate::confidence;
use crate::dialect::Edit;
use crate::facts::{Facts, NO_STEPS, counted, facts, recorded_ops};
use crate::{Change, Evidence, Finding, Fix, Rule, Severity, Verdict, WORTH_SAYING};

rule! {
    /// Recording the profile is itself a visible part of the step.
    ///
    /// ## Evidence
    /// Where the steps of the whole run were timed (`strobe run` does): steps with the profiler on
    /// against the steps around them. Else how many events the driving thread recorded in a step,
    /// at about a fifth of a microsecond each, and what the profiler says of itself: events it
    /// dropped, time it spent on its buffers.
    ///
    /// ## Fix
    /// Nothing in the training: without a profiler the step is that much shorter. For truer
    /// figures record less (`host_tracer_level=1`, `python_tracer_level=0`), or fewer steps.
    ///
    /// ## When it is wrong
    /// The cost of an event depends on the machine and on what it carries. Threads that wait for
    /// each other pay it at the same time, and only one of them counts.
    pub struct ProfilerOverhead = "profiler-overhead";
}

/// What a recorded event takes of its thread's CPU time.
/// Source: measured by `bench/costs/run`, profiled and not: a `TraceMe` 0.15 µs, an element of a
/// tf.data stage 0.24 to 0.5 µs, a call of Python 0.2 µs; but each of an eager op's ten events 1 to
/// 1.5 µs.
const EVENT: Dur = Dur(200_000);

impl Rule for ProfilerOverhead {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        let trace = tables.trace();
        let steps = tables.model::<HostSteps>();
        let times = tables.model::<HostTimes>();
        let (mut n_events, mut n_steps, mut own) = (0, 0, 0_i64);
        for host in trace.tracks_of(TrackKind::Host) {
            let Some(driver) = times.of(host).and_then(|it| it.driver) else { continue };
            let steps: Vec<&Step> = steps.counted(trace.track_name(host)).collect();
            let (Some(first), Some(last)) = (steps.first(), steps.last()) else { continue };
            let window = (first.start_ps, last.span().1);
            n_steps += steps.len();
            n_events += rows_in(trace, driver, window).len();
            // The driver's profiler draws its own work on a line of the device.
            let below = trace.all_below(host).iter().copied();
            for track in below.filter(|&it| trace.track_name(it).contains("overhead")) {
                let rows = rows_in(trace, track, window);
                own += rows.map(|it| trace.events.dur[it].0).sum::<i64>();
            }
        }
        let measured = Overhead::of(tables);
        if n_steps == 0 && measured.is_none() {
            return Verdict::unknown("no thread could be identified as the training thread");
        }
        let per_step = n_events / n_steps.max(1);
        let ops = recorded_ops(tables, facts.step);
        let estimated = Dur(per_step as i64 * EVENT.0 + own / n_steps.max(1) as i64) + ops;
        let cost =
            measured.map_or(estimated, |it| Dur((it.on_ps - it.off_ps).clamp(0, facts.step.0)));
        if facts.share_of(cost) < WORTH_SAYING {
            return Verdict::Clear;
        }
        // Training without a profiler has none of it: whatever else is found costs it more.
        let mut finding = Finding::new(
            format!("Recording the profile takes about {}", facts.per_step(cost)),
            Dur(0),
            facts.step,
        )
        .severity(Severity::Low)
        .confidence(if measured.is_some() { confidence::MEASURED } else { confidence::EVEN })
        .evidence(
            Evidence::text(format!(
                "The training thread records {} per step",
                counted(per_step, "event")
            ))
            .rows("step_time", Facts::rows(tables)),
        );
        if let Some(it) = measured {
            let text = format!(
                "The median step takes {} with the profiler on ({} steps) and {} without it, next to the capture ({} steps)",
                Dur(it.on_ps),
                it.n_on,
                Dur(it.off_ps),
                it.n_off,
            );
            let steps = tables.get::<RunStep>();
            let is_on = |it: &usize| steps.get(*it).is_some_and(|it| it.profiled == "yes");
            let rows = (0..steps.len()).filter(is_on).collect();
            finding = finding.evidence(Evidence::text(text).rows("run_step", rows));
        }
        // The profiler's own words: of other notes none is about what it dropped.
        let by_profiler =
            |it: &&Note| matches!(it.kind, NoteKind::ProfilerError | NoteKind::ProfilerWarning);
        let mut said = trace.notes.iter().filter(by_profiler);
        if let Some(note) = said.find(|it| it.first.contains("drop")) {
            finding = finding.evidence(Evidence::text(note.first.clone()));
        }
        finding
            .fix(
                Fix::new(Change::Capture, "Record less, for truer figures")
                    .edit(Edit::ProfileLess)
                    .untold("training without a profiler does not pay this"),
            )
            .found()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use analyses::Tables;
    use trace::testing::draw;
    use trace::{Dur, Process, StepCount, Time, Window};

    use super::ProfilerOverhead;
    use crate::testing::{finding, missing, verdict};
    use crate::{Rule, Severity, Verdict};

    fn steps(n_events: usize) -> String {
        let steps = (0..3).map(|step| {
            let at = step * 1000;
            let ops = (0..n_events).map(|it| format!("EagerExecute {}..{}", at + it, at + it + 1));
            format!("train#{step} {at}..{}, {}", at + 1000, ops.collect::<Vec<_>>().join(", "))
        });
        format!("host/python: {}", steps.collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn hundreds_of_events_a_millisecond_show() {
        let found = finding(&ProfilerOverhead, &steps(499));
        assert_eq!(found.severity, Severity::Low);
        assert_eq!(found.title, "Recording the profile takes about 100 µs per step (10%)");
    }

    #[test]
    fn what_was_measured_is_no_cost_of_the_training() {
        let mut trace = draw(&steps(9));
        let mut process = Process { pid: 7, ..Process::default() };
        let mut at = -20_000_000_000;
        for count in 1..=40 {
            process.steps.push(StepCount { time: Time(at), count, anew: count == 1 });
            at += if count > 20 { 1_000_000_000 } else { 800_000_000 };
        }
        process.windows.push(Window { start: process.steps[20].time, end: None, until: None });
        trace.processes.push(process);
        let found = match ProfilerOverhead.check(&Tables::new(Arc::new(trace))) {
            Verdict::Found(it) => it,
            other => panic!("{other:?}"),
        };
        assert_eq!(found.title, "Recording the profile takes about 200 µs per step (20%)");
        assert_eq!(found.cost, Dur(0));
    }

    #[test]
    fn few_events_are_clear() {
        assert_eq!(verdict(&ProfilerOverhead, &steps(9)), Verdict::Clear);
    }

    #[test]
    fn without_steps_it_cannot_know() {
        assert_eq!(missing(&ProfilerOverhead, "gpu0/s: k 0..1"), "no steps could be identified");
    }
}
