//! What was recorded beside a profile: the run's own clock, lines of Python, the machine.
//!
//! With a profile, rules make findings of it. Where there is none, or none that can be read, this
//! is all that can be said of a run.

use std::collections::BTreeMap;

use analyses::Tables;
use analyses::hardware::Hardware;
use analyses::python_line::PythonLine;
use analyses::run_step::RunStep;
use statistics::{Run, Series, Warmup};
use trace::Dur;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Beside {
    /// `None` where no steps were timed.
    pub steps: Option<RunSteps>,
    /// Where Python was, most often first.
    pub lines: Vec<CodeLine>,
    /// Empty where there is a profile.
    pub machine: Vec<MachineUse>,
}

/// Steps of the whole run, as its processes timed them.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSteps {
    /// What counted as a step.
    pub name: Option<String>,
    /// Of all processes.
    pub count: i64,
    pub processes: usize,
    /// Those that `median` and `p95` are of: no profiler disturbed them, and the warm-up is over.
    pub steady: u64,
    /// As `strobe bench` measures it.
    pub median: Dur,
    pub p95: Dur,
}

/// A line of Python, of those that train or make input.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeLine {
    pub activity: String,
    pub function: String,
    pub file: String,
    pub line: Option<i64>,
    /// The library's function that it was in, where it was in one.
    pub inside: Option<String>,
    pub samples: i64,
    /// Of the samples of its activity.
    pub share: f64,
}

/// What the run took of a host, where that was sampled.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineUse {
    pub host: String,
    /// Cores that its processes kept busy, on average.
    pub cores_used: Option<f64>,
    /// The most that its processes held.
    pub memory_peak_bytes: Option<f64>,
    /// Share of the time each GPU was busy, by its number.
    pub gpus_busy: Vec<(String, f64)>,
}

/// As many as a person reads.
const MOST_LINES: usize = 15;

impl Beside {
    pub fn of(tables: &Tables) -> Beside {
        let is_all = tables.trace().events.is_empty();
        // With a profile the table of the machine is of its steps, and rules speak of it.
        let machine = if is_all { machine(tables) } else { Vec::new() };
        Beside { steps: run_steps(tables), lines: lines(tables), machine }
    }
}

fn run_steps(tables: &Tables) -> Option<RunSteps> {
    let rows = tables.get::<RunStep>();
    // Of processes that train together each has the pace of all.
    let mut spent: BTreeMap<i64, i128> = BTreeMap::new();
    for row in rows.iter() {
        *spent.entry(row.pid).or_default() += i128::from(row.dur_ps) * i128::from(row.steps);
    }
    let (main, _) = spent.into_iter().rev().max_by_key(|it| it.1)?;
    let series = |is_ours: fn(&RunStep) -> bool| {
        let mut series = Series::default();
        for row in rows.iter().filter(|it| it.pid == main && is_ours(it)) {
            series.push(row.dur_ps, u32::try_from(row.steps).unwrap_or(u32::MAX));
        }
        Run::new(&series, Warmup::Auto).steady
    };
    // What profiling does to a step is not the run's own pace.
    let mut steady = series(|it| it.profiled == "no");
    if steady.is_empty() {
        steady = series(|_| true);
    }
    let mut times: Vec<(i64, u32)> =
        steady.ps().iter().copied().zip(steady.steps().iter().copied()).collect();
    times.sort_unstable();
    let all: i128 = times.iter().map(|it| i128::from(it.1)).sum();
    let below = |share: f64| {
        let rank = (share * all as f64).ceil() as i128;
        let mut n = 0;
        let found = times.iter().find(|it| {
            n += i128::from(it.1);
            n >= rank
        });
        found.map(|it| Dur(it.0))
    };
    let processes = tables.trace().processes.iter().filter(|it| it.steps.len() > 1);
    Some(RunSteps {
        name: processes.clone().find_map(|it| it.step_name.clone()),
        count: rows.iter().fold(0, |sum: i64, it| sum.saturating_add(it.steps)),
        processes: processes.count(),
        steady: steady.n_steps(),
        median: below(0.5)?,
        p95: below(0.95)?,
    })
}

fn lines(tables: &Tables) -> Vec<CodeLine> {
    let rows = tables.get::<PythonLine>();
    // Other threads mostly wait; they count where nothing else was seen.
    let has_main = rows.iter().any(|it| it.activity != "other");
    let shown = |it: &&PythonLine| !has_main || it.activity != "other";
    let all = |activity: &str| -> i64 {
        rows.iter().filter(|it| it.activity == activity).map(|it| it.samples).sum()
    };
    // Ranks of one job run the same lines.
    let mut samples = BTreeMap::new();
    for row in rows.iter().filter(shown) {
        let key = (row.activity.as_str(), row.file.as_str(), row.line, row.function.as_str());
        samples.entry(key).or_insert((0_i64, row)).0 += row.samples;
    }
    let mut lines: Vec<(i64, &PythonLine)> = samples.into_values().collect();
    lines.sort_by_key(|it| std::cmp::Reverse(it.0));
    let line = |(samples, it): (i64, &PythonLine)| CodeLine {
        activity: it.activity.clone(),
        function: it.function.clone(),
        file: it.file.clone(),
        line: it.line,
        inside: it.inside.clone(),
        samples,
        share: samples as f64 / all(&it.activity).max(1) as f64,
    };
    lines.into_iter().take(MOST_LINES).map(line).collect()
}

fn machine(tables: &Tables) -> Vec<MachineUse> {
    let rows = tables.get::<Hardware>();
    let mut hosts: Vec<MachineUse> = Vec::new();
    for row in rows.iter().filter(|it| it.step.is_none()) {
        if hosts.last().is_none_or(|it| it.host != *row.host) {
            hosts.push(MachineUse {
                host: row.host.to_string(),
                cores_used: None,
                memory_peak_bytes: None,
                gpus_busy: Vec::new(),
            });
        }
        let Some(host) = hosts.last_mut() else { continue };
        match row.counter.split_once('/') {
            Some(("cpu", "process")) => host.cores_used = Some(row.mean),
            Some(("memory", "process")) => host.memory_peak_bytes = Some(row.max),
            Some((gpu, "busy")) => host.gpus_busy.push((gpu.to_owned(), row.mean)),
            _ => (),
        }
    }
    hosts
}
