//! Measured runs and their comparison as text, JSON and Markdown.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};
use session::bench::{Compared, Measured, MeasuredRun, per_second};
use statistics::{Comparison, Doubt, Interval, Steadiness, Summary, Verdict};
use trace::Dur;

use super::{Columns, too_few};
use crate::output::{Grid, Output, column, shorten, wrap};
use session::report::words::{percent, thousands};

/// Everything there is to print.
pub struct Shown<'a> {
    pub name: String,
    pub measured: &'a Measured,
    pub other_name: String,
    pub other: Option<&'a Measured>,
    pub compared: Option<&'a Compared>,
    pub margin: f64,
    /// Where the runs were put that were started here: a path of no interest.
    pub root: Option<&'a Path>,
}

pub fn text(shown: &Shown<'_>, out: &Output) -> String {
    let width = out.width;
    let mut text = String::new();
    if let (Some(compared), Some(other)) = (shown.compared, shown.other) {
        let (sentence, detail) = verdict(shown, compared, width);
        text += &out.strong(wrap(&sentence, width, " ").trim_end());
        text.push('\n');
        for line in detail {
            text += &wrap(&line, width, " ");
        }
        text.push('\n');
        text += &side(&shown.name, shown.measured, shown.root, out);
        text.push('\n');
        text += &side(&shown.other_name, other, shown.root, out);
        return text;
    }
    text + &side(&shown.name, shown.measured, shown.root, out)
}

fn side(name: &str, measured: &Measured, root: Option<&Path>, out: &Output) -> String {
    let width = out.width;
    let mut text = String::new();
    text += &out.faint(wrap(&headline(name, measured, width / 2), width, " ").trim_end());
    text += "\n\n";
    text += &out.strong(wrap(&sentence(measured), width, " ").trim_end());
    text += "\n\n";
    text += &grid(measured, root, width >= 110).text(width, 1);
    let warnings = warnings(measured);
    if !warnings.is_empty() {
        text.push('\n');
    }
    for warning in warnings {
        text += &wrap(&warning, width, " ");
    }
    text
}

