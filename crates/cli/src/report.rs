//! `strobe report`: the verdict, top-down: the sentence, the bar, the steps, the ops, the notes.

mod beside;
mod findings;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use rules::Severity;
use session::edit_diff::advice::first_diff;
use session::report::json::{as_json, ms};
use session::report::words::{headline, percent, plain, thousands};
use session::report::{Report, Share, facts};

use crate::output::{Format, Grid, Output, column, is_clean, note, shorten, wrap};

/// Explain why a run is slow, what to change, and the expected speed-up
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A profile, a run folder or a log folder; if it holds several runs, the newest is used
    pub path: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Only measure, without findings
    #[arg(long)]
    pub no_findings: bool,
    /// List the checks that could not be made, and why
    #[arg(long)]
    pub all: bool,
    /// Exit with 1 if anything above severity low is found, for CI
    #[arg(long)]
    pub strict: bool,
    /// Print only the edit of the first finding that has a certain one, as a diff for `git apply`
    #[arg(long, conflicts_with_all = ["format", "no_findings", "strict"])]
    pub diff: bool,
}

pub fn run(args: &Args, out: &mut Output) -> anyhow::Result<ExitCode> {
    let session = crate::open(&args.path)?;
    if args.diff {
        return print_diff(&session, out);
    }
    let report = if args.no_findings { session.measurements() } else { session.report() };
    print(&report, args.format, args.all, out)?;
    let found = report.diagnosis.causes.iter().any(|it| it.finding.severity > Severity::Low);
    Ok(match () {
        () if report.steps.is_none() => ExitCode::from(crate::NOT_ENOUGH),
        () if args.strict && found => ExitCode::from(crate::FOUND),
        () => ExitCode::SUCCESS,
    })
}

/// Nothing else goes to stdout, which another program reads.
fn print_diff(session: &session::Session, out: &mut Output) -> anyhow::Result<ExitCode> {
    let tables = session.tables();
    match first_diff(tables, &rules::diagnose(tables)) {
        // A diff is applied byte by byte: with signs in place of characters it would be wrong.
        Ok(diff) if !is_clean(&diff.text.replace("\r\n", "\n")) => {
            note("no diff: the source has control characters");
            Ok(ExitCode::from(crate::NOT_ENOUGH))
        }
        Ok(diff) => {
            write!(out, "{}", diff.text)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            note(format!("no diff: {why}"));
            Ok(ExitCode::from(crate::NOT_ENOUGH))
        }
    }
}

/// Also the end of the demo.
pub fn print(report: &Report, format: Format, all: bool, out: &mut Output) -> anyhow::Result<()> {
    match format {
        Format::Text => {
            let text = text(report, all, out);
            write!(out, "{text}")?;
        }
        Format::Json => out.json(&as_json(report))?,
        Format::Md => write!(out, "{}", markdown(report))?,
        Format::Csv => write!(out, "{}", breakdown_grid(report).csv())?,
    }
    Ok(())
}

/// What was profiled; a path longer than `room` gives way.
fn run_facts(report: &Report, room: usize) -> Vec<String> {
    let mut parts = vec![shorten(&report.run.path, room)];
    parts.extend(facts(report));
    parts
}

/// Facts behind one another, each whole on its line where that is possible.
fn dotted(parts: &[String], width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.chars().count() + part.chars().count() + 4 <= width => {
                *line += " · ";
                *line += part;
            }
            _ => lines.push(part.clone()),
        }
    }
    lines.iter().map(|it| wrap(it, width, " ")).collect()
}

/// How long steps take, and how sure that is.
fn steps_in_words(report: &Report) -> Option<String> {
    let steps = report.steps.as_ref()?;
    let spread = steps.stdev.map(|it| format!(" ± {it}")).unwrap_or_default();
    Some(format!(
        "Steps: mean {}{spread}, median {}, p95 {}; found by {} ({}), confidence {:.2}{}{}",
        steps.mean,
        steps.median,
        steps.p95,
        steps.found_by,
        shorten(&steps.marker, 40),
        steps.confidence,
        counted(steps.warmup_skipped, "warm-up step left out"),
        counted(steps.partial, "step cut off by the end of the capture"),
    ))
}

fn not_measured(report: &Report) -> Option<String> {
    let why = report.unknown.first()?.1;
    let names: Vec<&str> = report.unknown.iter().map(|it| it.0).collect();
    Some(format!("Not measured: {} ({why})", names.join(", ")))
}

/// What qualifies the verdict: how fast the job says it is, and devices nobody saw work.
fn asides(report: &Report) -> Vec<String> {
    let pace = report.pace.as_ref().zip(report.steps.as_ref());
    let pace = pace.map(|(pace, steps)| pace.beside(steps.mean, steps.count));
    pace.into_iter().chain(report.run.unrecorded_devices()).collect()
}

fn text(report: &Report, all: bool, out: &Output) -> String {
    let width = out.width;
    let mut text = String::new();
    text += &out.faint(dotted(&run_facts(report, width / 2), width).trim_end());
    text.push('\n');
    let _ = writeln!(text);
    text += &out.strong(wrap(&headline(report), width, " ").trim_end());
    text.push('\n');
    for sentence in asides(report) {
        text += &wrap(&sentence, width, " ");
    }
    if !report.breakdown.is_empty() {
        text += &bar(report, out);
        text += &legend(report, out);
    }
    text += &beside::text(report, out);
    text += &findings::text(report, out);
    if let Some(line) = steps_in_words(report) {
        text += "\n";
        text += &wrap(&line, width, " ");
        if let Some(line) = beside::whole_run(report) {
            text += &wrap(&line, width, " ");
        }
    }
    if !report.top_ops.is_empty() {
        let _ = writeln!(text);
        text += &ops_grid(report).text(width, 1);
    }
    if let Some(line) = not_measured(report) {
        let _ = writeln!(text);
        text += &wrap(&line, width, " ");
    }
    text += &findings::not_checked(report, all, out);
    for note in &report.notes {
        text += &wrap(&format!("Note: {}", note_in_words(note)), width, " ");
    }
    text
}

