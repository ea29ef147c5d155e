// SPDX-License-Identifier: Apache-2.0
//! Memory of a table that is read at random places: in huge pages where the system gives them, because otherwise
//! nearly every look-up first has to look up its page. (`madvise` comes before the first touch; behind it, it is late.)

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

const HUGE_PAGE_BYTES: usize = 2 << 20;

/// What may lie in a table: numbers, for which any bits are a value.
///
/// # Safety
/// All bytes zero are a value of the type, and it needs no drop.
pub unsafe trait Zeroed: Copy {}

/// A table of fixed size, zeros at first.
pub struct Table<T: Zeroed> {
    first: NonNull<T>,
    length: usize,
}

impl<T: Zeroed> Table<T> {
    /// A table of that many zeros.
    pub fn new(length: usize) -> Self {
        let Some(layout) = Self::layout(length) else {
            return Self {
                first: NonNull::dangling(),
                length: 0,
            };
        };
        // SAFETY: the size is not zero.
        let memory = unsafe { alloc(layout) };
        let Some(first) = NonNull::new(memory.cast::<T>()) else {
            handle_alloc_error(layout)
        };
        if layout.align() == HUGE_PAGE_BYTES {
            ask_for_huge_pages(memory, layout.size());
        }
        // SAFETY: the memory holds `length` values; zeros are values by the contract of `Zeroed`.
        unsafe { first.as_ptr().write_bytes(0, length) };
        Self { first, length }
    }

    /// `None` for nothing. Tables of a huge page or more begin at one.
    fn layout(length: usize) -> Option<Layout> {
        let layout = Layout::array::<T>(length).ok().filter(|layout| layout.size() > 0)?;
        let is_huge = layout.size() >= HUGE_PAGE_BYTES;
        if is_huge {
            layout.align_to(HUGE_PAGE_BYTES).ok()
        } else {
            Some(layout)
        }
    }
}

impl<T: Zeroed> Deref for Table<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `first` points to `length` values that are initialized and belong to this table.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.length) }
    }
}

impl<T: Zeroed> DerefMut for Table<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.first.as_ptr(), self.length) }
    }
}

impl<T: Zeroed> Drop for Table<T> {
    fn drop(&mut self) {
        if let Some(layout) = Self::layout(self.length) {
            // SAFETY: the memory came from `alloc` with the same layout.
            unsafe { dealloc(self.first.as_ptr().cast(), layout) };
        }
    }
}

// SAFETY: a table owns its values, as a vector does.
unsafe impl<T: Zeroed + Send> Send for Table<T> {}
// SAFETY: as above.
unsafe impl<T: Zeroed + Sync> Sync for Table<T> {}

/// Fetches a cache line ahead of its use, where the language knows how.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program could see, and ignores addresses that are not there.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(all(target_os = "linux", not(miri)))]
fn ask_for_huge_pages(memory: *mut u8, bytes: usize) {
    // `madvise` of the C library that the standard library links, and its number on Linux.
    unsafe extern "C" {
        fn madvise(address: *mut std::ffi::c_void, length: usize, advice: i32) -> i32;
    }
    const MADV_HUGEPAGE: i32 = 14;
    // SAFETY: the range is memory of this process that nothing uses yet; the advice changes no content. A system that
    // has no huge pages says so, and nothing is lost.
    unsafe { madvise(memory.cast(), bytes / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES, MADV_HUGEPAGE) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn ask_for_huge_pages(_: *mut u8, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    // SAFETY: a number.
    unsafe impl Zeroed for u64 {}

    #[test]
    fn tables_of_any_size_are_zeros_that_can_be_written() {
        // From 2^18 on they lie in huge pages.
        for length in [0, 1, 5, 1 << 18, (1 << 18) + 3] {
            if cfg!(miri) && length == 1 << 18 {
                continue;
            }
            let mut table = Table::<u64>::new(length);
            assert_eq!(table.len(), length);
            assert!(table.iter().all(|&number| number == 0));
            if let Some(last) = table.last_mut() {
                *last = 7;
                assert_eq!(table[length - 1], 7);
            }
        }
    }
}
