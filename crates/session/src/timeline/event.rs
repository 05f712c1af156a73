//! Everything about one event, and how it compares with others of its name.

use analyses::hlo;
use analyses::step::median;
use analyses::step_time::category;
use hashbrown::HashMap;
use rayon::prelude::*;
use trace::{EdgeKind, EventId, FactValue, OpKind, TrackId, TrackKind};

use super::lanes::end;
use super::search::Hit;
use super::{Steps, Timeline, TimelineError, is_in, step_at};

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Detail {
    pub at: Hit,
    pub name: String,
    pub kind: OpKind,
    pub category: Option<&'static str>,
    /// Without what lies in it.
    pub self_ps: i64,
    pub parent: Option<EventId>,
    /// The step of its host that it begins in.
    pub step: Option<i64>,
    pub op: Option<String>,
    pub hlo_op: Option<String>,
    pub hlo_module: Option<String>,
    /// The instruction that ran, in XLA's words, where the profile holds its program.
    pub hlo: Option<String>,
    /// File and line, where the profiler or the program knew.
    pub source: Option<String>,
    /// As the source has them.
    pub args: Vec<(String, FactValue)>,
    /// Innermost first.
    pub ancestors: Vec<Ancestor>,
    pub causes: Vec<Related>,
    pub effects: Vec<Related>,
    pub same_name: SameName,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestor {
    pub event: EventId,
    pub name: String,
    pub start_ps: i64,
    pub dur_ps: i64,
}

/// An event at the other end of an edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Related {
    pub at: Hit,
    pub name: String,
    pub kind: EdgeKind,
}

/// The events of one name on tracks of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SameName {
    pub count: usize,
    pub total_ps: i128,
    pub min_ps: i64,
    pub median_ps: i64,
    pub max_ps: i64,
    /// Steps that have any, by their number; steps of several hosts together.
    pub per_step: Vec<OfStep>,
    pub histogram: Histogram,
    /// There are more, and all of this rests on the first million.
    pub sampled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfStep {
    pub step: i64,
    pub count: usize,
    pub total_ps: i128,
}

/// How many durations lie from one edge to the next; the last edge is inside too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    /// One more than counts.
    pub edges_ps: Vec<i64>,
    pub counts: Vec<u32>,
}

/// Events that statistics of a name rest on.
const SAMPLED: usize = 1_000_000;

/// Ancestors, causes and effects that are told: a person looks at a few, and a broken file has
/// millions.
const MOST_RELATED: usize = 1000;

/// Rows looked at before asking whether enough was found.
const ROWS_AT_ONCE: usize = 1 << 22;
const PIECE: usize = 1 << 16;

const BARS: i64 = 24;

/// Where the longest is so many times the shortest, bars of equal width would show one bar.
const WIDE_SPREAD: i64 = 16;

impl Timeline {
    pub fn event(&self, event: EventId) -> Result<Detail, TimelineError> {
        let trace = self.trace();
        let events = &trace.events;
        if event.row() >= events.len() {
            return Err(TimelineError::Event(event));
        }
        let at = self.hit(event);
        let kind = events.kind[event.row()];
        let detail = trace.detail(event);
        let text = |it: Option<trace::StrId>| it.map(|it| trace.text(it).to_owned());
        let steps = Steps::new(&self.tables);
        let host = trace.ancestor(at.track, TrackKind::Host);
        let args = trace.args.of(event);
        let source = args.iter().find(|it| it.0 == "source").map(|it| it.1.to_string());
        let instruction = hlo::instruction(trace, event);
        let source = source.or(instruction.as_ref().and_then(|it| it.source.clone()));
        let ancestors = events.ancestors(event).take(MOST_RELATED).map(|it| Ancestor {
            event: it,
            name: trace.name(it).to_owned(),
            start_ps: events.start[it.row()].0,
            dur_ps: events.dur[it.row()].0,
        });
        Ok(Detail {
            at,
            name: trace.name(event).to_owned(),
            kind,
            category: category(kind),
            self_ps: self.own_time(event, at.track),
            parent: events.parent(event),
            step: step_at(steps.of(host), at.start_ps).map(|it| it.step),
            op: text(detail.op),
            hlo_op: text(detail.hlo_op),
            hlo_module: text(detail.hlo_module),
            hlo: instruction.map(|it| it.text),
            source,
            args,
            ancestors: ancestors.collect(),
            causes: self.causes(event),
            effects: self.effects(event),
            same_name: self.same_name(event, &steps),
        })
    }

    /// The event's time without that of the events directly in it.
    fn own_time(&self, event: EventId, track: TrackId) -> i64 {
        let trace = self.trace();
        let events = &trace.events;
        let until = end(events, event.0);
        let after = event.0 + 1..trace.tracks[track.row()].events.end.max(event.0 + 1);
        let starts = &events.start[after.start as usize..after.end as usize];
        let n = starts.partition_point(|it| it.0 < until) as u32;
        let inside = (after.start..after.start + n).into_par_iter().with_min_len(PIECE);
        let inside: i128 = inside
            .filter(|&it| events.parent(EventId(it)) == Some(event))
            .filter(|&it| !trace.detail(EventId(it)).overlaps)
            .map(|it| i128::from(events.dur[it as usize].0))
            .sum();
        let dur = events.dur[event.row()].0;
        // Where those inside overlap, they come to more than there is.
        i64::try_from((i128::from(dur) - inside).max(0)).unwrap_or(dur)
    }

