//! Memory grows from step to step.

use analyses::Tables;
use analyses::memory::{Memory, growth};
use analyses::memory_peak::MemoryPeak;
use trace::{Dur, EventId};

use crate::confidence;
use crate::dialect::{Edit, no_memory_events};
use crate::facts::facts;
use crate::memory_pressure::{MEMORY_NOT_TIME, size};
use crate::samples::Samples;
use crate::{Change, Evidence, Finding, Fix, Rule, Severity, Verdict};

rule! {
    /// Memory grows from step to step, until it is full.
    ///
    /// ## Evidence
    /// The lowest level of each step, which is what stays between steps. It grows where the median
    /// slope between all pairs of steps is above zero with its whole range (95 of 100 cases). The
    /// op whose blocks of earlier steps are still held at the peak is named. Where memory was
    /// sampled, also what the processes hold from the end of the capture to the end of the run: the
    /// lowest level of each eighth of that time.
    ///
    /// ## Fix
    /// Keep numbers, not tensors: `losses.append(float(loss))`. Drop what is done with (`del`),
    /// and build no new variables, functions or datasets inside the loop.
    ///
    /// ## When it is wrong
    /// While something fills that has an end: a shuffle buffer, a cache, an optimizer's state in
    /// the first steps. Whether it ends only a longer or a later capture shows. On a CPU,
    /// TensorFlow's allocator reports no block below 256 KiB, so small leaks stay unseen but for
    /// samples. Those during the capture are left out: a profiler's own memory grows.
    pub struct MemoryLeak = "memory-leak";
}

/// Less over the whole capture is a table that grew or a cache that filled, in any program.
/// Source: choice, a guess.
const WORTH_SAYING_BYTES: i64 = 1 << 20;
/// Memory that lasts for less than about an epoch of ImageNet is an error that will be met.
/// Source: physical, 1.28 million images in batches of 128.
const SOON_STEPS: i64 = 10_000;
/// From so many steps on, chance is no explanation.
/// Source: choice, a guess.
const MANY_STEPS: i64 = 10;

impl Rule for MemoryLeak {
    fn check(&self, tables: &Tables) -> Verdict {
        match (of_allocators(tables), of_processes(tables)) {
            (found @ Verdict::Found(_), _) | (_, Some(found @ Verdict::Found(_))) => found,
            (Verdict::Unknown(_), Some(judged @ Verdict::Clear)) => judged,
            (judged, _) => judged,
        }
    }
}

/// In so many parts of the time the lowest level is looked for: as few as tell growth from chance
/// for sure, so that each is long enough to see memory given back.
/// Source: choice, a guess.
const PARTS: usize = 8;
/// Samples in a part, or its lowest level is none.
/// Source: choice, a guess.
const FEWEST_IN_A_PART: usize = 3;
/// Buffers of threads, caches of file systems and libraries loaded late come to less.
/// Source: choice, a guess.
const RESIDENT_BYTES: f64 = 64e6;
/// And what a large process takes and keeps by the way.
/// Source: choice, a guess.
const RESIDENT_SHARE: f64 = 0.05;
/// A buffer that fills has filled by then; what leaks grows as much in the second half.
/// Source: choice, half of the half that steady growth would be.
const STILL_GROWS: f64 = 0.25;
/// A profiler gives its memory back, and a process that ends all of it.
/// Source: choice, a guess.
const SETTLED_PS: i64 = 2_000_000_000_000;
/// Shorter than this, a few slow steps look like growth.
/// Source: choice, a second for each part.
const SHORTEST_PS: i64 = 8_000_000_000_000;

