//! Draws a trace and states what a rule says of it.

use std::sync::Arc;

use analyses::Tables;
use trace::testing::draw;
use trace::{
    Dur, EventId, FactValue, Frame, NumberKey, Place, Process, Site, StackSample, Strings, Time,
    TraceBuilder, TrackKind,
};

use crate::dialect::Words;
use crate::{Finding, Rule, Verdict};

/// The verdict on a drawing; see [`trace::testing`] for how to draw.
pub fn verdict(rule: &dyn Rule, picture: &str) -> Verdict {
    rule.check(&Tables::new(Arc::new(draw(picture))))
}

/// The finding of a rule that must fire.
pub fn finding(rule: &dyn Rule, picture: &str) -> Finding {
    settled(rule, &Tables::new(Arc::new(draw(picture))))
}

/// A finding as the report shows it.
#[expect(clippy::panic, reason = "for tests")]
pub fn settled(rule: &dyn Rule, tables: &Tables) -> Finding {
    match rule.check(tables) {
        Verdict::Found(mut it) => {
            Words::of(tables).put_into(&mut it.fix);
            it.settle(tables);
            *it
        }
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

/// Steps of a millisecond, beside which counters were sampled twice a step, on a machine of two
/// cores.
#[derive(Debug, Clone)]
pub struct Beside {
    on_gpu: bool,
    /// Of the host.
    facts: Vec<(String, FactValue)>,
    counters: Vec<(String, Vec<f64>)>,
    every_ps: i64,
}

const STEP_PS: i64 = 1_000_000_000;

impl Beside {
    /// Steps that compute on the host.
    pub fn cpu() -> Beside {
        let facts = vec![("cpu_count".to_owned(), FactValue::Float(2.0))];
        Beside { on_gpu: false, facts, counters: Vec::new(), every_ps: STEP_PS / 2 }
    }

    /// Steps of which a GPU computes eight tenths.
    pub fn gpu() -> Beside {
        Beside { on_gpu: true, ..Beside::cpu() }
    }

    /// Samples further apart, which go on after the steps.
    #[must_use]
    pub fn every(self, every: Dur) -> Beside {
        Beside { every_ps: every.0, ..self }
    }

    #[must_use]
    pub fn fact(mut self, key: &str, value: f64) -> Beside {
        self.facts.push((key.to_owned(), FactValue::Float(value)));
        self
    }

    #[must_use]
    pub fn said(mut self, key: &str, text: &str) -> Beside {
        self.facts.push((key.to_owned(), FactValue::Text(text.to_owned())));
        self
    }

    #[must_use]
    pub fn counter(mut self, name: &str, values: &[f64]) -> Beside {
        self.counters.push((name.to_owned(), values.to_vec()));
        self
    }

    pub fn tables(&self) -> Tables {
        let mut out = TraceBuilder::new();
        let host = out.track(None, TrackKind::Host, "drawn");
        for (key, value) in &self.facts {
            out.fact(host, key, value.clone());
        }
        let process = out.track(Some(host), TrackKind::Process, "host");
        let thread = out.track(Some(process), TrackKind::Thread, "python");
        for step in 0..5 {
            let event = out.event(thread, "train", Time(step * STEP_PS), Dur(STEP_PS));
            out.number(event, NumberKey::Step, step);
            if self.on_gpu {
                let gpu = out.track(Some(host), TrackKind::Device, "gpu0");
                let stream = out.track(Some(gpu), TrackKind::Stream, "s");
                out.event(stream, "k", Time(step * STEP_PS), Dur(STEP_PS / 10 * 8));
            }
        }
        for (name, values) in &self.counters {
            let track = out.track(Some(host), TrackKind::Counter, name);
            for (at, &value) in (0..).zip(values) {
                out.counter(track, Time(at * self.every_ps), value);
            }
        }
        Tables::new(Arc::new(out.finish()))
    }

    pub fn verdict(&self, rule: &dyn Rule) -> Verdict {
        rule.check(&self.tables())
    }

    /// The finding of a rule that must fire.
    pub fn finding(&self, rule: &dyn Rule) -> Finding {
        settled(rule, &self.tables())
    }
}

/// The finding on a drawing with stacks sampled 300 times at equal distances: of one thread after
/// the other, each given from its outermost frame (file, function, line) on.
/// Thread 1 drives.
pub fn with_stacks(
    rule: &dyn Rule,
    picture: &str,
    first_thread: i64,
    stacks: &[&[(&str, &str, u32)]],
) -> Finding {
    with_process(rule, picture, first_thread, stacks, Vec::new())
}

/// The same of the driving thread alone, with the training loop noted at the lines 40 to 50 of
/// `main`, whose step is at line 41.
pub fn in_loop(rule: &dyn Rule, picture: &str, stack: &[(&str, &str, u32)]) -> Finding {
    let (file, function, _) = stack[0];
    let arg = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let site = Site {
        kind: "loop".to_owned(),
        file: file.to_owned(),
        line: 40,
        end_line: 50,
        args: vec![arg("function", function), arg("step_line", "41")],
        ..Site::default()
    };
    with_process(rule, picture, 1, &[stack], vec![site])
}

fn with_process(
    rule: &dyn Rule,
    picture: &str,
    first_thread: i64,
    stacks: &[&[(&str, &str, u32)]],
    sites: Vec<Site>,
) -> Finding {
    let mut trace = draw(picture);
    let mut process = Process { pid: 1, driving_thread: Some(1), sites, ..Process::default() };
    let ends = (0..trace.events.len()).map(|it| trace.events.end(EventId(it as u32)).0);
    let every_ps = ends.max().unwrap_or(0) / 300;
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
        let sample = |at: i64| StackSample { time: Time(at * every_ps), thread, place };
        process.stacks.samples.extend((0..300).map(sample));
    }
    process.stacks.samples.sort_unstable();
    trace.processes.push(process);
    settled(rule, &Tables::new(Arc::new(trace)))
}
