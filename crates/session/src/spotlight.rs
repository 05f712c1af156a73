//! What of a finding's evidence can be seen on the timeline: which events, which instants, and a
//! step to look at them in.
//!
//! ```text
//! evidence ─ events, rows of a table ─▶ all events that they stand for ─┐
//!          └ steps and a category ────▶ the instants of that category  ─┴─▶ one step to zoom to
//! ```
//!
//! A rule names a few events as examples. A person who opens them wants to see all of their kind.

use analyses::compile::Compile;
use analyses::copy::Copy;
use analyses::host_call::HostCall;
use analyses::input_stage::InputStage;
use analyses::input_stage::pipeline::without_indices;
use analyses::kernel_time::KernelTime;
use analyses::op_time::OpTime;
use analyses::span::Span;
use analyses::step::Step;
use analyses::step_outlier::StepOutlier;
use analyses::step_time::{StepTime, when};
use analyses::{Tables, kernel_time};
use rules::{Diagnosis, Evidence};
use trace::{EventId, OpKind, Trace, TrackId, TrackKind};

use crate::timeline::{Hit, Overview, StepMark, Timeline};

/// Evidence as it is shown on the timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Spotlight {
    /// Which evidence: `0.1` is the second of the first finding, `0.2.1` the second of that
    /// finding's third symptom.
    pub id: String,
    /// What to look at, in ps: a step, or where no step has any of it, all of it.
    pub window: Span,
    /// The number of that step.
    pub step: Option<i64>,
    /// What is lit, by their place; at most `MOST_LIT`, those in the window first.
    pub events: Vec<Hit>,
    /// Events beyond that.
    pub left_out: usize,
    /// Times that are lit where no event stands for them, in order.
    pub spans: Vec<Span>,
}

/// Events that are lit at most: a browser holds as many without effort.
const MOST_LIT: usize = 50_000;

/// A finding's evidence by its name, see [`Spotlight::id`].
pub fn evidence(diagnosis: &Diagnosis) -> Vec<(String, &Evidence)> {
    let mut all = Vec::new();
    for (n, cause) in diagnosis.causes.iter().enumerate() {
        for (at, it) in cause.finding.evidence.iter().enumerate() {
            all.push((format!("{n}.{at}"), it));
        }
        for (symptom, (_, finding)) in cause.symptoms.iter().enumerate() {
            for (at, it) in finding.evidence.iter().enumerate() {
                all.push((format!("{n}.{symptom}.{at}"), it));
            }
        }
    }
    all
}

impl Spotlight {
    /// `None` where nothing of it is on the timeline, or nothing inside `within`, in ps.
    pub fn of(
        timeline: &Timeline,
        overview: &Overview,
        id: &str,
        evidence: &Evidence,
        within: Option<Span>,
    ) -> Option<Spotlight> {
        let tables = timeline.tables();
        let events = events_of(tables, evidence);
        let steps = steps_of(tables, evidence);
        let inside = |from: i64, to: i64| within.is_none_or(|it| it.0 <= from && to <= it.1);
        let typical = overview.typical_step.and_then(|it| overview.steps.get(it));
        // Of several steps the most ordinary one, of those that the evidence names or shows in.
        let far = |it: &&StepMark| {
            (!it.counts, typical.map_or(0, |typical| (it.dur_ps - typical.dur_ps).abs()))
        };
        let fits = |it: &StepMark| inside(it.start_ps, it.start_ps.saturating_add(it.dur_ps));
        let events: Vec<EventId> = events
            .into_iter()
            .filter(|&it| within.is_none_or(|window| touches(tables.trace(), it, window)))
            .collect();
        let marks = overview.steps.iter().filter(|it| fits(it));
        let step = if steps.is_empty() {
            let shown = shows_in(tables.trace(), &overview.steps, &events);
            marks.filter(|it| shown.contains(&(it.host, it.step))).min_by_key(far)
        } else {
            marks.filter(|it| steps.iter().any(|step| step.is(tables.trace(), it))).min_by_key(far)
        };
        let window = step.map(|it| (it.start_ps, it.start_ps.saturating_add(it.dur_ps)));
        let spans = match step.filter(|_| events.is_empty()) {
            Some(mark) => {
                let named = steps.iter().find(|it| it.is(tables.trace(), mark))?;
                named.spans(tables, window?)
            }
            None => Vec::new(),
        };
        if events.is_empty() && spans.is_empty() {
            return None;
        }
        let window = window.or_else(|| {
            let (from, to) = around(tables.trace(), &events)?;
            let (least, most) = within.unwrap_or((i64::MIN, i64::MAX));
            Some((from.max(least), to.min(most)))
        })?;
        let (events, left_out) = nearest(tables.trace(), events, window);
        Some(Spotlight {
            id: id.to_owned(),
            window,
            step: step.map(|it| it.step),
            events: events.into_iter().map(|it| timeline.hit(it)).collect(),
            left_out,
            spans,
        })
    }
}