fn headline(name: &str, measured: &Measured, room: usize) -> String {
    let mut parts = vec![shorten(name, room)];
    let runs = measured.runs.len();
    parts.push(if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") });
    if let Some(key) = measured.runs.first().and_then(|it| it.key.as_ref()) {
        parts.push(format!("steps by {} {}", plain(&key.kind), plain(&key.name)));
    }
    let sum = |of: fn(&MeasuredRun) -> u64| measured.runs.iter().map(of).sum::<u64>();
    let all = measured.n_steps() + sum(|it| it.run.skipped) + sum(|it| it.profiled);
    parts.push(format!("{} steady steps of {}", count(measured.n_steps()), count(all)));
    parts.join(" · ")
}

/// Names come from files: what would steer a terminal is not printed.
fn plain(name: &str) -> String {
    name.chars().filter(|it| !it.is_control()).collect()
}

/// What a colleague would say.
fn sentence(measured: &Measured) -> String {
    let Some(summary) = measured.summary.as_ref().filter(|_| measured.is_enough()) else {
        return too_few(measured);
    };
    let word = if measured.is_inference() { "latency" } else { "a step" };
    let median = Dur(summary.median.value_ps);
    let between = range(summary.median);
    let mut sentence = format!("{median} {word} ({between} with 95 %)");
    let p99 = summary.percentiles.iter().find(|it| it.permille == 990);
    if let Some(p99) = p99.filter(|_| measured.is_inference()) {
        let _ = write!(sentence, ", p99 {}", Dur(p99.at.value_ps));
    }
    if let Some(rate) = per_second(summary) {
        let _ = write!(sentence, ", {} steps/s", rounded(rate));
        if let Some(examples) = measured.examples() {
            let _ = write!(sentence, ", {} examples/s", rounded(rate * examples as f64));
        }
    }
    sentence + "."
}

/// `29.98 to 30.27 ms`.
fn range(interval: Interval) -> String {
    let ends = column(&[Dur(interval.low_ps), Dur(interval.high_ps)]);
    let low = ends[0].split(' ').next().unwrap_or_default();
    format!("{low} to {}", ends[1])
}

/// Four significant digits, thousands apart.
fn rounded(value: f64) -> String {
    match value {
        it if it >= 1000.0 => count(it.round() as u64),
        it if it >= 100.0 => format!("{it:.1}"),
        it if it >= 10.0 => format!("{it:.2}"),
        it => format!("{it:.3}"),
    }
}

fn count(n: u64) -> String {
    thousands(usize::try_from(n).unwrap_or(usize::MAX))
}

/// One row for each run, and one for all where there are several.
fn grid(measured: &Measured, root: Option<&Path>, is_wide: bool) -> Grid {
    let several = measured.runs.len() > 1;
    let name = |it: &MeasuredRun| {
        let short = root.and_then(|root| it.folder.strip_prefix(root).ok());
        short.unwrap_or(&it.folder).display().to_string()
    };
    let mut names: Vec<String> = measured.runs.iter().map(name).collect();
    let mut summaries: Vec<Option<&Summary>> =
        measured.runs.iter().map(|it| it.summary.as_ref()).collect();
    let mut skipped: Vec<u64> = measured.runs.iter().map(|it| it.run.skipped).collect();
    let mut examples: Vec<Option<u64>> = measured.runs.iter().map(|it| it.examples).collect();
    if several {
        names.push("together".to_owned());
        summaries.push(measured.summary.as_ref());
        skipped.push(skipped.iter().sum());
        examples.push(measured.examples());
    }
    let times = |of: &dyn Fn(&Summary) -> Option<i64>| -> Vec<String> {
        let known: Vec<Option<i64>> = summaries.iter().map(|it| it.and_then(of)).collect();
        let mut cells =
            column(&known.iter().flatten().map(|it| Dur(*it)).collect::<Vec<_>>()).into_iter();
        known.iter().map(|it| it.and_then(|_| cells.next()).unwrap_or_default()).collect()
    };
    let percentile = |permille: u16| {
        times(&move |it: &Summary| {
            let found = it.percentiles.iter().find(|it| it.permille == permille)?;
            Some(found.at.value_ps)
        })
    };
    let each = |of: &dyn Fn(&Summary) -> String| -> Vec<String> {
        summaries.iter().map(|it| it.map(of).unwrap_or_default()).collect()
    };
    let mut columns = Columns::default();
    columns.text("run", names);
    let steps = summaries.iter().map(|it| count(it.map_or(0, |it| it.n_steps)));
    columns.number("steps", steps.collect());
    columns.number("warm-up", skipped.into_iter().map(count).collect());
    columns.number("median", times(&|it| Some(it.median.value_ps)));
    // One value, or ten alike, have an interval of no width, which says nothing.
    let is_told = |it: &Summary| it.median.low_ps < it.median.high_ps;
    let interval = |it: &Summary| if is_told(it) { range(it.median) } else { String::new() };
    columns.number("95 % interval", each(&interval));
    columns.number("p90", percentile(900));
    if is_wide {
        columns.number("p95", percentile(950));
    }
    columns.number("p99", percentile(990));
    if is_wide {
        columns.number("p99.9", percentile(999));
        columns.number("mean", times(&|it| Some(it.mean_ps)));
        columns.number("steps/s", each(&|it| per_second(it).map(rounded).unwrap_or_default()));
        let rate = |(summary, examples): (&Option<&Summary>, &Option<u64>)| {
            Some(rounded(per_second((*summary)?)? * (*examples)? as f64))
        };
        let rates = summaries.iter().zip(&examples).map(|it| rate(it).unwrap_or_default());
        columns.number("examples/s", rates.collect());
    }
    columns.grid()
}

/// What a reader must know before believing the figures, each with its number.
fn warnings(measured: &Measured) -> Vec<String> {
    let mut warnings = Vec::new();
    for it in &measured.runs {
        let name = it.folder.file_name().map(|it| it.to_string_lossy()).unwrap_or_default();
        let mut warn = |text: String| {
            warnings.push(match measured.runs.len() {
                1 => text,
                _ => format!("{}: {text}", plain(&name)),
            });
        };
        if let Steadiness::NotReached { last_change, low_ps, high_ps } = it.run.steadiness {
            let range = range(Interval { value_ps: low_ps, low_ps, high_ps });
            warn(format!(
                "No steady state: levels from {range} a step, the last change after step {}; run \
                 it longer",
                count(last_change)
            ));
        }
        if let Some(drift) = it.run.drift.filter(statistics::Drift::is_real) {
            let word = if drift.total_ps > 0 { "slower" } else { "faster" };
            let typical = it.summary.as_ref().map_or(1, |it| it.median.value_ps.max(1)) as f64;
            let mut ends = [drift.low_ps, drift.high_ps].map(|it| (it as f64 / typical).abs());
            ends.sort_by(f64::total_cmp);
            warn(format!(
                "Drift: steps become {word} by {} from first to last ({} to {})",
                percent(drift.share.abs()),
                percent(ends[0]),
                percent(ends[1])
            ));
        }
        if let Some(modes) = &it.run.modes {
            let times =
                column(&modes.modes.iter().map(|it| Dur(it.typical_ps)).collect::<Vec<_>>());
            let kinds = modes.modes.iter().zip(times);
            let kinds = kinds.map(|(mode, time)| format!("{} near {time}", percent(mode.share)));
            warn(format!(
                "Modes: {} kinds of steps, {}; the median tells of the commonest",
                modes.modes.len(),
                kinds.collect::<Vec<_>>().join(", ")
            ));
        }
        let averaged = it.run.steady.n_averaged();
        if averaged > 0 {
            warn(format!(
                "Percentiles are not known: of {} steps only means over several are",
                count(averaged)
            ));
        }
        if it.profiled > 0 {
            warn(format!("Left out: {} steps that a profiler disturbed", count(it.profiled)));
        }
        if it.others > 0 {
            let pid = it.pid.map_or(String::new(), |it| format!(" of process {it}"));
            warn(format!(
                "Taken are the steps{pid}; {} other series of steps are there",
                it.others
            ));
        }
        for note in &it.notes {
            warn(format!("Note: {} {}: {}", count(note.count), note.kind.name(), note.first));
        }
    }
    if let Some(between) = measured.summary.as_ref().and_then(|it| it.between_runs) {
        warnings.push(format!("Medians of the runs differ by {} (deviation).", percent(between)));
    }
    warnings
}

/// The sentence, and what it rests on.
fn verdict(shown: &Shown<'_>, compared: &Compared, width: usize) -> (String, Vec<String>) {
    let it = &compared.comparison;
    let name = shorten(&shown.name, width / 2 - 8);
    let other = shorten(&shown.other_name, width / 2 - 8);
    let sentence = match it.verdict {
        Verdict::Slower | Verdict::Faster => {
            format!(
                "{name} is {} than {other} by {}.",
                it.verdict.as_str(),
                percent(it.share.abs())
            )
        }
        Verdict::NoDifference => {
            format!("No difference between {name} and {other} beyond {}.", percent(shown.margin))
        }
        Verdict::CannotTell => {
            format!("Cannot tell whether {name} is faster or slower than {other}.")
        }
    };
    let times = column(&[
        Dur(it.a_median.value_ps),
        Dur(it.b_median.value_ps),
        Dur(it.shift.value_ps),
        Dur(it.shift.low_ps),
        Dur(it.shift.high_ps),
        Dur(it.noise_floor_ps),
    ]);
    let mut detail = vec![format!(
        "{} → {} a step: {} ({} to {} with 99 %); noise floor {}, {} of a step.",
        times[0],
        times[1],
        signed(&times[2], it.shift.value_ps),
        signed(&times[3], it.shift.low_ps),
        signed(&times[4], it.shift.high_ps),
        times[5],
        percent(it.noise_floor_ps as f64 / it.a_median.value_ps.max(1) as f64),
    )];
    if it.in_pairs {
        detail.push("The runs took turns: each is compared with its neighbour.".to_owned());
    }
    if compared.one_after_the_other {
        detail.push(
            "All runs of one came before those of the other: a change of the machine meanwhile \
             would look the same. Let them take turns: strobe bench --against."
                .to_owned(),
        );
    }
    detail.extend(it.doubts.iter().map(|it| doubt(*it).to_owned()));
    (sentence, detail)
}

fn signed(text: &str, value: i64) -> String {
    match value {
        0.. => format!("+{text}"),
        _ => text.replacen('-', "\u{2212}", 1),
    }
}

fn doubt(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::FewSteps => "A side has too few steady steps.",
        Doubt::NotSteady => {
            "A side did not become steady: the interval holds all of its levels. Run it longer."
        }
        Doubt::Drift => {
            "A side's only run drifts: the interval holds half of that. Run it several times."
        }
        Doubt::OneRun => {
            "A side has one run: how much another would differ is assumed. Run it several times."
        }
        Doubt::Noise => {
            "The steps or runs vary too much for so small a shift. More runs, or a quieter machine."
        }
    }
}

