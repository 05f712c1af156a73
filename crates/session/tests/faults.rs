//! Disks that fail: short and interrupted reads change nothing; whatever cannot be read, or shrinks
//! while it is read, becomes a note or an error, and never a panic.

#![expect(clippy::unwrap_used, reason = "what cannot be prepared is a failed test")]

#[expect(dead_code, reason = "what lies in a file that fails need not be there")]
#[path = "bad_input/invariants.rs"]
mod invariants;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use session::{Bytes, Disk, Files, OpenError, Session};
use sources::{Change, FileBytes};
use trace::testing::picture;
use trace::{EventId, NoteKind, Trace};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// Every read gives a few bytes, and every other one is interrupted.
    Reluctant,
    /// From this read on, none succeeds.
    BrokenFrom(usize),
    /// This read alone fails.
    BrokenOnce(usize),
    /// From this read on, all files are half as long as they were.
    CutFrom(usize),
    /// From this read on, other bytes come.
    RewrittenFrom(usize),
}

/// The disk, with a fault.
#[derive(Debug, Clone)]
struct FaultyDisk {
    fault: Fault,
    n_reads: Arc<AtomicUsize>,
}

impl FaultyDisk {
    fn new(fault: Fault) -> FaultyDisk {
        FaultyDisk { fault, n_reads: Arc::new(AtomicUsize::new(0)) }
    }
}

impl Files for FaultyDisk {
    fn open(&self, path: &Path) -> io::Result<Bytes> {
        Ok(Arc::new(FaultyFile { file: Disk.open(path)?, disk: self.clone() }))
    }
}

struct FaultyFile {
    file: Bytes,
    disk: FaultyDisk,
}

impl FileBytes for FaultyFile {
    fn size(&self) -> usize {
        self.file.size()
    }

    fn read_at(&self, at: usize, to: &mut [u8]) -> io::Result<usize> {
        let nth = self.disk.n_reads.fetch_add(1, Ordering::Relaxed);
        match self.disk.fault {
            Fault::Reluctant if nth.is_multiple_of(2) => Err(io::ErrorKind::Interrupted.into()),
            Fault::Reluctant => {
                let n = to.len().min(1 + nth % 977);
                self.file.read_at(at, &mut to[..n])
            }
            Fault::BrokenFrom(from) if nth >= from => Err(eio()),
            Fault::BrokenOnce(once) if nth == once => Err(eio()),
            Fault::CutFrom(from) if nth >= from => {
                let left = (self.size() / 2).saturating_sub(at).min(to.len());
                self.file.read_at(at, &mut to[..left])
            }
            Fault::RewrittenFrom(from) if nth >= from => {
                let n = self.file.read_at(at, to)?;
                to[..n].iter_mut().for_each(|it| *it = it.wrapping_mul(31).wrapping_add(7));
                Ok(n)
            }
            _ => self.file.read_at(at, to),
        }
    }

    fn change(&self) -> Change {
        let n_reads = self.disk.n_reads.load(Ordering::Relaxed);
        match self.disk.fault {
            Fault::CutFrom(from) | Fault::RewrittenFrom(from) if n_reads > from => {
                Change::Rewritten
            }
            _ => self.file.change(),
        }
    }
}

/// Linux's number of an input/output error; on others it is another one, and a fault all the same.
fn eio() -> io::Error {
    io::Error::from_raw_os_error(5)
}

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

fn open(path: &Path, fault: Fault) -> Result<Session, OpenError> {
    Session::open_from(&FaultyDisk::new(fault), path, &|_| ())
}

