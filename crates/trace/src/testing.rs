//! Draws small traces for tests.
//!
//! ```text
//! host/main:      step#1 0..100, next(data) 0..30
//! gpu0/stream7:   matmul 40..70, ncclAllReduce 60..95
//! ```
//!
//! One line per track: parent, slash, name, colon, then events in microseconds. A parent that
//! begins with `gpu` or `tpu` is a device. `name#7` gives the event a step number, `name@3` a
//! launch key that joins host call and kernel; `name>3` calls the function that `name<3` runs.
//! `name{key=value;key=value}` gives it arguments, of which some say more: `op`, `hlo_op`,
//! `hlo_module`, `bytes`, `traced`, `calls_function`, `grid`, `block`, `registers`, `shared`.
//!
//! A line `fact gpu0 key=value` says something about a track.

use std::borrow::Cow;
use std::ops::Range;
use std::str::FromStr;

use crate::{
    ArgRun, ArgSource, Detail, Dur, EdgeKind, EventId, FactValue, KernelShape, NumberKey, Time,
    Trace, TraceBuilder, TrackKind,
};

const PS_PER_US: f64 = 1e6;

/// The trace of a drawing.
///
/// # Panics
///
/// At what it cannot read: a slip of the pen would make a test that sees nothing, and passes.
#[expect(clippy::panic, reason = "a slip in a drawing must fail its test")]
pub fn draw(picture: &str) -> Trace {
    let mut out = TraceBuilder::new();
    let host = out.track(None, TrackKind::Host, "drawn");
    let mut drawn = DrawnArgs::default();
    for line in picture.lines().filter(|it| !it.trim().is_empty()) {
        if let Some(fact) = line.trim().strip_prefix("fact ") {
            let (on, fact) = fact
                .split_once(' ')
                .unwrap_or_else(|| panic!("not `fact TRACK KEY=VALUE`: {line}"));
            let is_device = on.starts_with("gpu") || on.starts_with("tpu");
            let kind = if is_device { TrackKind::Device } else { TrackKind::Process };
            let on = out.track(Some(host), kind, on);
            let (key, value) =
                fact.split_once('=').unwrap_or_else(|| panic!("a fact without a value: {line}"));
            out.fact(on, key, value_of(value));
            continue;
        }
        let Some((path, events)) =
            line.split_once(": ").or_else(|| Some((line.trim().strip_suffix(':')?, "")))
        else {
            panic!("not a track: {line}")
        };
        let (parent, name) = path.trim().split_once('/').unwrap_or(("host", path.trim()));
        let on_device = parent.starts_with("gpu") || parent.starts_with("tpu");
        let (outer, inner) = if on_device {
            (TrackKind::Device, TrackKind::Stream)
        } else {
            (TrackKind::Process, TrackKind::Thread)
        };
        let outer = out.track(Some(host), outer, parent);
        let track = out.track(Some(outer), inner, name);
        // A line may end with a comma, as those that loops write do.
        for event in events.split(", ").map(str::trim).filter(|it| !it.is_empty()) {
            let event = event.trim_end_matches(',');
            let (name, from, to) = event
                .rsplit_once(' ')
                .and_then(|(name, span)| Some((name, span.split_once("..")?)))
                .map(|(name, (from, to))| (name, from, to))
                .unwrap_or_else(|| panic!("not `NAME FROM..TO`: {event:?} in {line}"));
            let ps = |text: &str| match text.parse::<f64>() {
                Ok(us) => (us * PS_PER_US) as i64,
                Err(_) => panic!("no time: {text:?} of {event:?}"),
            };
            let (name, args) = match name.split_once('{') {
                Some((name, args)) => (name, args.trim_end_matches('}')),
                None => (name, ""),
            };
            let (name, step) = with_number(name, '#');
            let (name, launch) = with_number(name, '@');
            let (name, calls) = with_number(name, '>');
            let (name, runs) = with_number(name, '<');
            let (start, end) = (ps(from), ps(to));
            assert!(start <= end, "ends before it begins: {event:?}");
            let id = out.event(track, name, Time(start), Dur(end - start));
            if let Some(step) = step {
                out.number(id, NumberKey::Step, step);
            }
            match launch {
                Some(key) if on_device => out.arrives(EdgeKind::Launch, key as u64, id),
                Some(key) => out.departs(EdgeKind::Launch, key as u64, id),
                None => (),
            }
            if let Some(key) = calls {
                out.departs(EdgeKind::Function, key as u64, id);
            }
            if let Some(key) = runs {
                out.arrives(EdgeKind::Function, key as u64, id);
            }
            if !args.is_empty() {
                describe(&mut out, id, args, &mut drawn);
            }
        }
    }
    out.source(Box::new(drawn));
    out.finish()
}

/// Arguments in the order they were drawn.
#[derive(Default)]
struct DrawnArgs(Vec<Vec<(String, FactValue)>>);

impl ArgSource for DrawnArgs {
    fn args(&self, at: u64, _nth: usize) -> Result<Vec<(String, FactValue)>, String> {
        Ok(self.0.get(at as usize).cloned().unwrap_or_default())
    }

    fn bytes(&self, _: Range<u64>) -> Result<Cow<'_, [u8]>, String> {
        Ok(Cow::Borrowed(&[]))
    }
}

fn value_of(text: &str) -> FactValue {
    match (text.parse(), text.parse()) {
        (Ok(it), _) => FactValue::Int(it),
        (_, Ok(it)) => FactValue::Float(it),
        _ => FactValue::Text(text.to_owned()),
    }
}

