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
mod invariants;

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
use trace::{EventId, NoteKind, Trace, TraceBuilder, TrackKind};

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

/// Everything of a trace that two reads must agree on.
fn picture(trace: &Trace) -> String {
    let events = &trace.events;
    let parents: Vec<_> = (0..events.len()).map(|it| events.parent(EventId(it as u32))).collect();
    format!(
        "{:?}\n{:?}\n{parents:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{:?}",
        trace.tracks,
        events,
        trace.strings.iter().collect::<Vec<_>>(),
        trace.details,
        trace.edges,
        trace.numbers,
        trace.counters,
        trace.facts,
        trace.notes,
    )
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

// Files that are no profiles, and places without any.

#[test]
fn other_files_are_refused_with_a_reason() {
    let _turn = alone();
    let png = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &[7; 500]].concat();
    let cases: [(&str, Vec<u8>, &str); 9] = [
        ("empty", Vec::new(), "the file is empty"),
        ("text", b"loss 0.31 after 100 steps\n".repeat(50), "no known profile format"),
        ("json", br#"{"traceEvents": [{"ph": "X", "ts": 1}]}"#.to_vec(), "no known profile format"),
        ("png", png, "no known profile format"),
        ("zeros", vec![0; 5000], "no known profile format"),
        ("ones", vec![0xFF; 5000], "no known profile format"),
        ("gzip of text", gzip(&b"nothing to see here\n".repeat(50)), "no known profile format"),
        ("gzip of nothing", gzip(b""), "the file is empty"),
        ("gzip of 2 bytes", vec![0x1F, 0x8B], "unexpected end of file"),
    ];
    for (name, bytes, expected) in cases {
        let error = open(name, &bytes).expect_err(name).to_string();
        assert!(error.contains(expected), "{name}: {error}");
        assert!(error.lines().last().unwrap().contains("file: "), "the path comes last: {error}");
    }
}

#[test]
fn places_without_a_profile_are_named() {
    let _turn = alone();
    let empty = folder("no_profile");
    std::fs::write(empty.join("events.out.tfevents.1"), b"x").unwrap();
    let error = Session::open(&empty).unwrap_err();
    assert!(matches!(&error, OpenError::NoProfile { path } if *path == empty), "{error}");
    let missing = empty.join("nowhere");
    let error = Session::open(&missing).unwrap_err();
    assert!(matches!(&error, OpenError::Missing { path } if *path == missing), "{error}");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_rather_than_waited_for() {
    let _turn = alone();
    let pipe = folder("pipe").join("host.xplane.pb");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|it| it.success()) {
        println!("skipped: mkfifo is not here");
        return;
    }
    let error = Session::open(&pipe).unwrap_err().to_string();
    assert!(error.contains("no regular file"), "{error}");
}

#[test]
fn one_broken_host_does_not_hide_the_others() {
    let _turn = alone();
    let run = folder("hosts").join("plugins/profile/run");
    std::fs::create_dir_all(&run).unwrap();
    std::fs::write(run.join("fine.xplane.pb"), synthetic("two_hosts")).unwrap();
    for broken in [b"".as_slice(), b"not a profile", &[0xFF; 100]] {
        std::fs::write(run.join("broken.xplane.pb"), broken).unwrap();
        let session = Session::open(&run).unwrap();
        invariants::check_trace(session.trace());
        invariants::check_tables(session.tables());
        assert_eq!(notes(session.trace()), [("unreadable-file", 1)]);
        assert_eq!(session.trace().tracks_of(TrackKind::Host).count(), 1);
        assert!(!session.tables().get::<Step>().is_empty());
    }
    std::fs::write(run.join("fine.xplane.pb"), b"no more").unwrap();
    assert!(Session::open(&run).is_err(), "none can be read");
}

#[test]
fn a_zipped_profile_that_is_cut_off_gives_what_is_there() {
    let _turn = alone();
    let zipped = gzip(&retrace_loop());
    let whole = open("host.xplane.pb.gz", &zipped).unwrap();
    assert_eq!(notes(whole.trace()), []);
    let half = open("host.xplane.pb.gz", &zipped[..zipped.len() / 2]).unwrap();
    assert!(half.trace().notes.iter().any(|it| it.kind == NoteKind::Truncated));
    assert!((1..whole.trace().events.len()).contains(&half.trace().events.len()));

    let mut wrong_sum = zipped.clone();
    let sum = wrong_sum.len() - 8;
    wrong_sum[sum] ^= 1;
    let wrong_sum = open("host.xplane.pb.gz", &wrong_sum).unwrap();
    assert_eq!(notes(wrong_sum.trace()), [("malformed", 1)]);
}

#[test]
fn a_zip_of_zeros_does_not_fill_the_memory() {
    let _turn = alone();
    // A megabyte that unzips to one gigabyte: members of 16 MB each.
    let bomb = gzip(&vec![0; 16 << 20]).repeat(64);
    let path = folder("bomb").join("host.xplane.pb.gz");
    std::fs::write(&path, &bomb).unwrap();
    // The buffer doubles as it grows.
    let heap = 2 * ((128 << 20) + 100 * bomb.len());
    let error = within("bomb", heap, || Session::open(&path)).unwrap_err().to_string();
    assert!(error.contains("more than 100 times larger"), "{error}");
}

// Real profiles, cut and corrupted.

#[test]
fn every_prefix_of_a_profile_can_be_read() {
    let _turn = alone();
    let whole = retrace_loop();
    let n_events = readable("all of it", &whole).trace().events.len();
    for len in 0..whole.len() {
        case(
            || format!("prefix of {len} bytes"),
            || {
                let Ok(session) = check("prefix", &whole[..len]) else { return };
                assert!(session.trace().events.len() <= n_events);
            },
        );
    }
    // Cut inside the events, it still has those before the cut, and says so.
    let cut = readable("half", &whole[..whole.len() / 2]);
    assert!(!cut.trace().events.is_empty());
    assert!(cut.trace().notes.iter().any(|it| it.kind == NoteKind::Truncated));
}

#[test]
fn some_prefixes_of_other_profiles_can_be_read() {
    let _turn = alone();
    let files = [
        ("unmarked_loop", testdata("captured/unmarked_loop/plugins/profile/run/host.xplane.pb")),
        ("jax_steps", testdata("captured/jax_steps/plugins/profile/run/host.xplane.pb")),
        ("nccl_two_gpus", synthetic("nccl_two_gpus")),
        ("odd_encodings", synthetic("odd_encodings")),
    ];
    for (name, whole) in files {
        for part in 1..=300 {
            let len = whole.len() * part / 300 - usize::from(part % 7 == 0);
            case(|| format!("{name}, {len} bytes"), || check("prefix", &whole[..len]).is_ok());
        }
    }
}

#[test]
fn twice_gives_the_same() {
    let _turn = alone();
    let whole = retrace_loop();
    let mut random = Random(7);
    for round in 0..50 {
        let mut bytes = whole.clone();
        for _ in 0..round {
            let at = random.below(bytes.len());
            bytes[at] = random.next() as u8;
        }
        let Ok(once) = read(&bytes) else { continue };
        let again = read(&bytes).unwrap();
        assert_eq!(picture(once.trace()), picture(again.trace()), "round {round}");
    }
}

fn corrupt(bytes: &mut Vec<u8>, random: &mut Random) {
    // Numbers at the edges of their types, as varints.
    let edges = [0, 1, 127, 128, i64::MAX, i64::MIN, -1, i64::MAX / 1000, 1 << 60, 1 << 32];
    for _ in 0..random.pick(&[1, 1, 1, 2, 4, 16]) {
        let at = random.below(bytes.len());
        let len = random.below(24).min(bytes.len() - at);
        match random.below(8) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes[at] = random.pick(&[0, 1, 0x7F, 0x80, 0xFF, 0x22, 0x1A, 0x0A]),
            3 => bytes[at..at + len].fill(random.pick(&[0, 0x80, 0xFF])),
            4 => drop(bytes.drain(at..at + len)),
            5 => {
                let piece = bytes[at..at + len].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            // In place of as many bytes, so that lengths around it stay right.
            6 => {
                let number = varint(random.pick(&edges).cast_unsigned());
                let end = (at + number.len()).min(bytes.len());
                bytes.splice(at..end, number);
            }
            _ => {
                let to = random.below(bytes.len());
                bytes.swap(at, to);
            }
        }
        if bytes.is_empty() {
            bytes.push(0x0A);
        }
    }
}

#[test]
fn corrupted_profiles_keep_their_promises() {
    let _turn = alone();
    let files = [
        ("retrace_loop", retrace_loop()),
        ("checkpoint", synthetic("checkpoint")),
        ("cuda_graph", synthetic("cuda_graph")),
        ("nccl_two_gpus", synthetic("nccl_two_gpus")),
        ("rocm", synthetic("rocm")),
        ("tpu", synthetic("tpu")),
        ("unmarked_calls", synthetic("unmarked_calls")),
        ("unmarked_kernels", synthetic("unmarked_kernels")),
        ("warmup", synthetic("warmup")),
    ];
    let mut n_readable = 0;
    for number in 0..24_000_u64 {
        let (name, whole) = &files[number as usize % files.len()];
        let mut random = Random(number * 2 + 1);
        random.next();
        let mut bytes = whole.clone();
        corrupt(&mut bytes, &mut random);
        case(
            || format!("corruption {number} of {name}"),
            || {
                let Ok(tables) = within(name, heap_for(bytes.len()), || read(&bytes)) else {
                    return;
                };
                n_readable += 1;
                invariants::check_steps(&tables);
                if number % 4 == 0 {
                    drop(check(name, &bytes));
                }
            },
        );
    }
    assert!(n_readable > 20_000, "only {n_readable} were read: the cases test nothing");
}

#[test]
fn the_mangled_profile_of_the_corpus_is_refused_or_read_in_part() {
    let _turn = alone();
    let corpus = repo().join("../shared/corpus/xplane/corrupt-utf8-mangled");
    let Ok(entries) = std::fs::read_dir(&corpus) else {
        println!("skipped: the corpus is not here, at {}", corpus.display());
        return;
    };
    for file in entries.map(|it| it.unwrap().path()) {
        if let Ok(session) = check("mangled", &std::fs::read(&file).unwrap()) {
            assert!(!session.trace().notes.is_empty(), "damage is counted");
        }
    }
}

// Shapes that no profiler writes.

#[test]
fn lengths_past_the_end_at_every_depth() {
    let _turn = alone();
    for len in [5, 1_000_000_000, u64::from(u32::MAX), u64::MAX / 2, u64::MAX] {
        let stat = claiming(4, len, &int(1, 0));
        let depths = [
            (
                "stat",
                plane("/host:CPU", &[names(), line(1, "python", 0, &[event(0, 0, 9, &[stat])])]),
            ),
            (
                "event",
                plane(
                    "/host:CPU",
                    &[names(), line(1, "python", 0, &[claiming(4, len, &int(1, 0))])],
                ),
            ),
            ("line", plane("/host:CPU", &[names(), claiming(3, len, &event(0, 0, 9, &[]))])),
            ("line's name", plane("/host:CPU", &[field(3, claiming(2, len, b"py"))])),
            ("metadata", plane("/host:CPU", &[claiming(4, len, &int(1, 0))])),
            ("metadata's value", plane("/host:CPU", &[field(4, claiming(2, len, &int(1, 0)))])),
            ("plane", claiming(1, len, &field(2, "/host:CPU"))),
            ("plane's name", field(1, claiming(2, len, b"/host:CPU"))),
        ];
        for (name, bytes) in depths {
            let session = readable(name, &bytes);
            let (kinds, metadata) = (notes(session.trace()), name.starts_with("metadata's"));
            assert!(metadata || !kinds.is_empty(), "{name}, {len}: damage is counted");
        }
    }
}

#[test]
fn a_million_empty_events_are_a_million_events() {
    let _turn = alone();
    let bytes = plane("/host:CPU", &[field(3, field(4, b"").repeat(1_000_000))]);
    let session = readable("empty events", &bytes);
    assert_eq!(session.trace().events.len(), 1_000_000);
    assert_eq!(notes(session.trace()), [("unknown-name", 1_000_000)]);
}

#[test]
fn a_million_empty_parts_of_each_kind() {
    let _turn = alone();
    for number in 1..=7 {
        let many = field(number, b"").repeat(1_000_000);
        readable("parts of a file", &[plane("/host:CPU", &[]), many.clone()].concat());
        readable("parts of a plane", &field(1, [many.clone(), field(2, "/host:CPU")].concat()));
        readable("parts of a line", &plane("/host:CPU", &[field(3, &many)]));
        readable("parts of an event", &plane("/host:CPU", &[field(3, field(4, &many))]));
        readable("parts of metadata", &plane("/host:CPU", &[field(4, field(2, &many))]));
    }
}

#[test]
fn many_small_planes_lines_and_devices() {
    let _turn = alone();
    let planes = plane("/device:GPU", &[line(1, "Stream #1", 0, &[event(0, 0, 9, &[])])]);
    let session = readable("planes", &planes.repeat(50_000));
    assert_eq!(notes(session.trace()), [("malformed", 40_000), ("unknown-name", 10_000)]);

    let lines: Vec<u8> = (0..200_000).flat_map(|id| field(3, int(1, id))).collect();
    readable("lines", &plane("/host:CPU", &[lines]));

    // Each plane with an id that asks for a table of its own.
    let wide = plane("p", &[event_name(1000, ""), stat_name(1000, "")]);
    readable("wide ids", &wide.repeat(50_000));

    let devices: Vec<u8> = (0..9_000)
        .flat_map(|it| {
            plane(&format!("/device:GPU:{it}"), &[line(1, "Stream #1", 0, &[event(0, 0, 9, &[])])])
        })
        .collect();
    let steps: Vec<Vec<u8>> =
        (0..3_000).map(|it| event(0, it * 10, 9, &[stat(4, 15, int(4, it))])).collect();
    let host = plane("/host:CPU", &[names(), line(1, "python", 0, &steps)]);
    let session = readable("devices", &[devices, host].concat());
    assert_eq!(session.tables().get::<Step>().len(), 3_000);
}

/// The start and length of each of many events.
type Shape<'a> = &'a dyn Fn(i64) -> (i64, i64);

/// Events on one line with these starts and lengths, all of one name.
fn one_line(spans: impl Iterator<Item = (i64, i64)>, name: i64, stats: &[Vec<u8>]) -> Vec<u8> {
    let events: Vec<Vec<u8>> = spans.map(|(from, dur)| event(name, from, dur, stats)).collect();
    plane("/host:CPU", &[names(), line(1, "python", 0, &events)])
}

#[test]
fn nesting_takes_no_longer_however_events_lie() {
    let _turn = alone();
    const N: i64 = 200_000;
    let inside = |it: i64| (it, 2 * (N - it));
    let staircase = |it: i64| (it, N);
    let apart = |it: i64| (it * 3, 2);
    let same_start = |it: i64| (0, it);
    let same = |_| (5, 5);
    let points = |it: i64| (it / 2, if it < 2 { N } else { 0 });
    let shapes: [(&str, Shape<'_>); 6] = [
        ("inside one another", &inside),
        ("overlapping the next", &staircase),
        ("apart", &apart),
        ("from the same start", &same_start),
        ("all the same", &same),
        ("points", &points),
    ];
    for (name, shape) in shapes {
        // Names that analyses climb from: a compilation, a call of a function, a step.
        for (id, stats) in [
            (0, vec![]),
            (2, vec![]),
            (5, vec![stat(4, 17, int(4, 3))]),
            (0, vec![stat(4, 15, int(4, 3))]),
        ] {
            let session = readable(name, &one_line((0..N).map(shape), id, &stats));
            assert_eq!(session.trace().events.len(), N as usize, "{name}");
        }
    }
    let depth = |shape: Shape<'_>| {
        let session = readable("depth", &one_line((0..1000).map(shape), 0, &[]));
        let events = &session.trace().events;
        events.ancestors(EventId(events.len() as u32 - 1)).count()
    };
    assert_eq!(depth(&inside), 999);
    assert_eq!(depth(&staircase), 0);
    assert_eq!(depth(&same), 999);
}

/// Functions called and compiled deep inside one another: from each, analyses look upwards.
#[test]
fn climbing_out_of_deep_nesting_is_linear() {
    let _turn = alone();
    const N: i64 = 200_000;
    let key = |it: i64| [stat(4, 17, int(4, it))];
    // Without steps nobody looks.
    let mut deep: Vec<Vec<u8>> =
        (-3..=0).map(|it| event(0, it * 2 * N, 2 * N, &[stat(4, 15, int(4, it))])).collect();
    deep.extend((0..N).map(|it| event([1, 2, 5][it as usize % 3], it, 2 * (N - it), &key(it))));
    let runs: Vec<Vec<u8>> = (0..N).map(|it| event(4, it, 1, &key(it))).collect();
    let bytes =
        plane("/host:CPU", &[names(), line(1, "python", 0, &deep), line(2, "pool", 0, &runs)]);
    let session = readable("deep calls", &bytes);
    assert_eq!(session.tables().get::<Step>().len(), 4);
    assert!(session.trace().edges.len() >= N as usize / 3);
}

#[test]
fn a_few_bytes_that_refer_to_a_long_text_do_not_multiply_it() {
    let _turn = alone();
    let long = "x".repeat(300_000);
    let long_stats = [names(), stat_name(90, &long)].concat();
    let ref_to_long = || int(7, 90);
    let facts: Vec<u8> = (0..30_000).flat_map(|it| stat(6, it, ref_to_long())).collect();
    let keys: Vec<u8> = (0..30_000).flat_map(|it| stat(6, 90, int(4, it))).collect();
    let steps = |n: i64| {
        (0..n).map(|it| event(0, it * 10, 9, &[stat(4, 15, int(4, it))])).collect::<Vec<_>>()
    };
    let details: Vec<Vec<u8>> = (0..30_000)
        .map(|it| event(0, it, 1, &[stat(4, 7, int(4, it)), stat(4, 0, ref_to_long())]))
        .collect();
    let allocations: Vec<Vec<u8>> = (0..30_000)
        .map(|it| event(3, it, 0, &[stat(4, 22, ref_to_long()), stat(4, 23, int(4, it))]))
        .collect();
    let protos =
        [field(2, &long), field(5, [int(1, 91), field(6, "")].concat()).repeat(30_000)].concat();
    let programs = [stat_name(91, "hlo proto"), field(4, [int(1, 1), field(2, protos)].concat())];
    // Stats of a name, which every one of its events has.
    let said =
        [field(2, "op"), field(5, [int(1, 0), field(5, "op")].concat()).repeat(30_000)].concat();
    let named = field(4, [int(1, 50), field(2, said)].concat());
    let of_name: Vec<Vec<u8>> =
        (0..30_000).map(|it| event(50, it, 1, &[stat(4, 7, int(4, it))])).collect();

    // Rows of a table of their own, each with the kernel's name.
    let launch = |it: i64| field(5, format!("regs:{it} grid:1,1,1 block:32,1,1"));
    let kernels: Vec<Vec<u8>> = (0..3000)
        .map(|it| {
            event(
                0,
                it,
                1,
                &[stat(4, 8, [int(1, 8), launch(it % 255)].concat()), stat(4, 7, int(4, it))],
            )
        })
        .collect();
    let kernel_name =
        [event_name(0, &long), stat_name(7, "program_id"), stat_name(8, "kernel_details")];
    let scopes = [
        event_name(0, "a/".repeat(20_000) + "b:Add"),
        line(1, "python", 0, &[event(0, 0, 5, &[])]),
    ];

    let shapes = [
        (
            "kernel names",
            plane("/device:GPU:0", &[kernel_name.concat(), line(1, "Stream #1", 0, &kernels)]),
        ),
        ("scopes", plane("/host:CPU", &scopes)),
        ("facts", plane("/device:GPU:0", &[long_stats.clone(), facts])),
        ("keys of facts", plane("/device:GPU:0", &[long_stats.clone(), keys])),
        ("details", plane("/host:CPU", &[long_stats.clone(), line(1, "python", 0, &details)])),
        ("allocators", plane("/host:CPU", &[long_stats, line(1, "python", 0, &allocations)])),
        ("programs", plane("/host:metadata", &programs)),
        ("stats of a name", plane("/host:CPU", &[names(), named, line(1, "python", 0, &of_name)])),
        (
            "plane",
            plane(&(long.clone() + "/host:"), &[names(), line(1, "python", 0, &steps(9000))]),
        ),
        (
            "host",
            [field(4, &long), plane("/host:CPU", &[names(), line(1, "python", 0, &steps(9000))])]
                .concat(),
        ),
        (
            "marker",
            plane(
                "/host:CPU",
                &[
                    event_name(0, &long),
                    stat_name(15, "step_num"),
                    line(1, "python", 0, &steps(9000)),
                ],
            ),
        ),
    ];
    for (name, bytes) in shapes {
        readable(name, &bytes);
    }
}

#[test]
fn times_at_the_edges_of_their_type() {
    let _turn = alone();
    let edges = [
        0,
        1,
        -1,
        i64::MAX,
        i64::MIN,
        i64::MAX / 1000,
        i64::MIN / 1000,
        (1 << 60) - 1,
        -(1 << 60) + 1,
        1 << 60,
        (1 << 60) / 1000,
        -(1 << 60) / 1000,
        1 << 50,
        1_700_000_000_000_000_000,
    ];
    // Every kind of step: markers, calls, a period; and a window that says any time.
    for (name, stats) in [(0, vec![stat(4, 15, int(4, i64::MIN))]), (1, vec![]), (8, vec![])] {
        for timestamp in edges {
            for window in edges {
                let events: Vec<Vec<u8>> = edges
                    .iter()
                    .flat_map(|&from| {
                        [0, 9, (1 << 60) - 1, -5, i64::MIN]
                            .map(|dur| event(name, from, dur, &stats))
                    })
                    .collect();
                let host = plane("/host:CPU", &[names(), line(1, "python", timestamp, &events)]);
                let device =
                    plane("/device:GPU:0", &[names(), line(1, "Stream #1", timestamp, &events)]);
                let says = [stat(6, 24, int(3, timestamp)), stat(6, 25, int(3, window))].concat();
                let environment = plane("Task Environment", &[names(), says]);
                let bytes = [host, device, environment].concat();
                case(
                    || format!("event {name}, timestamp {timestamp}, window {window}"),
                    || {
                        let session = readable("times", &bytes);
                        assert!(
                            session
                                .trace()
                                .notes
                                .iter()
                                .any(|it| it.kind == NoteKind::BadTimestamp)
                        );
                    },
                );
            }
        }
    }
}

#[test]
fn steps_far_apart_in_time() {
    let _turn = alone();
    let far = (1_i64 << 60) - 1;
    let times: Vec<i64> = (-8..=8).map(|it| far / 8 * it).collect();
    for (name, stats) in [(0, vec![stat(4, 15, int(4, 1))]), (1, vec![]), (8, vec![])] {
        for dur in [0, 1, far / 16, far] {
            let session =
                readable("far apart", &one_line(times.iter().map(|&it| (it, dur)), name, &stats));
            assert_eq!(session.trace().events.len(), times.len());
        }
    }
}

#[test]
fn ids_of_any_size_and_twice_the_same() {
    let _turn = alone();
    let ids = [0, 1, -1, i64::MIN, i64::MAX, 1 << 32, 1023, 5, 5];
    let named: Vec<Vec<u8>> = ids.iter().map(|&it| event_name(it, format!("name {it}"))).collect();
    let stats: Vec<Vec<u8>> = ids.iter().map(|&it| stat_name(it, "correlation_id")).collect();
    let carries = |it: i64| ids.map(|key| stat(4, key, int(4, it)));
    let events: Vec<Vec<u8>> =
        ids.iter().map(|&it| event(it, it.saturating_abs() % 1000, 5, &carries(it))).collect();
    let part = |name: &str| {
        plane(name, &[named.concat(), stats.concat(), line(i64::MIN, "python", 0, &events)])
    };
    let session = readable("ids", &[part("/host:CPU"), part("/device:GPU:0")].concat());
    assert_eq!(notes(session.trace()), []);
    assert_eq!(session.trace().events.len(), 2 * ids.len());
    assert!(session.trace().strings.iter().any(|it| it.1 == format!("name {}", i64::MIN)));
    assert_eq!(session.trace().edges.len(), ids.len(), "each key meets its own");

    // Of a name given twice the last counts, as in protobuf.
    let twice = [event_name(7, "first"), event_name(7, "last")].concat();
    let session = readable(
        "twice",
        &plane("/host:CPU", &[twice, line(1, "python", 0, &[event(7, 0, 1, &[])])]),
    );
    assert_eq!(session.trace().name(EventId(0)), "last");
}

/// Keys near the end of the number range, then at its start: their distance wraps around.
#[test]
fn correlation_keys_that_wrap_around_still_meet() {
    let _turn = alone();
    let keys = [-1_i64, 1, 0, -2, i64::MAX, i64::MIN];
    let calls: Vec<Vec<u8>> = (0..)
        .zip(keys)
        .map(|(at, key)| event(0, at * 10, 5, &[stat(4, 14, int(4, key))]))
        .collect();
    let host = plane("/host:CPU", &[names(), line(1, "python", 0, &calls)]);
    let device = plane("/device:GPU:0", &[names(), line(1, "Stream #1", 0, &calls)]);
    let session = readable("keys", &[host, device].concat());
    let edges = &session.trace().edges;
    assert_eq!(edges.len(), keys.len());
    for (from, to) in edges.from.iter().zip(&edges.to) {
        assert_eq!(
            session.trace().events.start[from.row()],
            session.trace().events.start[to.row()]
        );
    }
}

/// Every plane that means something, with every stat of every type, in random nonsense.
#[test]
fn special_planes_with_nonsense_in_them() {
    let _turn = alone();
    let mut random = Random(99);
    let numbers = [0, 1, -1, 15, i64::MAX, i64::MIN, 1 << 58, 4096];
    let texts: [&[u8]; 8] = [
        b"",
        b"\xFF\xFE",
        b"grid:1,2,3,4 block:,, regs:-1 occ_pct:NaN size:99999999999999999999",
        b"occ_pct:1e300 size:5 grid:18446744073709551615,1,1",
        b"::##",
        b"traced-18446744073709551616",
        "é".as_bytes(),
        b"all-reduce",
    ];
    let value = |random: &mut Random| match random.below(6) {
        0 => {
            let double = random.pick(&[f64::NAN, f64::INFINITY, -0.0, f64::MIN_POSITIVE, 1e308]);
            [varint(2 << 3 | 1), double.to_le_bytes().to_vec()].concat()
        }
        1 => int(3, random.pick(&numbers)),
        2 => int(4, random.pick(&numbers)),
        3 => field(5, random.pick(&texts)),
        4 => field(6, random.pick(&texts)),
        _ => int(7, random.pick(&[0, 3, 25, -1, 90])),
    };
    for round in 0..1500 {
        let mut bytes = Vec::new();
        for name in PLANES {
            let mut lines = Vec::new();
            for id in 0..3 {
                let mut events = Vec::new();
                for _ in 0..random.below(12) {
                    let stats: Vec<Vec<u8>> = (0..random.below(6))
                        .map(|_| stat(4, random.below(STATS.len() + 1) as i64, value(&mut random)))
                        .collect();
                    let times = (random.below(100) as i64, random.below(60) as i64);
                    events.push(event(
                        random.below(EVENTS.len() + 1) as i64,
                        times.0,
                        times.1,
                        &stats,
                    ));
                }
                let name =
                    random.pick(&["python", "Steps", "XLA Ops", "Stream #1", "tf_data_x", ""]);
                lines.push(line(id, name, 0, &events));
            }
            let facts: Vec<Vec<u8>> = (0..4)
                .map(|_| stat(6, random.below(STATS.len() + 1) as i64, value(&mut random)))
                .collect();
            bytes.extend(plane(name, &[names(), lines.concat(), facts.concat()]));
        }
        case(|| format!("round {round}"), || readable("special planes", &bytes));
    }
}

#[test]
fn text_that_is_no_text_is_shown_and_counted() {
    let _turn = alone();
    let bad = b"train\xFF\xC3".as_slice();
    let parts = [event_name(0, bad), stat_name(0, bad), stat(6, 0, field(5, bad))].concat();
    let line = field(3, [field(2, bad), field(11, bad), event(0, 0, 5, &[])].concat());
    let bytes = [
        field(1, [field(2, b"/host:\xFF".as_slice()), parts, line].concat()),
        field(4, bad),
        field(2, bad),
    ]
    .concat();
    let session = readable("bad text", &bytes);
    assert_eq!(session.trace().name(EventId(0)), "train\u{FFFD}\u{FFFD}");
    assert!(session.trace().notes.iter().any(|it| it.kind == NoteKind::BadText));
}

/// An event whose tag takes two bytes where one would do is legal, and an event.
#[test]
fn long_winded_tags_are_read() {
    let _turn = alone();
    let body = [int(1, 0), int(2, 5), int(3, 9)].concat();
    let long_winded = [vec![0xA2, 0x00], varint(body.len() as u64), body].concat();
    let bytes =
        plane("/host:CPU", &[names(), line(1, "python", 0, &[long_winded, event(0, 20, 1, &[])])]);
    let session = readable("long tags", &bytes);
    assert_eq!(session.trace().events.len(), 2);
    assert_eq!(session.trace().name(EventId(0)), "train");
    assert_eq!(notes(session.trace()), []);
}

// Samples of the machine, cut and corrupted.

fn samples() -> Vec<u8> {
    let mut text = r#"{"strobe": "hardware", "version": 1, "host": "vm", "pid": 7, "cores": 2, "memory_bytes": 4096, "gpus": [{"name": "NVIDIA T4", "max_sm_clock_mhz": 1590, "power_limit_w": null}], "columns": ["cpu/runnable", "cpu/all", "memory/process", "gpu 0/sm_clock"], "missing": [{"what": "cpu/clock", "why": "none"}]}"#
        .to_owned();
    text.push('\n');
    for row in 0..40_i64 {
        let time = 1_794_806_400_000_000_000 + row * 50_000_000;
        text += &format!("[{time},{row},0.{row},{}e3,null]\n", row * 1000);
    }
    text.into_bytes()
}

#[test]
fn every_prefix_of_samples_can_be_read() {
    let _turn = alone();
    let whole = samples();
    assert_eq!(readable("all of it", &whole).trace().counters.len(), 120);
    for len in 0..whole.len() {
        case(
            || format!("prefix of {len} bytes"),
            || {
                let Ok(session) = check("prefix", &whole[..len]) else { return };
                let cut =
                    whole[len - 1] != b'\n' && whole[len - 1] != b']' && whole[len - 1] != b'}';
                let said = session.trace().notes.iter().any(|it| it.kind == NoteKind::Truncated);
                assert_eq!(cut, said, "a cut-off row is said");
            },
        );
    }
}

#[test]
fn corrupted_samples_keep_their_promises() {
    let _turn = alone();
    let whole = samples();
    let mut random = Random(11);
    for round in 0..3000 {
        let mut bytes = whole.clone();
        for _ in 0..=round % 8 {
            corrupt(&mut bytes, &mut random);
        }
        case(|| format!("round {round}"), || check("corrupted samples", &bytes).is_ok());
    }
}

#[test]
fn samples_that_claim_much_cost_little() {
    let _turn = alone();
    let header = |columns: usize| {
        let names: Vec<String> = (0..columns).map(|it| format!("\"c{it}\"")).collect();
        format!(
            "{{\"strobe\": \"hardware\", \"version\": 1, \"columns\": [{}]}}\n",
            names.join(",")
        )
    };
    assert!(check("many columns", header(1_000_000).as_bytes()).is_err());
    let text = header(10_000) + &"[1]\n".repeat(200_000);
    let session = readable("rows without values", text.as_bytes());
    assert_eq!(notes(session.trace()), [("malformed", 200_000)]);
    let text = header(1) + &"[1,1]\n".repeat(500_000);
    assert_eq!(readable("many rows", text.as_bytes()).trace().counters.len(), 500_000);
    let deep = format!("{{\"strobe\": \"hardware\", \"x\": {}", "[".repeat(100_000));
    assert!(check("nested without end", deep.as_bytes()).is_err());
}

// Training logs, cut and corrupted.

fn training_log(name: &str) -> Vec<u8> {
    testdata(&format!("captured/scalars/{name}/events.out.tfevents.1.vm"))
}

/// Where each record ends, by the lengths alone.
fn record_ends(file: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    while at < file.len() {
        let length = u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
        at += length as usize + 16;
        ends.push(at);
    }
    ends
}

#[test]
fn every_prefix_of_a_training_log_can_be_read() {
    let _turn = alone();
    for name in ["torch", "v1", "tf2", "dtypes"] {
        let whole = training_log(name);
        let ends = record_ends(&whole);
        let all = readable(name, &whole);
        let mut before = 0;
        for len in 0..whole.len() {
            case(
                || format!("{name}: prefix of {len} bytes"),
                || {
                    let Ok(session) = check("prefix", &whole[..len]) else {
                        assert!(len <= 12, "what has begun can be read");
                        return;
                    };
                    let n = session.trace().scalars.len();
                    assert!(n >= before && n <= all.trace().scalars.len(), "what came is kept");
                    before = n;
                    let expected =
                        if ends.contains(&len) { vec![] } else { vec![("truncated", 1)] };
                    assert_eq!(notes(session.trace()), expected);
                },
            );
        }
        assert!(before > 0);
    }
}

#[test]
fn every_wrong_byte_of_a_training_log_is_noticed() {
    let _turn = alone();
    let whole = training_log("torch");
    let n = readable("all of it", &whole).trace().scalars.len();
    let mut random = Random(5);
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << random.below(8);
        case(
            || format!("byte {at}"),
            || {
                let Ok(session) = check("one byte", &bytes) else {
                    assert!(at <= 12, "only its beginning says what a file is");
                    return;
                };
                assert_eq!(notes(session.trace()), [("malformed", 1)]);
                assert!(session.trace().scalars.len() <= n);
            },
        );
    }
}

