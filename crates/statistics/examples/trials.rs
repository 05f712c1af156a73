//! Does a comparison find a step that is 3 % slower, and stay silent where nothing changed?
//!
//! ```text
//! cargo run -p statistics --example trials                  on simulated noise
//! cargo run -p statistics --example trials -- SERIES.txt    on what bench/trials/measure.py wrote
//! ```
//!
//! Prints a table of how often each verdict was given, 40 trials a row.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is there to print a table")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use statistics::simulate::Noise;
use statistics::{Comparison, Question, Random, Run, Series, Verdict, Warmup, compare, summary};

const TRIALS: usize = 40;
const STEP_PS: i64 = 30_000_000_000;
const STEPS: usize = 200;

fn main() -> ExitCode {
    match std::env::args().nth(1) {
        None => simulated(),
        Some(path) => match std::fs::read_to_string(&path) {
            Ok(text) => measured(&text),
            Err(error) => {
                eprintln!("error: {error}\n  file: {path}");
                return ExitCode::from(2);
            }
        },
    }
    ExitCode::SUCCESS
}

/// How often each verdict was given, and how wide the intervals were.
#[derive(Default)]
struct Tally {
    counts: [usize; 4],
    shares: Vec<f64>,
    floors: Vec<f64>,
    holds: usize,
}

impl Tally {
    fn add(&mut self, found: &Comparison, planted: f64) {
        self.counts[found.verdict as usize] += 1;
        self.shares.push(found.share);
        let a = found.a_median.value_ps as f64;
        self.floors.push(found.noise_floor_ps as f64 / a);
        let shift = found.shift;
        let holds = shift.low_ps as f64 <= planted * a && planted * a <= shift.high_ps as f64;
        self.holds += usize::from(holds);
    }

    fn print(&self, name: &str) {
        let n: usize = self.counts.iter().sum();
        // One process a side has no rounds to pair.
        if n == 0 {
            return;
        }
        let [slower, faster, same, unknown] =
            [Verdict::Slower, Verdict::Faster, Verdict::NoDifference, Verdict::CannotTell]
                .map(|it| self.counts[it as usize]);
        let middle = |values: &[f64]| {
            let mut values = values.to_vec();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(f64::NAN) * 100.0
        };
        println!(
            "| {name} | {n} | {slower} | {faster} | {same} | {unknown} | {:+.2} % | {:.2} % | {} |",
            middle(&self.shares),
            middle(&self.floors),
            self.holds,
        );
    }
}

const HEAD: &str = "| | trials | slower | faster | no difference | cannot tell | shift, median | \
                    noise floor, median | intervals that hold the truth |\n\
                    |---|--:|--:|--:|--:|--:|--:|--:|--:|";

fn simulated() {
    let noise = Noise::default();
    println!("Steps of 30 ms. {noise:?}\n\n{HEAD}");
    let quiet = Noise { spread: 0.005, mode: 0.0, outliers: 0.01, ..noise };
    let loud = Noise { spread: 0.05, memory: 0.8, outliers: 0.08, ..noise };
    let drifts = Noise { drift: 0.04, ..noise };
    for (name, noise) in
        [("as above", noise), ("quiet", quiet), ("loud, long memory", loud), ("drifts 4 %", drifts)]
    {
        for (n_runs, steps) in [(1, STEPS), (5, STEPS / 5), (5, STEPS)] {
            for planted in [0.0, 0.03] {
                let mut random = Random::seeded(2026);
                let mut tally = Tally::default();
                for _ in 0..TRIALS {
                    let mut side = |factor: f64| -> Vec<Run> {
                        let typical = (STEP_PS as f64 * factor) as i64;
                        let mut run = || noise.run(steps, typical, &mut random);
                        (0..n_runs).map(|_| Run::new(&run(), Warmup::Auto)).collect()
                    };
                    let (a, b) = (side(1.0), side(1.0 + planted));
                    if let Some(found) = compare(&a, &b, Question::default()) {
                        tally.add(&found, planted);
                    }
                }
                let what = if planted > 0.0 { "3 % slower" } else { "the same" };
                tally.print(&format!("{name}; {n_runs} × {steps} steps; {what}"));
            }
        }
    }
    speed();
}

