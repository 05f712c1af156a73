//! The report's sentence and figures, as every outlet says them.

use analyses::run_info::Hidden;
use rules::{Finding, Gain, Severity};
use trace::{Dur, NoteKind};

use super::Report;

pub use rules::{percent, thousands};

/// The sentence a colleague would say: how long a step takes, and what the first finding is.
pub fn headline(report: &Report) -> String {
    // Half a profile may lack a device, the host, or the marks of steps.
    let cut_off = match report.notes.iter().any(|it| it.kind == NoteKind::CutOff) {
        true => "This profile is cut off, and what is lost may matter. ",
        false => "",
    };
    let (Some(steps), Some(main)) = (&report.steps, report.main()) else {
        return without_steps(report, cut_off);
    };
    let step = steps.mean;
    let mut text = format!("{cut_off}Each step takes {step}");
    let share = |time: Dur| percent(time.0 as f64 / step.0.max(1) as f64);
    match report.diagnosis.causes.first() {
        Some(cause)
            if let Some(words) = cause
                .finding
                .headline
                .or_else(|| rules::find(cause.rule).and_then(|it| it.in_headline())) =>
        {
            let takes = cause.finding.takes.min(step);
            text += &format!("; {takes} ({}) {words}.", share(takes));
            text += &unexplained(report).unwrap_or_default();
        }
        Some(cause) => {
            let (takes, words) = (main.per_step, in_words(main.category));
            text += &format!("; {takes} ({}) {words}. {}.", share(takes), cause.finding.title);
        }
        None => {
            let (takes, words) = (main.per_step, main_in_words(report, main.category));
            let mostly = mostly(report).map(|it| format!(", {it}")).unwrap_or_default();
            text += &format!("; {takes} ({}) {words}{mostly}.", share(takes));
        }
    }
    if steps.count == 1 {
        let how = match report.run.frameworks.contains(&"tensorflow") {
            true => "profile_batch=(10, 20) or `strobe run`",
            false => "`strobe run`",
        };
        text += &format!(
            " Only one step was captured, so no gain is predicted; capture more with {how}."
        );
    }
    // Others' programs are no fault of this one: a caveat, not the cause.
    let busy = report.diagnosis.causes.iter().skip(1).find(|it| it.rule == "cpu-contention");
    if let Some(it) = busy.filter(|it| it.finding.severity > Severity::Low) {
        text += &format!(" The machine was busy: {}.", lower_first(&it.finding.title));
    }
    text
}

/// Where most of the framework's overhead is, if that is in one call.
fn mostly(report: &Report) -> Option<String> {
    let is_overhead = report.main()?.category == "runtime" && report.hidden.is_none();
    let culprit = report.main_culprit.as_ref().filter(|it| is_overhead && it.share >= MOST)?;
    Some(format!("most of it in {}", culprit.name))
}

/// Half of it.
/// Source: choice, the word says so.
const MOST: f64 = 0.5;

/// The sentence about overhead that is most of the step, where findings explain less than half of
/// it: who mends only those is left with a slow step, and should know.
fn unexplained(report: &Report) -> Option<String> {
    let (main, step) = (report.main()?, report.steps.as_ref()?.mean);
    let takes = report.diagnosis.causes.iter().map(|it| it.finding.takes.0 as f64);
    let is_most = main.category == "runtime" && main.share >= MOST;
    if !is_most || takes.sum::<f64>() >= MOST * main.per_step.0 as f64 {
        return None;
    }
    let (takes, words) = (main.per_step, main_in_words(report, main.category));
    let share = percent(takes.0 as f64 / step.0.max(1) as f64);
    let mostly = mostly(report).map(|it| format!(", {it}")).unwrap_or_default();
    Some(format!(" But {takes} ({share}) {words}{mostly}; no edit is known for that."))
}

/// What was not recorded shows as time of the framework.
fn main_in_words(report: &Report, category: &str) -> &'static str {
    match (category, report.hidden) {
        ("runtime", Some(Hidden::OnAccelerator)) => {
            "is spent in the framework, which may be waiting for the device"
        }
        ("runtime", Some(Hidden::OnHost)) => {
            "is spent in the framework, which may be computing: no op that ran was recorded"
        }
        _ => in_words(category),
    }
}