fn note_in_words(note: &trace::Note) -> String {
    format!("{} {}: {}", thousands(note.count as usize), note.kind.name(), note.first)
}

fn counted(n: usize, what: &str) -> String {
    match n {
        0 => String::new(),
        1 => format!("; 1 {what}"),
        n => format!("; {n} {}", what.replacen("step", "steps", 1)),
    }
}

/// Largest first: the order in which people ask.
fn by_share(report: &Report) -> Vec<&Share> {
    let mut shares: Vec<&Share> = report.breakdown.iter().filter(|it| it.share > 0.0).collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    shares
}

/// Every category has a pattern of its own where there are no colours.
pub(crate) const FILLS: [&str; 10] = ["█", "▒", "▓", "░", "▚", "=", "+", "-", ":", "·"];

fn fill(at: usize, out: &Output) -> &'static str {
    match out.colour {
        crate::output::Colour::None => FILLS[at % FILLS.len()],
        _ => "█",
    }
}

fn bar(report: &Report, out: &Output) -> String {
    let cells = out.width - 2;
    let mut text = " ".to_owned();
    let (mut sum, mut drawn) = (0.0, 0);
    for (at, share) in by_share(report).into_iter().enumerate() {
        sum += share.share;
        let until = ((sum * cells as f64).round() as usize).min(cells);
        let n = until.saturating_sub(drawn);
        drawn += n;
        text += &out.paint(share.category, &fill(at, out).repeat(n));
    }
    text + "\n"
}

fn legend(report: &Report, out: &Output) -> String {
    let mut text = String::new();
    let mut used = 0;
    for (at, share) in by_share(report).into_iter().enumerate() {
        let label = format!("{} {}", share.category, percent(share.share));
        let width = label.chars().count() + 5;
        if used + width > out.width {
            text.push('\n');
            used = 0;
        }
        let lead = if used == 0 { " " } else { "   " };
        used += width;
        let _ = write!(text, "{lead}{} {label}", out.paint(share.category, fill(at, out)));
    }
    text + "\n"
}

fn breakdown_grid(report: &Report) -> Grid {
    Grid {
        columns: ["category", "ms_per_step", "share"].map(str::to_owned).to_vec(),
        right: vec![false, true, true],
        rows: report
            .breakdown
            .iter()
            .map(|it| {
                vec![
                    it.category.to_owned(),
                    ms(it.per_step).to_string(),
                    format!("{:.6}", it.share),
                ]
            })
            .collect(),
    }
}

fn ops_grid(report: &Report) -> Grid {
    let times = column(&report.top_ops.iter().map(|it| it.own).collect::<Vec<_>>());
    Grid {
        columns: ["Top ops", "on", "self", "share", "count"].map(str::to_owned).to_vec(),
        right: vec![false, false, true, true, true],
        rows: report
            .top_ops
            .iter()
            .zip(times)
            .map(|(it, time)| {
                vec![
                    plain(&it.name).to_owned(),
                    it.side.to_owned(),
                    time,
                    percent(it.share),
                    thousands(it.count as usize),
                ]
            })
            .collect(),
    }
}

/// The breakdown for people; programs read that of `breakdown_grid`.
fn readable_breakdown(report: &Report) -> Grid {
    let times = column(&by_share(report).iter().map(|it| it.per_step).collect::<Vec<_>>());
    let row = |(it, time): (&Share, String)| vec![it.category.to_owned(), time, percent(it.share)];
    Grid {
        columns: ["category", "per step", "share"].map(str::to_owned).to_vec(),
        right: vec![false, true, true],
        rows: by_share(report).into_iter().zip(times).map(row).collect(),
    }
}

/// All that the terminal shows, but for the bar.
fn markdown(report: &Report) -> String {
    let facts = run_facts(report, usize::MAX).join(" · ");
    let mut text = format!("# {facts}\n\n{}\n\n", headline(report));
    for sentence in asides(report) {
        let _ = writeln!(text, "{sentence}\n");
    }
    if !report.breakdown.is_empty() {
        text += &readable_breakdown(report).markdown();
    }
    text += &beside::markdown(report);
    for line in steps_in_words(report).into_iter().chain(beside::whole_run(report)) {
        let _ = writeln!(text, "\n{line}");
    }
    text += &findings::markdown(report);
    if !report.top_ops.is_empty() {
        text += "\n";
        text += &ops_grid(report).markdown();
    }
    if let Some(line) = not_measured(report) {
        let _ = writeln!(text, "\n{line}");
    }
    if !report.diagnosis.not_checked.is_empty() {
        text += "\n";
    }
    for (rule, why) in &report.diagnosis.not_checked {
        let _ = writeln!(text, "- not checked: `{rule}` ({why})");
    }
    if !report.notes.is_empty() {
        text += "\n";
    }
    for note in &report.notes {
        let _ = writeln!(text, "- {}", note_in_words(note));
    }
    text
}
