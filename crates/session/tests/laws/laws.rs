//! The laws of figures: evidence, gains, shares, plans. Those of sentences are in `sentences`.

use analyses::step_spread::StepSpread;
use analyses::step_time::{CATEGORIES, StepTime};
use serde_json::Value;
use session::Session;

use crate::{Law, NEW_SHAPE, Violation, sentences};

const fn law(name: &'static str, check: fn(&Value, &Session) -> Vec<Violation>) -> Law {
    Law { name, of_healthy: false, check }
}

pub const ALL: &[Law] = &[
    law("evidence", evidence),
    law("one-figure", one_figure),
    law("gain-range", gain_range),
    law("breakdown", breakdown),
    law("step-times", step_times),
    law("counts", sentences::counts),
    law("absence", sentences::absence),
    Law { of_healthy: true, ..law("healthy", healthy) },
    law("one-step", one_step),
    law("plan", plan),
    law("order", order),
    law("headline", sentences::headline),
    law("numbers", numbers),
    law("words", sentences::words),
];

/// Causes as they stand, without what hangs below them.
pub fn causes(report: &Value) -> &[Value] {
    report["findings"].as_array().map_or(&[], Vec::as_slice)
}

/// Causes, each followed by its symptoms.
pub fn findings(report: &Value) -> Vec<&Value> {
    causes(report).iter().flat_map(|it| [it].into_iter().chain(list(it, "symptoms"))).collect()
}

pub fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn said(finding: &Value) -> String {
    format!("{} ({})", text(finding, "rule"), text(finding, "title"))
}

pub fn mean_ms(report: &Value) -> Option<f64> {
    report["steps"]["mean_ms"].as_f64().filter(|it| *it > 0.0)
}

/// An hundredth: figures are rounded where they are printed, never where they are made.
const NEAR: f64 = 0.01;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= NEAR * a.abs().max(b.abs())
}

/// The figures of a promise, of a finding or of an edit.
#[derive(Debug, Clone, Copy)]
struct Promise {
    low: f64,
    likely: f64,
    high: f64,
}

impl Promise {
    const KEYS: [&str; 3] = ["speedup_low", "speedup_if_fixed", "speedup_high"];

    /// `None` where there is none; where some of the three are missing, which.
    fn of(value: &Value) -> Result<Option<Promise>, String> {
        let [low, likely, high] = Promise::KEYS.map(|it| value[it].as_f64());
        match (low, likely, high) {
            (Some(low), Some(likely), Some(high)) => Ok(Some(Promise { low, likely, high })),
            (None, None, None) => Ok(None),
            it => Err(format!("only some of {:?}: {it:?}", Promise::KEYS)),
        }
    }
}

/// Findings and edits that may promise something.
fn promising(report: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for finding in findings(report) {
        found.push((said(finding), finding));
        for (at, fix) in list(finding, "fix").enumerate() {
            found.push((
                format!("{}, fix {at} ({})", text(finding, "rule"), text(fix, "text")),
                fix,
            ));
        }
    }
    found
}

/// Every finding can be looked at: what it rests on exists.
fn evidence(report: &Value, session: &Session) -> Vec<Violation> {
    let mut wrong = Vec::new();
    for finding in findings(report) {
        let mut say =
            |what: String| wrong.push(Violation::hard(format!("{}: {what}", said(finding))));
        if list(finding, "evidence").next().is_none() {
            say("no evidence".to_owned());
        }
        for it in list(finding, "evidence") {
            let rows: Vec<u64> = list(it, "rows").filter_map(Value::as_u64).collect();
            match it["table"].as_str() {
                None if rows.is_empty() => (),
                None => say(format!("rows {rows:?} of no table")),
                Some(table) => match n_rows(session, table) {
                    None => say(format!("no table is called {table}")),
                    Some(n) => {
                        for row in rows.iter().filter(|it| **it >= n as u64) {
                            say(format!("{table} has {n} rows, none is {row}"));
                        }
                    }
                },
            }
            let n_events = session.trace().events.len() as u64;
            for event in list(it, "events") {
                if event.as_u64().is_none_or(|it| it >= n_events) {
                    say(format!("there are {n_events} events, none is {event}"));
                }
            }
        }
    }
    if let Some(first) = causes(report).first() {
        let opens =
            |it: &Value| ["rows", "events"].iter().any(|key| list(it, key).next().is_some());
        if !list(first, "evidence").any(opens) {
            wrong.push(Violation::hard(format!(
                "{}: nothing to show, neither rows nor events",
                said(first)
            )));
        }
    }
    wrong
}

