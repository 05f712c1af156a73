//! Any bytes through reader, `finish` and every table; then what must hold of any trace.

#![no_main]

use std::path::Path;
use std::sync::Arc;

use analyses::Tables;
use libfuzzer_sys::fuzz_target;
use sources::Input;
use trace::TraceBuilder;

#[path = "../../crates/session/tests/bad_input/invariants.rs"]
mod invariants;
mod pool;

fuzz_target!(init: pool::on_this_thread(), |bytes: &[u8]| {
    let input = Input { bytes: Arc::new(bytes.to_vec()), path: Path::new("host.xplane.pb") };
    let mut out = TraceBuilder::new();
    let read = sources::read(&input, &mut out);
    let tables = Tables::new(Arc::new(out.finish()));
    if read.is_ok() {
        invariants::check_trace(tables.trace());
        invariants::check_tables(&tables);
    }
});
