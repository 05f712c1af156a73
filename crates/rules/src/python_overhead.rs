//! Python holds the step while nothing of the framework runs.

use analyses::Tables;
use analyses::code_site::Doing;
use analyses::host_call::{EagerOps, HostCall, eager_ops};
use analyses::python_line::PythonLine;
use analyses::python_time::PythonTime;
use analyses::what_if::Altered;
use trace::{Dur, EventId};

use crate::dialect::Edit;
use crate::facts::{Facts, NO_STEPS, facts, recorded_python};
use crate::lines::{busiest, line_in_words, line_of_loop, place, place_of_loop};
use crate::{Change, Evidence, Finding, Fix, Gain, Prediction, Rule, Verdict, WORTH_SAYING};

rule! {
    /// Python code of the training loop takes a large part of the step.
    ///
    /// ## Evidence
    /// The time of a step in which the driving thread was outside any call of the framework and
    /// nothing computed: metrics, logging, callbacks, conversions to NumPy.
    ///
    /// ## Fix
    /// Do it every N steps, or in a thread, or inside the compiled step.
    ///
    /// ## When it is wrong
    /// Without sampled stacks (`strobe run` takes them) or Python events it cannot be told which
    /// line takes the time, nor whether Python worked or slept; nor with them where steps are
    /// shorter than a millisecond. Work of other libraries (NumPy, a database) counts as Python.
    pub struct PythonOverhead = "python-overhead";
}

impl Rule for PythonOverhead {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        // The lines between ops that are called one by one go with those calls.
        let eager = eager_ops(tables);
        let python = facts.of("python");
        let cost = if eager.are_many() { Dur(python.0 - eager.between_ps) } else { python };
        let share = facts.share_of(cost);
        if share < WORTH_SAYING {
            return Verdict::Clear;
        }
        let ops = beside_compiled(tables, &eager);
        let gain = Prediction::of(tables, &Altered::Without("python")).map(|predicted| {
            let whole = predicted.gain;
            // Recording Python's own calls makes it slower: that part wins nothing.
            let old = facts.step.0 - recorded_python(tables, cost).0;
            let new = facts.step.0 - cost.0;
            let part = match facts.on_device {
                true => Gain::of_times(old, new),
                false => Gain::on_host(old, [new, new, new - ops.0]),
            };
            // Ops that the same code calls are not Python, and go with it.
            let most = match predicted.then {
                None if ops > Dur(0) => part.high,
                _ => whole.high,
            };
            // The pipeline or the device may hold the step longer than Python's going suggests.
            Gain {
                low: part.low.min(whole.low),
                speedup: part.speedup.min(whole.speedup),
                high: part.high.min(most).max(part.speedup.min(whole.speedup)),
            }
        });
        let sampled = sampled_holder(tables);
        let too_short = sampled.is_some() && facts.step < SHORTEST_SAMPLED;
        let holder = sampled.filter(|_| !too_short).or_else(|| recorded_holder(tables, cost));
        let title = match &holder {
            Some(it) => format!(
                "{} ({}) and other Python code outside the framework take {}",
                it.function,
                it.place,
                facts.per_step(cost)
            ),
            None => format!("Python code outside the framework takes {}", facts.per_step(cost)),
        };
        let title = match &holder {
            // One function is nearly all of it.
            Some(it) if it.share >= ALONE => {
                format!("{} ({}) takes {}", it.function, it.place, facts.per_step(cost))
            }
            _ => title,
        };
        let mut finding = Finding::new(title, cost, facts.step);
        if let Some(place) = where_it_is(tables) {
            finding = finding.evidence(place);
        }
        let between = match Dur(python.0 - cost.0) {
            Dur(0) => String::new(),
            it => format!(", {it} of it between single ops"),
        };
        finding = finding.evidence(
            Evidence::text(format!(
                "Outside any framework call: {}{between}",
                facts.per_step(python)
            ))
            .steps("python", Facts::rows(tables)),
        );
        let known = holder.is_some();
        if let Some(place) = place_of_loop(tables).filter(|_| !known) {
            finding = finding.evidence(place);
        }
        if too_short && !known {
            let text = "Steps are too short for Python samples to tell which line takes the time";
            finding = finding.evidence(Evidence::text(text));
        }
        for evidence in holder.into_iter().flat_map(|it| it.evidence) {
            finding = finding.evidence(evidence);
        }
        let finding = finding.fix(
            Fix::new(
                Change::EveryNSteps,
                "Do logging, metrics and callbacks every 50 steps, or in a thread",
            )
            .gives(gain)
            .at(line_of_loop(tables, Doing::Python).map(|it| it.site)),
        );
        match known || too_short {
            true => finding,
            false => finding.fix(
                Fix::new(Change::Capture, "To see which line takes the time, capture with")
                    .edit(Edit::CaptureByStrobe)
                    .untold("it only shows more"),
            ),
        }
        .found()
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("is spent in Python code outside the framework")
    }
}