pub fn n_rows(session: &Session, table: &str) -> Option<usize> {
    analyses::find(table).map(|it| it.rows(session.tables()).len())
}

/// Milliseconds and speed-up say the same. Counted only until [`NEW_SHAPE`]: before, the cost is
/// what a problem holds, not what its best edit saves.
fn one_figure(report: &Value, _: &Session) -> Vec<Violation> {
    let Some(mean) = mean_ms(report) else { return Vec::new() };
    let mut wrong = Vec::new();
    for finding in findings(report) {
        let mut say = |what: String, binds: bool| {
            wrong.push(Violation::binding(format!("{}: {what}", said(finding)), binds));
        };
        let cost = finding["cost_ms_per_step"].as_f64().unwrap_or_default();
        if cost > mean * (1.0 + NEAR) {
            say(format!("costs {cost:.3} ms of a step of {mean:.3} ms"), true);
        }
        let Ok(promise) = Promise::of(finding) else { continue };
        if let Some(promise) = promise {
            let most = mean / (mean - cost).max(f64::MIN_POSITIVE);
            if promise.likely > most * (1.0 + NEAR) {
                let what = format!(
                    "saves {cost:.3} of {mean:.3} ms, which allows {most:.3}, and promises {:.3}",
                    promise.likely
                );
                say(what, NEW_SHAPE);
            }
        }
        if NEW_SHAPE {
            same_figures(finding, promise, mean).into_iter().for_each(|it| say(it, true));
        }
    }
    wrong
}

/// The step time after the fix, the speed-up, the cost and the best edit's gain are one figure.
fn same_figures(finding: &Value, promise: Option<Promise>, mean: f64) -> Vec<String> {
    let best = list(finding, "fix")
        .filter_map(|it| Promise::of(it).ok().flatten())
        .max_by(|a, b| a.likely.total_cmp(&b.likely));
    let Some(promise) = promise else {
        return match best {
            Some(it) => vec![format!("an edit wins {:.3}, the finding nothing", it.likely)],
            None => Vec::new(),
        };
    };
    let after = |key: &str| finding["step_after_ms"][key].as_f64();
    let (Some(low), Some(likely), Some(high)) = (after("low"), after("likely"), after("high"))
    else {
        return vec!["a gain without step_after_ms".to_owned()];
    };
    let cost = finding["cost_ms_per_step"].as_f64().unwrap_or_default();
    let mut wrong = Vec::new();
    for (what, is, must) in [
        ("speedup_if_fixed", promise.likely, mean / likely),
        ("speedup_low", promise.low, mean / high),
        ("speedup_high", promise.high, mean / low),
    ] {
        if !near(is, must) {
            wrong.push(format!("{what} is {is:.3}, by step_after_ms {must:.3}"));
        }
    }
    // Of the step, not of the cost: a small cost is the difference of two large figures.
    if (cost - (mean - likely)).abs() > NEAR * mean {
        wrong.push(format!("costs {cost:.3} ms, by step_after_ms {:.3}", mean - likely));
    }
    match best {
        Some(best) if near(best.likely, promise.likely) => (),
        Some(best) => {
            wrong.push(format!("promises {:.3}, its best edit {:.3}", promise.likely, best.likely));
        }
        None => wrong.push(format!("promises {:.3}, none of its edits anything", promise.likely)),
    }
    wrong
}

/// A range wider than this is no figure.
const WIDEST: f64 = 6.0;

