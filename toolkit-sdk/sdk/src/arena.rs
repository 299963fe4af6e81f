//! The guest's allocator: an arena first, the standard allocator behind it.
//!
//! Each call runs in a fresh instance, and growing its memory costs more than a small call itself. So the first allocations come
//! from an arena that lies in the memory the instance begins with: a call that needs no more than that never grows. The arena
//! gives back only what was taken last, which is what growing a buffer does; past its end dlmalloc takes over, which
//! reuses everything, so that a long call does not leak.

#![expect(unsafe_code, reason = "a global allocator is unsafe by its nature; a guest has one thread")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::ptr;

/// Pages of it that are never touched cost nothing.
const SIZE: usize = 128 * 1024;

#[repr(align(16))]
struct Arena {
    bytes: UnsafeCell<[u8; SIZE]>,
    used: Cell<usize>,
}

// A guest has one thread.
unsafe impl Sync for Arena {}

#[global_allocator]
static ARENA: Arena = Arena { bytes: UnsafeCell::new([0; SIZE]), used: Cell::new(0) };

impl Arena {
    fn start(&self) -> *mut u8 {
        self.bytes.get().cast()
    }

    /// Where in the arena a pointer lies, if it does.
    fn offset(&self, pointer: *mut u8) -> Option<usize> {
        let offset = (pointer as usize).wrapping_sub(self.start() as usize);
        (offset < SIZE).then_some(offset)
    }

    fn take(&self, layout: Layout) -> Option<*mut u8> {
        let address = self.start() as usize + self.used.get();
        let offset = address.next_multiple_of(layout.align()) - self.start() as usize;
        let end = offset.checked_add(layout.size()).filter(|&end| end < SIZE)?;
        self.used.set(end);
        Some(self.start().wrapping_add(offset))
    }
}

unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.take(layout) {
            Some(pointer) => pointer,
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match self.take(layout) {
            Some(pointer) => {
                unsafe { ptr::write_bytes(pointer, 0, layout.size()) };
                pointer
            }
            None => unsafe { System.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        match self.offset(pointer) {
            Some(offset) if offset + layout.size() == self.used.get() => self.used.set(offset),
            Some(_) => {}
            None => unsafe { System.dealloc(pointer, layout) },
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(offset) = self.offset(pointer) else {
            return unsafe { System.realloc(pointer, layout, size) };
        };
        let last = offset + layout.size() == self.used.get();
        if last && size < SIZE - offset {
            self.used.set(offset + size);
            return pointer;
        }
        if size <= layout.size() {
            return pointer;
        }
        let moved = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !moved.is_null() {
            unsafe {
                ptr::copy_nonoverlapping(pointer, moved, layout.size());
                self.dealloc(pointer, layout);
            }
        }
        moved
    }
}