/// What all processes of the run hold, after the capture; `None` where that was not sampled for
/// long enough.
fn of_processes(tables: &Tables) -> Option<Verdict> {
    let samples = Samples::of(tables)?;
    let all = samples.all("memory/process");
    let profiled = analyses::run_info::window(tables.trace()).0;
    let from = all.partition_point(|it| it.time.0 < profiled.saturating_add(SETTLED_PS));
    let last = all.last()?.time.0;
    let to = all.partition_point(|it| it.time.0 < last.saturating_sub(SETTLED_PS));
    let after = all.get(from..to).filter(|it| it.len() >= PARTS * FEWEST_IN_A_PART)?;
    let length = after.last()?.time.0 - after.first()?.time.0;
    if length < SHORTEST_PS {
        return None;
    }
    let floors: Vec<(i64, i64)> = (0..PARTS)
        .map(|part| {
            let part_of = &after[part * after.len() / PARTS..(part + 1) * after.len() / PARTS];
            let floor = part_of.iter().map(|it| it.value).fold(f64::MAX, f64::min);
            (part as i64, floor as i64)
        })
        .collect();
    let (slope, low, _) = growth(&floors)?;
    let [first, middle, end] = [0, PARTS / 2, PARTS - 1].map(|it| floors[it].1 as f64);
    let grown = end - first;
    let is_leak = low > 0
        && grown >= RESIDENT_BYTES.max(RESIDENT_SHARE * first)
        && end - middle >= STILL_GROWS * grown;
    if !is_leak {
        return Some(Verdict::Clear);
    }
    let step = facts(tables)?.step;
    let per_second = slope as f64 * PARTS as f64 / (length as f64 / 1e12);
    let per_step = (per_second * step.0 as f64 / 1e12) as i64;
    let at_end = |counter: &str| samples.all(counter).last().map(|it| it.value);
    let room = match (at_end("memory/limit"), at_end("memory/container")) {
        (Some(limit), Some(used)) => Some(limit - used),
        _ => at_end("memory/available"),
    };
    let left = room.map(|it| (it.max(0.0) / per_second.max(1.0)) as i64);
    let soon = left.is_some_and(|it| it as f64 * 1e12 < (SOON_STEPS * step.0.max(1)) as f64);
    let until =
        left.map(|it| format!("; memory is full in {}", Dur(it.saturating_mul(1_000_000_000_000))));
    let text = format!(
        "Resident memory of the processes rose from {} to {} in {} after the capture{}",
        size(first as i64),
        size(end as i64),
        Dur(length),
        until.unwrap_or_default()
    );
    let finding = Finding::new(
        format!("Memory of the processes grows by {} per step", size(per_step)),
        Dur(0),
        Dur(1),
    )
    .severity(if soon { Severity::High } else { Severity::Medium })
    .confidence(confidence::LIKELY)
    .evidence(samples.evidence(text, &["memory/process", "memory/available"]));
    Some(with_fixes(finding).found())
}

fn of_allocators(tables: &Tables) -> Verdict {
    let rows = tables.get::<Memory>();
    if rows.is_empty() {
        return Verdict::Unknown(no_memory_events(tables));
    }
    if rows.iter().all(|it| it.growth_bytes_per_step.is_none()) {
        return Verdict::unknown(
            "fewer than four complete steps, too few to tell growth from noise",
        );
    }
    let grows =
        |it: &&Memory| it.growth_low_bytes > Some(0) && total_growth(it) >= WORTH_SAYING_BYTES;
    let Some(row) = rows.iter().filter(grows).max_by_key(|it| it.growth_bytes_per_step) else {
        return Verdict::Clear;
    };
    found(tables, row, rows.iter().position(|it| it == row).unwrap_or(0))
}

fn total_growth(row: &Memory) -> i64 {
    row.growth_bytes_per_step.unwrap_or(0).saturating_mul(row.n_steps)
}

fn found(tables: &Tables, row: &Memory, at: usize) -> Verdict {
    let growth = row.growth_bytes_per_step.unwrap_or(0).max(1);
    let left = row.capacity_bytes.map(|it| (it - row.peak_bytes).max(0) / growth);
    let holders = tables.get::<MemoryPeak>();
    let own = || {
        let own = |it: &MemoryPeak| it.host == row.host && it.allocator == row.allocator;
        let rows = holders.iter().enumerate().filter(move |it| own(it.1));
        rows.filter(|(_, it)| it.earlier_bytes > 0 && it.op.is_some())
    };
    // New weights are kept too, but those of one step only.
    let most_steps = own().map(|it| it.1.n_steps).max().unwrap_or(0);
    let keeper =
        own().filter(|it| it.1.n_steps * 2 > most_steps).max_by_key(|it| it.1.earlier_bytes);
    let name = keeper.and_then(|it| it.1.op.clone());
    let title = match &name {
        Some(op) => format!(
            "Memory grows by {} per step ({}): memory allocated by {op} is not released",
            size(growth),
            row.allocator
        ),
        None => format!("Memory grows by {} per step ({})", size(growth), row.allocator),
    };
    // A cache, a shuffle buffer or a prefetch of the input pipeline fills up, and then no more.
    let fills = name.as_deref().is_some_and(|it| it.starts_with("Iterator::"));
    let severity = match left {
        _ if fills => Severity::Low,
        Some(steps) if steps < SOON_STEPS => Severity::High,
        _ => Severity::Medium,
    };
    let range = [row.growth_low_bytes, row.growth_high_bytes].map(|it| size(it.unwrap_or(0)));
    let until = left.map(|it| format!("; memory is full in {it} steps")).unwrap_or_default();
    let text = format!("{} to {} per step, over {} steps{until}", range[0], range[1], row.n_steps);
    let mut finding = Finding::new(title, Dur(0), Dur(1))
        .severity(severity)
        .confidence(if fills {
            confidence::HARDLY
        } else if row.n_steps >= MANY_STEPS {
            confidence::STRONG
        } else {
            confidence::RATHER
        })
        .evidence(Evidence::text(text).rows("memory", vec![at]));
    if let Some((row, it)) = keeper {
        let text = format!(
            "At the peak, {} of {} was in use, allocated in {} different steps",
            size(it.bytes),
            it.op.as_deref().unwrap_or("one op"),
            it.n_steps
        );
        let event = it.event.and_then(|it| u32::try_from(it).ok()).map(EventId);
        finding = finding.evidence(
            Evidence::text(text).rows("memory_peak", vec![row]).events(event.into_iter().collect()),
        );
    }
    with_fixes(finding).found()
}