/// A gain is a range that means something, or is not given and says why.
fn gain_range(report: &Value, _: &Session) -> Vec<Violation> {
    let mut wrong = Vec::new();
    for (what, value) in promising(report) {
        let mut say = |it: String| wrong.push(Violation::hard(format!("{what}: {it}")));
        match Promise::of(value) {
            Err(it) => say(it),
            // Only edits must say why they promise nothing: of a finding, its edits do.
            Ok(None) => {
                let is_edit = value["rule"].is_null();
                if NEW_SHAPE && is_edit && text(value, "why").trim().is_empty() {
                    say("no gain, and no word why".to_owned());
                }
            }
            Ok(Some(Promise { low, likely, high })) => {
                let range = format!("{low:.3} to {high:.3}, likely {likely:.3}");
                if !(low <= likely && likely <= high) {
                    say(format!("out of order: {range}"));
                }
                if high > WIDEST * low {
                    say(format!("too wide to mean anything: {range}"));
                }
                if low < 1.0 {
                    say(format!("a fix that slows down: {range}"));
                }
            }
        }
    }
    wrong
}

/// Categories are disjoint and add to the step, in the report and in every row behind it.
fn breakdown(report: &Value, session: &Session) -> Vec<Violation> {
    let mut wrong = Vec::new();
    let mut say = |it: String| wrong.push(Violation::hard(it));
    let mut names: Vec<&str> = list(report, "breakdown").map(|it| text(it, "category")).collect();
    names.sort_unstable();
    for pair in names.windows(2).filter(|it| it[0] == it[1]) {
        say(format!("{} stands there twice", pair[0]));
    }
    for name in &names {
        if !CATEGORIES.iter().any(|it| it.0 == *name) {
            say(format!("{name} is no category"));
        }
        if list(report, "breakdown_unknown").any(|it| text(it, "category") == *name) {
            say(format!("{name} is both told and unknown"));
        }
    }
    let sum = |key: &str| list(report, "breakdown").filter_map(|it| it[key].as_f64()).sum::<f64>();
    let (shares, ms) = (sum("share"), sum("ms_per_step"));
    let mean = mean_ms(report);
    if !names.is_empty() && (shares - 1.0).abs() > 1e-6 {
        say(format!("shares add to {shares}"));
    }
    match mean {
        Some(mean) if names.is_empty() => say(format!("a step of {mean} ms, and no breakdown")),
        Some(mean) if (ms - mean).abs() > 1e-6 * mean => {
            say(format!("categories add to {ms} ms, the mean step is {mean} ms"));
        }
        _ => (),
    }
    for row in session.tables().get::<StepTime>().iter() {
        let parts = CATEGORIES.map(|(_, of)| of(row));
        if parts.iter().sum::<i64>() != row.dur_ps || parts.iter().any(|it| *it < 0) {
            say(format!("step {} of {} ps has parts {parts:?}", row.step, row.dur_ps));
        }
    }
    wrong
}

/// The report and the table `step_spread` say the same of the steps of a run on one host.
fn step_times(report: &Value, session: &Session) -> Vec<Violation> {
    let spreads = session.tables().get::<StepSpread>();
    let [spread] = spreads.as_slice() else { return Vec::new() };
    let ms = |ps: i64| ps as f64 / 1e9;
    let told = |key: &str| report["steps"][key].as_f64().unwrap_or(f64::NAN);
    let ranges = [
        ("mean_ms", spread.mean_ps, spread.mean_ps),
        ("median_ms", spread.p50_ps, spread.p50_ps),
        ("p95_ms", spread.p90_ps, spread.p99_ps),
    ];
    let wrong = ranges.iter().filter_map(|&(key, low, high)| {
        let (told, low, high) = (told(key), ms(low), ms(high));
        // Of a mean, what is left of a picosecond.
        let fits = told >= low - 1e-8 && told <= high + 1e-8;
        (!fits).then(|| Violation::hard(format!("{key} is {told}, not {low} to {high}")))
    });
    wrong.collect()
}

/// Nothing is wrong with the run, so nothing is said to be.
fn healthy(report: &Value, _: &Session) -> Vec<Violation> {
    let loud = findings(report).into_iter().filter(|it| text(it, "severity") != "low");
    loud.map(|it| Violation::hard(format!("{}: {}", text(it, "severity"), said(it)))).collect()
}

/// One step may have been any step.
fn one_step(report: &Value, _: &Session) -> Vec<Violation> {
    if report["steps"]["count"].as_u64() != Some(1) {
        return Vec::new();
    }
    let mut wrong = Vec::new();
    for (what, value) in promising(report) {
        if !matches!(Promise::of(value), Ok(None)) {
            wrong.push(Violation::hard(format!("{what}: a promise of one captured step")));
        }
    }
    if list(report, "plan").next().is_some() {
        wrong.push(Violation::hard("a plan of one captured step"));
    }
    wrong
}