fn without_steps(report: &Report, cut_off: &str) -> String {
    let (run, sampled) = (&report.run, &report.beside);
    match run.events {
        0 if let Some(steps) = &sampled.steps => format!(
            "Each step takes {} by the run's own clock; without a profile it cannot be said where \
             the time goes.",
            steps.median
        ),
        0 if !sampled.lines.is_empty() => {
            "Only Python samples were taken; they do not show why steps are slow.".to_owned()
        }
        0 if run.scalars > 0 => format!(
            "There is no profile here, only a training log of {} scalars; `strobe table PATH \
             scalar` shows them.",
            thousands(run.scalars)
        ),
        0 if report.notes.is_empty() => "This profile has no events.".to_owned(),
        0 => "Nothing could be read from this damaged file.".to_owned(),
        n => format!(
            "{cut_off}No steps could be identified in {} events over {}.",
            thousands(n),
            run.window
        ),
    }
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|it| it.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// `13.8 → about 8 ms (6.3–12): 1.15–2.2× faster`.
pub fn gain_in_words(step: Dur, gain: &Gain) -> String {
    let after = gain.step_after(step);
    let (unit, scale) = match step.0 {
        it if it >= 1_000_000_000_000 => ("s", 1e12),
        it if it >= 1_000_000_000 => ("ms", 1e9),
        it if it >= 1_000_000 => ("µs", 1e6),
        _ => ("ns", 1e3),
    };
    let [now, likely, low, high] =
        [step, after.likely, after.low, after.high].map(|it| digits(it.0 as f64 / scale));
    let range = if low == high { String::new() } else { format!(" ({low}–{high})") };
    format!("{now} → about {likely} {unit}{range}: {} faster", range_in_words(gain))
}

/// `1.15–2.2×`.
pub fn range_in_words(gain: &Gain) -> String {
    let [least, most] = [gain.low, gain.high].map(times);
    if least == most { format!("{least}×") } else { format!("{least}–{most}×") }
}

/// What stands at the right of a finding.
pub fn figures_in_words(step: Option<Dur>, finding: &Finding) -> String {
    match (step, finding.gain) {
        (Some(step), Some(gain)) if gain.high > 1.0 => gain_in_words(step, &gain),
        _ if finding.cost > Dur(0) => {
            format!("{} per step · {}", finding.cost, finding.severity.name())
        }
        _ => finding.severity.name().to_owned(),
    }
}

/// Three significant digits, none of them a zero at the end.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        it if it >= 99.95 => 0,
        it if it >= 9.995 => 1,
        it if it >= 0.9995 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    match decimals {
        0 => text,
        _ => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

/// As many digits as such a prediction carries.
fn times(speedup: f64) -> String {
    match speedup {
        it if it < 1.995 => format!("{it:.2}"),
        it if it < 9.95 => format!("{it:.1}"),
        it => format!("{it:.0}"),
    }
}

/// Without what the framework puts in front of the user's own names.
pub fn plain(name: &str) -> &str {
    name.trim_start_matches("StatefulPartitionedCall/")
}

/// What a person would say of a category's time.
fn in_words(category: &str) -> &'static str {
    match category {
        "input" => "is spent waiting for input",
        "transfer_in" => "is spent copying to the device",
        "compile" => "is spent tracing and compiling",
        "python" => "is spent in Python code outside the framework",
        "runtime" => "is framework overhead on the host",
        "compute" => "is compute",
        "collective" => "is communication that nothing overlaps",
        "transfer_out" => "is spent copying from the device",
        "output" => "is spent saving",
        _ => "is idle, and the profile does not show why",
    }
}

#[cfg(test)]
mod tests {
    use rules::Gain;
    use trace::Dur;

    use super::gain_in_words;

    #[test]
    fn milliseconds_and_speed_up_agree_by_mental_arithmetic() {
        let gain = Gain { low: 1.15, speedup: 1.725, high: 2.19 };
        let text = gain_in_words(Dur(13_800_000_000), &gain);
        assert_eq!(text, "13.8 → about 8 ms (6.3–12): 1.15–2.2× faster");
    }
}
