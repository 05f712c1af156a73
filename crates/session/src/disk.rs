//! Opens files of the disk to be read in pieces.
//!
//! A profile may be cut, replaced or taken away at any time, as long as the trace lives: its job
//! may still write it. So nothing is mapped, and every piece is asked for when it is needed.

use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::SystemTime;

use sources::{Bytes, Change, FileBytes};

/// Where files come from: the disk, or in tests one that fails.
pub trait Files {
    fn open(&self, path: &Path) -> io::Result<Bytes>;
}

/// The files that are there.
#[derive(Debug)]
pub struct Disk;

impl Files for Disk {
    fn open(&self, path: &Path) -> io::Result<Bytes> {
        Ok(Arc::new(DiskFile::open(path)?))
    }
}

/// Files that stay open while their traces live: a process may have some hundred. Of others the
/// path is kept.
const MOST_KEPT_OPEN: usize = 64;

static N_KEPT_OPEN: AtomicUsize = AtomicUsize::new(0);

/// A file of the disk.
#[derive(Debug)]
struct DiskFile {
    path: PathBuf,
    /// `None` where too many are open.
    kept: Option<File>,
    opened_as: Version,
    n_done: AtomicU64,
}

/// Which file it is, and when it was written to.
#[derive(Debug, Clone, PartialEq)]
struct Version {
    identity: Option<Identity>,
    size: u64,
    modified: Option<SystemTime>,
}

/// What is the same for two names of one file.
#[cfg(unix)]
pub type Identity = (u64, u64);
#[cfg(not(unix))]
pub type Identity = PathBuf;

/// Device and inode.
#[cfg(unix)]
pub fn identity(_: &Path, about: &Metadata) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    Some((about.dev(), about.ino()))
}

/// The path without links.
#[cfg(not(unix))]
pub fn identity(path: &Path, _: &Metadata) -> Option<Identity> {
    std::fs::canonicalize(path).ok()
}

impl Version {
    fn of(path: &Path, about: &Metadata) -> Version {
        let identity = identity(path, about);
        Version { identity, size: about.len(), modified: about.modified().ok() }
    }
}

impl DiskFile {
    fn open(path: &Path) -> io::Result<DiskFile> {
        let file = runlog::open(path)?;
        let about = file.metadata()?;
        let opened_as = Version::of(path, &about);
        let n_before = N_KEPT_OPEN.fetch_add(1, Ordering::Relaxed);
        let kept = (n_before < MOST_KEPT_OPEN).then_some(file);
        if kept.is_none() {
            N_KEPT_OPEN.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(DiskFile { path: path.to_owned(), kept, opened_as, n_done: AtomicU64::new(0) })
    }

    /// Does something with the file, which is opened anew where it was not kept.
    fn with<T>(&self, work: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        if let Some(file) = &self.kept {
            return work(file);
        }
        let file = runlog::open(&self.path)?;
        let now = Version::of(&self.path, &file.metadata()?);
        if now.identity != self.opened_as.identity {
            return Err(io::Error::other("another file has taken its place"));
        }
        work(&file)
    }
}

impl FileBytes for DiskFile {
    fn size(&self) -> usize {
        usize::try_from(self.opened_as.size).unwrap_or(usize::MAX)
    }

    fn read_at(&self, at: usize, to: &mut [u8]) -> io::Result<usize> {
        self.with(|file| read_at(file, at as u64, to))
    }

    fn change(&self) -> Change {
        // Where it cannot be told, whoever reads will see.
        let Ok(about) = self.with(|it| it.metadata()) else { return Change::None };
        let now = Version::of(&self.path, &about);
        if now == self.opened_as {
            Change::None
        } else if now.size > self.opened_as.size {
            Change::Grown
        } else {
            Change::Rewritten
        }
    }

    fn done_with(&self, n_bytes: usize) {
        self.n_done.fetch_add(n_bytes as u64, Ordering::Relaxed);
    }

    fn n_done(&self) -> u64 {
        self.n_done.load(Ordering::Relaxed)
    }
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        if self.kept.is_some() {
            N_KEPT_OPEN.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(unix)]
fn read_at(file: &File, at: u64, to: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, to, at)
}

#[cfg(windows)]
fn read_at(file: &File, at: u64, to: &mut [u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, to, at)
}
