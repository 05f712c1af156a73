//! Says what the length of a step is made of: the chain of things each of which waited for the one
//! before.

use hashbrown::HashMap;

use crate::kernel_time::op_of;
use crate::replay::{Change, Replay};
use crate::{Analysis, Tables};

table! {
    /// The critical path of the mean step, of runs with a device: only what is on it makes the
    /// step longer.
    ///
    /// The rows add to the mean step. Empty where the steps cannot be replayed to within a tenth
    /// of what was measured.
    pub struct CriticalPath = "critical_path" {
        /// The category, as in `step_time`. Delays from launch to start and from the end of work
        /// to the end of a wait are runtime.
        category: &'static str,
        /// The op, or the kernel or copy where no op is known; null on the host, and for what is
        /// too small to be named.
        name: Option<String>,
        /// Nobody worked: the time from a launch to its start, between two kernels of a queue, or
        /// from the end of work until a wait for it was over.
        is_delay: bool,
        /// How often it is on the path of the replayed steps.
        count: i64,
        /// Time of the mean step.
        per_step_ps: i64,
        /// Its part of the step, 0 to 1.
        share: f64,
    }
}

/// As many ops and kernels are named.
/// Source: choice, one screen.
const MOST_NAMES: usize = 30;

impl Analysis for CriticalPath {
    fn run(tables: &Tables) -> Vec<CriticalPath> {
        let trace = tables.trace();
        let replay = tables.model::<Replay>();
        let mut sums: HashMap<(&str, Option<&str>, bool), (i64, i64)> = HashMap::new();
        let parts = replay.path_after(&Change::default()).unwrap_or_default().1;
        for part in &parts {
            let sum = sums
                .entry((part.category, part.row.map(|it| op_of(trace, it)), part.is_delay))
                .or_default();
            *sum = (sum.0 + 1, sum.1 + part.ps);
        }
        let mut rows: Vec<CriticalPath> = parts_to_rows(sums, replay.step_ps());
        sort(&mut rows);
        // The small ones together keep the sum right.
        let small: Vec<CriticalPath> = rows.split_off(rows.len().min(MOST_NAMES));
        for it in small {
            let same = |row: &&mut CriticalPath| {
                (row.category, row.is_delay) == (it.category, it.is_delay)
            };
            match rows.iter_mut().filter(|row| row.name.is_none()).find(same) {
                Some(row) => {
                    row.count += it.count;
                    row.per_step_ps += it.per_step_ps;
                    row.share += it.share;
                }
                None => rows.push(CriticalPath { name: None, ..it }),
            }
        }
        sort(&mut rows);
        rows
    }
}

fn sort(rows: &mut [CriticalPath]) {
    rows.sort_by(|a, b| {
        let name = |it: &CriticalPath| (it.category, it.name.clone(), it.is_delay);
        b.per_step_ps.cmp(&a.per_step_ps).then_with(|| name(a).cmp(&name(b)))
    });
}

fn parts_to_rows(
    sums: HashMap<(&'static str, Option<&str>, bool), (i64, i64)>,
    step_ps: i64,
) -> Vec<CriticalPath> {
    sums.into_iter()
        .map(|((category, name, is_delay), (count, ps))| CriticalPath {
            category,
            name: name.map(str::to_owned),
            is_delay,
            count,
            per_step_ps: ps,
            share: ps as f64 / step_ps.max(1) as f64,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;

    use super::CriticalPath;
    use crate::Tables;

    /// Category, name and µs of a mean step.
    fn check(picture: &str, expected: &[&str]) {
        let tables = Tables::new(Arc::new(draw(picture)));
        let found: Vec<String> = tables
            .get::<CriticalPath>()
            .iter()
            .map(|it| {
                let name = it.name.as_deref().unwrap_or("-");
                let delay = if it.is_delay { " delay" } else { "" };
                format!("{} {name} {}{delay}", it.category, (it.per_step_ps + 500_000) / 1_000_000)
            })
            .collect();
        assert_eq!(found, expected);
    }

    /// They come out of a map, in another order each time.
    #[test]
    fn rows_of_equal_length_have_one_order() {
        let row = |is_delay| CriticalPath {
            category: "runtime",
            name: None,
            is_delay,
            count: 1,
            per_step_ps: 5,
            share: 0.5,
        };
        for [a, b] in [[true, false], [false, true]] {
            let mut rows = [row(a), row(b)];
            super::sort(&mut rows);
            assert_eq!(rows.map(|it| it.is_delay), [false, true]);
        }
    }

    #[test]
    fn what_nobody_waits_for_is_not_on_the_path() {
        let steps: Vec<String> = (0..4)
            .map(|step| {
                let at = step * 100;
                format!(
                    "train#{step} {at}..{}, EagerExecute {}..{}, cuLaunchKernel@{step} {}..{}, \
                     cuLaunchKernel@1{step} {}..{}, cuStreamSynchronize {}..{}",
                    at + 100,
                    at + 20,
                    at + 100,
                    at + 30,
                    at + 32,
                    at + 32,
                    at + 34,
                    at + 40,
                    at + 92,
                )
            })
            .collect();
        let kernels = |name: &str, key: &str, dur: usize| {
            let kernel = |step: usize| {
                let at = step * 100 + 40;
                format!("{name}@{key}{step} {at}..{}", at + dur)
            };
            (0..4).map(kernel).collect::<Vec<_>>().join(", ")
        };
        check(
            &format!(
                "host/python: {}\ngpu0/a: {}\ngpu0/b: {}",
                steps.join(", "),
                kernels("long", "", 50),
                kernels("short", "1", 10),
            ),
            &["compute long 50", "python - 20", "runtime - 18", "runtime - 12 delay"],
        );
    }

    #[test]
    fn without_device_there_is_no_path() {
        check("host/python: train#1 0..100, train#2 100..200, train#3 200..300", &[]);
    }
}
