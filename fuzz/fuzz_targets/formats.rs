//! Any bytes through every reader, whatever they look like; then what must hold of any trace. The
//! first byte says which reader: `reader` and `xplane` only reach the one whose beginning they guess.

#![no_main]

use std::path::Path;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use sources::Input;
use trace::TraceBuilder;

#[expect(dead_code, reason = "what is said of tables is checked by the target xplane")]
#[path = "../../crates/session/tests/bad_input/invariants.rs"]
mod invariants;
mod pool;

fuzz_target!(init: pool::on_this_thread(), |bytes: &[u8]| {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let source = sources::ALL[usize::from(*which) % sources::ALL.len()];
    let input = Input { bytes: Arc::new(bytes.to_vec()), path: Path::new("file") };
    let mut out = TraceBuilder::new();
    // What it refuses must leave a trace in order as well: other files go into it.
    let _ = source.read(&input, &mut out);
    invariants::check_trace(&out.finish());
});
