//! The steps of the whole run, not only of the captured window.

use trace::{Process, Time};

use crate::{Analysis, Tables};

table! {
    /// When each step of the whole run began and how long it took, by the process's own clock.
    /// Only runs started by `strobe run` have it.
    pub struct RunStep = "run_step" {
        /// The process.
        pid: i64,
        /// Counted from 1, as they began.
        step: i64,
        /// When it began, from the start of the profile: steps before it are negative.
        start_ps: i64,
        /// To the beginning of the next; a mean where one row stands for several steps.
        dur_ps: i64,
        /// How many steps this row stands for: long runs are thinned.
        steps: i64,
        /// `no`: the profiler was off; `yes`: it was on; `edge`: it was started or stopped.
        profiled: String,
    }
}

impl Analysis for RunStep {
    fn run(tables: &Tables) -> Vec<RunStep> {
        tables.trace().processes.iter().flat_map(steps_of).collect()
    }
}

fn steps_of(process: &Process) -> Vec<RunStep> {
    let pairs = process.steps.iter().zip(process.steps.iter().skip(1));
    pairs
        .filter(|(_, next)| !next.anew)
        .filter_map(|(step, next)| {
            let (steps, dur) =
                (next.count.checked_sub(step.count)?, next.time.0.checked_sub(step.time.0)?);
            (steps > 0 && dur >= 0).then(|| RunStep {
                pid: process.pid,
                step: step.count,
                start_ps: step.time.0,
                dur_ps: dur / steps,
                steps,
                profiled: profiled(process, step.time, next.time).to_owned(),
            })
        })
        .collect()
}

fn profiled(process: &Process, start: Time, end: Time) -> &'static str {
    for window in &process.windows {
        let until = window.until.or(window.end).unwrap_or(Time(i64::MAX));
        if start >= until || end <= window.start {
            continue;
        }
        let inside = start >= window.start && window.end.is_none_or(|it| end <= it);
        return if inside { "yes" } else { "edge" };
    }
    "no"
}

/// What profiling did to a step: medians of steps with the profiler off and on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overhead {
    pub off_ps: i64,
    pub on_ps: i64,
    pub n_off: usize,
    pub n_on: usize,
}

/// Fewer steps say nothing.
/// Source: choice, a guess.
const FEWEST: usize = 5;
/// Medians further apart than this are of different work; profiling a step seldom adds as much.
/// Source: choice, just above the 9 to 23% that a window adds by `bench/capture/overhead`.
const SAME_PACE: (i64, i64) = (5, 4);
/// A step so many times as long, or as short, as the profiled ones is other work.
/// Source: choice, a guess.
const PAUSE: i64 = 5;

impl Overhead {
    /// Of the first process that was profiled. Only the steps next to the window count, as many
    /// as it holds on both sides: a run may change its pace over hours.
    pub fn of(tables: &Tables) -> Option<Overhead> {
        let rows = tables.get::<RunStep>();
        let pid = rows.iter().find(|it| it.profiled == "yes")?.pid;
        let rows: Vec<&RunStep> = rows.iter().filter(|it| it.pid == pid).collect();
        // The last window is the one that was kept.
        let last = rows.iter().rposition(|it| it.profiled == "yes")?;
        let first = rows[..last].iter().rposition(|it| it.profiled != "yes").map_or(0, |it| it + 1);
        let mut on: Vec<i64> = rows[first..=last].iter().map(|it| it.dur_ps).collect();
        let off = |it: &&&RunStep| it.profiled == "no";
        // The first steps compile.
        let before = rows[..first].iter().rev().filter(off).filter(|it| it.step > 2);
        let mut before: Vec<i64> = before.take(on.len()).map(|it| it.dur_ps).collect();
        let n_on = on.len();
        let on_ps = crate::step::median(&mut on)?;
        // A long pause ends a phase, and steps of a fifth are of another: that is other work.
        let after = rows[last..].iter().filter(off).take(n_on);
        let after =
            after.map(|it| it.dur_ps).take_while(|&it| it / PAUSE <= on_ps && on_ps / PAUSE <= it);
        let mut after: Vec<i64> = after.collect();
        if [&on, &before, &after].into_iter().any(|it| hands_over(it)) {
            return None;
        }
        let (n_off, off_ps) = match (before.len() >= FEWEST, after.len() >= FEWEST) {
            (true, true) => {
                let a = crate::step::median(&mut before)?;
                let b = crate::step::median(&mut after)?;
                // A run that changed its pace beside the window tells nothing.
                if a.max(b) > a.min(b).saturating_mul(SAME_PACE.0) / SAME_PACE.1 {
                    return None;
                }
                before.append(&mut after);
                (before.len(), crate::step::median(&mut before)?)
            }
            (true, false) => (before.len(), crate::step::median(&mut before)?),
            (false, true) => (after.len(), crate::step::median(&mut after)?),
            (false, false) => return None,
        };
        if n_on < FEWEST {
            return None;
        }
        Some(Overhead { off_ps, on_ps, n_off, n_on })
    }
}

