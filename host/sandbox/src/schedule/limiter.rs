//! Limits the memory and tables of one guest and the memory of all guests.
//!
//! The engine's own limits apply to each memory alone. Here all memories of a guest count together.
//! Every byte is also reserved from the node's share, so that many small guests together cannot
//! exhaust the node.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use wasmtime::{ResourceLimiter, Result};

use super::meter::Meter;
use crate::engine;

/// Maximum number of elements of all tables of a guest together.
const MAX_ALL_TABLE_ELEMENTS: usize = 2 * engine::MAX_TABLE_ELEMENTS;
/// Number of failed attempts to grow after which a guest is ended, because it does nothing else.
const MAX_FAILED_GROWS: u32 = 100;
/// Part of the node's memory that is left to guests: bodies of responses and given files are refused
/// before they take it, so that those of one project do not end the runs of others.
const GUEST_SHARE_DIVISOR: u64 = 4;

/// Memory budget of all guests of the node.
#[derive(Debug)]
pub(crate) struct NodeMemory {
    used: AtomicU64,
    limit: u64,
}

/// Reserved part of the node's memory. It is released when dropped.
#[derive(Debug)]
pub struct Reservation {
    node: Arc<NodeMemory>,
    held: AtomicU64,
}

impl NodeMemory {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self {
            used: AtomicU64::new(0),
            limit,
        })
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// Returns true if no memory is left for another guest.
    pub(crate) fn is_full(&self) -> bool {
        self.used() >= self.limit
    }

    pub(crate) fn reserve(self: &Arc<Self>) -> Reservation {
        Reservation {
            node: self.clone(),
            held: AtomicU64::new(0),
        }
    }

    /// Takes back reserved bytes. Most reservations hold none, and all processors share the
    /// counter.
    fn take_back(&self, bytes: u64) {
        if bytes > 0 {
            self.used.fetch_sub(bytes, Relaxed);
        }
    }
}

impl Reservation {
    /// Returns true if no bytes are held.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.load(Relaxed) == 0
    }

    /// Reserves more bytes. Returns false if the node has no more.
    pub(crate) fn grow(&self, bytes: u64) -> bool {
        self.grow_within(bytes, self.node.limit)
    }

    fn grow_within(&self, bytes: u64, limit: u64) -> bool {
        let taken = self.node.used.fetch_update(Relaxed, Relaxed, |used| {
            used.checked_add(bytes).filter(|sum| *sum <= limit)
        });
        if taken.is_ok() {
            self.held.fetch_add(bytes, Relaxed);
        }
        taken.is_ok()
    }

    /// Takes over the bytes that `other` holds.
    pub(crate) fn take_over(&self, other: &Self) {
        self.held.fetch_add(other.held.swap(0, Relaxed), Relaxed);
    }

    /// Creates an empty reservation of the same node.
    pub(crate) fn empty(&self) -> Self {
        self.node.reserve()
    }

    /// Moves the held bytes into a new reservation.
    pub(crate) fn split_off(&self) -> Self {
        let taken = self.empty();
        taken.take_over(self);
        taken
    }

    /// Releases all held bytes.
    pub(crate) fn release(&self) {
        self.node.take_back(self.held.swap(0, Relaxed));
    }
}

impl net::MemoryBudget for Reservation {
    fn grow(&self, bytes: u64) -> bool {
        let limit = self.node.limit;
        self.grow_within(bytes, limit - limit / GUEST_SHARE_DIVISOR)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.node.take_back(*self.held.get_mut());
    }
}

/// Resource limits of one guest.
pub(crate) struct Limiter {
    reservation: Reservation,
    memory: u64,
    limit: u64,
    table_elements: usize,
    failed_grows: u32,
    meter: Arc<Meter>,
}

impl Limiter {
    pub(crate) fn new(reservation: Reservation, limit: u64, meter: Arc<Meter>) -> Self {
        Self {
            reservation,
            memory: 0,
            limit,
            table_elements: 0,
            failed_grows: 0,
            meter,
        }
    }

    /// Returns true if the guest requested memory and did not get it.
    pub(crate) fn refused_memory(&self) -> bool {
        self.failed_grows > 0
    }

    /// Returns true if the guest was ended because of too many failed attempts to grow.
    pub(crate) fn is_ended(&self) -> bool {
        self.failed_grows >= MAX_FAILED_GROWS
    }

