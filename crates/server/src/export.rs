//! The page as one file: no server, no network, a few steps of the timeline, nothing private.
//!
//! ```text
//! session ─▶ answers of the API, as JSON ┐
//!         └▶ raw events of a few steps  ─┴─ redact ─ gzip ─ base64 ─▶ between the page's own files
//! ```
//!
//! The script inside (`web/src/export.tsx`) unpacks it and cuts its own tiles from the events.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};
use session::Session;
use session::report::json::as_json;
use session::timeline::Overview;
use session::value::of_json;
use trace::{EventId, StrId, Trace, TrackId, TrackKind};

use crate::api::runs::{RunEntry, RunStatus};
use crate::api::{counters, evidence, tables, timeline};
use crate::page;
use crate::runs::RunState;

/// What of the run goes into the file.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Which steps the timeline shows, by their number in the table `step`; else a typical one
    /// and those beside it.
    pub steps: Option<Range<i64>>,
}

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(
        "this program was built without its page\n  hint: install Node 20.19 or later and build it \
         again"
    )]
    NoPage,
    #[error("there are no steps {} to {}\n  hint: this run has steps {first} to {last}", steps.start, steps.end - 1)]
    NoSuchSteps { steps: Range<i64>, first: i64, last: i64 },
    #[error("{0}")]
    Write(#[from] io::Error),
}

/// A few megabytes of the file, and as many as a browser cuts into tiles at once.
const MOST_EVENTS: usize = 200_000;
/// Before a step is left out for the sake of size.
const STEPS_BESIDE: usize = 1;
/// Beyond these rows nobody reads a table in a file.
const MOST_ROWS: usize = 5000;
/// Of tables that are drawn as a whole, a megabyte or so of the file.
const MOST_DRAWN_ROWS: usize = 20_000;
const DRAWN: [&str; 2] = ["python_stack", "scope_step"];

pub fn html(session: &Session, options: &Options) -> Result<String, ExportError> {
    let (Some(script), Some(style)) = (page::exported("js"), page::exported("css")) else {
        return Err(ExportError::NoPage);
    };
    let part = Part::choose(session, options)?;
    let data = json!({"answers": answers(session, &part), "timeline": part.json(session)});
    let title = redact::text(&session.run.name).into_owned();
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">\n\
         <title>{} · Stroboscope</title>\n<style>\n{}\n</style>\n</head>\n<body>\n\
         <div id=\"page\"></div>\n<script type=\"text/plain\" id=\"licences\">\n{}</script>\n\
         <script type=\"text/plain\" id=\"data\">{}</script>\n\
         <script type=\"module\">\n{}\n</script>\n</body>\n</html>\n",
        escaped(&title),
        style.replace("</", "<\\/"),
        crate::PAGE_NOTICES,
        packed(&data)?,
        // What ends a script inside a script can only be in a text, where this means the same.
        script.replace("</script", "<\\/script"),
    ))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

fn packed(data: &Value) -> io::Result<String> {
    let mut zipped = GzEncoder::new(Vec::new(), Compression::best());
    zipped.write_all(data.to_string().as_bytes())?;
    Ok(BASE64.encode(zipped.finish()?))
}

/// What the page would ask a server for, by what it would ask.
fn answers(session: &Session, part: &Part) -> Value {
    let mut answers = Map::new();
    let name = &session.run.name;
    let entry = RunEntry { id: 0, name, path: name.clone(), state: RunState::Ready };
    answers.insert("runs".to_owned(), of_json(&[entry]));
    let status = RunStatus {
        state: RunState::Ready,
        phase: "",
        bytes: 0,
        total_bytes: 0,
        seconds: 0.0,
        error: None,
    };
    answers.insert("runs/0/status".to_owned(), of_json(&status));
    answers.insert("rules".to_owned(), of_json(&tables::all_rules()));
    answers.insert("runs/0/tables".to_owned(), of_json(&tables::all()));
    let mut report = as_json(&session.report());
    report["run"]["path"] = json!(name);
    part.renumber_evidence(&mut report["findings"]);
    answers.insert("runs/0/report".to_owned(), report);
    let mut lit = Vec::new();
    for mut it in evidence::all(session, Some((part.window.start, part.window.end))) {
        it.events.retain(|hit| part.place(u64::from(hit.event.0)).is_some());
        if it.events.is_empty() && it.spans.is_empty() {
            continue;
        }
        let mut full = of_json(&evidence::LitEvidence::of(&it));
        part.renumber_lit(&mut full["events"]);
        answers.insert(format!("runs/0/evidence/{}", it.id), full);
        lit.push(of_json(&evidence::Spotlight::of(&it)));
    }
    answers.insert("runs/0/evidence".to_owned(), json!(lit));
    for table in analyses::ALL {
        let most = if DRAWN.contains(&table.name()) { MOST_DRAWN_ROWS } else { MOST_ROWS };
        let mut rows = of_json(&tables::rows_of(session, *table, 0..most));
        let at = table.columns().iter().position(|it| it.name == "event");
        if let (Some(at), Some(rows)) = (at, rows["rows"].as_array_mut()) {
            for row in rows {
                row[at] = part.renumbered(&row[at]);
            }
        }
        without_sources(*table, &mut rows);
        answers.insert(format!("runs/0/tables/{}", table.name()), rows);
    }
    answers.insert("runs/0/counters".to_owned(), of_json(&counters::all(session.trace())));
    redacted(Value::Object(answers))
}