pub fn markdown(shown: &Shown<'_>) -> String {
    let mut text = String::new();
    if let Some(compared) = shown.compared {
        // Wide enough that no name is cut.
        let (sentence, detail) = verdict(shown, compared, 10_000);
        let _ = writeln!(text, "**{sentence}**\n");
        for line in detail {
            let _ = writeln!(text, "- {line}");
        }
        text.push('\n');
    }
    let sides = [(&shown.name, Some(shown.measured)), (&shown.other_name, shown.other)];
    for (name, measured) in sides {
        let Some(measured) = measured else { continue };
        let _ = writeln!(text, "## {name}\n\n{}\n", sentence(measured));
        text += &grid(measured, shown.root, true).markdown();
        text.push('\n');
        for warning in warnings(measured) {
            let _ = writeln!(text, "- {warning}");
        }
    }
    text
}

fn ms(ps: i64) -> f64 {
    ps as f64 / 1e9
}

pub fn as_json(shown: &Shown<'_>) -> Value {
    let mut all = Map::new();
    all.insert("schema".to_owned(), json!(1));
    let side = measured_json(&shown.name, shown.measured);
    all.extend(side);
    if let Some(other) = shown.other {
        all.insert("other".to_owned(), Value::Object(measured_json(&shown.other_name, other)));
    }
    if let Some(compared) = shown.compared {
        all.insert("comparison".to_owned(), comparison_json(compared, shown));
    }
    Value::Object(all)
}

