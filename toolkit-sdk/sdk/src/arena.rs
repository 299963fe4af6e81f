//! The guest's allocator: an arena with the standard allocator behind it.
//!
//! Each call runs in a fresh instance, and growing its memory costs more than a small call itself.
//! The first allocations therefore come from an arena that lies in the memory the instance starts
//! with. A call that needs no more than the arena never grows the memory. The arena frees and
//! resizes only the most recent allocation, which is the case of a growing buffer. Past the end of
//! the arena, dlmalloc serves the allocations. It reuses freed memory, so that a long call does not
//! leak.

#![expect(unsafe_code, reason = "a global allocator is unsafe by its nature")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::ptr;

/// Size of the arena in bytes. Pages that are never touched cost nothing.
const ARENA_BYTES: usize = 128 * 1024;

#[repr(align(16))]
struct Arena {
    bytes: UnsafeCell<[u8; ARENA_BYTES]>,
    used: Cell<usize>,
}

// A guest has one thread.
unsafe impl Sync for Arena {}

#[cfg(target_arch = "wasm32")]
#[global_allocator]
static GLOBAL_ARENA: Arena = Arena::new();

impl Arena {
    const fn new() -> Self {
        Self {
            bytes: UnsafeCell::new([0; ARENA_BYTES]),
            used: Cell::new(0),
        }
    }

    fn start(&self) -> *mut u8 {
        self.bytes.get().cast()
    }

    /// Returns the offset of a pointer in the arena, or `None` if it points elsewhere.
    fn offset(&self, pointer: *mut u8) -> Option<usize> {
        let offset = (pointer as usize).wrapping_sub(self.start() as usize);
        (offset < ARENA_BYTES).then_some(offset)
    }

    fn take(&self, layout: Layout) -> Option<*mut u8> {
        let address = self.start() as usize + self.used.get();
        let offset = address.next_multiple_of(layout.align()) - self.start() as usize;
        let end = offset
            .checked_add(layout.size())
            .filter(|&end| end < ARENA_BYTES)?;
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
        if last && size < ARENA_BYTES - offset {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An allocated block and the byte it is filled with.
    struct Block {
        pointer: *mut u8,
        layout: Layout,
        filling: u8,
    }

    impl Block {
        fn check(&self, length: usize) {
            assert!(self.pointer.addr().is_multiple_of(self.layout.align()));
            let bytes = unsafe { std::slice::from_raw_parts(self.pointer, length) };
            assert!(
                bytes.iter().all(|byte| *byte == self.filling),
                "a block was overwritten by another"
            );
        }

        fn fill(&self) {
            unsafe { ptr::write_bytes(self.pointer, self.filling, self.layout.size()) };
        }
    }

    proptest! {
        #[test]
        fn blocks_keep_what_is_in_them(
            steps in prop::collection::vec((0usize..4, 1usize..20_000, 0u32..6, any::<prop::sample::Index>()), 1..200),
        ) {
            let arena = Box::new(Arena::new());
            let mut blocks: Vec<Block> = Vec::new();
            for (number, (step, size, align, which)) in steps.into_iter().enumerate() {
                if step < 2 || blocks.is_empty() {
                    let layout = Layout::from_size_align(size, 1 << align).unwrap();
                    let pointer = unsafe { if step == 0 { arena.alloc(layout) } else { arena.alloc_zeroed(layout) } };
                    let mut block = Block { pointer, layout, filling: 0 };
                    if step == 1 {
                        block.check(size);
                    }
                    block.filling = number as u8;
                    block.fill();
                    blocks.push(block);
                    continue;
                }
                let index = which.index(blocks.len());
                let block = blocks.swap_remove(index);
                block.check(block.layout.size());
                if step == 2 {
                    unsafe { arena.dealloc(block.pointer, block.layout) };
                    continue;
                }
                let pointer = unsafe { arena.realloc(block.pointer, block.layout, size) };
                let layout = Layout::from_size_align(size, block.layout.align()).unwrap();
                let moved = Block { pointer, layout, filling: block.filling };
                moved.check(size.min(block.layout.size()));
                moved.fill();
                blocks.push(moved);
            }
            for block in blocks {
                block.check(block.layout.size());
                unsafe { arena.dealloc(block.pointer, block.layout) };
            }
        }
    }

    #[test]
    fn growing_the_last_block_does_not_move_it() {
        let arena = Box::new(Arena::new());
        let layout = Layout::from_size_align(16, 8).unwrap();
        let first = unsafe { arena.alloc(layout) };
        assert_eq!(unsafe { arena.realloc(first, layout, 4096) }, first);
        let grown = Layout::from_size_align(4096, 8).unwrap();
        unsafe { arena.dealloc(first, grown) };
        assert_eq!(arena.used.get(), 0);
    }
}
