//! Draws a trace and states what a rule says of it.

use std::sync::Arc;

use analyses::Tables;
use trace::testing::draw;
use trace::{
    Dur, FactValue, Frame, NumberKey, Place, Process, StackSample, Strings, Time, TraceBuilder,
    TrackKind,
};

use crate::{Finding, Rule, Verdict};

/// The verdict on a drawing; see [`trace::testing`] for how to draw.
pub fn verdict(rule: &dyn Rule, picture: &str) -> Verdict {
    rule.check(&Tables::new(Arc::new(draw(picture))))
}

/// The finding of a rule that must fire.
#[expect(clippy::panic, reason = "for tests")]
pub fn finding(rule: &dyn Rule, picture: &str) -> Finding {
    match verdict(rule, picture) {
        Verdict::Found(it) => *it,
        other => panic!("{} says {other:?}", rule.name()),
    }
}

/// What a rule that cannot know misses.
#[expect(clippy::panic, reason = "for tests")]
pub fn missing(rule: &dyn Rule, picture: &str) -> String {
    match verdict(rule, picture) {
        Verdict::Unknown(why) => why,
        other => panic!("{} says {other:?}", rule.name()),
    }
}

/// The verdict on three idle steps beside which a counter was sampled, on a machine of two cores.
pub fn sampled(rule: &dyn Rule, counter: &str, values: &[f64]) -> Verdict {
    let mut out = TraceBuilder::new();
    let host = out.track(None, TrackKind::Host, "drawn");
    out.fact(host, "cpu_count", FactValue::Int(2));
    let process = out.track(Some(host), TrackKind::Process, "host");
    let thread = out.track(Some(process), TrackKind::Thread, "python");
    let gpu = out.track(Some(host), TrackKind::Device, "gpu0");
    let stream = out.track(Some(gpu), TrackKind::Stream, "s");
    for step in 0..4 {
        let event = out.event(thread, "train", Time(step * 1000), Dur(1000));
        out.number(event, NumberKey::Step, step);
        out.event(stream, "k", Time(step * 1000), Dur(800));
    }
    let track = out.track(Some(host), TrackKind::Counter, counter);
    for (at, &value) in (0..).zip(values) {
        out.counter(track, Time(at * 500), value);
    }
    rule.check(&Tables::new(Arc::new(out.finish())))
}

/// The finding on a drawing beside which stacks were sampled, every microsecond of the first 300:
/// of one thread after the other, each given from its outermost frame (file, function, line) on.
/// Thread 1 drives.
#[expect(clippy::panic, reason = "for tests")]
pub fn with_stacks(
    rule: &dyn Rule,
    picture: &str,
    first_thread: i64,
    stacks: &[&[(&str, &str, u32)]],
) -> Finding {
    let mut trace = draw(picture);
    let mut process = Process { pid: 1, driving_thread: Some(1), ..Process::default() };
    for (thread, stack) in (first_thread..).zip(stacks) {
        let mut parent = None;
        for &(file, function, line) in *stack {
            let it = &mut process.stacks;
            let mut text = |it: &str| Strings::add(&mut trace.strings, it);
            it.frames.push(Frame { file: text(file), function: text(function), first_line: 1 });
            it.places.push(Place { parent, frame: (it.frames.len() - 1) as u32, line });
            parent = Some((it.places.len() - 1) as u32);
        }
        let place = parent.unwrap_or_default();
        let sample = |at: i64| StackSample { time: Time(at * 1_000_000), thread, place };
        process.stacks.samples.extend((0..300).map(sample));
    }
    process.stacks.samples.sort_unstable();
    trace.processes.push(process);
    match rule.check(&Tables::new(Arc::new(trace))) {
        Verdict::Found(it) => *it,
        other => panic!("{} says {other:?}", rule.name()),
    }
}
