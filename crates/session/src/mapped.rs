//! Maps a file into memory. The only place where that is done.

#![expect(
    unsafe_code,
    reason = "a mapping is undefined if the file changes under it; profiles are written once, and \
              copying them would cost their size in memory"
)]

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use sources::FileBytes;

/// Large enough for every system this runs on: parts are shrunk to whole pages of this size.
#[cfg(unix)]
const PAGE: usize = 64 << 10;

/// A file's bytes, brought in by the system as they are touched.
#[derive(Debug)]
pub struct Mapped {
    map: memmap2::Mmap,
    n_done: AtomicU64,
}

impl Mapped {
    pub fn open(path: &Path) -> io::Result<Mapped> {
        let file = File::open(path)?;
        // SAFETY: the file is only read; see the reason above.
        let map = unsafe { memmap2::Mmap::map(&file) }?;
        Ok(Mapped { map, n_done: AtomicU64::new(0) })
    }

    /// Gives pages back, so that reading a file does not need its size in memory.
    #[cfg(unix)]
    fn give_back(&self, part: Range<usize>) {
        let from = part.start.next_multiple_of(PAGE);
        let to = part.end.min(self.map.len()) / PAGE * PAGE;
        if from < to {
            let advice = memmap2::UncheckedAdvice::DontNeed;
            // SAFETY: the mapping is read-only and backed by the file: pages given back come in
            // again with the same content when they are touched.
            let given_back = unsafe { self.map.unchecked_advise_range(advice, from, to - from) };
            // It is advice: where the system does not take it, nothing is lost.
            let _ = given_back;
        }
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

impl FileBytes for Mapped {
    fn done_with(&self, part: Range<usize>) {
        self.n_done.fetch_add(part.len() as u64, Ordering::Relaxed);
        #[cfg(unix)]
        self.give_back(part);
    }

    fn n_done(&self) -> u64 {
        self.n_done.load(Ordering::Relaxed)
    }
}
