//! The report as JSON, in the shape that scripts rely on.

use rules::{Finding, Fix, PlanStep, StepAfter};
use serde_json::{Value, json};
use trace::Dur;

use super::words::{figures_in_words, gain_in_words, headline};
use super::{Report, beside};

/// What `strobe report --format json` prints.
pub fn as_json(report: &Report) -> Value {
    let run = &report.run;
    let devices: Vec<Value> = run
        .devices
        .iter()
        .map(|it| json!({"name": it.name, "kind": it.kind, "host": it.host}))
        .collect();
    let steps = match &report.steps {
        Some(it) => json!({
            "count": it.count,
            "found_by": it.found_by,
            "marker": it.marker,
            "confidence": it.confidence,
            "warmup_skipped": it.warmup_skipped,
            "partial": it.partial,
            "mean_ms": ms(it.mean),
            "median_ms": ms(it.median),
            "p95_ms": ms(it.p95),
            "stdev_ms": it.stdev.map(ms),
            "pace_ms": report.pace.as_ref().map(|it| ms(it.step)),
        }),
        None => json!({"count": 0, "found_by": "none", "confidence": 0.0}),
    };
    let breakdown: Vec<Value> = report
        .breakdown
        .iter()
        .map(|it| json!({"category": it.category, "ms_per_step": ms(it.per_step), "share": it.share}))
        .collect();
    let unknown: Vec<Value> = report
        .unknown
        .iter()
        .map(|(category, why)| json!({"category": category, "why": why}))
        .collect();
    let ops: Vec<Value> = report
        .top_ops
        .iter()
        .map(|it| {
            json!({"name": it.name, "type": it.op_type, "side": it.side, "count": it.count,
                   "self_ms": ms(it.own), "share": it.share})
        })
        .collect();
    let not_checked: Vec<Value> = report
        .diagnosis
        .not_checked
        .iter()
        .map(|(rule, why)| json!({"rule": rule, "why": why}))
        .collect();
    let notes: Vec<Value> = report
        .notes
        .iter()
        .map(|it| json!({"kind": it.kind.name(), "count": it.count, "first": it.first}))
        .collect();
    json!({
        "schema": 1,
        "run": {
            "path": run.path,
            "name": run.name,
            "frameworks": run.frameworks,
            "hosts": run.hosts,
            "facts": super::facts(report),
            "has": run.parts.iter().map(|it| it.name()).collect::<Vec<_>>(),
            "devices": devices,
            "window_ms": ms(run.window),
            "events": run.events,
            "scalars": run.scalars,
        },
        "headline": headline(report),
        "culprit": report.main_culprit.as_ref().map(|it| json!({"name": it.name, "share": it.share})),
        "steps": steps,
        "breakdown": breakdown,
        "breakdown_unknown": unknown,
        "top_ops": ops,
        "findings": findings(report),
        "plan": plan(report),
        "floor_ms": report.diagnosis.plan.floor.map(ms),
        "not_checked": not_checked,
        "beside": beside::as_json(&report.beside),
        "notes": notes,
    })
}

fn findings(report: &Report) -> Value {
    let step = report.steps.as_ref().map(|it| it.mean);
    report
        .diagnosis
        .causes
        .iter()
        .map(|cause| {
            let mut value = finding_json(cause.rule, &cause.finding, step);
            let symptoms = cause.symptoms.iter().map(|it| finding_json(it.0, &it.1, step));
            value["symptoms"] = symptoms.collect();
            value
        })
        .collect()
}

fn finding_json(rule: &str, it: &Finding, step: Option<Dur>) -> Value {
    let evidence: Vec<Value> = it
        .evidence
        .iter()
        .map(|it| {
            let events: Vec<u32> = it.events.iter().map(|it| it.0).collect();
            json!({"text": it.text, "table": it.table, "rows": it.rows, "events": events})
        })
        .collect();
    let fix: Vec<Value> = it.fix.iter().map(|it| fix_json(it, step)).collect();
    json!({
        "rule": rule,
        "severity": it.severity.name(),
        "title": it.title,
        "takes_ms_per_step": ms(it.takes),
        "cost_ms_per_step": ms(it.cost),
        "gain": figures_in_words(step, it),
        "speedup_if_fixed": it.gain.map(|it| it.speedup),
        "speedup_low": it.gain.map(|it| it.low),
        "speedup_high": it.gain.map(|it| it.high),
        "step_after_ms": step.zip(it.gain).map(|(step, gain)| step_after(gain.step_after(step))),
        "confidence": it.confidence,
        "evidence": evidence,
        "fix": fix,
    })
}

fn fix_json(it: &Fix, step: Option<Dur>) -> Value {
    json!({
        "change": it.change.name(),
        "text": it.text,
        "edit": it.edit,
        "diff": it.diff,
        "where": it.site.as_ref().map(|it| json!({"file": it.file, "line": it.line})),
        "gain": step.zip(it.gain).map(|(step, gain)| gain_in_words(step, &gain)),
        "speedup_if_fixed": it.gain.map(|it| it.speedup),
        "speedup_low": it.gain.map(|it| it.low),
        "speedup_high": it.gain.map(|it| it.high),
        "what_if": it.what_if,
        "step_after_ms": step.zip(it.gain).map(|(step, gain)| step_after(gain.step_after(step))),
        "then_limited_by": it.then.as_ref().map(|it| it.name()),
        "why": it.why,
    })
}

fn step_after(it: StepAfter) -> Value {
    json!({"low": ms(it.low), "likely": ms(it.likely), "high": ms(it.high)})
}

fn plan(report: &Report) -> Value {
    let step = report.steps.as_ref().map_or(0.0, |it| ms(it.mean));
    let entry = |it: &PlanStep| {
        let speedup = |after: Dur| step / ms(after).max(f64::MIN_POSITIVE);
        json!({
            "rule": report.diagnosis.causes[it.cause].rule,
            "fix": it.fix,
            "step_after_ms": ms(it.after.likely),
            "step_after": step_after(it.after),
            "speedup_low": speedup(it.after.high),
            "speedup_if_fixed": speedup(it.after.likely),
            "speedup_high": speedup(it.after.low),
        })
    };
    report.diagnosis.plan.steps.iter().map(entry).collect()
}

pub fn ms(dur: Dur) -> f64 {
    dur.0 as f64 / 1e9
}