/// What holds nearly the whole step must win something when it goes.
const NEARLY_ALL: f64 = 0.8;
const HARDLY_ANYTHING: f64 = 1.3;

/// Edits in the order worth making, each faster than the one before, none below the floor.
fn plan(report: &Value, _: &Session) -> Vec<Violation> {
    let Some(mean) = mean_ms(report) else { return Vec::new() };
    let mut wrong = Vec::new();
    let mut say = |it: String| wrong.push(Violation::hard(it));
    for finding in findings(report) {
        let cost = finding["cost_ms_per_step"].as_f64().unwrap_or_default();
        let gain = finding["speedup_if_fixed"].as_f64();
        if let Some(gain) = gain.filter(|it| cost > NEARLY_ALL * mean && *it < HARDLY_ANYTHING) {
            say(format!("{}: costs {cost:.3} of {mean:.3} ms, wins {gain:.3}", said(finding)));
        }
    }
    if NEW_SHAPE {
        entries(report, mean).into_iter().for_each(say);
    }
    wrong
}

fn entries(report: &Value, mean: f64) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut say = |it: String| wrong.push(it);
    if !report["plan"].is_array() {
        say("there is no plan, not even an empty one".to_owned());
    }
    let floor = report["floor_ms"].as_f64();
    let promises = findings(report).iter().any(|it| it["speedup_if_fixed"].is_number());
    if floor.is_none() && promises {
        say("gains, and no floor_ms".to_owned());
    }
    let floor = floor.unwrap_or(0.0);
    for finding in findings(report) {
        let low = finding["step_after_ms"]["low"].as_f64();
        if let Some(low) = low.filter(|it| *it < floor * (1.0 - 1e-9)) {
            say(format!("{}: comes down to {low} ms, the floor is {floor} ms", said(finding)));
        }
    }
    let mut before = mean;
    for (at, entry) in list(report, "plan").enumerate() {
        let rule = text(entry, "rule");
        let fix = entry["fix"].as_u64().and_then(|it| usize::try_from(it).ok());
        let refers = findings(report).iter().any(|it| {
            text(it, "rule") == rule && fix.is_some_and(|fix| fix < list(it, "fix").count())
        });
        if !refers {
            say(format!("plan {at}: there is no fix {} of {rule:?}", entry["fix"]));
        }
        match entry["step_after_ms"].as_f64() {
            Some(after) if after < before => {
                if after < floor * (1.0 - 1e-9) {
                    say(format!("plan {at}: {after} ms, the floor is {floor} ms"));
                }
                before = after;
            }
            after => say(format!("plan {at}: {after:?} ms after {before} ms")),
        }
    }
    if let Some(last) = list(report, "plan").last() {
        let speedup = mean / before;
        let (low, high) = (last["speedup_low"].as_f64(), last["speedup_high"].as_f64());
        let holds =
            |low: f64, high: f64| low <= speedup * (1.0 + NEAR) && speedup <= high * (1.0 + NEAR);
        if !low.zip(high).is_some_and(|(low, high)| holds(low, high)) {
            say(format!(
                "the plan ends {speedup:.3} times faster than today, and says {low:?} to {high:?}"
            ));
        }
    }
    wrong
}

/// The first finding is the answer to "why is it slow": what matters comes first, and of that what
/// costs most.
fn order(report: &Value, _: &Session) -> Vec<Violation> {
    let cost = |it: &Value| it["cost_ms_per_step"].as_f64().unwrap_or_default();
    let is_low = |it: &Value| text(it, "severity") == "low";
    let is_wrong = |before: &Value, after: &Value| match (is_low(before), is_low(after)) {
        (true, false) => true,
        (false, true) => false,
        _ => cost(before) < cost(after),
    };
    let pairs = causes(report).windows(2).filter(|it| is_wrong(&it[0], &it[1]));
    pairs
        .map(|it| {
            let [before, after] =
                [&it[0], &it[1]].map(|it| format!("{} ({} ms)", text(it, "rule"), cost(it)));
            Violation::hard(format!("{before} stands before {after}"))
        })
        .collect()
}

