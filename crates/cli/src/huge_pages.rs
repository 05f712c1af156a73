//! Asks the kernel to back large blocks of memory with huge pages.
//!
//! A trace of millions of events is a few columns of tens of megabytes. Touching them for the first
//! time costs a page fault for every 4 KiB, about a quarter of a report's CPU time; with pages of
//! 2 MiB that is nearly nothing. It is advice only: where the kernel has no huge pages, or none
//! free, all stays as it was.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, with that advice.
#[derive(Debug)]
pub struct HugePages;

/// Two huge pages: a block this large covers at least one, wherever it begins.
const LARGE: usize = 4 << 20;

/// From now on gives memory back as soon as it is free, in blocks from 128 kB on.
///
/// A reader of JSON frees blocks of some hundreds of kilobytes by the thousand. The C library learns
/// from the first large one to keep such blocks for later, in a pool for each thread, where nobody
/// else finds them: of a trace of 5 million events that was half of the peak. The size it began
/// with is told to stay. Where no such reader is asked, what it learns saves time.
pub fn give_back_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "a setting of the C library has no safe name")]
    {
        unsafe extern "C" {
            fn mallopt(what: i32, value: i32) -> i32;
        }
        const MMAP_THRESHOLD: i32 = -3;
        // SAFETY: the library locks its main pool for this, and a refusal changes nothing.
        let _ = unsafe { mallopt(MMAP_THRESHOLD, 128 << 10) };
    }
}

#[expect(unsafe_code, reason = "a global allocator cannot be written without")]
// SAFETY: every block comes from `System` and goes back to it unchanged.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        advise(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        advise(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        advise(unsafe { System.realloc(block, layout, size) }, size)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }
}

#[cfg(target_os = "linux")]
fn advise(block: *mut u8, size: usize) -> *mut u8 {
    if size >= LARGE && !block.is_null() {
        advise_large(block, size);
    }
    block
}

#[cfg(not(target_os = "linux"))]
fn advise(block: *mut u8, _size: usize) -> *mut u8 {
    block
}

/// With the page that the block begins in: the allocator's own head stands there, and a mapping
/// in two parts could not grow in place.
#[cfg(target_os = "linux")]
#[cold]
#[expect(unsafe_code, reason = "advice for memory that others may use is an unsafe call")]
fn advise_large(block: *mut u8, size: usize) {
    use rustix::mm::{Advice, madvise};
    let into_page = block.addr() % rustix::param::page_size();
    let start = block.wrapping_sub(into_page);
    // SAFETY: this advice changes how memory is backed, never what is in it. Refusal is no failure.
    let _ = unsafe { madvise(start.cast(), size + into_page, Advice::LinuxHugepage) };
}
