//! Any bytes as a Chrome trace, through reader and `finish`; then what must hold of any trace, the
//! arguments of some events, and that twice gives the same.

#![no_main]

use std::path::Path;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use sources::chrome::Chrome;
use sources::{Input, Source as _};
use trace::{EventId, Trace, TraceBuilder};

#[expect(dead_code, reason = "what is said of tables is checked by another target")]
#[path = "../../crates/session/tests/bad_input/invariants.rs"]
mod invariants;
mod pool;

fn read(bytes: &[u8]) -> Option<Trace> {
    let input = Input { bytes: Arc::new(bytes.to_vec()), path: Path::new("host.json") };
    let mut out = TraceBuilder::new();
    // Also what no sniff lets through: the list may begin with anything.
    let read = Chrome.read(&input, &mut out);
    let trace = out.finish();
    read.is_ok().then_some(trace)
}

fuzz_target!(init: pool::on_this_thread(), |bytes: &[u8]| {
    Chrome.sniff(bytes);
    let Some(trace) = read(bytes) else { return };
    invariants::check_trace(&trace);
    for event in (0..trace.events.len().min(40) as u32).map(EventId) {
        trace.args.of(event);
    }
    assert_eq!(read(bytes).map(|it| it.events.start), Some(trace.events.start));
});
