//! Adds up the events of each stream by what they have in common: once, for all tables that ask.
//!
//! A stream holds millions of kernels, but few different ones: what a table then still has to look
//! at is small.

use hashbrown::HashMap;
use rayon::prelude::*;
use trace::{DetailId, OpKind, StrId, TrackId, TrackKind};

use crate::{Model, Tables};

/// Every stream and what ran there, in the order of names and details.
#[derive(Debug, Default)]
pub struct StreamSums(Vec<(TrackId, Vec<StreamSum>)>);

/// The events of a stream that are of one name, detail and kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamSum {
    pub name: StrId,
    pub detail: DetailId,
    pub kind: OpKind,
    pub count: i64,
    pub total_ps: i64,
    pub min_ps: i64,
    pub max_ps: i64,
}

impl Model for StreamSums {
    fn build(tables: &Tables) -> StreamSums {
        let streams: Vec<TrackId> = tables.trace().tracks_of(TrackKind::Stream).collect();
        StreamSums(streams.par_iter().map(|&it| (it, on_stream(tables, it))).collect())
    }
}

impl StreamSums {
    pub fn iter(&self) -> impl Iterator<Item = (TrackId, &[StreamSum])> {
        self.0.iter().map(|it| (it.0, it.1.as_slice()))
    }
}

/// Training repeats itself: the same few hundred kernels come again and again.
/// Source: choice, a power of two above a few hundred.
const RECENT: usize = 1024;

fn on_stream(tables: &Tables, track: TrackId) -> Vec<StreamSum> {
    let trace = tables.trace();
    let rows = trace.tracks[track.row()].rows();
    let events = &trace.events;
    let columns = events.name[rows.clone()].iter().zip(&events.detail[rows.clone()]);
    let columns = columns.zip(&events.kind[rows.clone()]).zip(&events.dur[rows]);
    let mut sums: Vec<StreamSum> = Vec::new();
    let mut known: HashMap<(StrId, DetailId, OpKind), u32> = HashMap::new();
    let mut recent = [u32::MAX; RECENT];
    for (((&name, &detail), &kind), dur) in columns {
        let mixed = name.0.wrapping_mul(0x9E37_79B1) ^ detail.0.wrapping_mul(0x85EB_CA77);
        let slot = &mut recent[(mixed >> 22) as usize % RECENT];
        let is_same =
            |it: &&mut StreamSum| it.name == name && it.detail == detail && it.kind == kind;
        let sum = match sums.get_mut(*slot as usize).filter(is_same) {
            Some(sum) => sum,
            None => {
                let next = sums.len() as u32;
                *slot = *known.entry((name, detail, kind)).or_insert(next);
                if *slot == next {
                    sums.push(StreamSum {
                        name,
                        detail,
                        kind,
                        count: 0,
                        total_ps: 0,
                        min_ps: i64::MAX,
                        max_ps: 0,
                    });
                }
                &mut sums[*slot as usize]
            }
        };
        sum.count += 1;
        sum.total_ps = sum.total_ps.saturating_add(dur.0);
        sum.min_ps = sum.min_ps.min(dur.0);
        sum.max_ps = sum.max_ps.max(dur.0);
    }
    sums.sort_unstable_by_key(|it| (it.name, it.detail, it.kind));
    sums
}