fn speed() {
    let series = Noise::default().run(10_000, STEP_PS, &mut Random::seeded(1));
    let start = Instant::now();
    let run = Run::new(&series, Warmup::Auto);
    let seen = start.elapsed();
    let found = summary(&[run]);
    println!(
        "\n10\u{2009}000 steps: warm-up, drift and modes in {} ms, median and percentiles with \
         intervals (2000 resamples) in {} ms{}",
        seen.as_millis(),
        (start.elapsed() - seen).as_millis(),
        if found.is_none() { ", no result" } else { "" },
    );
}

/// Lines of trial, side, round and of each step its time and its CPU time in nanoseconds.
fn measured(text: &str) {
    for (what, at) in [("time", 0), ("CPU time", 1)] {
        println!("{what}\n\n{HEAD}");
        measured_by(text, at);
        println!();
    }
}

fn measured_by(text: &str, clock: usize) {
    let mut sides: BTreeMap<(u32, String), Vec<Series>> = BTreeMap::new();
    for line in text.lines().filter(|it| !it.starts_with('#')) {
        let mut words = line.split_whitespace();
        let (Some(trial), Some(side), Some(_)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let Ok(trial) = trial.parse() else { continue };
        let times =
            words.filter_map(|it| Some(it.split(':').nth(clock)?.parse::<i64>().ok()? * 1000));
        sides.entry((trial, side.to_owned())).or_default().push(Series::of_steps(times));
    }
    for (name, in_pairs, together) in [
        ("rounds in pairs", true, false),
        ("runs without pairs", false, false),
        ("one run a side, or all as one", false, true),
    ] {
        for (other, planted) in [("A2", 0.0), ("B", 0.03)] {
            let mut tally = Tally::default();
            for ((trial, _), a) in sides.iter().filter(|it| it.0.1 == "A") {
                let Some(b) = sides.get(&(*trial, other.to_owned())) else { continue };
                // The last trial of a measurement that was stopped is not whole; and two runs alone
                // say nothing of how far apart runs lie.
                if a.len() != b.len() || (a.len() < 2 && !together) {
                    continue;
                }
                let runs = |series: &[Series]| -> Vec<Run> {
                    let all = Series::of_steps(series.iter().flat_map(|it| it.ps()).copied());
                    match together {
                        true => vec![Run::new(&all, Warmup::Auto)],
                        false => series.iter().map(|it| Run::new(it, Warmup::Auto)).collect(),
                    }
                };
                let question = Question { in_pairs, ..Question::default() };
                if let Some(found) = compare(&runs(a), &runs(b), question) {
                    tally.add(&found, planted);
                }
            }
            let what = if planted > 0.0 { "A against B, 3 % slower" } else { "A against A" };
            tally.print(&format!("{name}; {what}"));
        }
    }
    // How alike two starts of the same program are: what one run cannot know.
    let medians = |series: &[Series]| -> Option<(f64, usize)> {
        let runs: Vec<Run> = series.iter().map(|it| Run::new(it, Warmup::Auto)).collect();
        summary(&runs)?.between_runs.map(|it| (it, runs.len()))
    };
    let mut between: Vec<f64> =
        sides.values().filter_map(|it| medians(it)).map(|it| it.0 * 100.0).collect();
    between.sort_by(f64::total_cmp);
    if let (Some(least), Some(most)) = (between.first(), between.last()) {
        let middle = between[between.len() / 2];
        println!(
            "\nruns of one side differ by {least:.2} % to {most:.2} %, typically {middle:.2} %"
        );
    }
}
