//! Several files in one trace, as hosts, samples and logs of one run are, with every table; then
//! what must hold of any trace. Files are parted by eight bytes of 0xFE.

#![no_main]

use std::path::PathBuf;
use std::sync::Arc;

use analyses::Tables;
use libfuzzer_sys::fuzz_target;
use sources::Input;
use trace::TraceBuilder;

#[path = "../../crates/session/tests/bad_input/invariants.rs"]
mod invariants;
mod pool;

const PARTED_BY: [u8; 8] = [0xFE; 8];
const MOST_FILES: usize = 8;

fn files(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut files = Vec::new();
    while files.len() + 1 < MOST_FILES
        && let Some(at) = bytes.windows(PARTED_BY.len()).position(|it| it == PARTED_BY)
    {
        files.push(&bytes[..at]);
        bytes = &bytes[at + PARTED_BY.len()..];
    }
    files.push(bytes);
    files
}

fuzz_target!(init: pool::on_this_thread(), |bytes: &[u8]| {
    let mut out = TraceBuilder::new();
    for (nth, bytes) in files(bytes).into_iter().enumerate() {
        let path = PathBuf::from(format!("host{nth}.xplane.pb"));
        let _ = sources::read(&Input { bytes: Arc::new(bytes.to_vec()), path: &path }, &mut out);
    }
    let tables = Tables::new(Arc::new(out.finish()));
    invariants::check_trace(tables.trace());
    invariants::check_tables(&tables);
});
