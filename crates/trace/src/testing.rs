//! Draws small traces for tests.
//!
//! ```text
//! host/main:      step#1 0..100, next(data) 0..30
//! gpu0/stream7:   matmul 40..70, ncclAllReduce 60..95
//! ```
//!
//! One line per track: parent, slash, name, colon, then events in microseconds. A parent that
//! begins with `gpu` or `tpu` is a device. `name#7` gives the event a step number, `name@3` a
//! launch key that joins host call and kernel.

use crate::{Dur, EdgeKind, NumberKey, Time, Trace, TraceBuilder, TrackKind};

const PS_PER_US: f64 = 1e6;

/// The trace of a drawing. Meant for tests: a drawing that cannot be read is ignored line by line.
pub fn draw(picture: &str) -> Trace {
    let mut out = TraceBuilder::new();
    let host = out.track(None, TrackKind::Host, "drawn");
    for line in picture.lines() {
        let Some((path, events)) = line.split_once(": ") else { continue };
        let (parent, name) = path.trim().split_once('/').unwrap_or(("host", path.trim()));
        let on_device = parent.starts_with("gpu") || parent.starts_with("tpu");
        let (outer, inner) = if on_device {
            (TrackKind::Device, TrackKind::Stream)
        } else {
            (TrackKind::Process, TrackKind::Thread)
        };
        let outer = out.track(Some(host), outer, parent);
        let track = out.track(Some(outer), inner, name);
        for event in events.split(", ") {
            let Some((name, span)) = event.trim().rsplit_once(' ') else { continue };
            let Some((from, to)) = span.split_once("..") else { continue };
            let ps = |text: &str| (text.parse().unwrap_or(0.0) * PS_PER_US) as i64;
            let (name, step) = with_number(name, '#');
            let (name, launch) = with_number(name, '@');
            let (start, end) = (ps(from), ps(to));
            let id = out.event(track, name, Time(start), Dur(end - start));
            if let Some(step) = step {
                out.number(id, NumberKey::Step, step);
            }
            match launch {
                Some(key) if on_device => out.arrives(EdgeKind::Launch, key as u64, id),
                Some(key) => out.departs(EdgeKind::Launch, key as u64, id),
                None => (),
            }
        }
    }
    out.finish()
}

fn with_number(name: &str, mark: char) -> (&str, Option<i64>) {
    match name.rsplit_once(mark) {
        Some((word, number)) if number.parse::<i64>().is_ok() => (word, number.parse().ok()),
        _ => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::draw;
    use crate::{EdgeKind, EventId, OpKind};

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
    fn order_of_arrival_does_not_matter() {
        let trace = draw("host/a: b 50..60, a 0..100\nhost/b: x 1..2\nhost/a: c 20..30");
        let names: Vec<_> = (0..4).map(|it| trace.name(EventId(it))).collect();
        assert_eq!(names, ["a", "c", "b", "x"]);
        assert_eq!(trace.events.parent(EventId(2)), Some(EventId(0)));
        assert_eq!(trace.track_name(trace.track_of(EventId(3))), "b");
    }
}