/// Which line made what may be shared; what it says is the user's program.
fn without_sources(table: &dyn analyses::AnyTable, rows: &mut Value) {
    let sources: &[&str] = match table.name() {
        "code_site" => &["text", "call"],
        "python_stack" => &["text"],
        _ => return,
    };
    let columns = table.columns().iter().enumerate();
    let places: Vec<usize> =
        columns.filter(|it| sources.contains(&it.1.name)).map(|it| it.0).collect();
    for row in rows["rows"].as_array_mut().into_iter().flatten() {
        for &at in &places {
            row[at] = Value::Null;
        }
    }
}

/// The part of the timeline that goes into the file.
struct Part {
    overview: Overview,
    /// In ps.
    window: Range<i64>,
    /// Sorted, as in the trace: by track, then start.
    events: Vec<u32>,
    /// Events of the window that were left out, the shortest.
    left_out: usize,
}

impl Part {
    fn choose(session: &Session, options: &Options) -> Result<Part, ExportError> {
        let trace = session.trace();
        let overview = session.timeline().overview();
        let mut windows = windows(&overview, options)?;
        let (mut window, mut events) = (0..0, Vec::new());
        // From the widest: what is too much gives way to less.
        while let Some(next) = windows.pop() {
            events = inside(trace, &next);
            window = next;
            if events.len() <= MOST_EVENTS {
                break;
            }
        }
        let left_out = events.len().saturating_sub(MOST_EVENTS);
        if left_out > 0 {
            let dur = |it: &u32| trace.events.dur[*it as usize];
            events.sort_by_key(|it| std::cmp::Reverse(dur(it)));
            events.truncate(MOST_EVENTS);
            events.sort_unstable();
        }
        Ok(Part { overview, window, events, left_out })
    }

    /// Events are counted anew in the file.
    fn place(&self, event: u64) -> Option<usize> {
        self.events.binary_search(&u32::try_from(event).ok()?).ok()
    }

    fn renumbered(&self, event: &Value) -> Value {
        json!(event.as_u64().and_then(|it| self.place(it)))
    }

    fn renumber_evidence(&self, findings: &mut Value) {
        for finding in findings.as_array_mut().into_iter().flatten() {
            for evidence in finding["evidence"].as_array_mut().into_iter().flatten() {
                let events = evidence["events"].as_array();
                let kept = events.into_iter().flatten().filter_map(|it| self.place(it.as_u64()?));
                evidence["events"] = json!(kept.collect::<Vec<usize>>());
            }
            if finding.get("symptoms").is_some() {
                self.renumber_evidence(&mut finding["symptoms"]);
            }
        }
    }

    fn renumber_lit(&self, events: &mut Value) {
        for it in events.as_array_mut().into_iter().flatten() {
            it[0] = self.renumbered(&it[0]);
        }
    }

    fn json(&self, session: &Session) -> Value {
        let trace = session.trace();
        let mut names = Names::default();
        let of = |it: &u32| *it as usize;
        let rows = || self.events.iter().map(of);
        let timeline = session.timeline();
        let lane = |it: usize| timeline.lane_of(EventId(it as u32));
        let events = json!({
            "start": f64s(rows().map(|it| trace.events.start[it].0)),
            "dur": f64s(rows().map(|it| trace.events.dur[it].0)),
            "track": u32s(rows().map(|it| trace.track_of(EventId(it as u32)).0)),
            "lane": BASE64.encode(rows().map(lane).collect::<Vec<u8>>()),
            "kind": BASE64.encode(rows().map(|it| trace.events.kind[it] as u8).collect::<Vec<_>>()),
            "name": u32s(rows().map(|it| names.place(trace.events.name[it]))),
            "parent": u32s(rows().map(|it| self.parent(trace, it))),
        });
        json!({
            "overview": redacted(self.overview_json(trace)),
            "events": events,
            "names": redacted(names.all.iter().map(|it| trace.strings.get(*it)).collect()),
            "edges": self.edges(trace),
            "args": redacted(self.args(trace)),
            "samples": self.samples(trace),
            "left_out": self.left_out,
        })
    }