#[test]
fn corrupted_training_logs_keep_their_promises() {
    let _turn = alone();
    let mut random = Random(21);
    let logs = ["torch", "v1", "tf2", "dtypes"].map(training_log);
    for round in 0..4000_usize {
        let whole = &logs[round % logs.len()];
        let mut bytes = whole.clone();
        // Inside a record, with its sum made right again: the checksums must not be all that
        // stands between nonsense and the reader.
        if round % 2 == 0 {
            let ends = record_ends(whole);
            let number = random.below(ends.len());
            let start = number.checked_sub(1).map_or(0, |it| ends[it]);
            let mut event = whole[start + 12..ends[number] - 4].to_vec();
            corrupt(&mut event, &mut random);
            bytes.splice(start..ends[number], framed(&event));
        } else {
            corrupt(&mut bytes, &mut random);
        }
        case(|| format!("round {round}"), || check("corrupted log", &bytes).is_ok());
    }
}

/// A record, with a sum computed bit by bit.
fn framed(event: &[u8]) -> Vec<u8> {
    let sum = |bytes: &[u8]| {
        let mut sum = !0_u32;
        for byte in bytes {
            sum ^= u32::from(*byte);
            for _ in 0..8 {
                sum = sum >> 1 ^ (0x82F6_3B78 & 0_u32.wrapping_sub(sum & 1));
            }
        }
        (!sum).rotate_right(15).wrapping_add(0xA282_EAD8).to_le_bytes()
    };
    let length = (event.len() as u64).to_le_bytes();
    [&length, sum(&length).as_slice(), event, &sum(event)].concat()
}

