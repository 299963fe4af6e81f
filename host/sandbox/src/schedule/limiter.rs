//! Limits the memory and tables of one guest and the memory of all guests.
//!
//! The engine's own limits apply to each memory alone. Here all memories of a guest count together.
//! Every byte is also reserved from the node's share, so that many small guests together cannot
//! exhaust the node.

use std::sync::Arc;

use gate::{Busy, ByteCapacity, Capacity, Shares};
use wasmtime::{ResourceLimiter, Result};

use super::meter::Meter;
use crate::{Refusal, limits};

/// Maximum number of elements of all tables of a guest together.
const MAX_ALL_TABLE_ELEMENTS: usize = 2 * limits::MAX_TABLE_ELEMENTS;
/// Number of failed attempts to grow after which a guest is ended, because it does nothing else.
const MAX_FAILED_GROWS: u32 = 100;
/// Part of the node's memory that a tenant takes whenever it is free.
const BASE_DIVISOR: u64 = 16;
/// Minimum of it: what a call needs that requests no more memory than the default.
const MIN_BASE_BYTES: u64 = 64 << 20;
/// Free memory that a call needs to start.
const MAX_START_BYTES: u64 = 16 << 20;
/// Part of a tenant's base that a call needs to start, on a node with little memory.
const START_DIVISOR: u64 = 4;

/// Memory of the node for everything that executions hold. Tenants share it.
#[derive(Clone)]
pub(crate) struct NodeMemory {
    capacity: ByteCapacity<Arc<str>>,
    start_bytes: u64,
}

/// Part of the node's memory that a tenant has reserved. It is released when dropped.
pub type Reservation = gate::Reservation<Arc<str>>;

/// Reservation for the body of a response.
#[derive(Debug)]
pub(crate) struct BodyMemory(pub(crate) Reservation);

impl net::MemoryBudget for BodyMemory {
    fn grow(&self, bytes: u64) -> bool {
        self.0.try_grow(bytes).is_ok()
    }
}

/// Returns the shares of tenants in memory, in bytes.
#[must_use]
pub fn memory_shares(total: u64) -> Shares {
    let shares = Shares::new(total, BASE_DIVISOR, total / 2);
    let base = shares.base.max(MIN_BASE_BYTES).min(total);
    Shares {
        base,
        reserve: base.saturating_mul(8).min(total / 2),
        cap: shares.cap.max(base),
        ..shares
    }
}

impl NodeMemory {
    pub(crate) fn new(total: u64) -> Self {
        let shares = memory_shares(total);
        Self {
            capacity: ByteCapacity::new(shares),
            start_bytes: MAX_START_BYTES.min(shares.base / START_DIVISOR),
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.capacity.used()
    }

    /// Returns an empty reservation of a tenant, if it may have the memory with which a call starts.
    ///
    /// # Errors
    /// Returns the refusal if it may not.
    pub(crate) fn reserve_for_start(&self, tenant: &Arc<str>) -> Result<Reservation, Refusal> {
        let memory = self.reserve(tenant);
        match memory.refusal(self.start_bytes) {
            Some(busy) => Err(Refusal::busy(Capacity::Memory, busy)),
            None => Ok(memory),
        }
    }

    pub(crate) fn reserve(&self, tenant: &Arc<str>) -> Reservation {
        self.capacity.reserve(tenant)
    }
}

/// Limit that refused memory to a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryRefusal {
    /// The limit of the guest.
    Guest,
    /// The memory of the node.
    Node(Busy),
}

