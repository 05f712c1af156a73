//! Values over time, each as a line of some hundred points: memory levels, samples of the machine.
//!
//! ```text
//! samples  . .:. : .'. . |  . . ' .   cut into parts of one length
//! line     low, high and mean of each part that has samples
//! ```

use trace::{Counter, Trace, TrackId, TrackKind};

/// About one for each pixel of a chart.
const POINTS: i128 = 600;

/// A counter's values over all of its time.
#[derive(Debug, Clone, PartialEq)]
pub struct CounterLine {
    pub track: TrackId,
    pub n_samples: usize,
    pub first_ps: i64,
    pub last_ps: i64,
    /// By time; parts without samples are left out.
    pub points: Vec<Point>,
}

/// The samples of one part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Of the first of them.
    pub time_ps: i64,
    pub low: f64,
    pub high: f64,
    pub mean: f64,
}

/// Every counter that has samples, by track.
pub fn lines(trace: &Trace) -> Vec<CounterLine> {
    let tracks = trace.counters.chunk_by(|a, b| a.track == b.track);
    tracks.filter_map(CounterLine::of).collect()
}

impl CounterLine {
    /// Of samples of one track; `None` where there are none.
    fn of(samples: &[Counter]) -> Option<CounterLine> {
        let (first, last) = (samples.first()?, samples.last()?);
        let since = |it: &Counter| i128::from(it.time.0) - i128::from(first.time.0);
        let part = (since(last) / POINTS).max(1);
        let parts = samples.chunk_by(|a, b| since(a) / part == since(b) / part);
        Some(CounterLine {
            track: first.track,
            n_samples: samples.len(),
            first_ps: first.time.0,
            last_ps: last.time.0,
            points: parts.filter_map(Point::of).collect(),
        })
    }

    /// The host that it is on, where it is on one.
    pub fn host<'a>(&self, trace: &'a Trace) -> Option<&'a str> {
        trace.ancestor(self.track, TrackKind::Host).map(|it| trace.track_name(it))
    }
}

impl Point {
    fn of(samples: &[Counter]) -> Option<Point> {
        // What is not a number has no place on a chart.
        let values = || samples.iter().map(|it| it.value).filter(|it| it.is_finite());
        let low = values().reduce(f64::min)?;
        let mean = values().sum::<f64>() / values().count() as f64;
        Some(Point { time_ps: samples[0].time.0, low, high: values().fold(low, f64::max), mean })
    }
}

#[cfg(test)]
mod tests {
    use trace::{Time, TraceBuilder, TrackKind};

    use super::lines;

    #[test]
    fn a_line_keeps_every_peak_in_few_points() {
        let mut out = TraceBuilder::new();
        let host = out.track(None, TrackKind::Host, "a");
        let level = out.track(Some(host), TrackKind::Counter, "level");
        for at in 0..100_000 {
            let value = if at == 77_777 { 9.0 } else { 1.0 };
            out.counter(level, Time(at * 1000), value);
        }
        out.counter(level, Time(5), f64::NAN);
        let trace = out.finish();
        let lines = lines(&trace);
        let line = &lines[0];
        assert_eq!((trace.track_name(line.track), line.host(&trace)), ("level", Some("a")));
        assert_eq!(line.n_samples, 100_001);
        assert!((550..=602).contains(&line.points.len()), "{}", line.points.len());
        assert_eq!(line.points.iter().filter(|it| it.high == 9.0).count(), 1);
    }
}