/// Figures that are always there: what is not finite becomes null on its way into JSON.
const OF_STEPS: [&str; 4] = ["confidence", "mean_ms", "median_ms", "p95_ms"];

/// No figure is below zero, none is missing for not being finite.
fn numbers(report: &Value, _: &Session) -> Vec<Violation> {
    let mut wrong = Vec::new();
    below_zero("", report, &mut wrong);
    let mut need = |what: &str, value: &Value| {
        if !value.is_number() {
            wrong.push(Violation::hard(format!("{what} is {value}")));
        }
    };
    let steps = &report["steps"];
    if steps["count"].as_u64().is_some_and(|it| it > 0) {
        OF_STEPS.iter().for_each(|it| need(&format!("steps.{it}"), &steps[*it]));
    }
    for part in list(report, "breakdown") {
        need(text(part, "category"), &part["ms_per_step"]);
        need(text(part, "category"), &part["share"]);
    }
    for finding in findings(report) {
        need(&format!("cost of {}", text(finding, "rule")), &finding["cost_ms_per_step"]);
        need(&format!("confidence of {}", text(finding, "rule")), &finding["confidence"]);
    }
    for op in list(report, "top_ops") {
        need(text(op, "name"), &op["self_ms"]);
        need(text(op, "name"), &op["share"]);
    }
    wrong
}

