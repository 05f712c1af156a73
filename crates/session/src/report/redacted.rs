//! A report without secrets: people paste it into tickets.
//!
//! Names come from the profile, and a program may name things by what it was given. Paths stay:
//! whoever reads a report looks for the line.

use std::borrow::Cow;

use rules::Finding;

use super::Report;

pub fn redact(report: &mut Report) {
    let run = &mut report.run;
    hide(&mut run.path);
    hide(&mut run.name);
    run.hosts.iter_mut().for_each(hide);
    for device in run.devices.iter_mut().chain(&mut run.silent_devices) {
        hide(&mut device.name);
        hide(&mut device.host);
    }
    report.steps.iter_mut().for_each(|it| hide(&mut it.marker));
    report.main_culprit.iter_mut().for_each(|it| hide(&mut it.name));
    for op in &mut report.top_ops {
        hide(&mut op.name);
        op.op_type.iter_mut().for_each(hide);
    }
    for cause in &mut report.diagnosis.causes {
        finding(&mut cause.finding);
        cause.symptoms.iter_mut().for_each(|it| finding(&mut it.1));
    }
    report.diagnosis.not_checked.iter_mut().for_each(|it| hide(&mut it.1));
    report.beside.steps.iter_mut().filter_map(|it| it.name.as_mut()).for_each(hide);
    for line in &mut report.beside.lines {
        hide(&mut line.function);
        hide(&mut line.file);
        line.inside.iter_mut().for_each(hide);
    }
    report.notes.iter_mut().for_each(|it| hide(&mut it.first));
}

fn finding(it: &mut Finding) {
    hide(&mut it.title);
    it.evidence.iter_mut().for_each(|it| hide(&mut it.text));
    for fix in &mut it.fix {
        hide(&mut fix.text);
        fix.edit.iter_mut().for_each(hide);
        fix.why.iter_mut().for_each(hide);
        // With a line changed it would not apply.
        fix.diff.take_if(|it| matches!(redact::secrets(it), Cow::Owned(_)));
    }
}

fn hide(text: &mut String) {
    if let Cow::Owned(kept) = redact::secrets(text) {
        *text = kept;
    }
}
