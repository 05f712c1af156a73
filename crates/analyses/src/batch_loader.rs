//! Loaders that make batches in Python, in the training process or in workers.
//!
//! ```text
//! in the training process   |-- next(loader) --|== step ==|-- next(loader) --|== step ==|
//!                              '- __getitem__, collate: all of it is waited for
//! in workers                |-wait-|== step ==|-wait-|== step ==|
//!                              '- only what the workers are behind by
//! ```
//!
//! What the workers themselves do is in none of the training's events.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use trace::dialect::{self, Loader};
use trace::{EventId, OpKind, StrId};

use crate::step::Counted;
use crate::{Analysis, Tables};

table! {
    /// Loaders that make batches in Python, and how long the driving thread is in them.
    pub struct BatchLoader = "batch_loader" {
        /// Where batches are made: `training process` or `workers`.
        made_in: &'static str,
        /// Batches that were asked for within the steps that count.
        batches: i64,
        /// The same, in a step.
        batches_per_step: f64,
        /// Time in the loader, for a mean step.
        wait_ps: i64,
        /// The longest time for one batch.
        longest_ps: i64,
        /// Of that time, in ops of the framework: the rest is Python, reading, or waiting.
        ops_ps: i64,
        /// Ops that ran in the loader, in a step.
        ops_per_step: f64,
        /// The function in the loader that most of the time passes in, where Python was recorded.
        function: Option<String>,
        /// Its file and line.
        place: Option<String>,
        /// An event of the loader: the longest.
        event: i64,
    }
}

#[derive(Debug, Default)]
struct Sum {
    batches: i64,
    total: i64,
    longest: i64,
    event: u32,
    ops: i64,
    n_ops: i64,
    /// Own time of Python functions, by their event's name.
    functions: BTreeMap<StrId, i64>,
}

impl Analysis for BatchLoader {
    fn run(tables: &Tables) -> Vec<BatchLoader> {
        let trace = tables.trace();
        let loaders: HashMap<StrId, Loader> = trace
            .strings
            .iter()
            .filter_map(|(id, text)| {
                Some((id, dialect::ALL.iter().find_map(|it| it.loader(text))?))
            })
            .collect();
        if loaders.is_empty() {
            return Vec::new();
        }
        let Some(counted) = Counted::of(tables) else { return Vec::new() };
        let Some(thread) = counted.thread(trace) else { return Vec::new() };
        let window = counted.window;
        let mut sums: BTreeMap<Loader, Sum> = BTreeMap::new();
        // The loader that is not over, until when, and functions in it that are not.
        let mut inside: Option<(Loader, i64)> = None;
        let mut open: Vec<(i64, Option<StrId>, i64)> = Vec::new();
        let mut op_until = i64::MIN;
        for row in trace.tracks[thread.row()].rows() {
            let start = trace.events.start[row].0;
            if start < window.0 || start >= window.1 {
                continue;
            }
            let end = trace.events.end(EventId(row as u32)).0;
            let name = trace.events.name[row];
            if let Some((loader, until)) = inside {
                if start < until {
                    let sum = sums.entry(loader).or_default();
                    match trace.events.kind[row] {
                        OpKind::Op if start >= op_until => {
                            sum.ops = sum.ops.saturating_add(end - start);
                            sum.n_ops += 1;
                            op_until = end;
                            nest(&mut open, sum, (end, None), start);
                        }
                        OpKind::Python | OpKind::InputWait => {
                            nest(&mut open, sum, (end, Some(name)), start);
                        }
                        _ => (),
                    }
                    continue;
                }
                close(&mut open, sums.entry(loader).or_default(), i64::MAX);
                inside = None;
            }
            let Some(&loader) = loaders.get(&name) else { continue };
            let sum = sums.entry(loader).or_default();
            if end - start > sum.longest || sum.batches == 0 {
                (sum.longest, sum.event) = (end - start, row as u32);
            }
            sum.batches += 1;
            sum.total = sum.total.saturating_add(end - start);
            inside = Some((loader, end));
        }
        if let Some((loader, _)) = inside {
            close(&mut open, sums.entry(loader).or_default(), i64::MAX);
        }
        let n = counted.n.max(1);
        let mut rows: Vec<BatchLoader> = sums
            .into_iter()
            .map(|(loader, it)| {
                let most = it.functions.iter().max_by_key(|it| it.1);
                let most = most.filter(|most| most.1 * MOSTLY >= it.total);
                let frame = most.map(|it| dialect::frame(trace.text(*it.0)));
                BatchLoader {
                    made_in: match loader {
                        Loader::InProcess => "training process",
                        Loader::Workers => "workers",
                    },
                    batches: it.batches,
                    batches_per_step: it.batches as f64 / n as f64,
                    wait_ps: it.total / n,
                    longest_ps: it.longest,
                    ops_ps: it.ops / n,
                    ops_per_step: it.n_ops as f64 / n as f64,
                    function: frame.as_ref().map(|it| it.function.to_owned()),
                    place: frame.map(|it| it.place),
                    event: i64::from(it.event),
                }
            })
            .collect();
        rows.sort_by_key(|it| std::cmp::Reverse(it.wait_ps));
        rows
    }
}

/// A function is named that has one part in so many of the loader's time to itself.
/// Source: choice, a guess: nearly half.
const MOSTLY: i64 = 3;

type Open = (i64, Option<StrId>, i64);

/// A function or an op begins inside those that are open.
fn nest(open: &mut Vec<Open>, sum: &mut Sum, (end, name): (i64, Option<StrId>), start: i64) {
    close(open, sum, start);
    if let Some(around) = open.last_mut() {
        around.2 -= (end - start).min(around.2);
    }
    open.push((end, name, end - start));
}

/// Those that are over by then.
fn close(open: &mut Vec<Open>, sum: &mut Sum, by: i64) {
    while let Some((_, name, own)) = open.pop_if(|it| it.0 <= by) {
        if let Some(name) = name {
            *sum.functions.entry(name).or_default() += own;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;

    use super::BatchLoader;
    use crate::Tables;

    #[test]
    fn what_a_loader_takes_and_what_runs_in_it() {
        let step = |n: i64| {
            let at = n * 100;
            format!(
                "train#{n} {at}..{}, enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ \
                 {at}..{}, aten::stack {}..{}, aten::cat {}..{}, aten::mm {}..{}",
                at + 100,
                at + 60,
                at + 40,
                at + 50,
                at + 42,
                at + 48,
                at + 62,
                at + 95
            )
        };
        let steps: Vec<String> = (0..4).map(step).collect();
        let tables = Tables::new(Arc::new(draw(&format!("host/python: {}", steps.join(", ")))));
        let rows = tables.get::<BatchLoader>();
        assert_eq!(rows.len(), 1, "{rows:?}");
        let it = &rows[0];
        assert_eq!((it.made_in, it.batches), ("training process", 4));
        assert_eq!((it.wait_ps, it.ops_ps), (60_000_000, 10_000_000));
        assert_eq!((it.function.as_ref(), it.ops_per_step), (None, 1.0));
    }
}