/// Single ops beside a compiled step: the code that takes the time may well be what calls them.
fn beside_compiled(tables: &Tables, eager: &EagerOps) -> Dur {
    let calls = tables.get::<HostCall>();
    let is_compiled = calls.iter().any(|it| it.kind == "function");
    Dur(if is_compiled { eager.calls_ps + eager.between_ps } else { 0 })
}

/// A function with this much of the time is the one to name alone.
/// Source: choice, four fifths.
const ALONE: f64 = 0.8;

/// A recorded function that takes this part of the time takes most of it.
/// Source: choice, a guess.
const MOSTLY: (i64, i64) = (7, 10);

/// Reading a stack from outside takes some tenths of a millisecond, in which the program goes on:
/// of shorter steps, samples see where it waits rather than where it works. Of a step of 0.2 ms,
/// four in five were at a wait that takes a third of it; of one of 5 ms, as many as there should be.
/// Source: choice, between the two.
const SHORTEST_SAMPLED: Dur = Dur(1_000_000_000);

/// The function that takes most of the time.
struct Holder {
    function: String,
    place: String,
    /// Of Python's time.
    share: f64,
    evidence: Vec<Evidence>,
}

/// By samples of the driving thread's stack.
fn sampled_holder(tables: &Tables) -> Option<Holder> {
    let rows = tables.get::<PythonLine>();
    let top = busiest(&rows, "python")?;
    let lines = top.lines.iter().take(crate::facts::MOST_NAMED).map(|&at| {
        let line = &rows[at];
        Evidence::text(line_in_words(line)).rows("python_line", vec![at])
    });
    Some(Holder {
        function: top.function.to_owned(),
        place: place(&rows[top.lines[0]]),
        share: top.share,
        evidence: lines.collect(),
    })
}

/// By recorded calls: the innermost function that still holds most of the time.
fn recorded_holder(tables: &Tables, cost: Dur) -> Option<Holder> {
    let rows = tables.get::<PythonTime>();
    let most = rows.iter().filter(|it| {
        it.total_ps * MOSTLY.1 >= cost.0 * MOSTLY.0
            && it.total_ps as f64 <= FAR_MORE * cost.0 as f64
    });
    let it = most.min_by_key(|it| it.total_ps)?;
    let text = format!(
        "{} ran {} and takes {} per step, with what it calls",
        it.function,
        if it.calls == 1 { "once".to_owned() } else { format!("{} times", it.calls) },
        Dur(it.total_ps)
    );
    let event = u32::try_from(it.event).ok().map(EventId);
    let evidence = Evidence::text(text);
    Some(Holder {
        function: it.function.clone(),
        place: it.place.clone(),
        share: it.total_ps as f64 / cost.0.max(1) as f64,
        evidence: vec![evidence.events(event.into_iter().collect())],
    })
}

/// A function with far more than Python's time mostly waits inside the framework.
/// Source: choice, half as much again.
const FAR_MORE: f64 = 1.5;

