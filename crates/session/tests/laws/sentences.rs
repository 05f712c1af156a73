//! The laws of sentences: what is counted, what is called absent, how it is worded.

use std::collections::BTreeSet;

use analyses::host_call::HostCall;
use analyses::kernel_time::KernelTime;
use analyses::step::Step;
use analyses::{Cell, find};
use serde_json::Value;
use session::Session;
use trace::{EventId, OpKind, TrackKind};

use crate::laws::{causes, findings, list, n_rows, text};
use crate::{HEADLINE_BINDS, Violation, WORDS_BIND};

/// A sentence of a report, and where it stands.
struct Sentence<'a> {
    place: String,
    text: &'a str,
}

fn sentences(report: &Value) -> Vec<Sentence<'_>> {
    let mut found = Vec::new();
    for key in ["headline"] {
        if let Some(text) = report[key].as_str() {
            found.push(Sentence { place: key.to_owned(), text });
        }
    }
    for finding in findings(report) {
        let rule = text(finding, "rule");
        found.push(Sentence { place: format!("{rule}'s title"), text: text(finding, "title") });
        for it in list(finding, "evidence") {
            found.push(Sentence { place: format!("{rule}'s evidence"), text: text(it, "text") });
        }
        for it in list(finding, "fix") {
            found.push(Sentence { place: format!("{rule}'s fix"), text: text(it, "text") });
        }
    }
    for it in list(report, "not_checked") {
        let place = format!("not checked {}", text(it, "rule"));
        found.push(Sentence { place, text: text(it, "why") });
    }
    for it in list(report, "breakdown_unknown") {
        let place = format!("unknown {}", text(it, "category"));
        found.push(Sentence { place, text: text(it, "why") });
    }
    found
}

/// A word without what stands around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| matches!(c, ',' | ';' | ':' | '(' | ')' | '"' | '“' | '”'))
}

/// `4 of 12 steps`.
fn of_steps(text: &str) -> Vec<(u64, u64)> {
    let words: Vec<&str> = text.split_whitespace().map(bare).collect();
    words
        .windows(4)
        .filter(|it| it[1] == "of" && it[3].trim_end_matches('.') == "steps")
        .filter_map(|it| Some((it[0].parse().ok()?, it[2].parse().ok()?)))
        .collect()
}

/// What a number can count: units of time and size cannot be counted.
const UNITS: [&str; 17] = [
    "ps", "ns", "µs", "us", "ms", "s", "min", "h", "%", "B", "kB", "KB", "MB", "GB", "TB", "of",
    "a",
];

/// `300 kernels a step`, `1.5 times per step`; not `1.2 ms a step`.
fn a_step(text: &str) -> Vec<f64> {
    let words: Vec<&str> = text.split_whitespace().map(bare).collect();
    words
        .windows(4)
        .filter(|it| matches!(it[2], "a" | "per") && it[3].trim_end_matches('.') == "step")
        .filter(|it| !UNITS.contains(&it[1]))
        .filter_map(|it| it[0].parse().ok())
        .collect()
}

/// What is counted is there as often.
pub fn counts(report: &Value, session: &Session) -> Vec<Violation> {
    let mut wrong = Vec::new();
    let of_report = |key: &str| report["steps"][key].as_u64().unwrap_or(0);
    let all_steps = of_report("count") + of_report("warmup_skipped") + of_report("partial");
    for sentence in sentences(report) {
        for (some, all) in of_steps(sentence.text) {
            if some > all || all > all_steps {
                let what = format!(
                    "{}: {some} of {all}, of {all_steps} in all: {}",
                    sentence.place, sentence.text
                );
                wrong.push(Violation::hard(what));
            }
        }
    }
    for finding in findings(report) {
        for it in list(finding, "evidence") {
            let Some(counted) = rows_counted(it, session) else { continue };
            for said in a_step(text(it, "text")).into_iter().chain(a_step(text(finding, "title"))) {
                if !counted.allows(said) {
                    wrong.push(Violation::hard(format!(
                        "{} ({}): {said} a step, its rows count {} in {} to {} steps",
                        text(finding, "rule"),
                        text(it, "text"),
                        counted.sum,
                        counted.fewest_steps,
                        counted.most_steps
                    )));
                }
            }
        }
    }
    wrong
}

/// How often the rows behind a sentence happened.
struct Counted {
    sum: i64,
    /// Steps that count, of one host; all steps of all hosts.
    fewest_steps: usize,
    most_steps: usize,
}

