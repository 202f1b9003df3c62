//! An allocator that counts, so that each input has a memory limit.
//!
//! libFuzzer's own limit of an allocation works with a sanitizer only, and its limit of the
//! resident memory cannot tell one input from all.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    process,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// The maximum size of one allocation, in bytes: far more than an input of any target needs.
const LARGEST: usize = 64 << 20;

struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn add(bytes: usize) {
    if bytes > LARGEST {
        eprintln!("an allocation of {bytes} bytes");
        process::abort();
    }
    let used = USED.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(used, Relaxed);
}

// SAFETY: every request goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size);
        USED.fetch_sub(layout.size(), Relaxed);
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// The memory that an input may use at the same time.
#[derive(Clone, Copy)]
pub struct MemoryBound {
    /// The number of bytes for each byte of the input.
    pub per_byte: usize,
    /// The number of bytes for any input.
    pub base: usize,
}

/// Runs a target on an input of this length; the process ends if the input uses more memory than it
/// may.
pub fn bounded(length: usize, bound: MemoryBound, run: impl FnOnce()) {
    let before = USED.load(Relaxed);
    PEAK.store(before, Relaxed);
    run();
    let used = PEAK.load(Relaxed).saturating_sub(before);
    let limit = bound.base + bound.per_byte * length;
    assert!(
        used <= limit,
        "an input of {length} bytes used {used} bytes of memory, more than {limit}"
    );
}
