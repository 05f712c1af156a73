//! The findings as a person reads them: the cause, what it wins, how it shows, what to write.

use std::fmt::Write as _;

use rules::{Finding, Severity};
use session::report::Report;
use trace::Dur;

use crate::output::{Output, wrap};

/// The causes, numbered, each with its gain at the right, its evidence and the edit.
pub fn text(report: &Report, out: &Output) -> String {
    let mut text = String::new();
    for (at, cause) in report.diagnosis.causes.iter().enumerate() {
        let finding = &cause.finding;
        let head = format!(" {}  {}", at + 1, cause.rule);
        let gain = gain_in_words(finding);
        // What hardly matters gets a line, unless it is all there is to say.
        if at > 0 && finding.severity == Severity::Low {
            // The rule's name keeps its spelling.
            let line = format!("{} (low): {}.", cause.rule, finding.title.trim_end_matches('.'));
            let wrapped = wrap(&line, out.width, "    ");
            let _ = write!(text, "\n{}", wrapped.replacen("    ", &format!(" {}  ", at + 1), 1));
            continue;
        }
        let used = head.chars().count() + gain.chars().count();
        let room = out.width.saturating_sub(used + 1).max(2);
        let _ = write!(text, "\n{}{}{gain}\n", out.strong(&head), " ".repeat(room));
        text += &wrap(&sentence(&finding.title), out.width, "    ");
        for evidence in &finding.evidence {
            text += &out.faint(&wrap(&sentence(&evidence.text), out.width, "    "));
        }
        for fix in &finding.fix {
            match &fix.edit {
                // Code is never wrapped: it is there to be copied.
                Some(edit) => {
                    text += &advice(&format!("{}:", fix.text), out.width);
                    for line in edit.lines() {
                        let _ = writeln!(text, "      {line}");
                    }
                }
                None => text += &advice(&fix.text, out.width),
            }
        }
        for (rule, symptom) in &cause.symptoms {
            let line = format!("It also shows as {rule}: {}", symptom.title);
            text += &out.faint(&wrap(&sentence(&line), out.width, "    "));
        }
    }
    text
}

/// `−482 ms · 34–41× faster`
fn gain_in_words(finding: &Finding) -> String {
    let cost = match finding.cost {
        Dur(0) => String::new(),
        cost => format!("−{cost}"),
    };
    match finding.gain {
        Some(gain) if gain.high > 1.0 => {
            let [low, high] = [gain.low, gain.high].map(times);
            let range = if low == high { low } else { format!("{low}–{high}") };
            format!("{cost} · {range}× faster")
        }
        _ => format!("{} · {}", cost.trim_start_matches('−'), finding.severity.name())
            .trim_start_matches(" · ")
            .to_owned(),
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

/// Begins with a capital, ends with a full stop.
fn sentence(text: &str) -> String {
    let mut text = text.to_owned();
    if !text.ends_with(['.', '?', ':']) {
        text.push('.');
    }
    let first_word = text.split(' ').next().unwrap_or("");
    // A name keeps its spelling, and a number has none.
    let is_word = first_word.chars().all(|it| it.is_alphabetic() || it == ',' || it == '.');
    match text.chars().next() {
        Some(it) if it.is_lowercase() && is_word => {
            it.to_uppercase().collect::<String>() + &text[it.len_utf8()..]
        }
        _ => text,
    }
}

/// `→ advice`, its further lines below its first word.
fn advice(text: &str, width: usize) -> String {
    let wrapped = wrap(text, width, "      ");
    wrapped.replacen("      ", "    → ", 1)
}

/// One line: rules that could not be asked, those with the same reason together.
pub fn not_checked(report: &Report, out: &Output) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (rule, why) in &report.diagnosis.not_checked {
        match reasons.iter_mut().find(|it| it.0 == why) {
            Some(it) => it.1.push(rule),
            None => reasons.push((why, vec![rule])),
        }
    }
    if reasons.is_empty() {
        return String::new();
    }
    if report.run.events == 0 {
        return "\n Not checked: all rules (there is no profile to ask)\n".to_owned();
    }
    let parts: Vec<String> =
        reasons.iter().map(|(why, rules)| format!("{} ({why})", rules.join(", "))).collect();
    format!("\n{}", wrap(&format!("Not checked: {}", parts.join("; ")), out.width, " "))
}

pub fn markdown(report: &Report) -> String {
    let mut text = String::new();
    for (at, cause) in report.diagnosis.causes.iter().enumerate() {
        let finding = &cause.finding;
        let gain = gain_in_words(finding);
        let _ = write!(text, "\n## {}. `{}`: {gain}\n\n", at + 1, cause.rule);
        let _ = writeln!(text, "{}", sentence(&finding.title));
        for evidence in &finding.evidence {
            let _ = writeln!(text, "\n- {}", evidence.text);
        }
        for fix in &finding.fix {
            match &fix.edit {
                Some(edit) => {
                    let _ = writeln!(text, "\n{}:\n\n```python\n{edit}\n```", sentence(&fix.text).trim_end_matches('.'));
                }
                None => {
                    let _ = writeln!(text, "\n{}", sentence(&fix.text));
                }
            }
        }
    }
    text
}