fn below_zero(path: &str, value: &Value, wrong: &mut Vec<Violation>) {
    match value {
        Value::Number(it) if it.as_f64().is_none_or(|it| !it.is_finite() || it < 0.0) => {
            wrong.push(Violation::hard(format!("{path} is {it}")));
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                below_zero(&format!("{path}[{at}]"), item, wrong);
            }
        }
        Value::Object(items) => {
            for (key, item) in items {
                below_zero(&format!("{path}.{key}"), item, wrong);
            }
        }
        _ => (),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use session::Session;
    use session::report::json::as_json;

    use super::{Promise, entries, same_figures};
    use crate::{offences, profiles};

    /// What is done to a report, and the law it breaks.
    type Doctored = (&'static str, fn(&mut Value));

    const DOCTORED: &[Doctored] = &[
        ("evidence", |it| it["findings"][0]["evidence"] = json!([])),
        ("evidence", |it| it["findings"][0]["evidence"] = json!([{"text": "seen"}])),
        ("evidence", |it| it["findings"][0]["evidence"][0]["table"] = json!("no_such")),
        ("evidence", |it| it["findings"][0]["evidence"][0]["rows"] = json!([1_000_000])),
        ("evidence", |it| it["findings"][0]["evidence"][0]["events"] = json!([1_000_000])),
        ("step-times", |it| it["steps"]["p95_ms"] = json!(1e-3)),
        ("step-times", |it| it["steps"]["median_ms"] = json!(1e6)),
        ("one-figure", |it| it["findings"][0]["cost_ms_per_step"] = json!(1e6)),
        ("gain-range", |it| it["findings"][0]["speedup_low"] = json!(0.9)),
        ("gain-range", |it| it["findings"][0]["speedup_low"] = json!(null)),
        ("gain-range", |it| it["findings"][0]["speedup_high"] = json!(1000.0)),
        ("gain-range", |it| it["findings"][0]["speedup_high"] = json!(1.0)),
        ("breakdown", |it| it["breakdown"][0]["share"] = json!(0.99)),
        ("breakdown", |it| it["breakdown"][0]["ms_per_step"] = json!(99.0)),
        ("breakdown", |it| it["breakdown"][0]["category"] = json!("compute")),
        ("counts", |it| it["findings"][0]["title"] = json!("traced in 5 of 3 steps")),
        ("counts", |it| it["findings"][0]["title"] = json!("traced in 5 of 3000 steps")),
        ("absence", |it| {
            it["not_checked"] = json!([{"rule": "x", "why": "no ops in this profile"}])
        }),
        ("absence", |it| it["headline"] = json!("There are no host events in this profile.")),
        ("healthy", |it| it["findings"][0]["severity"] = json!("high")),
        ("one-step", |it| it["steps"]["count"] = json!(1)),
        ("plan", |it| {
            it["findings"][0]["cost_ms_per_step"] =
                json!(0.9 * it["steps"]["mean_ms"].as_f64().unwrap());
            it["findings"][0]["speedup_if_fixed"] = json!(1.1);
        }),
        ("order", |it| it["findings"][0]["cost_ms_per_step"] = json!(1e-6)),
        ("headline", |it| it["headline"] = json!("It is what it is.")),
        ("numbers", |it| it["findings"][0]["cost_ms_per_step"] = json!(-1.0)),
        ("numbers", |it| it["steps"]["mean_ms"] = json!(null)),
        ("words", |it| it["headline"] = json!("a step  of 1 steps")),
    ];

    #[test]
    fn every_law_can_be_broken() {
        // Two findings with gains, in order.
        let path = profiles::repo().join("testdata/synthetic/overlap_streams");
        let session = Session::open(&path).unwrap();
        let report = as_json(&session.report());
        let broken = |report: &Value| -> Vec<(&str, String)> {
            let found = offences(report, &session, "doctored", true);
            found.into_iter().map(|it| (it.law, it.what.text)).collect()
        };
        let before = broken(&report);
        for (law, doctor) in DOCTORED {
            let mut doctored = report.clone();
            doctor(&mut doctored);
            let after = broken(&doctored);
            let new = after.iter().any(|it| it.0 == *law && !before.contains(it));
            assert!(new, "{law} holds of {doctored:#}");
        }
    }

    /// A finding as CONTRACT.md has it: 36 ms a step, 8 ms after.
    fn finding() -> Value {
        json!({
            "rule": "input-serial-map", "title": "", "cost_ms_per_step": 28.0,
            "speedup_if_fixed": 4.5, "speedup_low": 3.0, "speedup_high": 6.0,
            "step_after_ms": {"low": 6.0, "likely": 8.0, "high": 12.0},
            "fix": [{"speedup_if_fixed": 4.5, "speedup_low": 3.0, "speedup_high": 6.0},
                    {"why": "what it wins cannot be told"}],
        })
    }

    #[test]
    fn milliseconds_and_gains_of_edits_are_one_figure() {
        let check = |it: &Value| same_figures(it, Promise::of(it).unwrap(), 36.0);
        assert_eq!(check(&finding()), [] as [&str; 0]);
        let doctored: [fn(&mut Value); 6] = [
            |it| it["cost_ms_per_step"] = json!(20.0),
            |it| it["speedup_if_fixed"] = json!(5.0),
            |it| it["step_after_ms"]["low"] = json!(1.0),
            |it| it["step_after_ms"] = json!(null),
            |it| {
                it["fix"][1] =
                    json!({"speedup_low": 1.0, "speedup_if_fixed": 9.0, "speedup_high": 9.0})
            },
            |it| it["fix"] = json!([]),
        ];
        for doctor in doctored {
            let mut doctored = finding();
            doctor(&mut doctored);
            assert!(!check(&doctored).is_empty(), "{doctored}");
        }
    }

    #[test]
    fn a_plan_goes_down_and_refers_to_edits() {
        let plan = |entries: Value, floor: f64| json!({"findings": [finding()], "plan": entries, "floor_ms": floor});
        let entry = |fix: u64, after: f64, low: f64, high: f64| {
            json!({"rule": "input-serial-map", "fix": fix, "step_after_ms": after,
                   "speedup_low": low, "speedup_high": high})
        };
        let (first, last) = (entry(0, 8.0, 3.0, 6.0), entry(1, 7.0, 4.0, 7.0));
        assert_eq!(entries(&plan(json!([first, last]), 5.0), 36.0), [] as [&str; 0]);
        for wrong in [
            plan(json!([last, first]), 5.0),
            plan(json!([first, last]), 6.5),
            plan(json!([entry(2, 8.0, 3.0, 6.0)]), 5.0),
            plan(json!([entry(0, 8.0, 1.0, 1.2)]), 5.0),
            plan(json!(null), 5.0),
            json!({"findings": [finding()], "plan": []}),
        ] {
            assert_eq!(entries(&wrong, 36.0).len(), 1, "{wrong}");
        }
    }
}