impl Counted {
    /// Figures are rounded, and rows may count what lies outside of the steps.
    fn allows(&self, said: f64) -> bool {
        let low = self.sum as f64 / self.most_steps as f64;
        let high = self.sum as f64 / self.fewest_steps as f64;
        low * 0.75 - 1.0 <= said && said <= high * 1.25 + 1.0
    }
}

fn rows_counted(evidence: &Value, session: &Session) -> Option<Counted> {
    let table = find(evidence["table"].as_str()?)?;
    let column = table.columns().iter().position(|it| it.name == "count")?;
    let rows = table.rows(session.tables());
    let mut sum = 0;
    for row in list(evidence, "rows") {
        match rows.cell(usize::try_from(row.as_u64()?).ok()?, column) {
            Cell::Int(it) => sum += it,
            _ => return None,
        }
    }
    let steps = session.tables().get::<Step>();
    let host = &steps.first()?.host;
    let fewest_steps = steps.iter().filter(|it| it.counts() && it.host == *host).count();
    // Kernels of all devices are in one table; what is said of a step is of one device.
    let trace = session.trace();
    let devices = trace.tracks_of(TrackKind::Stream).filter(|it| {
        evidence["table"] == "kernel_time" && trace.rows_of(*it, OpKind::Kernel).next().is_some()
    });
    let devices: BTreeSet<_> = devices.map(|it| trace.ancestor(it, TrackKind::Device)).collect();
    let most_steps = steps.len() * devices.len().max(1);
    (sum > 0 && fewest_steps > 0).then_some(Counted { sum, fewest_steps, most_steps })
}

/// Something said not to be there, and how it can be found all the same.
struct Absence {
    phrase: &'static str,
    found: fn(&Session) -> Option<String>,
}

/// That a table is not empty.
macro_rules! rows_of {
    ($($table:literal),*) => {
        |session| [$($table),*].into_iter().find_map(|table| {
            let n = n_rows(session, table)?;
            (n > 0).then(|| format!("{table} has {n} rows"))
        })
    };
}

const ABSENCES: &[Absence] = &[
    Absence { phrase: "no python lines", found: rows_of!["python_line", "python_time"] },
    Absence { phrase: "no events of the input pipeline", found: rows_of!["input_stage"] },
    Absence { phrase: "no gpu kernels", found: rows_of!["kernel_time"] },
    Absence { phrase: "no kernels", found: rows_of!["kernel_time"] },
    Absence { phrase: "no ops in", found: rows_of!["op_time"] },
    Absence { phrase: "no allocator events", found: rows_of!["memory"] },
    Absence { phrase: "no samples of the machine", found: rows_of!["hardware"] },
    Absence { phrase: "no steps could be told apart", found: rows_of!["step"] },
    Absence { phrase: "left no calls", found: rows_of!["host_call"] },
    Absence { phrase: "no accelerator", found: |it| events_on(it, TrackKind::Stream) },
    Absence { phrase: "no host events", found: |it| events_on(it, TrackKind::Thread) },
    Absence { phrase: "no events in", found: any_event },
    Absence { phrase: "no waits for a device", found: wait },
    Absence { phrase: "no collectives on two devices", found: collectives },
    Absence { phrase: "launch shapes are not in", found: launch_shape },
    Absence { phrase: "not tell the batch size", found: batch_size },
    Absence { phrase: "batch size is not known", found: batch_size },
    Absence { phrase: "batch size unknown", found: batch_size },
];

fn events_on(session: &Session, kind: TrackKind) -> Option<String> {
    let trace = session.trace();
    let track = trace.tracks_of(kind).find(|it| !trace.tracks[it.row()].events.is_empty())?;
    let n = trace.tracks[track.row()].events.len();
    Some(format!("{} has {n} events", trace.track_name(track)))
}

fn any_event(session: &Session) -> Option<String> {
    let n = session.trace().events.len();
    (n > 0).then(|| format!("there are {n}"))
}

fn wait(session: &Session) -> Option<String> {
    let calls = session.tables().get::<HostCall>();
    calls.iter().find(|it| it.kind == "sync").map(|it| format!("host_call has {}", it.call))
}

fn collectives(session: &Session) -> Option<String> {
    let trace = session.trace();
    let devices: BTreeSet<_> = trace
        .tracks_of(TrackKind::Stream)
        .filter(|it| trace.rows_of(*it, OpKind::Collective).next().is_some())
        .filter_map(|it| trace.tracks[it.row()].parent)
        .map(|it| it.row())
        .collect();
    (devices.len() > 1).then(|| format!("{} devices have some", devices.len()))
}