#[expect(clippy::panic, reason = "a slip in a drawing must fail its test")]
fn describe(out: &mut TraceBuilder, event: EventId, args: &str, drawn: &mut DrawnArgs) {
    let pair = |it| str::split_once(it, '=').unwrap_or_else(|| panic!("not `KEY=VALUE`: {it:?}"));
    let pairs: Vec<(&str, &str)> = args.split(';').map(pair).collect();
    let mut detail = Detail::default();
    let mut kernel = KernelShape::default();
    let sides = |text: &str| {
        let mut sides = text.split('x').map(number);
        [(); 3].map(|()| sides.next().unwrap_or(1))
    };
    for &(key, value) in &pairs {
        match key {
            "op" => detail.op = Some(out.text(value)),
            "hlo_op" => detail.hlo_op = Some(out.text(value)),
            "hlo_module" => detail.hlo_module = Some(out.text(value)),
            "bytes" => detail.copy_bytes = Some(number(value)),
            "traced" => detail.traced = Some(value == "true"),
            "calls_function" => detail.calls_function = Some(value == "true"),
            "grid" => kernel.grid = sides(value),
            "block" => kernel.block = sides(value),
            "registers" => kernel.registers = Some(number(value)),
            "shared" => kernel.static_shared_bytes = Some(number(value)),
            _ => continue,
        }
    }
    if kernel != KernelShape::default() {
        detail.kernel = Some(kernel);
    }
    out.describe(event, detail);
    let rows = event.0..event.0 + 1;
    out.args(ArgRun { rows, from: drawn.0.len() as u64, marks: vec![0] });
    drawn.0.push(pairs.iter().map(|it| (it.0.to_owned(), value_of(it.1))).collect());
}

#[expect(clippy::panic, reason = "a slip in a drawing must fail its test")]
fn number<T: FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("no number: {text:?}"))
}

fn with_number(name: &str, mark: char) -> (&str, Option<i64>) {
    match name.rsplit_once(mark) {
        Some((word, number)) if number.parse::<i64>().is_ok() => (word, number.parse().ok()),
        _ => (name, None),
    }
}

/// Everything of a trace that two reads of the same bytes must agree on, but for arguments.
pub fn picture(trace: &Trace) -> String {
    let events = &trace.events;
    let parents: Vec<_> = (0..events.len()).map(|it| events.parent(EventId(it as u32))).collect();
    format!(
        "{:?}\n{events:?}\n{parents:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        trace.tracks,
        trace.strings.iter().collect::<Vec<_>>(),
        trace.details,
        trace.edges,
        trace.numbers,
        trace.counters,
        trace.facts,
        trace.scalars,
        trace.notes,
    )
}

#[cfg(test)]
mod tests {
    use super::draw;
    use crate::{EdgeKind, EventId, FactValue, OpKind};

    #[test]
    fn events_nest_and_launches_join() {
        let trace = draw(
            "
            host/main: train#3 0..100, cuLaunchKernel@1 10..20, IteratorGetNext 30..60
            gpu0/stream7: matmul@1 40..70, ncclAllReduce 60..95
            ",
        );
        let names: Vec<_> = (0..5).map(|it| trace.name(EventId(it))).collect();
        assert_eq!(
            names,
            ["train", "cuLaunchKernel", "IteratorGetNext", "matmul", "ncclAllReduce"]
        );
        assert_eq!(
            trace.events.kind,
            [OpKind::Step, OpKind::Launch, OpKind::InputWait, OpKind::Kernel, OpKind::Collective]
        );
        assert_eq!(trace.events.parent(EventId(1)), Some(EventId(0)));
        assert_eq!(trace.events.parent(EventId(4)), None, "overlap is not nesting");
        assert_eq!(trace.edges.cause(EventId(3), EdgeKind::Launch), Some(EventId(1)));
    }

    #[test]
    fn arguments_and_functions_are_drawn() {
        let trace = draw(
            "
            host/main: Iterator::Root{parallelism=2;name=Map:1} 0..100, RunAsync>4 10..20
            host/pool: FunctionRun<4 20..50
            gpu0/s: gemm{op=dense/MatMul:MatMul;grid=8x2;block=256} 0..10
            ",
        );
        let args = trace.args.of(EventId(0));
        assert_eq!(args[0], ("parallelism".to_owned(), FactValue::Int(2)));
        assert_eq!(args[1], ("name".to_owned(), FactValue::Text("Map:1".to_owned())));
        assert_eq!(trace.args.of(EventId(1)), []);
        assert_eq!(trace.edges.cause(EventId(2), EdgeKind::Function), Some(EventId(1)));
        let detail = trace.detail(EventId(3));
        assert_eq!(detail.op.map(|it| trace.text(it)), Some("dense/MatMul:MatMul"));
        assert_eq!(detail.kernel.map(|it| (it.grid, it.block)), Some(([8, 2, 1], [256, 1, 1])));
    }

    #[test]
    fn order_of_arrival_does_not_matter() {
        let trace = draw("host/a: b 50..60, a 0..100\nhost/b: x 1..2\nhost/a: c 20..30");
        let names: Vec<_> = (0..4).map(|it| trace.name(EventId(it))).collect();
        assert_eq!(names, ["a", "c", "b", "x"]);
        assert_eq!(trace.events.parent(EventId(2)), Some(EventId(0)));
        assert_eq!(trace.track_name(trace.track_of(EventId(3))), "b");
    }
}
