//! Memory that has a limit: `strobe` ends with a reason or with its report, and small files need
//! little of it.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "what cannot be run is a failed test")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// `strobe report` with at most so many megabytes of address space.
fn report_within(megabytes: usize, path: &Path) -> Output {
    let limited = format!("ulimit -v {}; exec \"$0\" report \"$1\"", megabytes << 10);
    let mut command = Command::new("sh");
    // Each thread reserves address space of its own.
    command.env("RAYON_NUM_THREADS", "2").env("MALLOC_ARENA_MAX", "2");
    command.args(["-c", &limited, env!("CARGO_BIN_EXE_strobe")]).arg(path).output().unwrap()
}

fn check_error(done: &Output, said: &str) {
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{}: {error}", done.status);
    assert!(error.contains(said), "{error}");
}

fn varint(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn field(number: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    varint(body.len(), &mut out);
    out.extend_from_slice(body);
    out
}

/// A profile with one line of empty events, of two bytes each: no profile has more of them in as
/// many bytes.
fn empty_events(n_bytes: usize) -> Vec<u8> {
    let line = field(3, &[0x22, 0x00].repeat(n_bytes / 2));
    field(1, &[field(2, b"/host:CPU"), line].concat())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn write(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_small_zipped_file_takes_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let zipped = gzip(&empty_events(128 << 20));
    assert!((100 << 10..200 << 10).contains(&zipped.len()), "{} bytes", zipped.len());
    let path = write(&folder, "host.xplane.pb.gz", &zipped);
    check_error(&report_within(600, &path), "more than 100 times larger");
}

#[test]
fn a_zipped_file_at_its_limit_takes_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    // What cannot be zipped, in a field that nobody reads, makes room for more.
    let mut state = 7_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(112 << 10)
    .collect();
    let zipped = gzip(&[empty_events(12 << 20), field(15, &noise)].concat());
    assert!((120 << 10..130 << 10).contains(&zipped.len()), "{} bytes", zipped.len());
    let path = write(&folder, "host.xplane.pb.gz", &zipped);
    let done = report_within(1500, &path);
    // Events that say nothing are too little to judge.
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(3), "{}: {error}", done.status);
}

#[test]
fn too_many_events_for_the_memory_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder, "host.xplane.pb", &empty_events(40 << 20));
    check_error(&report_within(1500, &path), "not enough memory for the 20971520 events");
}

#[test]
fn a_training_with_little_memory_runs_and_ends_as_without_strobe() {
    for megabytes in [48, 64, 128] {
        let folder = tempfile::tempdir().unwrap();
        let line = format!(
            "ulimit -v {}; exec \"$0\" run --out run -- sh -c 'sleep 0.2; echo trained; exit 5'",
            megabytes << 10
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &line, env!("CARGO_BIN_EXE_strobe")]).env("MALLOC_ARENA_MAX", "2");
        let done = shell.current_dir(folder.path()).output().unwrap();
        let error = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(5), "{megabytes} MB: {}: {error}", done.status);
        assert_eq!(done.stdout, b"trained\n", "{megabytes} MB: {error}");
    }
}

#[test]
fn a_usual_profile_needs_no_more() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let done = report_within(600, &testdata.join("captured/retrace_loop"));
    assert!(done.status.success(), "{}: {}", done.status, String::from_utf8_lossy(&done.stderr));
}