    fn refuse_growth(&mut self) -> Result<bool> {
        self.failed_grows += 1;
        if self.failed_grows >= MAX_FAILED_GROWS {
            wasmtime::bail!("the guest keeps asking for memory that it cannot have");
        }
        Ok(false)
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool> {
        let more = desired.saturating_sub(current) as u64;
        let fits = self
            .memory
            .checked_add(more)
            .is_some_and(|sum| sum <= self.limit);
        if maximum.is_some_and(|maximum| desired > maximum) || !fits || !self.reservation.grow(more)
        {
            return self.refuse_growth();
        }
        self.memory += more;
        self.meter.record_memory(self.memory);
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> Result<()> {
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool> {
        let sum = self
            .table_elements
            .saturating_add(desired.saturating_sub(current));
        let over = desired > engine::MAX_TABLE_ELEMENTS || sum > MAX_ALL_TABLE_ELEMENTS;
        if over || maximum.is_some_and(|maximum| desired > maximum) {
            return self.refuse_growth();
        }
        self.table_elements = sum;
        Ok(true)
    }

    fn instances(&self) -> usize {
        engine::MAX_CORE_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        engine::MAX_TABLES as usize
    }

    fn memories(&self) -> usize {
        engine::MAX_MEMORIES as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE_BYTES: usize = 64 << 10;

    fn limiter(node: &Arc<NodeMemory>, limit: u64) -> Limiter {
        Limiter::new(node.reserve(), limit, Arc::default())
    }

    #[test]
    fn memories_of_one_guest_count_together() {
        let node = NodeMemory::new(u64::MAX);
        let mut limiter = limiter(&node, 4 * PAGE_BYTES as u64);
        assert!(limiter.memory_growing(0, 2 * PAGE_BYTES, None).unwrap());
        assert!(limiter.memory_growing(0, 2 * PAGE_BYTES, None).unwrap());
        assert!(
            !limiter
                .memory_growing(2 * PAGE_BYTES, 3 * PAGE_BYTES, None)
                .unwrap()
        );
        assert!(limiter.refused_memory());
        assert_eq!(limiter.meter.peak_memory(), 4 * PAGE_BYTES as u64);
    }

    #[test]
    fn memory_of_all_guests_is_counted_and_released() {
        let node = NodeMemory::new(3 * PAGE_BYTES as u64);
        let mut first = limiter(&node, u64::MAX);
        let mut second = limiter(&node, u64::MAX);
        assert!(first.memory_growing(0, 2 * PAGE_BYTES, None).unwrap());
        assert!(!second.memory_growing(0, 2 * PAGE_BYTES, None).unwrap());
        drop(first);
        assert!(second.memory_growing(0, 2 * PAGE_BYTES, None).unwrap());
        drop(second);
        assert_eq!(node.used(), 0);
    }

    #[test]
    fn responses_leave_memory_to_guests() {
        let node = NodeMemory::new(4 * PAGE_BYTES as u64);
        let body = node.reserve();
        assert!(net::MemoryBudget::grow(&body, 3 * PAGE_BYTES as u64));
        assert!(!net::MemoryBudget::grow(&body, 1));
        let mut guest = limiter(&node, u64::MAX);
        assert!(guest.memory_growing(0, PAGE_BYTES, None).unwrap());
    }

    #[test]
    fn guest_that_only_requests_memory_is_ended() {
        let node = NodeMemory::new(0);
        let mut limiter = limiter(&node, 0);
        let answers: Vec<_> = (0..MAX_FAILED_GROWS)
            .map(|_| limiter.memory_growing(0, PAGE_BYTES, None).is_err())
            .collect();
        assert_eq!(answers.iter().filter(|ended| **ended).count(), 1);
        assert!(answers.last().unwrap());
    }

    #[test]
    fn tables_are_bounded_one_by_one_and_together() {
        let node = NodeMemory::new(0);
        let mut limiter = limiter(&node, 0);
        assert!(
            !limiter
                .table_growing(0, engine::MAX_TABLE_ELEMENTS + 1, None)
                .unwrap()
        );
        assert!(
            limiter
                .table_growing(0, engine::MAX_TABLE_ELEMENTS, None)
                .unwrap()
        );
        assert!(
            limiter
                .table_growing(0, engine::MAX_TABLE_ELEMENTS, None)
                .unwrap()
        );
        assert!(!limiter.table_growing(0, 1, None).unwrap());
    }

    proptest! {
        #[test]
        fn the_node_never_gives_more_than_it_has(sizes in prop::collection::vec(0u64..1000, 0..50)) {
            let node = NodeMemory::new(5_000);
            let mut held = Vec::new();
            for size in sizes {
                let part = node.reserve();
                part.grow(size);
                prop_assert!(node.used() <= 5_000);
                held.push(part);
            }
            drop(held);
            prop_assert_eq!(node.used(), 0);
        }
    }
}