fn launch_shape(session: &Session) -> Option<String> {
    let kernels = session.tables().get::<KernelTime>();
    let known = kernels.iter().find(|it| it.grid.is_some() && it.block.is_some())?;
    Some(format!("kernel_time has that of {}", known.name))
}

/// A stage of the input pipeline that says its batch.
fn batch_size(session: &Session) -> Option<String> {
    let trace = session.trace();
    let mut seen = BTreeSet::new();
    let stages = trace.track_ids().flat_map(|it| trace.rows_of(it, OpKind::InputStage));
    stages.filter(|&row| seen.insert(trace.events.name[row].row())).find_map(|row| {
        let event = EventId(row as u32);
        let args = trace.args.of(event);
        let (_, size) = args.into_iter().find(|it| it.0 == "batch_size")?;
        Some(format!("{} has batch_size {size}", trace.name(event)))
    })
}

/// Nothing is called absent that a table holds.
pub fn absence(report: &Value, session: &Session) -> Vec<Violation> {
    let mut wrong = Vec::new();
    for sentence in sentences(report) {
        let lower = sentence.text.to_lowercase();
        for absence in ABSENCES.iter().filter(|it| lower.contains(it.phrase)) {
            if let Some(found) = (absence.found)(session) {
                let what = format!("{}: {}; but {found}", sentence.place, sentence.text);
                wrong.push(Violation::hard(what));
            }
        }
    }
    wrong
}

/// Words that say nothing of a cause.
const EMPTY_WORDS: [&str; 16] = [
    "step", "steps", "which", "what", "that", "with", "them", "from", "each", "most", "bound",
    "holds", "takes", "time", "than", "their",
];

/// The first sentence names the first finding's cause.
pub fn headline(report: &Value, _: &Session) -> Vec<Violation> {
    let Some(first) = causes(report).first() else { return Vec::new() };
    let headline = text(report, "headline");
    let lower = headline.to_lowercase();
    let cause = format!("{} {}", text(first, "rule").replace('-', " "), text(first, "title"));
    let names = cause.to_lowercase();
    let mut names = names
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|it| it.len() > 3 && !EMPTY_WORDS.contains(it) && it.parse::<f64>().is_err());
    match names.any(|it| lower.contains(it)) {
        true => Vec::new(),
        false => {
            let what = format!("{headline:?} names nothing of {cause:?}");
            vec![Violation::binding(what, HEADLINE_BINDS)]
        }
    }
}

/// Turns of phrase that have to be read twice.
const HABITS: [&str; 9] = [
    " a step, of which ",
    " holds ",
    " is told",
    " are told",
    "made anew",
    " goes on",
    " lies ",
    " want to run",
    "unless told",
];

/// What no careful writer would print.
fn slips(text: &str) -> Vec<&'static str> {
    let words: Vec<&str> = text.split(' ').map(bare).collect();
    let after_one =
        |noun: &str| words.windows(2).any(|it| it[0] == "1" && it[1].trim_end_matches('.') == noun);
    let slips = [
        (text.trim().is_empty(), "empty"),
        (text.contains("  "), "two spaces"),
        (after_one("steps"), "1 steps"),
        (after_one("times"), "1 times"),
        (text.contains(" %") || text.contains("\u{2009}%"), "a space before %"),
        (HABITS.iter().any(|it| text.contains(it)), "a habit that plain English has dropped"),
    ];
    slips.into_iter().filter(|it| it.0).map(|it| it.1).collect()
}

/// Sentences are written with care.
pub fn words(report: &Value, _: &Session) -> Vec<Violation> {
    let mut wrong = Vec::new();
    for sentence in sentences(report) {
        for slip in slips(sentence.text) {
            let text = format!("{}: {slip}: {:?}", sentence.place, sentence.text);
            wrong.push(Violation::binding(text, WORDS_BIND));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::{a_step, of_steps, slips};

    #[test]
    fn counts_are_read_from_sentences() {
        assert_eq!(of_steps("f was traced again in 4 of 12 steps, 2.0 ms each"), [(4, 12)]);
        assert_eq!(of_steps("one of the steps"), []);
        assert_eq!(a_step("300 kernels a step of typically 5.000 µs"), [300.0]);
        assert_eq!(a_step("called 1.5 times per step."), [1.5]);
        assert_eq!(a_step("takes 1.2 ms a step, 20 % a step"), [] as [f64; 0]);
    }

    #[test]
    fn slips_are_seen() {
        assert_eq!(slips("in 1 of 3 steps, 20% of it, 11 times"), [] as [&str; 0]);
        assert_eq!(slips("in 1 steps, 1 times,  20 %").len(), 4);
        assert_eq!(slips(" "), ["empty"]);
    }
}