/// A call returns at once that takes less than one part in so many of the mean.
/// Source: choice, a guess: a tenth.
const AT_ONCE: i64 = 10;
/// One call in so many that returns at once is enough.
/// Source: choice, a guess.
const NOW_AND_THEN: usize = 20;

/// Whether calls return at once and now and then wait for what was handed over: then single ones
/// say nothing of what a step takes.
fn hands_over(durs: &[i64]) -> bool {
    let total: i64 = durs.iter().fold(0, |sum, &it| sum.saturating_add(it));
    let Some(mean) = total.checked_div(durs.len() as i64) else { return false };
    durs.iter().filter(|&&it| it < mean / AT_ONCE).count() * NOW_AND_THEN >= durs.len()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::{Process, StepCount, Time, Trace, Window};

    use super::{Overhead, RunStep};
    use crate::Tables;

    /// Steps of 10 µs; the profiler is on from the tenth to the twentieth, which take 12.
    fn run() -> Tables {
        let mut process = Process { pid: 7, ..Process::default() };
        let mut at = 0;
        for count in 1..=31 {
            process.steps.push(StepCount { time: Time(at), count, anew: count == 1 });
            at += if (10..20).contains(&count) { 12_000_000 } else { 10_000_000 };
        }
        let time = |step: usize| process.steps[step - 1].time;
        let window =
            Window { start: time(10), end: Some(time(20)), until: Some(Time(time(20).0 + 1)) };
        process.windows.push(window);
        Tables::new(Arc::new(Trace { processes: vec![process], ..Trace::default() }))
    }

    #[test]
    fn steps_know_whether_they_were_profiled() {
        let tables = run();
        let rows = tables.get::<RunStep>();
        let count = |it: &str| rows.iter().filter(|row| row.profiled == it).count();
        assert_eq!((count("no"), count("yes"), count("edge")), (19, 10, 1));
        assert_eq!((rows[0].step, rows[0].dur_ps), (1, 10_000_000));
    }

    #[test]
    fn profiling_is_measured_against_the_steps_around_it() {
        let overhead = Overhead::of(&run()).unwrap();
        assert_eq!((overhead.off_ps, overhead.on_ps), (10_000_000, 12_000_000));
        assert_eq!((overhead.n_off, overhead.n_on), (17, 10));
    }

    #[test]
    fn calls_that_hand_their_work_over_do_not_tell_what_profiling_costs() {
        let mut process = Process { pid: 7, ..Process::default() };
        let mut at = 0;
        for count in 1..=61 {
            process.steps.push(StepCount { time: Time(at), count, anew: count == 1 });
            // Nine at once, then a wait for all ten.
            at += if count % 10 == 0 { 99_100_000 } else { 100_000 };
        }
        let time = |step: usize| process.steps[step - 1].time;
        let window = Window { start: time(20), end: Some(time(40)), until: Some(time(40)) };
        process.windows.push(window);
        let trace = Trace { processes: vec![process], ..Trace::default() };
        assert_eq!(Overhead::of(&Tables::new(Arc::new(trace))), None);
    }

    #[test]
    fn thinned_steps_are_means_and_a_new_loop_begins_anew() {
        let step = |at: i64, count: i64, anew: bool| StepCount { time: Time(at), count, anew };
        let steps =
            vec![step(0, 1, true), step(100, 11, false), step(500, 12, true), step(520, 13, false)];
        let process = Process { pid: 7, steps, ..Process::default() };
        let tables = Tables::new(Arc::new(Trace { processes: vec![process], ..Trace::default() }));
        let rows = tables.get::<RunStep>();
        let rows: Vec<_> = rows.iter().map(|it| (it.step, it.dur_ps, it.steps)).collect();
        assert_eq!(rows, [(1, 10, 10), (12, 20, 1)]);
    }
}
