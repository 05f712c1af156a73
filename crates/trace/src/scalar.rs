//! What a training job logged of itself: loss, accuracy, learning rate.
//!
//! Indexed by the job's own steps first and by Unix time second. A log covers hours where a
//! profile covers seconds, so these are no counters: they stand on no track, and say nothing
//! about when the trace began or how long it is.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::{SeriesId, Time, Trace};

/// One curve: a tag of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Series {
    /// The part of a job that logged it, as `train` or `validation`.
    pub run: Arc<str>,
    pub tag: Arc<str>,
}

/// A point of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scalar {
    pub series: SeriesId,
    /// As the job counts.
    pub step: i64,
    /// When it was logged; `None` where that was not said.
    pub unix_ns: Option<i64>,
    /// May be NaN or infinite: that a loss is tells much.
    pub value: f64,
}

/// What a log holds beside scalars, counted and not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub run: Arc<str>,
    /// As its writer calls it: `images`, `histograms`.
    pub kind: String,
    pub count: u64,
}

/// Collects what sources say about training logs.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    pub series: Vec<Series>,
    lookup: HashMap<Series, SeriesId>,
    pub scalars: Vec<Scalar>,
    pub left_out: Vec<LeftOut>,
}

impl Logs {
    pub fn series(&mut self, run: &Arc<str>, tag: &str) -> SeriesId {
        let series = Series { run: run.clone(), tag: tag.into() };
        *self.lookup.entry(series).or_insert_with_key(|it| {
            self.series.push(it.clone());
            SeriesId((self.series.len() - 1) as u32)
        })
    }

    pub fn has_series(&self, run: &Arc<str>, tag: &str) -> bool {
        self.lookup.contains_key(&Series { run: run.clone(), tag: tag.into() })
    }

    pub fn leave_out(&mut self, run: &Arc<str>, kind: &str, count: u64) {
        match self.left_out.iter_mut().find(|it| it.run == *run && it.kind == kind) {
            Some(it) => it.count += count,
            None => self.left_out.push(LeftOut { run: run.clone(), kind: kind.to_owned(), count }),
        }
    }

    pub fn name_runs(&mut self, name: impl Fn(&str) -> String) {
        let mut named: HashMap<Arc<str>, Arc<str>> = HashMap::new();
        let mut rename = |run: &mut Arc<str>| {
            let new = named.entry(run.clone()).or_insert_with_key(|it| name(it).into());
            *run = new.clone();
        };
        self.series.iter_mut().for_each(|it| rename(&mut it.run));
        self.left_out.iter_mut().for_each(|it| rename(&mut it.run));
        self.lookup.clear();
    }
}

impl Trace {
    /// Where a moment of Unix time lies in the trace, if the trace knows when it began.
    pub fn time_of_unix_ns(&self, unix_ns: i64) -> Option<Time> {
        unix_ns.checked_sub(self.origin_unix_ns?)?.checked_mul(1000).map(Time)
    }

    /// The points of one curve, in the order they were written.
    pub fn scalars_of(&self, series: SeriesId) -> &[Scalar] {
        let from = self.scalars.partition_point(|it| it.series < series);
        let to = self.scalars.partition_point(|it| it.series <= series);
        &self.scalars[from..to]
    }
}