/// A step that evidence names, and the part of it that is meant.
struct NamedStep {
    host: String,
    step: i64,
    /// Of `step_time`.
    row: Option<usize>,
    category: Option<&'static str>,
}

impl NamedStep {
    fn is(&self, trace: &Trace, mark: &StepMark) -> bool {
        self.step == mark.step && trace.track_name(mark.host) == self.host
    }

    /// The instants of its category; all of the step where none is meant, or none has any.
    fn spans(&self, tables: &Tables, window: Span) -> Vec<Span> {
        let times = tables.get::<StepTime>();
        let row = self.row.and_then(|it| times.get(it));
        let found = row.zip(self.category).map(|(row, it)| when(tables, row, it));
        found.filter(|it| !it.is_empty()).unwrap_or_else(|| vec![window])
    }
}

/// The steps that evidence names by rows of a table about steps.
fn steps_of(tables: &Tables, evidence: &Evidence) -> Vec<NamedStep> {
    let rows = evidence.rows.iter().copied();
    let named = |host: &str, step: i64| NamedStep {
        host: host.to_owned(),
        step,
        row: None,
        category: evidence.category,
    };
    match evidence.table {
        Some("step") => {
            let all = tables.get::<Step>();
            rows.filter_map(|it| all.get(it)).map(|it| named(&it.host, it.step)).collect()
        }
        Some("step_time") => {
            let all = tables.get::<StepTime>();
            let rows = rows.filter_map(|at| Some((at, all.get(at)?)));
            rows.map(|(at, it)| NamedStep { row: Some(at), ..named(&it.host, it.step) }).collect()
        }
        Some("step_outlier") => {
            let all = tables.get::<StepOutlier>();
            let times = tables.get::<StepTime>();
            rows.filter_map(|it| all.get(it))
                .map(|it| NamedStep {
                    row: times.iter().position(|row| row.host == it.host && row.step == it.step),
                    category: Some(it.category),
                    ..named(&it.host, it.step)
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

/// All events that evidence stands for, in the order of the trace.
fn events_of(tables: &Tables, evidence: &Evidence) -> Vec<EventId> {
    let trace = tables.trace();
    let mut events = evidence.events.clone();
    let rows = || evidence.rows.iter().copied();
    match evidence.table {
        // An example of a name stands for all of it.
        None => {
            let examples = std::mem::take(&mut events);
            events.extend(examples.iter().flat_map(|&it| of_same_name(trace, it)));
        }
        Some("host_call") => {
            let all = tables.get::<HostCall>();
            let calls = rows().filter_map(|it| all.get(it)).map(|it| EventId(it.event as u32));
            events.extend(calls.flat_map(|it| of_same_name(trace, it)));
        }
        Some("input_stage") => {
            let all = tables.get::<InputStage>();
            let stages: Vec<&str> =
                rows().filter_map(|it| all.get(it)).map(|it| it.stage.as_str()).collect();
            events.extend(matching(
                trace,
                |kind| kind == TrackKind::Thread,
                |kind| kind == OpKind::InputStage,
                |name| stages.contains(&without_indices(name).as_str()),
                |_| false,
            ));
        }
        Some("kernel_time") => {
            let all = tables.get::<KernelTime>();
            for it in rows().filter_map(|it| all.get(it)) {
                let of_name = matching(
                    trace,
                    |kind| kind == TrackKind::Stream,
                    |_| true,
                    |name| name == it.name,
                    |_| false,
                );
                let op = |event: &EventId| {
                    it.op.as_deref().is_none_or(|op| kernel_time::op_of(trace, *event) == op)
                };
                events.extend(of_name.into_iter().filter(op));
            }
        }
        Some("op_time") => {
            let all = tables.get::<OpTime>();
            for it in rows().filter_map(|it| all.get(it)) {
                events.extend(of_op(trace, it));
            }
        }
        Some("copy") => {
            let all = tables.get::<Copy>();
            for it in rows().filter_map(|it| all.get(it)) {
                events.extend(of_copy(trace, it));
            }
        }
        Some("compile") => {
            let all = tables.get::<Compile>();
            let longest = rows().filter_map(|it| all.get(it));
            events.extend(longest.map(|it| EventId(it.event as u32)));
        }
        Some(_) => (),
    }
    events.retain(|it| it.row() < trace.events.len());
    events.sort_unstable();
    events.dedup();
    events
}

/// Events of an event's name and kind on its kind of track.
fn of_same_name(trace: &Trace, event: EventId) -> Vec<EventId> {
    let events = &trace.events;
    let (Some(&name), Some(&kind)) = (events.name.get(event.row()), events.kind.get(event.row()))
    else {
        return Vec::new();
    };
    let track_kind = trace.tracks[trace.track_of(event).row()].kind;
    trace
        .tracks_of(track_kind)
        .flat_map(|it| trace.rows_of(it, kind))
        .filter(|&row| events.name[row] == name)
        .map(|row| EventId(row as u32))
        .collect()
}

/// Events by their name or by their detail: each text and each detail is looked at once.
fn matching(
    trace: &Trace,
    track: impl Fn(TrackKind) -> bool,
    kind: impl Fn(OpKind) -> bool,
    name: impl Fn(&str) -> bool,
    detail: impl Fn(&trace::Detail) -> bool,
) -> Vec<EventId> {
    let names: Vec<bool> = trace.strings.iter().map(|it| name(it.1)).collect();
    let details: Vec<bool> = trace.details.iter().map(detail).collect();
    let events = &trace.events;
    let tracks = trace.tracks.iter().filter(|it| track(it.kind));
    tracks
        .flat_map(|it| it.rows())
        .filter(|&row| names[events.name[row].row()] || details[events.detail[row].row()])
        .filter(|&row| kind(events.kind[row]))
        .map(|row| EventId(row as u32))
        .collect()
}

/// Runs of an op, as `op_time` names it.
fn of_op(trace: &Trace, op: &OpTime) -> Vec<EventId> {
    let side = match op.side {
        "device" => TrackKind::Stream,
        _ => TrackKind::Thread,
    };
    let without_type =
        |name: &str| name == op.name || name.split_once(':').map_or(name, |it| it.0) == op.name;
    let is_call = |name: &str| {
        let called = name.strip_prefix("EagerLocalExecute: ");
        called.is_some_and(|it| it == op.name || Some(it) == op.op_type.as_deref())
    };
    let text = |it: Option<trace::StrId>| it.map(|it| trace.text(it));
    matching(
        trace,
        |it| it == side,
        // Allocations carry the name of an op and are none.
        |it| !matches!(it, OpKind::Memory | OpKind::Launch | OpKind::Sync | OpKind::Listener),
        |it| without_type(it) || is_call(it),
        |it| {
            text(it.op).is_some_and(without_type) || text(it.hlo_op).is_some_and(|it| it == op.name)
        },
    )
}

fn of_copy(trace: &Trace, copy: &Copy) -> Vec<EventId> {
    let of_device = |stream: TrackId| {
        let device = trace.ancestor(stream, TrackKind::Device);
        let host = trace.ancestor(stream, TrackKind::Host);
        device.is_some_and(|it| trace.track_name(it) == copy.device)
            && host.is_none_or(|it| trace.track_name(it) == copy.host)
    };
    let kind = match copy.direction {
        "h2d" => OpKind::CopyIn,
        "d2h" => OpKind::CopyOut,
        "d2d" => OpKind::CopyOnDevice,
        "p2p" => OpKind::CopyPeer,
        _ => OpKind::Memset,
    };
    let memory = |row: &usize| {
        let memory = trace.details[trace.events.detail[*row].row()].copy_memory;
        memory.map(|it| trace.text(it)) == copy.memory.as_deref()
    };
    trace
        .tracks_of(TrackKind::Stream)
        .filter(|&it| of_device(it))
        .flat_map(|it| trace.rows_of(it, kind))
        .filter(memory)
        .map(|row| EventId(row as u32))
        .collect()
}

fn span_of(trace: &Trace, event: EventId) -> Span {
    (trace.events.start[event.row()].0, trace.events.end(event).0)
}

fn touches(trace: &Trace, event: EventId, window: Span) -> bool {
    let (from, to) = span_of(trace, event);
    from < window.1 && to >= window.0
}

/// The steps, by host and number, in which any of the events begin.
fn shows_in(trace: &Trace, marks: &[StepMark], events: &[EventId]) -> Vec<(TrackId, i64)> {
    let mut found = Vec::new();
    for &event in events {
        let host = trace.ancestor(trace.track_of(event), TrackKind::Host);
        let (from, _) = span_of(trace, event);
        // Steps lie host by host, by time.
        let first = marks.partition_point(|it| Some(it.host) < host);
        let own = &marks[first..];
        let own = &own[..own.partition_point(|it| Some(it.host) <= host)];
        let at = own.partition_point(|it| it.start_ps <= from).checked_sub(1);
        if let Some(it) =
            at.map(|it| &own[it]).filter(|it| from < it.start_ps.saturating_add(it.dur_ps))
            && found.last() != Some(&(it.host, it.step))
        {
            found.push((it.host, it.step));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// From the first of them to the end of the last.
fn around(trace: &Trace, events: &[EventId]) -> Option<Span> {
    let spans = || events.iter().map(|&it| span_of(trace, it));
    Some((spans().map(|it| it.0).min()?, spans().map(|it| it.1).max()?))
}

/// As many as can be lit, those in the window before the others; and how many that leaves out.
fn nearest(trace: &Trace, mut events: Vec<EventId>, window: Span) -> (Vec<EventId>, usize) {
    let left_out = events.len().saturating_sub(MOST_LIT);
    if left_out > 0 {
        let distance = |it: &EventId| {
            let (from, to) = span_of(trace, *it);
            from.saturating_sub(window.1).max(window.0.saturating_sub(to)).max(0)
        };
        events.sort_by_cached_key(distance);
        events.truncate(MOST_LIT);
        events.sort_unstable();
    }
    (events, left_out)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use analyses::Tables;
    use rules::Evidence;
    use trace::EventId;
    use trace::testing::draw;

    use super::Spotlight;
    use crate::timeline::Timeline;

    /// Two ordinary steps around one that is slow, copies in all of them.
    const STEPS: &str = "
        host/python: train#1 0..95, IteratorGetNext 0..30, train#2 100..295, train#3 300..395
        host/python: IteratorGetNext 300..330, train#4 400..495
        gpu0/stream7: matmul 40..70, matmul 140..270, matmul 340..370, matmul 440..470
    ";

    /// The step, and what is lit in µs: events, else times.
    fn lit(picture: &str, evidence: &Evidence, within: Option<(i64, i64)>) -> Option<Shown> {
        let tables = Arc::new(Tables::new(Arc::new(draw(picture))));
        let timeline = Timeline::new(tables);
        let within = within.map(|it| (it.0 * 1_000_000, it.1 * 1_000_000));
        let it = Spotlight::of(&timeline, &timeline.overview(), "0.0", evidence, within)?;
        let micros = |from: i64, to: i64| (from / 1_000_000, to / 1_000_000);
        let events = it.events.iter().map(|it| micros(it.start_ps, it.start_ps + it.dur_ps));
        let spans = it.spans.iter().map(|it| micros(it.0, it.1));
        Some((it.step, events.collect(), spans.collect()))
    }

    type Shown = (Option<i64>, Vec<(i64, i64)>, Vec<(i64, i64)>);

    #[test]
    fn an_example_lights_all_of_its_name_in_an_ordinary_step() {
        let tables = draw(STEPS);
        let row = tables.events.name.iter().position(|it| tables.text(*it) == "matmul");
        let event = EventId(row.expect("a kernel") as u32);
        let evidence = Evidence::text("x").events(vec![event]);
        let (step, events, spans) = lit(STEPS, &evidence, None).expect("lit");
        assert_eq!(step, Some(0));
        assert_eq!(events, [(40, 70), (140, 270), (340, 370), (440, 470)]);
        assert_eq!(spans, []);
    }

    #[test]
    fn a_row_of_steps_lights_the_instants_of_its_category() {
        let evidence = Evidence::text("x").steps("input", vec![0, 1, 2]);
        let shown = lit(STEPS, &evidence, None).expect("lit");
        assert_eq!(shown, (Some(0), vec![], vec![(0, 30)]));
        // Only what is inside: the first step is not.
        let shown = lit(STEPS, &evidence, Some((200, 420))).expect("lit");
        assert_eq!(shown, (Some(2), vec![], vec![(300, 330)]));
    }

    #[test]
    fn without_a_category_the_whole_step_is_lit() {
        let evidence = Evidence::text("x").rows("step_time", vec![1]);
        let shown = lit(STEPS, &evidence, None).expect("lit");
        assert_eq!(shown, (Some(1), vec![], vec![(100, 300)]));
    }

    #[test]
    fn rows_of_other_tables_are_not_on_the_timeline() {
        assert_eq!(lit(STEPS, &Evidence::text("x").rows("step_spread", vec![0]), None), None);
        assert_eq!(lit(STEPS, &Evidence::text("x"), None), None);
        // A number that no row has, as of a damaged answer.
        assert_eq!(lit(STEPS, &Evidence::text("x").rows("step_time", vec![99]), None), None);
        assert_eq!(lit(STEPS, &Evidence::text("x").events(vec![EventId(99)]), None), None);
    }

    #[test]
    fn a_kernel_lights_its_runs() {
        let (_, events, _) =
            lit(STEPS, &Evidence::text("x").rows("kernel_time", vec![0]), None).expect("lit");
        assert_eq!(events.len(), 4);
    }
}