    fn causes(&self, event: EventId) -> Vec<Related> {
        let edges = &self.trace().edges;
        let first = edges.to.partition_point(|&it| it < event);
        (first..edges.len())
            .take_while(|&it| edges.to[it] == event)
            .take(MOST_RELATED)
            .map(|it| self.related(edges.from[it], edges.kind[it]))
            .collect()
    }

    fn effects(&self, event: EventId) -> Vec<Related> {
        let edges = &self.trace().edges;
        let pieces = edges.from.par_chunks(PIECE).enumerate();
        let of_pieces: Vec<Vec<usize>> = pieces
            .map(|(piece, from)| {
                let from = from.iter().enumerate().filter(|it| *it.1 == event);
                from.map(|it| piece * PIECE + it.0).take(MOST_RELATED).collect()
            })
            .collect();
        of_pieces
            .into_iter()
            .flatten()
            .take(MOST_RELATED)
            .map(|it| self.related(edges.to[it], edges.kind[it]))
            .collect()
    }

    fn related(&self, event: EventId, kind: EdgeKind) -> Related {
        Related { at: self.hit(event), name: self.trace().name(event).to_owned(), kind }
    }

    fn same_name(&self, event: EventId, steps: &Steps) -> SameName {
        let trace = self.trace();
        let name = trace.events.name[event.row()];
        let kind = trace.tracks[trace.track_of(event).row()].kind;
        let mut durs = Vec::new();
        let mut per_step: HashMap<i64, (usize, i128)> = HashMap::new();
        let mut total_ps = 0;
        for track in trace.tracks_of(kind) {
            let steps = steps.of(trace.ancestor(track, TrackKind::Host));
            let mut step = None;
            let mut rows = trace.tracks[track.row()].rows();
            while !rows.is_empty() && durs.len() <= SAMPLED {
                let piece = rows.start..rows.end.min(rows.start + ROWS_AT_ONCE);
                rows.start = piece.end;
                let names = trace.events.name[piece.clone()].par_iter();
                let fits = |(at, it): (usize, &_)| (*it == name).then_some(piece.start + at);
                let found: Vec<usize> =
                    names.enumerate().with_min_len(PIECE).filter_map(fits).collect();
                for row in found.into_iter().take(SAMPLED + 1 - durs.len()) {
                    let dur = trace.events.dur[row].0;
                    durs.push(dur);
                    if durs.len() > SAMPLED {
                        break;
                    }
                    total_ps += i128::from(dur);
                    let time = trace.events.start[row].0;
                    // Mostly the step of the one before.
                    if !step.is_some_and(|it| is_in(it, time)) {
                        step = step_at(steps, time);
                    }
                    if let Some(step) = step {
                        let sum = per_step.entry(step.step).or_default();
                        *sum = (sum.0 + 1, sum.1 + i128::from(dur));
                    }
                }
            }
        }
        let sampled = durs.len() > SAMPLED;
        durs.truncate(SAMPLED);
        let mut per_step: Vec<OfStep> = per_step
            .into_iter()
            .map(|(step, (count, total_ps))| OfStep { step, count, total_ps })
            .collect();
        per_step.sort_unstable_by_key(|it| it.step);
        SameName {
            count: durs.len(),
            total_ps,
            min_ps: durs.iter().copied().min().unwrap_or(0),
            max_ps: durs.iter().copied().max().unwrap_or(0),
            histogram: Histogram::of(&durs),
            median_ps: median(&mut durs).unwrap_or(0),
            per_step,
            sampled,
        }
    }
}

impl Histogram {
    /// Bars of equal width, or of equal ratio where durations are far apart.
    fn of(durs: &[i64]) -> Histogram {
        let (Some(&min), Some(&max)) = (durs.iter().min(), durs.iter().max()) else {
            return Histogram::default();
        };
        let width = i128::from(max) - i128::from(min);
        let even = |bar: i64| min + (width * i128::from(bar) / i128::from(BARS)) as i64;
        let ratio = max as f64 / min.max(1) as f64;
        let steep =
            |bar: i64| (min.max(1) as f64 * ratio.powf(bar as f64 / BARS as f64)).round() as i64;
        let is_steep = max / WIDE_SPREAD > min;
        let mut edges_ps: Vec<i64> = (1..BARS)
            .map(|bar| if is_steep { steep(bar) } else { even(bar) })
            .filter(|it| min < *it && *it < max)
            .collect();
        edges_ps.insert(0, min);
        edges_ps.push(max);
        edges_ps.dedup();
        if edges_ps.len() == 1 {
            edges_ps.push(max);
        }
        let mut counts = vec![0; edges_ps.len() - 1];
        for dur in durs {
            let bar = edges_ps.partition_point(|it| it <= dur).saturating_sub(1);
            let last = counts.len() - 1;
            counts[bar.min(last)] += 1;
        }
        Histogram { edges_ps, counts }
    }
}