fn with_fixes(finding: Finding) -> Finding {
    let release = |text: &str| Fix::new(Change::ReleaseMemory, text).untold(MEMORY_NOT_TIME);
    finding
        .fix(release("Keep numbers in lists and logs, not tensors").edit(Edit::KeepNumbers))
        .fix(release("Drop what the next step does not need").edit(Edit::Drop))
        .fix(release("Create variables, functions and datasets before the loop, not inside it"))
        // Every new trace of a function keeps its graph and its constants.
        .symptom_of(&["retracing", "recompilation"])
}

#[cfg(test)]
mod tests {
    use super::MemoryLeak;
    use crate::memory_pressure::tests::moves;
    use crate::testing::{Beside, finding, missing, verdict};
    use crate::{Severity, Verdict};
    use trace::Dur;

    const MB: i64 = 1_000_000;

    /// Steps of 100 µs in which an op takes what it gives back, and another keeps some.
    fn picture(n_steps: i64, kept: i64) -> String {
        let mut steps = Vec::new();
        let (mut level, mut all) = (100 * MB, Vec::new());
        for step in 0..n_steps {
            let at = step * 100;
            steps.push(format!("train#{step} {at}..{}", at + 99));
            level += kept;
            if kept > 0 {
                all.push((at + 10, kept, level, 1000 + step, "metrics/stack"));
            }
            all.push((at + 20, 50 * MB, level + 50 * MB, 1, "conv"));
            all.push((at + 60, -50 * MB, level, 1, ""));
        }
        format!("host/python: {}\n{}", steps.join(", "), moves("GPU_0_bfc", 1000 * MB, &all))
    }

    #[test]
    fn a_floor_that_rises_is_a_leak_of_who_keeps() {
        let found = finding(&MemoryLeak, &picture(12, 2 * MB));
        assert_eq!(
            found.title,
            "Memory grows by 2.0 MB per step (GPU_0_bfc): memory allocated by metrics/stack is not \
             released"
        );
        assert_eq!(found.severity, Severity::High, "full in hundreds of steps");
        assert_eq!(
            found.evidence[0].text,
            "2.0 MB to 2.0 MB per step, over 12 steps; memory is full in 413 steps"
        );
        assert_eq!(
            found.evidence[1].text,
            "At the peak, 24 MB of metrics/stack was in use, allocated in 12 different steps"
        );
    }

    #[test]
    fn what_is_given_back_is_no_leak() {
        assert_eq!(verdict(&MemoryLeak, &picture(12, 0)), Verdict::Clear);
    }

    /// A run of a minute, sampled each second.
    fn resident(bytes: impl Fn(f64) -> f64) -> Beside {
        let values: Vec<f64> = (0..60).map(|it| bytes(f64::from(it))).collect();
        Beside::cpu()
            .every(Dur(1_000_000_000_000))
            .counter("memory/process", &values)
            .counter("memory/available", &[30e9; 60])
    }

    #[test]
    fn processes_that_grow_for_as_long_as_they_run_leak() {
        // Ten megabytes a second, and something that is given back.
        let found = resident(|it| 1e9 + 10e6 * it + 50e6 * (it % 3.0)).finding(&MemoryLeak);
        assert!(found.title.starts_with("Memory of the processes grows by "), "{}", found.title);
        assert_eq!(found.severity, Severity::Medium, "memory lasts for more than 10000 steps");
        assert!(
            found.evidence[0].text.contains("after the capture; memory is full in "),
            "{:?}",
            found.evidence
        );
    }

    #[test]
    fn processes_that_fill_a_buffer_do_not_leak() {
        for bytes in [
            |it: f64| 1e9 + 50e6 * (it % 5.0),
            // Full after half of the run.
            |it: f64| 1e9 + 20e6 * it.min(30.0),
            // Grows by a little.
            |it: f64| 1e9 + 0.5e6 * it,
            // Fills ever more slowly.
            |it: f64| 1e9 + 500e6 * (1.0 - (-it / 8.0).exp()),
        ] {
            assert_eq!(resident(bytes).verdict(&MemoryLeak), Verdict::Clear);
        }
        let short = Beside::cpu().counter("memory/process", &[1e9; 10]);
        assert!(matches!(short.verdict(&MemoryLeak), Verdict::Unknown(_)), "only of the capture");
    }

    #[test]
    fn without_allocators_or_steps_it_cannot_know() {
        let why = missing(&MemoryLeak, "host/python: train#1 0..100, train#2 100..200");
        assert!(why.starts_with("this profile has no memory events"), "{why}");
        let why = missing(&MemoryLeak, &picture(3, 2 * MB));
        assert!(why.starts_with("fewer than four complete steps"), "{why}");
    }
}
