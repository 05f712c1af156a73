//! What was recorded beside a profile, for runs of which that is all there is.

use std::fmt::Write as _;

use session::report::beside::{CodeLine, MachineUse, RunSteps};
use session::report::words::{percent, thousands};
use session::report::{Part, Report};

use crate::output::{Grid, Output, wrap};

/// With a profile, findings say what follows from it.
fn is_shown(report: &Report) -> bool {
    !report.run.has(Part::Events)
}

pub fn text(report: &Report, out: &Output) -> String {
    let mut text = String::new();
    if !is_shown(report) {
        return text;
    }
    let facts = facts(report);
    if !facts.is_empty() {
        let _ = writeln!(text);
        text.extend(facts.iter().map(|it| wrap(it, out.width, " ")));
    }
    if let Some(grid) = grid(report) {
        let _ = write!(text, "\n{}", grid.text(out.width, 1));
    }
    text
}

pub fn markdown(report: &Report) -> String {
    let mut text = String::new();
    if !is_shown(report) {
        return text;
    }
    for fact in facts(report) {
        let _ = writeln!(text, "\n{fact}");
    }
    if let Some(grid) = grid(report) {
        let _ = write!(text, "\n{}", grid.markdown());
    }
    text
}

fn facts(report: &Report) -> Vec<String> {
    let steps = report.beside.steps.iter().map(steps_in_words);
    steps.chain(report.beside.machine.iter().map(machine_in_words)).collect()
}

fn steps_in_words(steps: &RunSteps) -> String {
    let of = match steps.processes {
        1 => String::new(),
        n => format!(" of {n} processes"),
    };
    let by = steps.name.as_ref().map(|it| format!(" ({})", tame(it))).unwrap_or_default();
    format!(
        "Steps: {} timed{of}{by}, median {}, p95 {}",
        thousands(usize::try_from(steps.count).unwrap_or(0)),
        steps.median,
        steps.p95
    )
}

/// The run's own pace beside that of the profiled steps, under which it is called by another name.
pub fn whole_run(report: &Report) -> Option<String> {
    let steps = report.beside.steps.as_ref().filter(|_| !is_shown(report))?;
    let steady = usize::try_from(steps.steady).unwrap_or(usize::MAX);
    Some(format!(
        "Whole run, without the profiler: median {}, p95 {} over {} steady steps",
        steps.median,
        steps.p95,
        thousands(steady),
    ))
}

fn machine_in_words(machine: &MachineUse) -> String {
    let mut parts = Vec::new();
    parts.extend(machine.cores_used.map(|it| format!("{it:.1} cores busy")));
    parts.extend(machine.memory_peak_bytes.map(|it| format!("{:.1} GB at most", it / 1e9)));
    parts.extend(machine.gpus_busy.iter().map(|it| format!("{} busy {}", it.0, percent(it.1))));
    let parts = if parts.is_empty() { "not measured".to_owned() } else { parts.join(", ") };
    format!("The run on {}: {parts}", tame(&machine.host))
}

fn grid(report: &Report) -> Option<Grid> {
    let row = |it: &CodeLine| {
        let line = it.line.map(|it| format!(":{it}")).unwrap_or_default();
        vec![
            tame(&it.function),
            tame(&format!("{}{line}", it.file)),
            tame(it.inside.as_deref().unwrap_or_default()),
            it.activity.clone(),
            percent(it.share),
        ]
    };
    let rows: Vec<Vec<String>> = report.beside.lines.iter().map(row).collect();
    (!rows.is_empty()).then(|| Grid {
        columns: ["Lines of Python", "at", "in", "thread", "share"].map(str::to_owned).to_vec(),
        right: vec![false, false, false, false, true],
        rows,
    })
}

/// Names come from another process: nothing in them may move the cursor.
fn tame(name: &str) -> String {
    name.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
}