    /// The innermost event around it that is part of the file.
    fn parent(&self, trace: &Trace, row: usize) -> u32 {
        let mut above = trace.events.ancestors(EventId(row as u32));
        let place = above.find_map(|it| self.place(u64::from(it.0)));
        place.map_or(u32::MAX, |it| it as u32)
    }

    fn edges(&self, trace: &Trace) -> Value {
        let ends = trace.edges.from.iter().zip(&trace.edges.to).zip(&trace.edges.kind);
        let inside = ends.filter_map(|((from, to), kind)| {
            let place = |it: &EventId| self.place(u64::from(it.0));
            Some((place(from)?, place(to)?, timeline::edge_name(*kind)))
        });
        let all: Vec<_> = inside.collect();
        json!({
            "from": u32s(all.iter().map(|it| it.0 as u32)),
            "to": u32s(all.iter().map(|it| it.1 as u32)),
            "kind": all.iter().map(|it| it.2).collect::<Vec<_>>(),
        })
    }

    /// Arguments are most of a profile: those of a small part only.
    fn args(&self, trace: &Trace) -> Value {
        const MOST_WITH_ARGS: usize = 20_000;
        if self.events.len() > MOST_WITH_ARGS {
            return json!({});
        }
        let mut all = Map::new();
        for (place, event) in self.events.iter().enumerate() {
            let args = trace.args.of(EventId(*event));
            if !args.is_empty() {
                all.insert(place.to_string(), of_json(&timeline::args_of(&args)));
            }
        }
        Value::Object(all)
    }

    fn samples(&self, trace: &Trace) -> Value {
        let inside = trace.counters.iter().filter(|it| self.window.contains(&it.time.0));
        let mut tracks: Vec<(TrackId, Vec<(i64, f64)>)> = Vec::new();
        for it in inside {
            match tracks.last_mut() {
                Some(last) if last.0 == it.track => last.1.push((it.time.0, it.value)),
                _ => tracks.push((it.track, vec![(it.time.0, it.value)])),
            }
        }
        let track = |(track, samples): &(TrackId, Vec<(i64, f64)>)| {
            json!({
                "track": track.0,
                "time": samples.iter().map(|it| it.0).collect::<Vec<_>>(),
                "value": samples.iter().map(|it| it.1).collect::<Vec<_>>(),
            })
        };
        tracks.iter().map(track).collect()
    }

    /// Only tracks with something on them, and those around them.
    fn overview_json(&self, trace: &Trace) -> Value {
        let mut overview = self.overview.clone();
        let mut counts = vec![0u32; overview.tracks.len()];
        for event in &self.events {
            counts[trace.track_of(EventId(*event)).row()] += 1;
        }
        let mut needed: Vec<bool> = overview
            .tracks
            .iter()
            .map(|it| counts[it.id.row()] > 0 || it.counter.is_some())
            .collect();
        // Children come after their parents.
        for track in overview.tracks.iter().rev() {
            if let (true, Some(parent)) = (needed[track.id.row()], track.parent) {
                needed[parent.row()] = true;
            }
        }
        for track in &mut overview.tracks {
            track.n_events = counts[track.id.row()];
        }
        overview.tracks.retain(|it| needed[it.id.row()]);
        let typical = overview.typical_step.and_then(|it| overview.steps.get(it)).copied();
        let is_inside = |start: i64, dur: i64| {
            start < self.window.end && start.saturating_add(dur) > self.window.start
        };
        overview.steps.retain(|it| is_inside(it.start_ps, it.dur_ps));
        overview.typical_step =
            typical.and_then(|typical| overview.steps.iter().position(|it| *it == typical));
        overview.start_ps = self.window.start;
        overview.end_ps = self.window.end;
        of_json(&timeline::Timeline::of(&overview))
    }
}