fn measured_json(name: &str, measured: &Measured) -> Map<String, Value> {
    let mut side = Map::new();
    side.insert("name".to_owned(), json!(name));
    let what = if measured.is_inference() { "latency" } else { "step" };
    side.insert("what".to_owned(), json!(what));
    side.insert("enough".to_owned(), json!(measured.is_enough()));
    let together = measured.summary.as_ref().map(|it| summary_json(it, measured.examples()));
    side.insert("together".to_owned(), json!(together));
    side.insert("runs".to_owned(), json!(measured.runs.iter().map(run_json).collect::<Vec<_>>()));
    side
}

fn run_json(it: &MeasuredRun) -> Value {
    let steady = match it.run.steadiness {
        Steadiness::Steady => Some(true),
        Steadiness::NotReached { .. } => Some(false),
        Steadiness::NotLookedFor => None,
    };
    let drift = it.run.drift.map(|it| {
        json!({"total_ms": ms(it.total_ps), "low_ms": ms(it.low_ps), "high_ms": ms(it.high_ps),
               "share": it.share, "warn": it.is_real()})
    });
    let modes = it.run.modes.as_ref().map(|it| {
        let modes = it.modes.iter();
        let modes = modes.map(|it| json!({"typical_ms": ms(it.typical_ps), "share": it.share}));
        json!({"depth": it.depth, "modes": modes.collect::<Vec<_>>()})
    });
    let notes = it.notes.iter();
    let notes =
        notes.map(|it| json!({"kind": it.kind.name(), "count": it.count, "first": it.first}));
    json!({
        "path": it.folder.display().to_string(),
        "pid": it.pid,
        "steps_by": it.key.as_ref().map(|it| json!({"kind": it.kind, "name": it.name})),
        "warmup_skipped": it.run.skipped,
        "steady": steady,
        "profiled_skipped": it.profiled,
        "averaged": it.run.steady.n_averaged(),
        "other_series": it.others,
        "steps": it.summary.as_ref().map(|summary| summary_json(summary, it.examples)),
        "drift": drift,
        "modes": modes,
        "notes": notes.collect::<Vec<_>>(),
    })
}

fn summary_json(it: &Summary, examples: Option<u64>) -> Value {
    let percentiles = it.percentiles.iter().map(|it| {
        json!({"p": f64::from(it.permille) / 10.0, "ms": ms(it.at.value_ps),
               "low_ms": ms(it.at.low_ps), "high_ms": ms(it.at.high_ps)})
    });
    let rate = per_second(it);
    json!({
        "count": it.n_steps,
        "runs": it.n_runs,
        "mean_ms": ms(it.mean_ps),
        "median_ms": ms(it.median.value_ps),
        "low_ms": ms(it.median.low_ps),
        "high_ms": ms(it.median.high_ps),
        "percentiles": percentiles.collect::<Vec<_>>(),
        "effective_steps": it.effective_steps,
        "between_runs": it.between_runs,
        "steps_per_s": rate,
        "examples_per_s": rate.zip(examples).map(|(rate, examples)| rate * examples as f64),
    })
}

/// The words of `strobe diff`; A is the other side.
fn comparison_json(compared: &Compared, shown: &Shown<'_>) -> Value {
    let it: &Comparison = &compared.comparison;
    let doubts = it.doubts.iter().map(|it| match it {
        Doubt::FewSteps => "few steps",
        Doubt::NotSteady => "not steady",
        Doubt::Drift => "drift",
        Doubt::OneRun => "one run",
        Doubt::Noise => "noise",
    });
    let (a, b) = (it.a_median.value_ps, it.b_median.value_ps);
    json!({
        "a": shown.other_name,
        "b": shown.name,
        "verdict": it.verdict.as_str(),
        "step": {
            "a_median_ms": ms(a),
            "b_median_ms": ms(b),
            "shift_ms": ms(it.shift.value_ps),
            "low_ms": ms(it.shift.low_ps),
            "high_ms": ms(it.shift.high_ps),
            "share": it.share,
            "speedup": (a > 0 && b > 0).then(|| a as f64 / b as f64),
            "noise_floor_ms": ms(it.noise_floor_ps),
            "steps_a": shown.other.map(Measured::n_steps),
            "steps_b": shown.measured.n_steps(),
        },
        "margin": shown.margin,
        "in_pairs": it.in_pairs,
        "one_after_the_other": compared.one_after_the_other,
        "doubts": doubts.collect::<Vec<_>>(),
    })
}
