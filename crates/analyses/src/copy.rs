//! Adds up copies to, from, within and between devices, and the filling of their memory.

use trace::{OpKind, StrId, Trace, TrackId, TrackKind};

use crate::stream_sum::{StreamSum, StreamSums};
use crate::{Analysis, Tables};

table! {
    /// Copies of each device by direction and kind of memory.
    pub struct Copy = "copy" {
        /// The device's host.
        host: String,
        /// The device whose stream did it.
        device: String,
        /// h2d (to the device), d2h (to the host), d2d (within), p2p (between devices) or memset.
        direction: &'static str,
        /// From and to which memory, as pageable to device; null where the profile does not say.
        memory: Option<String>,
        /// How many.
        count: i64,
        /// How much; null where no copy tells its size.
        bytes: Option<i64>,
        /// Time from start to end, added over streams.
        total_ps: i64,
        /// Bytes a second, over the copies that tell their size; null where none does.
        bytes_per_s: Option<f64>,
    }
}

impl Analysis for Copy {
    fn run(tables: &Tables) -> Vec<Copy> {
        let trace = tables.trace();
        let mut all: Vec<((TrackId, Key), Sum)> = Vec::new();
        for (stream, sums) in tables.model::<StreamSums>().iter() {
            let Some(device) = trace.ancestor(stream, TrackKind::Device) else { continue };
            let copies = sums.iter().filter_map(|it| copies(trace, it));
            all.extend(copies.map(|(key, sum)| ((device, key), sum)));
        }
        all.sort_by_key(|it| it.0);
        all.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1.add(&next.1);
            }
            same
        });
        all.iter().map(|((device, key), sum)| sum.row(trace, *device, key)).collect()
    }
}

/// Place in [`DIRECTIONS`], kind of memory.
type Key = (usize, Option<StrId>);

const DIRECTIONS: [(&str, OpKind); 5] = [
    ("h2d", OpKind::CopyIn),
    ("d2h", OpKind::CopyOut),
    ("d2d", OpKind::CopyOnDevice),
    ("p2p", OpKind::CopyPeer),
    ("memset", OpKind::Memset),
];

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    count: i64,
    total: i64,
    /// Of those that tell their size: how many, how much, how long.
    sized: (i64, i64, i64),
}

impl Sum {
    fn add(&mut self, other: &Sum) {
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
        self.sized.0 += other.sized.0;
        self.sized.1 = self.sized.1.saturating_add(other.sized.1);
        self.sized.2 = self.sized.2.saturating_add(other.sized.2);
    }

    fn row(&self, trace: &Trace, device: TrackId, key: &Key) -> Copy {
        let host = trace.ancestor(device, TrackKind::Host);
        let (n_sized, bytes, sized_ps) = self.sized;
        let has_rate = bytes > 0 && sized_ps > 0;
        Copy {
            host: host.map(|it| trace.track_name(it).to_owned()).unwrap_or_default(),
            device: trace.track_name(device).to_owned(),
            direction: DIRECTIONS[key.0].0,
            memory: key.1.map(|it| trace.text(it).to_owned()),
            count: self.count,
            bytes: (n_sized > 0).then_some(bytes),
            total_ps: self.total,
            bytes_per_s: has_rate.then(|| bytes as f64 / (sized_ps as f64 / 1e12)),
        }
    }
}

/// Of a stream's sums those that are copies.
fn copies(trace: &Trace, sum: &StreamSum) -> Option<(Key, Sum)> {
    let direction = DIRECTIONS.iter().position(|it| it.1 == sum.kind)?;
    let detail = &trace.details[sum.detail.row()];
    let sized = match detail.copy_bytes.and_then(|it| i64::try_from(it).ok()) {
        Some(bytes) => (sum.count, bytes.saturating_mul(sum.count), sum.total_ps),
        None => (0, 0, 0),
    };
    Some(((direction, detail.copy_memory), Sum { count: sum.count, total: sum.total_ps, sized }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::testing::draw;
    use trace::{Detail, Dur, Time, Trace, TraceBuilder, TrackKind};

    use super::Copy;
    use crate::Tables;

    /// Device, direction, memory; how many, time in µs, bytes, bytes a second.
    fn check(trace: Trace, expected: &[&str]) {
        let tables = Tables::new(Arc::new(trace));
        let found: Vec<String> = tables
            .get::<Copy>()
            .iter()
            .map(|it| {
                let memory = it.memory.as_deref().unwrap_or("?");
                let bytes = it.bytes.map_or("?".to_owned(), |it| it.to_string());
                let rate = it.bytes_per_s.map_or("?".to_owned(), |it| it.to_string());
                let us = it.total_ps / 1_000_000;
                let (device, direction, count) = (&it.device, it.direction, it.count);
                format!("{device} {direction} {memory}: {count}x {us} µs {bytes} {rate}")
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn directions_and_devices_are_apart() {
        check(
            draw(
                "
                gpu0/stream1: MemcpyH2D 0..10, matmul 10..50, MemcpyH2D 50..55, MemcpyD2H 60..61
                gpu0/stream2: MemcpyH2D 0..10, Memset 20..21
                gpu1/stream1: MemcpyP2P 0..7, MemcpyD2D 10..12
                ",
            ),
            &[
                "gpu0 h2d ?: 3x 25 µs ? ?",
                "gpu0 d2h ?: 1x 1 µs ? ?",
                "gpu0 memset ?: 1x 1 µs ? ?",
                "gpu1 d2d ?: 1x 2 µs ? ?",
                "gpu1 p2p ?: 1x 7 µs ? ?",
            ],
        );
    }

    #[test]
    fn bandwidth_is_of_those_that_tell_their_size() {
        let mut out = TraceBuilder::new();
        let host = out.track(None, TrackKind::Host, "h");
        let gpu = out.track(Some(host), TrackKind::Device, "gpu0");
        let stream = out.track(Some(gpu), TrackKind::Stream, "s");
        let pageable = Some(out.text("pageable to device"));
        for (at, copy_bytes, copy_memory) in
            [(0, Some(3000), None), (1, None, None), (2, Some(0), pageable), (3, Some(1000), None)]
        {
            let event = out.event(stream, "MemcpyH2D", Time(at * 1_000_000), Dur(1_000_000));
            out.describe(event, Detail { copy_bytes, copy_memory, ..Detail::default() });
        }
        check(
            out.finish(),
            &["gpu0 h2d ?: 3x 3 µs 4000 2000000000", "gpu0 h2d pageable to device: 1x 1 µs 0 ?"],
        );
    }
}
