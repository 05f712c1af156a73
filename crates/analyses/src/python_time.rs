//! Which Python functions held the driving thread.

use std::collections::BTreeMap;

use trace::dialect;
use trace::{EventId, OpKind, StrId};

use crate::step::Counted;
use crate::{Analysis, Tables};

table! {
    /// Python functions on the driving thread, within the steps that count, where the profile has
    /// them. Time inside the framework is not Python's.
    pub struct PythonTime = "python_time" {
        /// The function.
        function: String,
        /// Its file and line: `train.py:12`.
        place: String,
        /// How often it was called, in all.
        calls: i64,
        /// In it and all Python it calls, for a mean step.
        total_ps: i64,
        /// In itself, for a mean step.
        self_ps: i64,
        /// An event of it.
        event: i64,
    }
}

struct Frame {
    name: StrId,
    end: i64,
    /// Time of Python frames and framework calls inside it.
    inside: i64,
    framework: i64,
    start: i64,
    row: usize,
    is_python: bool,
}

#[derive(Default)]
struct Sum {
    calls: i64,
    total: i64,
    own: i64,
    event: u32,
}

impl Analysis for PythonTime {
    fn run(tables: &Tables) -> Vec<PythonTime> {
        let trace = tables.trace();
        let Some(counted) = Counted::of(tables) else { return Vec::new() };
        let Some(thread) = counted.thread(trace) else { return Vec::new() };
        let window = counted.window;
        let track = &trace.tracks[thread.row()];
        if !track.kinds.contains(OpKind::Python) {
            return Vec::new();
        }
        let mut sums: BTreeMap<StrId, Sum> = BTreeMap::new();
        let mut open: Vec<Frame> = Vec::new();
        let close = |open: &mut Vec<Frame>, sums: &mut BTreeMap<StrId, Sum>| {
            let Some(it) = open.pop() else { return };
            let clip = |from: i64, to: i64| (to.min(window.1) - from.max(window.0)).max(0);
            let dur = clip(it.start, it.end);
            if let Some(around) = open.last_mut() {
                around.inside += dur;
                around.framework += if it.is_python { it.framework } else { dur };
            }
            if it.is_python && dur > 0 {
                let recursive = open.iter().any(|other| other.name == it.name);
                let sum = sums.entry(it.name).or_default();
                if sum.calls == 0 {
                    sum.event = it.row as u32;
                }
                sum.calls += 1;
                sum.own += (dur - it.inside).max(0);
                sum.total += if recursive { 0 } else { (dur - it.framework).max(0) };
            }
        };
        let mut framework_until = i64::MIN;
        for row in track.rows() {
            let kind = trace.events.kind[row];
            let start = trace.events.start[row].0;
            let end = trace.events.end(EventId(row as u32)).0;
            let is_python = kind == OpKind::Python;
            if matches!(
                kind,
                OpKind::Listener | OpKind::Memory | OpKind::OpEnd | OpKind::Step | OpKind::User
            ) || start < framework_until
                || end <= window.0
                || start >= window.1
            {
                continue;
            }
            while open.last().is_some_and(|it| it.end <= start) {
                close(&mut open, &mut sums);
            }
            if !is_python {
                framework_until = end;
            }
            let name = trace.events.name[row];
            open.push(Frame { name, end, inside: 0, framework: 0, start, row, is_python });
        }
        while !open.is_empty() {
            close(&mut open, &mut sums);
        }
        let n = counted.n;
        let mut rows: Vec<PythonTime> = sums
            .into_iter()
            .map(|(name, it)| {
                let frame = dialect::frame(trace.text(name));
                PythonTime {
                    function: frame.function.to_owned(),
                    place: frame.place,
                    calls: it.calls,
                    total_ps: it.total / n,
                    self_ps: it.own / n,
                    event: i64::from(it.event),
                }
            })
            .collect();
        rows.sort_by(|a, b| b.total_ps.cmp(&a.total_ps).then_with(|| a.function.cmp(&b.function)));
        rows
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;

    use super::PythonTime;
    use crate::Tables;

    #[test]
    fn a_function_holds_its_own_time_and_that_of_what_it_calls() {
        let step = |at: i64, n: i64| {
            format!(
                "train#{n} {at}..{0}, $train.py:12 log {at}..{1}, $json.py:1 dumps {at}..{2}, \
                 PjitFunction(f) {3}..{1}, PjitFunction(f) {4}..{0}",
                at + 100,
                at + 50,
                at + 30,
                at + 40,
                at + 60
            )
        };
        let steps: Vec<String> = (0..4).map(|it| step(it * 100, it)).collect();
        let tables = Tables::new(Arc::new(draw(&format!("host/python: {}", steps.join(", ")))));
        let rows = tables.get::<PythonTime>();
        let us = |it: i64| it / 1_000_000;
        let rows: Vec<_> =
            rows.iter().map(|it| (it.function.as_str(), us(it.total_ps), us(it.self_ps))).collect();
        assert_eq!(rows, [("log", 40, 10), ("dumps", 30, 30)]);
        assert_eq!(tables.get::<PythonTime>()[0].place, "train.py:12");
    }
}
