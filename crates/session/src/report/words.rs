//! The report's sentence and figures, as every outlet says them.

use trace::NoteKind;

use super::Report;

/// The sentence a colleague would say.
pub fn verdict(report: &Report) -> String {
    // Half a profile may lack a device, the host, or the marks of steps.
    let cut_off = match report.notes.iter().any(|it| it.kind == NoteKind::CutOff) {
        true => "This profile is cut off, and what is lost may matter. Of what is left: ",
        false => "",
    };
    let (Some(steps), Some(main)) = (&report.steps, report.main()) else {
        let run = &report.run;
        let beside = &report.beside;
        return match run.events {
            0 if let Some(steps) = &beside.steps => format!(
                "{} a step, by the run's own clock; where it goes cannot be told without a \
                 profile.",
                steps.median
            ),
            0 if !beside.lines.is_empty() => {
                "Only where Python was is known: why steps are slow cannot be told from that \
                 alone."
                    .to_owned()
            }
            0 if run.scalars > 0 => format!(
                "There is no profile here, only a training log of {} scalars: `strobe table PATH \
                 scalar` shows them.",
                thousands(run.scalars)
            ),
            0 if report.notes.is_empty() => "There are no events in this profile.".to_owned(),
            0 => "There are no events in what can be read of this damaged file.".to_owned(),
            n => format!(
                "{cut_off}{} steps could be told apart in {} events over {}.",
                if cut_off.is_empty() { "No" } else { "no" },
                thousands(n),
                run.window
            ),
        };
    };
    let whose = match &report.main_culprit {
        Some(it) if it.share >= 0.5 => format!(", most of it in {}", plain(&it.name)),
        Some(it) => format!("; the largest part, {}, is {}", percent(it.share), plain(&it.name)),
        None => String::new(),
    };
    let main_part = format!("{} {}", main.per_step, in_words(main.category));
    format!("{cut_off}{} a step, of which {main_part}{whose}.", steps.mean)
}

/// Without what the framework puts in front of the user's own names.
pub fn plain(name: &str) -> &str {
    name.trim_start_matches("StatefulPartitionedCall/")
}

/// What a person would say that a category does.
fn in_words(category: &str) -> &'static str {
    match category {
        "input" => "wait for input",
        "transfer_in" => "copy to the device",
        "compile" => "trace and compile",
        "python" => "run Python",
        "runtime" => "are framework overhead on the host",
        "compute" => "compute",
        "collective" => "communicate",
        "transfer_out" => "copy from the device",
        "output" => "save",
        _ => "are unexplained idle time",
    }
}

/// `95.8 %`, `2.9 %`; a digit behind the point below ten.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 9.95 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

/// Thousands apart by a thin space.
pub fn thousands(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{2009}');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{percent, thousands};

    #[test]
    fn figures_are_short() {
        assert_eq!(percent(0.9577), "96 %");
        assert_eq!(percent(0.0286), "2.9 %");
        assert_eq!(thousands(1_234_567), "1\u{2009}234\u{2009}567");
    }
}
