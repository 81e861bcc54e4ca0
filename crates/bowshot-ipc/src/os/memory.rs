//! Counts allocated memory of the process and of threads, so that a limit includes parsers, decoders and expressions. A thread has its own
//! counter, which costs about a nanosecond, and updates that of the process by the megabyte. Memory that another thread frees is counted there,
//! so code that passes rows on must account for it. Threads count requested sizes, the process what the allocator reserves.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

/// What a thread keeps to itself of what it has taken.
const UNTOLD_BYTES: i64 = 1 << 20;
/// Pieces that are larger are given by the page.
const LARGE: usize = 4 << 20;

static PROCESS: AtomicI64 = AtomicI64::new(0);

thread_local! {
    /// Taken less given back, since the thread began.
    static NET: Cell<i64> = const { Cell::new(0) };
    /// What the process does not know yet of what it really takes.
    static UNTOLD: Cell<i64> = const { Cell::new(0) };
}

/// An allocator that counts what another one gives.
#[derive(Debug)]
pub struct Counting<A>(pub A);

/// Bytes that the process has taken, but for the last megabyte of each thread; zero without [`Counting`].
pub fn process_bytes() -> u64 {
    u64::try_from(PROCESS.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Bytes that this thread has taken less what it has given back. Two of these tell what was kept between them.
pub fn thread_bytes() -> i64 {
    NET.try_with(Cell::get).unwrap_or(0)
}

/// Memory that the process holds and no allocator has given, such as what clients map. It counts as the process's until this is
/// dropped.
#[derive(Debug)]
#[must_use]
pub struct Outside(i64);

impl Outside {
    pub fn new(bytes: usize) -> Self {
        let bytes = signed(bytes);
        PROCESS.fetch_add(bytes, Ordering::Relaxed);
        Self(bytes)
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        PROCESS.fetch_sub(self.0, Ordering::Relaxed);
    }
}

fn count(asked: i64, given: i64) {
    // While a thread ends there is nothing to count with; what it frees then is little.
    let _ = NET.try_with(|net| net.set(net.get().wrapping_add(asked)));
    let _ = UNTOLD.try_with(|untold| {
        let now = untold.get().wrapping_add(given);
        let told = now.abs() >= UNTOLD_BYTES;
        untold.set(if told { 0 } else { now });
        if told {
            PROCESS.fetch_add(now, Ordering::Relaxed);
        }
    });
}

fn signed(size: usize) -> i64 {
    size as i64
}

/// Bytes that a piece takes of the process. As mimalloc has it ("Mimalloc: Free List Sharding in Action", 2019): four sizes for
/// each power of two, and room to move a piece to where it is aligned. That makes 80 KiB of 64 that are aligned for SIMD.
fn given(size: usize, align: usize) -> i64 {
    let size = if align > 16 { size.saturating_add(align - 1) } else { size };
    let step = match size {
        0..=1024 => 16,
        1025..=LARGE => 1 << ((size - 1).ilog2() - 2),
        _ => 64 << 10,
    };
    signed(size.div_ceil(step).saturating_mul(step))
}

#[expect(unsafe_code, reason = "an allocator is unsafe by its nature")]
// SAFETY: every call goes to the allocator inside with the arguments as they came; counting takes no memory and cannot fail.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised to us.
        let place = unsafe { self.0.alloc(layout) };
        if !place.is_null() {
            count(signed(layout.size()), given(layout.size(), layout.align()));
        }
        place
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-signed(layout.size()), -given(layout.size(), layout.align()));
        // SAFETY: as promised to us.
        unsafe { self.0.dealloc(place, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as promised to us.
        let place = unsafe { self.0.alloc_zeroed(layout) };
        if !place.is_null() {
            count(signed(layout.size()), given(layout.size(), layout.align()));
        }
        place
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as promised to us.
        let moved = unsafe { self.0.realloc(place, layout, size) };
        if !moved.is_null() {
            let align = layout.align();
            count(signed(size) - signed(layout.size()), given(size, align) - given(layout.size(), align));
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::System;

    #[test]
    fn pieces_take_what_their_size_is_rounded_to() {
        for (size, align, expected) in [
            (0, 1, 0),
            (1, 1, 16),
            (1025, 8, 1280),
            (65_536, 8, 65_536),
            (65_536, 128, 81_920),
            (5 << 20, 8, 5 << 20),
        ] {
            assert_eq!(given(size, align), expected, "{size} {align}");
        }
    }

    #[test]
    fn what_lies_outside_counts_as_long_as_it_is_held() {
        let before = PROCESS.load(Ordering::Relaxed);
        let outside = Outside::new(1 << 40);
        // Other tests take memory meanwhile, but not so much.
        assert!(PROCESS.load(Ordering::Relaxed) - before > 1 << 39);
        drop(outside);
        assert!(PROCESS.load(Ordering::Relaxed) - before < 1 << 39);
    }

    #[test]
    #[expect(unsafe_code, reason = "an allocator is unsafe by its nature")]
    fn what_is_kept_is_counted() {
        let counting = Counting(System);
        let layout = Layout::from_size_align(3 << 20, 8).unwrap();
        let before = thread_bytes();
        // SAFETY: the layout has a size, and the place is given back with the size that it has.
        unsafe {
            let place = counting.realloc(counting.alloc(layout), layout, 5 << 20);
            assert_eq!(thread_bytes() - before, 5 << 20);
            counting.dealloc(place, Layout::from_size_align(5 << 20, 8).unwrap());
        }
        assert_eq!(thread_bytes(), before);
    }
}
