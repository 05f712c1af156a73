//! No bytes, however broken, panic, hang or fill the memory: they give a clear error, or what can
//! be read of them with the damage counted.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failed helper is a failed test, and says which case it was"
)]
#![expect(unsafe_code, reason = "a global allocator, to count the heap, cannot be written without")]

mod broken;
mod damage;
mod edges;
mod invariants;
mod opening;
mod samples;
mod shapes;
mod training_logs;

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use analyses::Tables;
use analyses::step::Step;
use broken::{
    EVENTS, PLANES, Random, STATS, claiming, event, event_name, field, int, line, names, plane,
    stat, stat_name, varint,
};
use session::{OpenError, Session};
use sources::{Input, SourceError};
use trace::{EventId, FactValue, NoteKind, Trace, TraceBuilder, TrackKind};

// The heap, counted.

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grow(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: every call goes on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Tests take turns, so that each sees its own heap.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|it| it.into_inner())
}

/// What a file may cost: some for everybody, and a hundred bytes for each of its own.
fn heap_for(file_bytes: usize) -> usize {
    (64 << 20) + 100 * file_bytes
}

/// Far above what any case needs even on a machine that others fill, far below what quadratic work
/// would take.
const LONGEST: Duration = Duration::from_secs(300);

fn within<T>(what: &str, heap: usize, work: impl FnOnce() -> T) -> T {
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let began = Instant::now();
    let out = work();
    let peak = PEAK.load(Ordering::Relaxed) - before;
    assert!(peak <= heap, "{what}: {} MB of heap, allowed {} MB", peak >> 20, heap >> 20);
    assert!(began.elapsed() < LONGEST, "{what} took {:?}", began.elapsed());
    out
}

// Reading.

fn read(bytes: &[u8]) -> Result<Tables, SourceError> {
    let input = Input { bytes: Arc::new(bytes.to_vec()), path: Path::new("host.xplane.pb") };
    let mut out = TraceBuilder::new();
    let read = sources::read(&input, &mut out);
    // Also what a failed file leaves behind must make a trace: other hosts' files go into it.
    let tables = Tables::new(Arc::new(out.finish()));
    invariants::check_trace(tables.trace());
    read.map(|_| tables)
}

/// Reads, makes every table and the report, and checks what must hold, within bounds.
fn check(what: &str, bytes: &[u8]) -> Result<Session, OpenError> {
    within(what, heap_for(bytes.len()), || {
        let session = Session::from_bytes("host.xplane.pb", bytes.to_vec())?;
        invariants::check_trace(session.trace());
        invariants::check_tables(session.tables());
        let shares: f64 = session.report().breakdown.iter().map(|it| it.share).sum();
        assert!(shares == 0.0 || (shares - 1.0).abs() < 1e-6, "{what}: shares add to {shares}");
        Ok(session)
    })
}

fn readable(what: &str, bytes: &[u8]) -> Session {
    check(what, bytes).unwrap_or_else(|it| panic!("{what}: {it}"))
}

fn notes(trace: &Trace) -> Vec<(&'static str, u64)> {
    trace.notes.iter().map(|it| (it.kind.name(), it.count)).collect()
}

fn testdata(path: &str) -> Vec<u8> {
    let path = repo().join("testdata").join(path);
    std::fs::read(&path).unwrap_or_else(|it| panic!("{}: {it}", path.display()))
}

fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn retrace_loop() -> Vec<u8> {
    testdata("captured/retrace_loop/plugins/profile/run/host.xplane.pb")
}

fn synthetic(name: &str) -> Vec<u8> {
    testdata(&format!("synthetic/{name}/plugins/profile/run/host0.xplane.pb"))
}

/// An empty folder of its own for each test.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bad_input").join(name);
    if path.exists() {
        std::fs::remove_dir_all(&path).unwrap();
    }
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn open(name: &str, bytes: &[u8]) -> Result<Session, OpenError> {
    let path = folder("open").join(name);
    std::fs::write(&path, bytes).unwrap();
    within(name, heap_for(bytes.len()), || Session::open(&path))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// Says which of many cases panicked.
fn case<T>(label: impl Fn() -> String, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        eprintln!("in {}", label());
        resume_unwind(panic)
    })
}
