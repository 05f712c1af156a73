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

use sources::FileBytes;

/// A file's bytes, brought in by the system as they are touched.
#[derive(Debug)]
pub struct Mapped(memmap2::Mmap);

impl Mapped {
    pub fn open(path: &Path) -> io::Result<Mapped> {
        let file = File::open(path)?;
        // SAFETY: the file is only read; see the reason above.
        Ok(Mapped(unsafe { memmap2::Mmap::map(&file) }?))
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Large enough for every system this runs on: parts are shrunk to whole pages of this size.
const PAGE: usize = 64 << 10;

impl FileBytes for Mapped {
    /// Gives the pages back, so that reading a file does not need its size in memory.
    #[cfg(unix)]
    fn done_with(&self, part: Range<usize>) {
        let from = part.start.next_multiple_of(PAGE);
        let to = part.end.min(self.0.len()) / PAGE * PAGE;
        if from < to {
            let advice = memmap2::UncheckedAdvice::DontNeed;
            // SAFETY: the mapping is read-only and backed by the file: pages given back come in
            // again with the same content when they are touched.
            let given_back = unsafe { self.0.unchecked_advise_range(advice, from, to - from) };
            // It is advice: where the system does not take it, nothing is lost.
            let _ = given_back;
        }
    }
}
