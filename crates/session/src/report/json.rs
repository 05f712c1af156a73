//! The report as JSON, in the shape that scripts rely on.

use rules::Finding;
use serde_json::{Value, json};
use trace::Dur;

use super::words::verdict;
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
            "devices": devices,
            "window_ms": ms(run.window),
            "events": run.events,
            "scalars": run.scalars,
        },
        "verdict": verdict(report),
        "culprit": report.main_culprit.as_ref().map(|it| json!({"name": it.name, "share": it.share})),
        "steps": steps,
        "breakdown": breakdown,
        "breakdown_unknown": unknown,
        "top_ops": ops,
        "findings": findings(report),
        "not_checked": not_checked,
        "beside": beside::as_json(&report.beside),
        "notes": notes,
    })
}

fn findings(report: &Report) -> Value {
    report
        .diagnosis
        .causes
        .iter()
        .map(|cause| {
            let mut value = finding_json(cause.rule, &cause.finding);
            let symptoms = cause.symptoms.iter().map(|it| finding_json(it.0, &it.1));
            value["symptoms"] = symptoms.collect();
            value
        })
        .collect()
}

fn finding_json(rule: &str, it: &Finding) -> Value {
    let evidence: Vec<Value> = it
        .evidence
        .iter()
        .map(|it| {
            let events: Vec<u32> = it.events.iter().map(|it| it.0).collect();
            json!({"text": it.text, "table": it.table, "rows": it.rows, "events": events})
        })
        .collect();
    let fix: Vec<Value> =
        it.fix.iter().map(|it| json!({"text": it.text, "edit": it.edit})).collect();
    json!({
        "rule": rule,
        "severity": it.severity.name(),
        "title": it.title,
        "cost_ms_per_step": ms(it.cost),
        "speedup_if_fixed": it.gain.map(|it| it.speedup),
        "speedup_low": it.gain.map(|it| it.low),
        "speedup_high": it.gain.map(|it| it.high),
        "confidence": it.confidence,
        "evidence": evidence,
        "fix": fix,
    })
}

pub fn ms(dur: Dur) -> f64 {
    dur.0 as f64 / 1e9
}
