//! What a device's counters gave, run by run.

use trace::TrackKind;

use crate::{Analysis, Tables};

table! {
    /// Hardware counters of single runs of kernels, as a profiler collects them that counts one
    /// range of work after the other. They have no time: a counted range does not run as fast as it
    /// would alone.
    pub struct Metric = "metric" {
        /// The device's host.
        host: String,
        /// The device that counted.
        device: String,
        /// The kernel, or the range that was counted.
        name: String,
        /// Which of the device's counted ranges, from 0.
        nth: i64,
        /// The counter, as its makers call it.
        metric: String,
        /// What it counted.
        value: f64,
    }
}

impl Analysis for Metric {
    fn run(tables: &Tables) -> Vec<Metric> {
        let trace = tables.trace();
        let name = |track, kind| {
            let it = trace.ancestor(track, kind).unwrap_or(track);
            trace.track_name(it).to_owned()
        };
        let row = |it: &trace::Metric| Metric {
            host: name(it.track, TrackKind::Host),
            device: name(it.track, TrackKind::Device),
            name: trace.text(it.of).to_owned(),
            nth: i64::from(it.nth),
            metric: trace.text(it.name).to_owned(),
            value: it.value,
        };
        trace.metrics.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::{TraceBuilder, TrackKind};

    use super::Metric;
    use crate::Tables;

    #[test]
    fn counters_belong_to_runs_of_kernels() {
        let mut out = TraceBuilder::new();
        let host = out.track(None, TrackKind::Host, "box");
        let device = out.track(Some(host), TrackKind::Device, "GPU 0");
        let (of, name) = (out.text("gemm"), out.text("dram__bytes.sum"));
        for (nth, value) in [(0, 512.0), (1, 640.0)] {
            out.metric(trace::Metric { track: device, of, nth, name, value });
        }
        let tables = Tables::new(Arc::new(out.finish()));
        let rows = tables.get::<Metric>();
        assert_eq!(rows.len(), 2);
        let last = &rows[1];
        assert_eq!((last.host.as_str(), last.device.as_str()), ("box", "GPU 0"));
        assert_eq!((last.name.as_str(), last.nth, last.value), ("gemm", 1, 640.0));
    }
}
