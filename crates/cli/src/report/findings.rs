//! The findings as a person reads them: the cause, what it wins, how it shows, what to write.

use std::fmt::Write as _;

use rules::{Cause, Fix, Severity};
use session::report::words::{figures_in_words, gain_in_words, range_in_words};
use session::report::{Part, Report};
use trace::Dur;

use crate::output::{Output, wrap};

/// The causes, numbered, each with its gain at the right, its evidence and the edit.
pub fn text(report: &Report, out: &Output) -> String {
    let step = report.steps.as_ref().map(|it| it.mean);
    let mut text = String::new();
    for (at, cause) in report.diagnosis.causes.iter().enumerate() {
        let finding = &cause.finding;
        let head = format!(" {}  {}", at + 1, cause.rule);
        let gain = figures_in_words(step, finding);
        // What hardly matters gets a line, unless it is all there is to say.
        if at > 0 && finding.severity == Severity::Low {
            let line = format!("{} (low): {}", cause.rule, sentence(&finding.title));
            let wrapped = wrap(&line, out.width, "    ");
            let _ = write!(text, "\n{}", wrapped.replacen("    ", &format!(" {}  ", at + 1), 1));
            continue;
        }
        let used = head.chars().count() + gain.chars().count();
        // Where both do not fit side by side, the gain gets a line.
        let between = match out.width.saturating_sub(used + 1) {
            0 | 1 => "\n    ".to_owned(),
            room => " ".repeat(room),
        };
        let _ = write!(text, "\n{}{between}{gain}\n", out.strong(&head));
        text += &wrap(&sentence(&finding.title), out.width, "    ");
        for evidence in &finding.evidence {
            text += &out.faint(&wrap(&sentence(&evidence.text), out.width, "    "));
        }
        // Edits that give the same are told apart by nothing.
        let gains = || finding.fix.iter().filter_map(|it| it.gain);
        let several = gains().any(|it| Some(it) != gains().next());
        for fix in &finding.fix {
            let gain = fix.gain.filter(|_| several);
            let gain = gain.map(|it| format!(" [{}]", range_in_words(&it)));
            let line = format!("{}{}", edit_in_words(fix), gain.unwrap_or_default());
            match &fix.edit {
                // Code is never wrapped: it is there to be copied.
                Some(edit) => {
                    text += &advice(&format!("{line}:"), out.width);
                    for line in edit.lines() {
                        let _ = writeln!(text, "      {line}");
                    }
                }
                None => text += &advice(&line, out.width),
            }
        }
        for line in closing(cause, step) {
            text += &out.faint(&wrap(&line, out.width, "    "));
        }
    }
    if let Some(line) = plan(report) {
        let _ = write!(text, "\n{}", wrap(&line, out.width, " "));
    }
    text
}

/// What there is to say below the edits of a finding.
fn closing(cause: &Cause, step: Option<Dur>) -> Vec<String> {
    let finding = &cause.finding;
    let mut lines = Vec::new();
    let best = finding.best_fix();
    if let Some(then) = best.and_then(|it| it.then.as_ref()) {
        let gain = best.and_then(|it| it.gain).zip(step);
        let after = gain.map(|(gain, step)| gain.step_after(step).likely);
        let about = after.map(|it| format!(", at about {it} per step")).unwrap_or_default();
        lines.push(format!("Then the bottleneck is {}{about}.", rules::bottleneck(then)));
    }
    if finding.gain.is_none()
        && let Some(why) = finding.fix.first().and_then(|it| it.why.as_ref())
    {
        lines.push(format!("No gain is predicted: {why}."));
    }
    if !cause.symptoms.is_empty() {
        let others: Vec<&str> = cause.symptoms.iter().map(|it| it.0).collect();
        lines.push(format!("Also triggers: {}", others.join(", ")));
    }
    lines
}

/// An edit and where it goes, without its gain.
fn edit_in_words(fix: &Fix) -> String {
    let place = fix.site.as_ref().map(|it| format!(" ({})", it.place()));
    format!("{}{}", fix.text, place.unwrap_or_default())
}

/// The order of edits, where there is more than one to make.
fn plan(report: &Report) -> Option<String> {
    let plan = &report.diagnosis.plan;
    if plan.steps.len() < 2 {
        return None;
    }
    let steps: Vec<String> = plan
        .steps
        .iter()
        .map(|it| {
            let cause = &report.diagnosis.causes[it.cause];
            format!(
                "{} ({}): {}",
                cause.finding.fix[it.fix].change.name(),
                cause.rule,
                it.after.likely
            )
        })
        .collect();
    let floor =
        plan.floor.map(|it| format!(". None of these edits gets below {it}")).unwrap_or_default();
    Some(format!("Plan, with the step time after each edit: {}{floor}.", steps.join(" → ")))
}

/// Ends with a full stop.
fn sentence(text: &str) -> String {
    let end = if text.ends_with(['.', '?', ':']) { "" } else { "." };
    format!("{text}{end}")
}

/// `→ advice`, its further lines below its first word.
fn advice(text: &str, width: usize) -> String {
    let wrapped = wrap(text, width, "      ");
    wrapped.replacen("      ", "    → ", 1)
}

/// One line with their number; with `all`, the rules that could not be asked, by reason.
pub fn not_checked(report: &Report, all: bool, out: &Output) -> String {
    let rules = &report.diagnosis.not_checked;
    if rules.is_empty() {
        return String::new();
    }
    if !report.run.has(Part::Events) {
        return "\n No checks were made: there is no profile here.\n".to_owned();
    }
    if !all {
        let n = rules.len();
        let checks = if n == 1 { "1 check needs" } else { &format!("{n} checks need") };
        let line = format!("{checks} data that this profile lacks (--all lists them)");
        return format!("\n{}", wrap(&line, out.width, " "));
    }
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (rule, why) in rules {
        match reasons.iter_mut().find(|it| it.0 == why) {
            Some(it) => it.1.push(rule),
            None => reasons.push((why, vec![rule])),
        }
    }
    let mut text = "\n Not checked:\n".to_owned();
    for (why, rules) in reasons {
        text += &wrap(&format!("{}: {why}", rules.join(", ")), out.width, "   ");
    }
    text
}

pub fn markdown(report: &Report) -> String {
    let step = report.steps.as_ref().map(|it| it.mean);
    let mut text = String::new();
    for (at, cause) in report.diagnosis.causes.iter().enumerate() {
        let finding = &cause.finding;
        let gain = figures_in_words(step, finding);
        let _ = write!(text, "\n## {}. `{}`: {gain}\n\n", at + 1, cause.rule);
        let _ = writeln!(text, "{}", sentence(&finding.title));
        if !finding.evidence.is_empty() {
            text += "\n";
        }
        for evidence in &finding.evidence {
            let _ = writeln!(text, "- {}", sentence(&evidence.text));
        }
        for fix in &finding.fix {
            let gain =
                step.zip(fix.gain).map(|(step, gain)| format!(" ({})", gain_in_words(step, &gain)));
            let line = format!("{}{}", edit_in_words(fix), gain.unwrap_or_default());
            match &fix.edit {
                Some(edit) => {
                    let _ = writeln!(text, "\n{line}:\n\n```python\n{edit}\n```");
                }
                None => {
                    let _ = writeln!(text, "\n{}", sentence(&line));
                }
            }
        }
        for line in closing(cause, step) {
            let _ = writeln!(text, "\n{}", sentence(&line));
        }
    }
    if let Some(line) = plan(report) {
        let _ = writeln!(text, "\n{line}");
    }
    text
}
