//! Any bytes through reader and `finish`; then what must hold of any trace. Without tables and
//! rules, which `xplane` has, it runs several times as many a second.

#![no_main]

use std::path::Path;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use sources::Input;
use trace::TraceBuilder;

#[expect(dead_code, reason = "what is said of tables is checked by the other target")]
#[path = "../../crates/session/tests/bad_input/invariants.rs"]
mod invariants;
mod pool;

fuzz_target!(init: pool::on_this_thread(), |bytes: &[u8]| {
    let input = Input { bytes: Arc::new(bytes.to_vec()), path: Path::new("host.xplane.pb") };
    let mut out = TraceBuilder::new();
    let read = sources::read(&input, &mut out);
    let trace = out.finish();
    if read.is_ok() {
        invariants::check_trace(&trace);
    }
});
