//! The same bytes in memory and on a disk that gives a few at a time: the same trace, or the same
//! refusal.

#![no_main]

use std::io;
use std::path::Path;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use sources::{Bytes, FileBytes, Input};
use trace::testing::picture;
use trace::{EventId, Trace, TraceBuilder};

mod pool;

/// A file that is in no memory, and of which at most so many bytes come at once.
struct Reluctant {
    bytes: Vec<u8>,
    at_once: usize,
}

impl FileBytes for Reluctant {
    fn size(&self) -> usize {
        self.bytes.len()
    }

    fn read_at(&self, at: usize, to: &mut [u8]) -> io::Result<usize> {
        let n = to.len().min(self.at_once);
        self.bytes.read_at(at, &mut to[..n])
    }
}

fn read(bytes: Bytes) -> (Trace, bool) {
    let mut out = TraceBuilder::new();
    let input = Input { bytes, path: Path::new("host.xplane.pb") };
    let is_read = sources::read(&input, &mut out).is_ok();
    (out.finish(), is_read)
}

fn arguments(trace: &Trace) -> Vec<String> {
    let events = (0..trace.events.len() as u32).map(EventId);
    events.map(|it| format!("{:?}", trace.args.of(it))).collect()
}

fuzz_target!(init: pool::on_this_thread(), |bytes: &[u8]| {
    let at_once = 1 + usize::from(bytes.last().copied().unwrap_or(0));
    let whole = read(Arc::new(bytes.to_vec()));
    let pieces = read(Arc::new(Reluctant { bytes: bytes.to_vec(), at_once }));
    assert_eq!(whole.1, pieces.1, "both are read or refused");
    assert!(picture(&whole.0) == picture(&pieces.0), "both give the same trace");
    assert!(arguments(&whole.0) == arguments(&pieces.0), "and the same arguments");
});
