//! A run of more hosts than a process may have files open.

use std::fs;
use std::path::Path;

use analyses::step::{HostSteps, Step};
use session::Session;
use trace::{Trace, TrackId, TrackKind};

/// Most shells allow 1,024 open files.
const HOSTS: usize = 1100;

#[test]
fn every_host_of_many_has_its_own_steps() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/synthetic/two_hosts");
    let profile = fs::read(root.join("plugins/profile/run/host1.xplane.pb")).unwrap();
    let name = b"trainer-1";
    let places: Vec<usize> =
        (0..profile.len()).filter(|&it| profile[it..].starts_with(name)).collect();
    assert!(!places.is_empty());
    let folder = tempfile::tempdir().unwrap();
    for host in 0..HOSTS {
        // As long as the name before: the file's own lengths stay true.
        let own = format!("t{host:08}");
        let mut bytes = profile.clone();
        for &at in &places {
            bytes[at..at + name.len()].copy_from_slice(own.as_bytes());
        }
        fs::write(folder.path().join(format!("{own}.xplane.pb")), bytes).unwrap();
    }
    let one = Session::open(&root.join("plugins/profile/run/host1.xplane.pb")).unwrap();
    let expected: Vec<i64> = one.tables().get::<Step>().iter().map(|it| it.dur_ps).collect();
    assert!(expected.len() > 5);
    let kernels_below = |trace: &Trace, host: TrackId| -> usize {
        let streams = trace.tracks_below(host, TrackKind::Stream);
        streams.map(|it| trace.tracks[it.row()].events.len()).sum()
    };
    let only = one.trace().tracks_of(TrackKind::Host).next().unwrap();
    let kernels = kernels_below(one.trace(), only);
    assert!(kernels > 0);

    let session = Session::open(folder.path()).unwrap();
    let trace = session.trace();
    assert_eq!(trace.tracks_of(TrackKind::Host).count(), HOSTS);
    let steps = session.tables().model::<HostSteps>();
    for host in trace.tracks_of(TrackKind::Host) {
        let own: Vec<i64> = steps.of(trace.track_name(host)).iter().map(|it| it.dur_ps).collect();
        assert_eq!(own, expected, "{}", trace.track_name(host));
        assert_eq!(kernels_below(trace, host), kernels, "{}", trace.track_name(host));
    }
}
