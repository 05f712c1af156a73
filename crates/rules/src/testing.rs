//! Draws a trace and states what a rule says of it.

use std::sync::Arc;

use analyses::Tables;
use trace::testing::draw;
use trace::{Dur, FactValue, NumberKey, Time, TraceBuilder, TrackKind};

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
