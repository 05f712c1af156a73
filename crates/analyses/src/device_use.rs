//! Says how much of the capture each device worked, and on what.
//!
//! ```text
//! stream 1  |== kernel ==|
//! stream 2          |== copy ==|
//! busy      |==================|     united, not added: two streams at once are one busy device
//! overlap           |==|             what adding would have counted twice
//! ```

use rayon::prelude::*;
use trace::{FactValue, OpKind, Trace, TrackId, TrackKind, at_once};

use crate::kernel_time::capability;
use crate::run_info::{devices, window};
use crate::span::{Span, total, union};
use crate::{Analysis, Tables};

table! {
    /// How much each device worked, and what it is.
    ///
    /// A TPU that waits in an infeed is not busy.
    pub struct DeviceUse = "device_use" {
        /// The device's host.
        host: String,
        /// The device.
        device: String,
        /// The product, as far as the profile knows.
        name: String,
        /// Memory of the device.
        memory_bytes: Option<i64>,
        /// As 9.0; null for others than NVIDIA's.
        compute_capability: Option<String>,
        /// How long the capture lasted.
        window_ps: i64,
        /// Something ran on any stream.
        busy_ps: i64,
        /// Busy part of the capture, 0 to 1.
        busy_share: f64,
        /// Kernels, memsets and copies within the device.
        compute_ps: i64,
        /// Communication, copies to other devices included.
        collective_ps: i64,
        /// Copies from and to the host.
        copy_ps: i64,
        /// Streams that did anything.
        n_streams: i64,
        /// Time in which streams overlapped: their sum minus their union.
        streams_overlap_ps: i64,
    }
}

impl Analysis for DeviceUse {
    fn run(tables: &Tables) -> Vec<DeviceUse> {
        let trace = tables.trace();
        let window_ps = window(trace).0;
        let tracks: Vec<TrackId> = trace.tracks_of(TrackKind::Device).collect();
        let mut rows = Vec::with_capacity(tracks.len());
        for (track, device) in tracks.into_iter().zip(devices(trace)) {
            let work = Work::of(trace, track);
            let busy = work.busy();
            let busy_ps = total(&busy);
            let memory_bytes = match trace.fact(track, "memory_size") {
                Some(FactValue::Int(it)) => Some(*it),
                _ => None,
            };
            rows.push(DeviceUse {
                host: device.host,
                device: device.track,
                name: device.name,
                memory_bytes,
                compute_capability: capability(trace, track).map(|it| format!("{}.{}", it.0, it.1)),
                window_ps,
                busy_ps,
                busy_share: if window_ps > 0 { busy_ps as f64 / window_ps as f64 } else { 0.0 },
                compute_ps: total(&work.compute),
                collective_ps: total(&work.collective),
                copy_ps: total(&work.copy),
                n_streams: work.n_streams,
                streams_overlap_ps: work.of_streams_ps - busy_ps,
            });
        }
        rows
    }
}

/// What a device worked on: each a set.
#[derive(Debug, Default)]
pub struct Work {
    pub compute: Vec<Span>,
    pub collective: Vec<Span>,
    pub copy: Vec<Span>,
    n_streams: i64,
    /// Busy time of each stream, added.
    of_streams_ps: i64,
}

impl Work {
    pub fn of(trace: &Trace, device: TrackId) -> Work {
        let streams: Vec<TrackId> = trace
            .tracks_below(device, TrackKind::Stream)
            .filter(|it| trace.tracks[it.row()].parent == Some(device))
            .filter(|it| !trace.tracks[it.row()].events.is_empty())
            .collect();
        let parts: Vec<Work> = at_once(trace, &streams).map(|&it| Work::on(trace, it)).collect();
        let mut all = Work { n_streams: parts.len() as i64, ..Work::default() };
        for mut part in parts {
            all.compute.append(&mut part.compute);
            all.collective.append(&mut part.collective);
            all.copy.append(&mut part.copy);
            all.of_streams_ps = all.of_streams_ps.saturating_add(part.of_streams_ps);
        }
        Work {
            compute: merged(all.compute),
            collective: merged(all.collective),
            copy: merged(all.copy),
            ..all
        }
    }

    /// One stream's; its events come in order.
    fn on(trace: &Trace, stream: TrackId) -> Work {
        let events = &trace.events;
        let mut out = Work::default();
        let mut busy_until = i64::MIN;
        for row in trace.tracks[stream.row()].rows() {
            let to = match events.kind[row] {
                OpKind::Kernel | OpKind::Memset | OpKind::CopyOnDevice => &mut out.compute,
                OpKind::Collective | OpKind::CopyPeer => &mut out.collective,
                OpKind::CopyIn | OpKind::CopyOut => &mut out.copy,
                _ => continue,
            };
            let start = events.start[row].0;
            let end = start.saturating_add(events.dur[row].0);
            match to.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => to.push((start, end)),
            }
            out.of_streams_ps += (end - start.max(busy_until)).max(0);
            busy_until = busy_until.max(end);
        }
        out
    }

    /// When the device did anything.
    pub fn busy(&self) -> Vec<Span> {
        merged([self.compute.as_slice(), &self.collective, &self.copy].concat())
    }
}

/// The union of a few runs that are each in order: a stable sort only merges those.
fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort();
    union(spans)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;

    use super::DeviceUse;
    use crate::Tables;

    /// Device; window, busy, compute, collective, copies, overlap in µs; streams.
    fn check(picture: &str, expected: &[&str]) {
        let tables = Tables::new(Arc::new(draw(picture)));
        let found: Vec<String> = tables
            .get::<DeviceUse>()
            .iter()
            .map(|it| {
                let us = [
                    it.window_ps,
                    it.busy_ps,
                    it.compute_ps,
                    it.collective_ps,
                    it.copy_ps,
                    it.streams_overlap_ps,
                ];
                let us = us.map(|it| (it / 1_000_000).to_string()).join(" ");
                assert_eq!(it.busy_share, it.busy_ps as f64 / it.window_ps as f64);
                format!("{}: {us}, {} streams", it.device, it.n_streams)
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn streams_are_united() {
        check(
            "
            host/main: train 0..100
            gpu0/stream1: a 0..40, b 40..50
            gpu0/stream2: ncclAllReduce 30..60, MemcpyH2D 70..80
            gpu1/stream1: MemcpyD2D 10..20
            ",
            &["gpu0: 100 70 50 30 10 20, 2 streams", "gpu1: 100 10 10 0 0 0, 1 streams"],
        );
    }

    #[test]
    fn ops_inside_ops_of_one_stream_are_no_overlap() {
        check(
            "tpu0/XLA Ops: while 0..100, fusion 10..50, fusion 60..90",
            &["tpu0: 100 100 100 0 0 0, 1 streams"],
        );
    }

    #[test]
    fn without_devices_there_are_no_rows() {
        check("host/main: train 0..100", &[]);
    }
}