/// Between which calls most of the Python is.
fn where_it_is(tables: &Tables) -> Option<Evidence> {
    let calls = tables.get::<HostCall>();
    let (row, call) = calls.iter().enumerate().max_by_key(|it| it.1.python_after_ps)?;
    let after = Dur(call.python_after_ps);
    let text = match call.before.as_deref() {
        Some(before) if before == call.call => {
            format!("{after} per step passes between one call of {before} and the next")
        }
        Some(before) => {
            format!("{after} per step passes after {}, most of it before {before}", call.call)
        }
        None => format!("{after} per step passes after {}", call.call),
    };
    let event = u32::try_from(call.event).ok().map(EventId);
    Some(Evidence::text(text).rows("host_call", vec![row]).events(event.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::PythonOverhead;
    use crate::testing::{finding, in_loop, missing, verdict, with_stacks};
    use crate::{Finding, Severity, Verdict};

    #[test]
    fn gaps_between_calls_are_python() {
        let found = finding(
            &PythonOverhead,
            "
            host/python: train#1 0..100, EagerExecute 0..40, train#2 100..200, \
            EagerExecute 100..140, train#3 200..300, EagerExecute 200..240
            host/tf_Compute: MatMul:MatMul 5..40, MatMul:MatMul 105..140, MatMul:MatMul 205..240
            ",
        );
        assert_eq!(found.severity, Severity::High);
        assert_eq!(found.cost.0, 60_000_000);
        let gain = found.gain.unwrap();
        // 40 of 100 µs are left, and take less undisturbed.
        assert!(gain.low < 2.5 && gain.speedup == 2.5 && 2.5 < gain.high, "{gain:?}");
    }

    /// Three steps of so many microseconds, of which two fifths compute, with a stack beside them.
    fn sampled(step: i64) -> Finding {
        let main = ("/home/me/train.py", "main", 40);
        let log = ("/home/me/train.py", "log", 12);
        let dumps = ("/usr/lib/python3.12/json/__init__.py", "dumps", 231);
        with_stacks(&PythonOverhead, &steps(step), 1, &[&[main, log, dumps]])
    }

    fn steps(step: i64) -> String {
        let (mut drives, mut computes) =
            ("host/python: ".to_owned(), "host/tf_Compute: ".to_owned());
        for n in 0..3 {
            let (at, called, end) = (n * step, n * step + step / 5 * 2, (n + 1) * step);
            drives += &format!("train#{n} {at}..{end}, EagerExecute {at}..{called}, ");
            computes += &format!("MatMul:MatMul {at}..{called}, ");
        }
        format!("{drives}\n{computes}")
    }

    #[test]
    fn the_line_is_named_where_stacks_were_sampled() {
        let found = sampled(2000);
        assert!(
            found.title.starts_with("log (train.py:12) takes 1.2 ms per step (60%)"),
            "{}",
            found.title
        );
        let line = found.evidence.iter().find(|it| it.text.starts_with("train.py:")).unwrap();
        assert_eq!(line.text, "train.py:12 in log: 1.2 ms per step, most of it in dumps");
        assert!(found.fix.iter().all(|it| it.edit.is_none()), "nothing more has to be captured");
    }

    #[test]
    fn the_line_of_the_loop_is_the_one_to_change() {
        let picture = steps(2000);
        let file = "/home/me/train.py";
        let found = in_loop(&PythonOverhead, &picture, &[(file, "main", 43), (file, "log", 12)]);
        let site = found.fix[0].site.as_ref().unwrap();
        assert_eq!((site.place().as_str(), site.kind.as_str()), ("train.py:43", "line"));
        // The step itself cannot be left out.
        let found = in_loop(&PythonOverhead, &picture, &[(file, "main", 41), (file, "log", 12)]);
        assert_eq!(found.fix[0].site, None);
    }

    #[test]
    fn of_short_steps_no_line_is_named() {
        let found = sampled(200);
        assert!(found.title.ends_with("takes 120 µs per step (60%)"), "{}", found.title);
        assert!(found.evidence.iter().any(|it| it.text.starts_with("Steps are too short")));
        assert!(found.fix.iter().all(|it| it.edit.is_none()), "capturing again would not help");
    }

    #[test]
    fn a_driving_thread_that_always_calls_is_clear() {
        let picture = "
            host/python: train#1 0..100, EagerExecute 0..99, train#2 100..200, \
            EagerExecute 100..199, train#3 200..300, EagerExecute 200..299
            ";
        assert_eq!(verdict(&PythonOverhead, picture), Verdict::Clear);
    }

    #[test]
    fn without_steps_it_cannot_know() {
        assert_eq!(missing(&PythonOverhead, "gpu0/s: k 0..1"), "no steps could be identified");
    }
}
