//! What runs took: the steps of run folders, summarised and compared.

use std::path::{Path, PathBuf};

use statistics::{
    Comparison, Doubt, FEWEST_STEPS, Question, Run, Summary, Warmup, compare as compare_runs,
    summary,
};
use trace::Note;

use crate::step_times::{
    ProcessSteps, StepKey, StepTimesError, TimeSeries, run_folders, step_times,
};

/// One run folder, measured.
#[derive(Debug, Clone)]
pub struct MeasuredRun {
    pub folder: PathBuf,
    pub pid: Option<u64>,
    pub key: Option<StepKey>,
    pub run: Run,
    /// `None`: no steady steps.
    pub summary: Option<Summary>,
    /// Steps left out because a profiler disturbed them.
    pub profiled: u64,
    pub examples: Option<u64>,
    /// Other processes with steps, and other things that counted as steps in this one.
    pub others: usize,
    pub notes: Vec<Note>,
    began_ns: Option<i64>,
    ended_ns: Option<i64>,
}

/// Several runs of the same thing.
#[derive(Debug, Clone)]
pub struct Measured {
    pub runs: Vec<MeasuredRun>,
    /// Of all runs together.
    pub summary: Option<Summary>,
}

/// Which steps to measure.
#[derive(Debug, Clone, Copy, Default)]
pub struct Which {
    pub warmup: Warmup,
    /// At most so many steady steps of each run.
    pub steps: Option<u64>,
}

impl Measured {
    /// Measures run folders, or folders that hold some.
    pub fn open(paths: &[PathBuf], which: Which) -> Result<Measured, StepTimesError> {
        let mut runs = Vec::new();
        for path in paths {
            for folder in run_folders(path)? {
                runs.push(measure(&folder, which)?);
            }
        }
        Ok(Measured::of(runs))
    }

    fn of(runs: Vec<MeasuredRun>) -> Measured {
        let summary = match runs.as_slice() {
            [one] => one.summary.clone(),
            several => summary(&several.iter().map(|it| it.run.clone()).collect::<Vec<_>>()),
        };
        Measured { runs, summary }
    }

    pub fn n_steps(&self) -> u64 {
        self.summary.as_ref().map_or(0, |it| it.n_steps)
    }

    /// Steady steps, and means over several of them, each counted as one.
    pub fn n_values(&self) -> u64 {
        self.runs.iter().map(|it| it.run.steady.len() as u64).sum()
    }

    /// Whether there are enough steady steps to judge.
    pub fn is_enough(&self) -> bool {
        self.n_values() >= FEWEST_STEPS
    }

    /// Examples in a step, where all runs agree.
    pub fn examples(&self) -> Option<u64> {
        let first = self.runs.first()?.examples?;
        self.runs.iter().all(|it| it.examples == Some(first)).then_some(first)
    }

    /// Whether the steps answer requests: then their times are latencies.
    pub fn is_inference(&self) -> bool {
        let says = |it: &MeasuredRun| {
            it.key.as_ref().is_some_and(|key| {
                let name = format!("{} {}", key.kind, key.name).to_lowercase();
                ["predict", "infer", "serve", "generate"].iter().any(|it| name.contains(it))
            })
        };
        !self.runs.is_empty() && self.runs.iter().all(says)
    }
}

/// Steps a second, of a mean step.
pub fn per_second(summary: &Summary) -> Option<f64> {
    (summary.mean_ps > 0).then(|| 1e12 / summary.mean_ps as f64)
}