/// Resource limits of one guest.
pub(crate) struct Limiter {
    reservation: Reservation,
    memory: u64,
    limit: u64,
    table_elements: usize,
    failed_grows: u32,
    /// Limit that refused memory last.
    refused: Option<MemoryRefusal>,
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
            refused: None,
            meter,
        }
    }

    /// Returns the limit that refused memory or table elements to the guest last, if one did.
    pub(crate) fn refused(&self) -> Option<MemoryRefusal> {
        self.refused
    }

    /// Returns true if the guest was ended because of too many failed attempts to grow.
    pub(crate) fn is_ended(&self) -> bool {
        self.failed_grows >= MAX_FAILED_GROWS
    }

    fn refuse_growth(&mut self, refusal: MemoryRefusal) -> Result<bool> {
        self.refused = Some(refusal);
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
        if maximum.is_some_and(|maximum| desired > maximum) || !fits {
            return self.refuse_growth(MemoryRefusal::Guest);
        }
        if let Err(busy) = self.reservation.try_grow(more) {
            return self.refuse_growth(MemoryRefusal::Node(busy));
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
        let over = desired > limits::MAX_TABLE_ELEMENTS || sum > MAX_ALL_TABLE_ELEMENTS;
        if over || maximum.is_some_and(|maximum| desired > maximum) {
            return self.refuse_growth(MemoryRefusal::Guest);
        }
        self.table_elements = sum;
        Ok(true)
    }

    fn instances(&self) -> usize {
        limits::MAX_CORE_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        limits::MAX_TABLES as usize
    }

    fn memories(&self) -> usize {
        limits::MAX_MEMORIES as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE_BYTES: usize = 64 << 10;

    fn limiter(node: &NodeMemory, limit: u64) -> Limiter {
        Limiter::new(node.reserve(&"a".into()), limit, Arc::default())
    }

    #[test]
    fn memories_of_one_guest_count_together() {
        let node = NodeMemory::new(u64::MAX);
        let mut limiter = limiter(&node, 4 * PAGE_BYTES as u64);
        let grown = [(0, 2), (0, 2), (2, 3)].map(|(from, to)| {
            let grows = limiter.memory_growing(from * PAGE_BYTES, to * PAGE_BYTES, None);
            grows.unwrap()
        });
        assert_eq!(grown, [true, true, false]);
        assert_eq!(limiter.refused(), Some(MemoryRefusal::Guest));
        assert_eq!(limiter.meter.peak_memory(), 4 * PAGE_BYTES as u64);
    }

    #[test]
    fn memory_of_all_guests_is_counted_and_released() {
        let node = NodeMemory::new(3 * PAGE_BYTES as u64);
        let mut first = limiter(&node, u64::MAX);
        let mut second = limiter(&node, u64::MAX);
        assert!(first.memory_growing(0, 2 * PAGE_BYTES, None).unwrap());
        assert!(!second.memory_growing(0, 2 * PAGE_BYTES, None).unwrap());
        assert_eq!(second.refused(), Some(MemoryRefusal::Node(Busy::Own)));
        drop(first);
        assert!(second.memory_growing(0, 2 * PAGE_BYTES, None).unwrap());
        drop(second);
        assert_eq!(node.used(), 0);
    }

    #[test]
    fn tenant_leaves_memory_to_others() {
        let node = NodeMemory::new(1 << 30);
        let body = BodyMemory(node.reserve(&"a".into()));
        assert!(net::MemoryBudget::grow(&body, 512 << 20));
        assert!(!net::MemoryBudget::grow(&body, 1));
        let refused = node.reserve_for_start(&"a".into()).unwrap_err();
        assert_eq!(refused, Refusal::TenantBusy(Capacity::Memory));
        assert!(node.reserve_for_start(&"b".into()).is_ok());
        let mut other = Limiter::new(node.reserve(&"b".into()), u64::MAX, Arc::default());
        assert!(other.memory_growing(0, 64 << 20, None).unwrap());
        assert!(!other.memory_growing(0, PAGE_BYTES, None).unwrap());
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
        let most = limits::MAX_TABLE_ELEMENTS;
        let grown = [most + 1, most, most, 1].map(|to| limiter.table_growing(0, to, None).unwrap());
        assert_eq!(grown, [false, true, true, false]);
    }
}