#[test]
fn training_logs_that_claim_much_cost_little() {
    let _turn = alone();
    let time = [[0x09].as_slice(), &1e9_f64.to_le_bytes()].concat();
    let value = |body: &[u8]| field(1, body);
    let simple = |tag: &[u8]| [field(1, tag), vec![0x15, 0, 0, 0x80, 0x3F]].concat();
    let log = |values: Vec<u8>| framed(&[time.clone(), field(5, values)].concat());

    let session = readable("the smallest values", &log(value(&[0x15, 0, 0, 0, 0]).repeat(500_000)));
    assert_eq!(session.trace().scalars.len(), 500_000);
    let tags: Vec<Vec<u8>> =
        (0..100_000).map(|it| value(&simple(format!("{it}").as_bytes()))).collect();
    assert_eq!(readable("many tags", &log(tags.concat())).trace().series.len(), 100_000);
    let long = value(&simple(&vec![b'x'; 5 << 20]));
    assert_eq!(readable("a long tag", &log(long)).trace().series[0].tag.len(), 1024);
    let plugins: Vec<Vec<u8>> = (0..100_000)
        .map(|it| {
            let name = format!("{it}");
            let metadata = field(9, field(1, field(1, name.as_bytes())));
            value(&[field(1, name.as_bytes()), metadata, field(8, b"")].concat())
        })
        .collect();
    let session = readable("many plugins", &log(plugins.concat()));
    assert!(session.trace().left_out.len() <= 100);
    assert_eq!(session.trace().left_out.iter().map(|it| it.count).sum::<u64>(), 100_000);
    let records = framed(&time).repeat(200_000);
    assert_eq!(notes(readable("events of nothing", &records).trace()), []);
}