fn measure(folder: &Path, which: Which) -> Result<MeasuredRun, StepTimesError> {
    let processes = step_times(folder)?;
    let others = processes.iter().map(|it| it.series.len()).sum::<usize>().saturating_sub(1);
    // Where several processes have steps, as workers that train together, or where what counts
    // as a step changed: what most of the time went to.
    let all = || processes.iter().flat_map(|it| it.series.iter().map(move |series| (it, series)));
    let lasted =
        |it: &TimeSeries| it.ended_ns.unwrap_or(0).saturating_sub(it.began_ns.unwrap_or(0));
    // Of equals the first, which `max_by_key` would not give.
    let main = all().rev().max_by_key(|it| lasted(it.1));
    let notes = notes(&processes);
    let (process, series) = match main {
        Some((process, series)) => (Some(process), series.clone()),
        None => (None, TimeSeries::default()),
    };
    let run = Run::new(&series.times, which.warmup);
    let run = match which.steps {
        Some(n) => run.first_steps(n),
        None => run,
    };
    Ok(MeasuredRun {
        folder: folder.to_owned(),
        pid: process.and_then(|it| it.pid),
        key: series.key,
        summary: summary(std::slice::from_ref(&run)),
        run,
        profiled: series.profiled,
        examples: series.examples,
        others,
        notes,
        began_ns: series.began_ns,
        ended_ns: series.ended_ns,
    })
}

fn notes(processes: &[ProcessSteps]) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    for note in processes.iter().flat_map(|it| &it.notes) {
        match notes.iter_mut().find(|it| it.kind == note.kind) {
            Some(known) => known.count += note.count,
            None => notes.push(note.clone()),
        }
    }
    notes
}

/// Two sets of runs, compared.
#[derive(Debug, Clone)]
pub struct Compared {
    pub comparison: Comparison,
    /// All runs of one side came before those of the other: what changed on the machine meanwhile
    /// looks like a change of the program.
    pub one_after_the_other: bool,
}

/// Whether B is slower than A by so large a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    Pass,
    Fail,
    CannotTell,
}

impl Compared {
    /// Fails where B is slower for sure and by so much as far as can be seen; cannot tell where
    /// it might be no slower at all as well as slower by so much.
    pub fn gate(&self, share: f64) -> Gate {
        let it = &self.comparison;
        let limit = share * it.a_median.value_ps as f64;
        let is_slower = it.shift.low_ps > 0;
        match () {
            () if it.doubts.contains(&Doubt::FewSteps) => Gate::CannotTell,
            () if is_slower && it.shift.value_ps as f64 >= limit => Gate::Fail,
            () if !is_slower && it.shift.high_ps as f64 >= limit => Gate::CannotTell,
            () => Gate::Pass,
        }
    }
}

/// B against A. `None`: a side has no steps.
pub fn compare(a: &Measured, b: &Measured, margin: f64) -> Option<Compared> {
    let order = order(a, b);
    let runs = |it: &Measured, order: &[usize]| -> Vec<Run> {
        order.iter().map(|at| it.runs[*at].run.clone()).collect()
    };
    let (a_order, b_order) = (by_time(a), by_time(b));
    let question = Question { margin, in_pairs: order == Order::Alternating };
    let comparison = compare_runs(&runs(a, &a_order), &runs(b, &b_order), question)?;
    Some(Compared { comparison, one_after_the_other: order == Order::OneAfterTheOther })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Each pair of an A and a B ran before the next.
    Alternating,
    OneAfterTheOther,
    Other,
}

fn by_time(measured: &Measured) -> Vec<usize> {
    let mut order: Vec<usize> = (0..measured.runs.len()).collect();
    order.sort_by_key(|at| measured.runs[*at].began_ns);
    order
}

