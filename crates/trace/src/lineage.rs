//! Which tracks lie below which host and device, so that looking at every host costs as much as
//! there are tracks, not as much as there are pairs of both.

use crate::{Track, TrackId, TrackKind};

/// The tracks below each host and each device, in the order of tracks.
#[derive(Debug, Default)]
pub struct Lineage {
    /// Of each track; empty for all but hosts and devices.
    below: Vec<Vec<TrackId>>,
}

impl Lineage {
    pub(crate) fn of(tracks: &[Track]) -> Lineage {
        let mut below = vec![Vec::new(); tracks.len()];
        // The nearest host and device above each track, or the track itself.
        let mut owners: Vec<[Option<TrackId>; 2]> = Vec::with_capacity(tracks.len());
        for (row, track) in tracks.iter().enumerate() {
            let id = TrackId(row as u32);
            // Parents come before their children.
            let above = track.parent.and_then(|it| owners.get(it.row()).copied());
            let mut own = above.unwrap_or_default();
            match track.kind {
                TrackKind::Host => own[0] = Some(id),
                TrackKind::Device => own[1] = Some(id),
                _ => (),
            }
            for owner in own.into_iter().flatten().filter(|&it| it != id) {
                below[owner.row()].push(id);
            }
            owners.push(own);
        }
        Lineage { below }
    }

    pub(crate) fn below(&self, owner: TrackId) -> &[TrackId] {
        self.below.get(owner.row()).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::draw;
    use crate::{Dur, Time, TraceBuilder, TrackId, TrackKind};

    #[test]
    fn below_are_those_whose_nearest_ancestor_it_is() {
        let mut out = TraceBuilder::new();
        let hosts = ["a", "b"].map(|it| out.track(None, TrackKind::Host, it));
        // Turn about, as where files of several hosts are read side by side.
        for name in ["x", "y"] {
            for host in hosts {
                let process = out.track(Some(host), TrackKind::Process, name);
                out.track(Some(process), TrackKind::Thread, "main");
                let device = out.track(Some(host), TrackKind::Device, name);
                let stream = out.track(Some(device), TrackKind::Stream, "1");
                out.event(stream, "k", Time(0), Dur(1));
            }
        }
        out.track(None, TrackKind::Counter, "of nobody");
        let trace = out.finish();
        let mut n_found = 0;
        for owner in trace.track_ids() {
            let own = trace.tracks[owner.row()].kind;
            for kind in [TrackKind::Thread, TrackKind::Stream, TrackKind::Device] {
                let is_below =
                    |it: &TrackId| *it != owner && trace.ancestor(*it, own) == Some(owner);
                let searched: Vec<TrackId> = trace.tracks_of(kind).filter(is_below).collect();
                let found: Vec<TrackId> = trace.tracks_below(owner, kind).collect();
                n_found += found.len();
                if matches!(own, TrackKind::Host | TrackKind::Device) {
                    assert_eq!(found, searched, "{owner:?} {kind:?}");
                } else {
                    assert!(found.is_empty());
                }
            }
        }
        assert_eq!(n_found, 2 * (2 + 2 + 2) + 4);
    }

    #[test]
    fn numbers_edges_and_facts_of_a_track_are_found_in_their_order() {
        let trace = draw(
            "fact gpu0 memory_size=7\nhost/python: train#3 0..9, cudaLaunchKernel@1 1..2\n\
             host/other: train#4 0..9\nfact gpu0 memory_size=8\ngpu0/stream1: k@1 3..4",
        );
        let thread = |name: &str| trace.track_ids().find(|&it| trace.track_name(it) == name);
        let numbers =
            |name: &str| trace.numbers_on(thread(name).unwrap()).iter().map(|it| it.value);
        assert_eq!(numbers("python").collect::<Vec<_>>(), [3]);
        assert_eq!(numbers("other").collect::<Vec<_>>(), [4]);
        assert_eq!(trace.edges_into(thread("stream1").unwrap()), 0..1);
        assert_eq!(trace.edges_into(thread("python").unwrap()), 0..0);
        let device = trace.tracks_of(TrackKind::Device).next().unwrap();
        assert_eq!(trace.fact(device, "memory_size").unwrap().to_string(), "7", "the first said");
        assert_eq!(trace.fact(device, "other"), None);
    }
}