/// What could be shown, the widest last; at least one.
fn windows(overview: &Overview, options: &Options) -> Result<Vec<Range<i64>>, ExportError> {
    let all = overview.start_ps..overview.end_ps;
    let span = |steps: &[session::timeline::StepMark]| {
        let from = steps.iter().map(|it| it.start_ps).min();
        let to = steps.iter().map(|it| it.start_ps.saturating_add(it.dur_ps)).max();
        from.zip(to).map(|(from, to)| from..to)
    };
    let typical = overview.typical_step.and_then(|it| overview.steps.get(it));
    let host = typical.map(|it| it.host);
    let steps: Vec<_> = overview.steps.iter().filter(|it| Some(it.host) == host).copied().collect();
    if let Some(wanted) = &options.steps {
        let chosen: Vec<_> = steps.iter().filter(|it| wanted.contains(&it.step)).copied().collect();
        return span(&chosen).map(|it| vec![it]).ok_or_else(|| ExportError::NoSuchSteps {
            steps: wanted.clone(),
            first: steps.first().map_or(0, |it| it.step),
            last: steps.last().map_or(0, |it| it.step),
        });
    }
    let Some(at) = typical.and_then(|typical| steps.iter().position(|it| it == typical)) else {
        return Ok(vec![all]);
    };
    let beside = &steps[at.saturating_sub(STEPS_BESIDE)..(at + STEPS_BESIDE + 1).min(steps.len())];
    let mut windows: Vec<Range<i64>> = span(&steps[at..=at]).into_iter().collect();
    windows.extend(span(beside));
    windows.push(all);
    Ok(windows)
}

fn inside(trace: &Trace, window: &Range<i64>) -> Vec<u32> {
    let mut rows = Vec::new();
    for track in trace.tracks.iter().filter(|it| it.kind != TrackKind::Counter) {
        let starts = &trace.events.start[track.rows()];
        let end = track.rows().start + starts.partition_point(|it| it.0 < window.end);
        rows.extend(
            (track.rows().start..end)
                .filter(|&it| {
                    let (start, dur) = (trace.events.start[it].0, trace.events.dur[it].0);
                    start.saturating_add(dur) > window.start || start >= window.start
                })
                .map(|it| it as u32),
        );
    }
    rows.sort_unstable();
    rows
}

fn f64s(values: impl Iterator<Item = i64>) -> String {
    BASE64.encode(values.flat_map(|it| (it as f64).to_le_bytes()).collect::<Vec<u8>>())
}

fn u32s(values: impl Iterator<Item = u32>) -> String {
    BASE64.encode(values.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())
}

/// Each name once.
#[derive(Default)]
struct Names {
    all: Vec<StrId>,
    places: std::collections::BTreeMap<StrId, u32>,
}

impl Names {
    fn place(&mut self, name: StrId) -> u32 {
        *self.places.entry(name).or_insert_with(|| {
            self.all.push(name);
            (self.all.len() - 1) as u32
        })
    }
}

fn redacted(mut value: Value) -> Value {
    redact(&mut value);
    value
}

/// Every text of what goes out.
fn redact(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(kept) = redact::text(text) {
                *text = kept;
            }
        }
        Value::Array(all) => {
            // A name and its value, or a fact about something.
            if let [.., Value::String(name), value @ Value::String(_)] = all.as_mut_slice()
                && redact::is_secret(name)
            {
                *value = json!(redact::HIDDEN);
            }
            all.iter_mut().for_each(redact);
        }
        Value::Object(all) => {
            for (name, value) in all {
                // Names of ours; `key` and `token` alone are also words of models.
                let is_word = ["key", "token"].contains(&name.as_str());
                match value {
                    Value::String(_) if !is_word && redact::is_secret(name) => {
                        *value = json!(redact::HIDDEN);
                    }
                    _ => redact(value),
                }
            }
        }
        _ => (),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{DRAWN, without_sources};

    #[test]
    fn what_lines_say_is_not_shared() {
        for (name, hidden) in [("code_site", &["text", "call"][..]), ("python_stack", &["text"])] {
            let table = analyses::find(name).unwrap();
            let row: Vec<Value> = table.columns().iter().map(|it| json!(it.name)).collect();
            let mut rows = json!({"rows": [row]});
            without_sources(table, &mut rows);
            for (at, column) in table.columns().iter().enumerate() {
                let is_hidden = rows["rows"][0][at].is_null();
                assert_eq!(is_hidden, hidden.contains(&column.name), "{name}.{}", column.name);
            }
        }
    }

    #[test]
    fn tables_that_are_drawn_are_there() {
        assert!(DRAWN.iter().all(|it| analyses::find(it).is_some()));
    }
}