fn order(a: &Measured, b: &Measured) -> Order {
    let spans = |side: u8, it: &Measured| -> Option<Vec<(i64, i64, u8)>> {
        it.runs.iter().map(|run| Some((run.began_ns?, run.ended_ns?, side))).collect()
    };
    let (Some(a_spans), Some(b_spans)) = (spans(0, a), spans(1, b)) else { return Order::Other };
    let mut all = [a_spans, b_spans].concat();
    all.sort_unstable();
    // Runs beside each other share the machine: neither before nor behind.
    if all.len() < 2 || all.windows(2).any(|it| it[1].0 < it[0].1) {
        return Order::Other;
    }
    let sides: Vec<u8> = all.iter().map(|it| it.2).collect();
    let is_pair = |it: &[u8]| it.len() == 2 && it[0] != it[1];
    match () {
        () if sides.len() > 2 && sides.chunks(2).all(is_pair) => Order::Alternating,
        () if sides.is_sorted() || sides.is_sorted_by(|a, b| a >= b) => Order::OneAfterTheOther,
        () => Order::Other,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::{Path, PathBuf};

    use statistics::Random;

    use super::{Gate, Measured, Which, compare};

    const MS: i64 = 1_000_000;

    /// A run folder whose steps take about so many milliseconds, from that second on.
    fn write_run(folder: &Path, name: &str, at_s: i64, ms: f64, seed: u64) -> PathBuf {
        let path = folder.join(name);
        std::fs::create_dir_all(&path).unwrap();
        let mut random = Random::seeded(seed);
        let mut time = at_s * 1000 * MS;
        let mut text = String::from("{\"strobe\": \"python\", \"pid\": 5}\n");
        for step in 0..60 {
            let _ = writeln!(text, "[\"step\", {time}, {step}]");
            time += (ms * MS as f64 * (1.0 + 0.01 * random.normal())) as i64;
        }
        std::fs::write(path.join("python-5.jsonl"), text).unwrap();
        path
    }

    fn side(folder: &Path, name: &str, starts_s: &[i64], levels: &[f64]) -> Measured {
        let runs = starts_s.iter().zip(levels).enumerate();
        let paths: Vec<PathBuf> = runs
            .map(|(at, (start, ms))| {
                let seed = *start as u64 + ms.to_bits();
                write_run(folder, &format!("{name}{at}"), *start, *ms, seed)
            })
            .collect();
        Measured::open(&paths, Which::default()).unwrap()
    }

    #[test]
    fn runs_that_took_turns_are_compared_in_pairs() {
        let folder = tempfile::tempdir().unwrap();
        // The machine's level changes from round to round, by more than what is asked for.
        let levels = [30.0, 36.0, 27.0, 33.0];
        let more = levels.map(|it| it * 1.05);
        let a = side(folder.path(), "a", &[0, 30, 40, 70], &levels);
        let b = side(folder.path(), "b", &[10, 20, 50, 60], &more);
        let found = compare(&a, &b, 0.02).unwrap();
        assert!(found.comparison.in_pairs && !found.one_after_the_other);
        assert_eq!(found.comparison.verdict.as_str(), "slower", "{found:?}");
        assert_eq!([0.02, 0.10].map(|it| found.gate(it)), [Gate::Fail, Gate::Pass]);
        let late = side(folder.path(), "late", &[100, 110, 120, 130], &more);
        let found = compare(&a, &late, 0.02).unwrap();
        assert!(!found.comparison.in_pairs && found.one_after_the_other);
        assert_eq!(found.comparison.verdict.as_str(), "cannot tell", "{found:?}");
        assert_eq!([0.02, 2.0].map(|it| found.gate(it)), [Gate::CannotTell, Gate::Pass]);
        let beside = side(folder.path(), "beside", &[0, 30, 40, 70], &more);
        let found = compare(&a, &beside, 0.02).unwrap();
        assert!(!found.comparison.in_pairs && !found.one_after_the_other);
    }

    #[test]
    fn what_most_of_the_time_went_to_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        let text = "[\"step\", 0, 1]\n[\"step\", 10, 2]\n\
                    [\"step-key\", 15, \"keras\", \"predict\"]\n[\"examples\", 8]\n\
                    [\"step\", 20, 1]\n[\"step\", 1050, 2]\n";
        std::fs::write(folder.path().join("python-1.jsonl"), text).unwrap();
        let found = Measured::open(&[folder.path().to_owned()], Which::default()).unwrap();
        let run = &found.runs[0];
        assert_eq!(run.key.as_ref().unwrap().name, "predict");
        assert_eq!((run.others, found.examples(), found.n_steps()), (1, Some(8), 1));
        assert!(found.is_inference() && !found.is_enough());
    }
}