/// A run with every format that is read: a profile, a zipped one, a training log, samples of the
/// machine and of Python.
fn every_format() -> tempfile::TempDir {
    let run = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = run.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    let profile = |name: &str| {
        std::fs::read(testdata(name).join("plugins/profile/run/host0.xplane.pb")).unwrap()
    };
    write("manifest.json", br#"{"schema": 1}"#);
    write("profile/plugins/profile/run/one.xplane.pb", &profile("synthetic/two_hosts"));
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    io::Write::write_all(&mut zipped, &profile("synthetic/input_70")).unwrap();
    write("profile/plugins/profile/run/two.xplane.pb.gz", &zipped.finish().unwrap());
    let log = testdata("captured/scalars/tf2/events.out.tfevents.1.vm");
    write("profile/events.out.tfevents.1.vm", &std::fs::read(log).unwrap());
    write(
        "hardware.jsonl",
        b"{\"strobe\": \"hardware\", \"version\": 1, \"host\": \"vm\", \"columns\": [\"cpu/all\"]}\n\
          [1794806400000000000,1]\n[1794806400050000000,2]\n",
    );
    write(
        "python-7.jsonl",
        b"{\"strobe\":\"python\",\"version\":1,\"pid\":7,\"host\":\"vm\"}\n\
          [\"framework\",\"jax\",\"0.10.2\"]\n[\"step\",1794806400000000000,1]\n",
    );
    run
}

fn all_args(trace: &Trace) -> Vec<String> {
    let events = (0..trace.events.len() as u32).map(EventId);
    events.map(|it| format!("{:?}", trace.args.of(it))).collect()
}

#[test]
fn short_and_interrupted_reads_change_nothing() {
    let run = every_format();
    let captured = testdata("captured/retrace_loop");
    for path in [run.path(), &captured] {
        let plain = Session::open(path).unwrap();
        let reluctant = open(path, Fault::Reluctant).unwrap();
        assert!(picture(plain.trace()) == picture(reluctant.trace()), "{}", path.display());
        assert!(all_args(plain.trace()) == all_args(reluctant.trace()), "{}", path.display());
        let programs = |it: &Session| {
            it.trace().programs().map(|it| it.bytes().unwrap().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(programs(&plain), programs(&reluctant));
        assert!(plain.trace().args.lost().is_none() && reluctant.trace().args.lost().is_none());
    }
}

/// The number of reads that opening a path takes, which is how many can fail.
fn n_reads(path: &Path) -> usize {
    let disk = FaultyDisk::new(Fault::BrokenFrom(usize::MAX));
    Session::open_from(&disk, path, &|_| ()).unwrap();
    disk.n_reads.load(Ordering::Relaxed)
}

/// Makes everything of it that can be made.
fn use_all(session: &Session, fault: Fault) {
    let trace = session.trace();
    invariants::check_rows(trace);
    invariants::check_tables(session.tables());
    all_args(trace);
    trace.programs().for_each(|it| drop(it.bytes()));
    assert!(!session.report().notes.is_empty(), "{fault:?} is not noted");
}

#[test]
fn every_read_may_fail() {
    let run = every_format();
    let n_reads = n_reads(run.path());
    assert!(n_reads > 8, "there is something to fail: {n_reads}");
    let kinds: [fn(usize) -> Fault; 2] = [Fault::BrokenFrom, Fault::BrokenOnce];
    for kind in kinds {
        for nth in 0..n_reads {
            match open(run.path(), kind(nth)) {
                Ok(session) => {
                    use_all(&session, kind(nth));
                    let damaged = |it: &trace::Note| {
                        matches!(it.kind, NoteKind::LostBytes | NoteKind::UnreadableFile)
                    };
                    let notes = &session.trace().notes;
                    assert!(notes.iter().any(damaged), "{:?}: {notes:?}", kind(nth));
                }
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains("os error 5"), "{:?}: {error}", kind(nth));
                }
            }
        }
    }
}

#[test]
fn files_may_shrink_and_change_at_any_read() {
    let run = every_format();
    let n_reads = n_reads(run.path());
    let kinds: [fn(usize) -> Fault; 2] = [Fault::CutFrom, Fault::RewrittenFrom];
    for kind in kinds {
        for nth in 0..n_reads {
            if let Ok(session) = open(run.path(), kind(nth)) {
                use_all(&session, kind(nth));
            }
        }
    }
}

/// What was read stays, what is asked for later is missing and said to be.
#[test]
fn a_file_that_is_cut_after_it_was_read_loses_its_arguments_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("host.xplane.pb");
    let whole = std::fs::read(testdata("captured/retrace_loop/plugins/profile/run/host.xplane.pb"))
        .unwrap();
    for change in [cut, replace_text, remove_all] {
        std::fs::write(&path, &whole).unwrap();
        let session = Session::open(&path).unwrap();
        let steps = session.report().steps.unwrap().count;
        change(&path);
        let trace = session.trace();
        assert!((0..trace.events.len() as u32).all(|it| trace.args.of(EventId(it)).is_empty()));
        let report = session.report();
        assert_eq!(report.steps.as_ref().unwrap().count, steps);
        let note = report.notes.iter().find(|it| it.kind == NoteKind::LostArguments).unwrap();
        assert!(note.first.starts_with("host.xplane.pb"), "{note:?}");
        let listed = session.sql("select kind from note", &session::SqlLimits::default()).unwrap();
        assert!(format!("{listed:?}").contains("lost-arguments"), "{listed:?}");
    }
}

fn cut(path: &Path) {
    std::fs::File::options().write(true).open(path).unwrap().set_len(100).unwrap();
}

/// As long as before, and something else.
fn replace_text(path: &Path) {
    let n = std::fs::metadata(path).unwrap().len() as usize;
    std::fs::write(path, "x".repeat(n)).unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
    std::fs::File::options().write(true).open(path).unwrap().set_modified(later).unwrap();
}

/// Emptied, as by a job that begins to write it anew.
fn remove_all(path: &Path) {
    std::fs::write(path, b"").unwrap();
}
