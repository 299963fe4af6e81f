//! Permits of projects, of which callers without a key have some of their own: they use up none that the
//! keys of a project need.

use std::{net::IpAddr, sync::Arc};

use app::Error;
use gate::{Busy, Capacity, Gate, KeyedLimit, Permit, Queue, Shares};
use tokio::sync::OwnedSemaphorePermit;

use super::counted_as;
use crate::errors;

/// Part of the permits of projects that callers without a key have in addition, at public addresses.
const STRANGER_DIVISOR: u64 = 2;
/// Part of these that one address has.
const STRANGER_ADDRESS_DIVISOR: usize = 4;

/// Sender of a request to a project.
#[derive(Clone)]
pub struct Caller {
    pub tenant: Arc<str>,
    /// Address of a caller without a key.
    pub stranger: Option<IpAddr>,
}

/// Permit of a caller, released when it is dropped.
pub struct CallerPermit {
    _of_project: Permit<Arc<str>>,
    _of_address: Option<OwnedSemaphorePermit>,
}

/// Issues permits to callers.
pub(crate) struct CallerGate {
    capacity: Capacity,
    projects: Gate<Arc<str>>,
    /// Callers without a key, by project.
    strangers: Gate<Arc<str>>,
    /// Callers without a key, by project and address.
    stranger_addresses: KeyedLimit<(Arc<str>, IpAddr)>,
}

/// Returns the shares of projects in the permits of callers without a key, from those of the keys.
pub(super) const fn shares_of_strangers(shares: Shares, base_divisor: u64) -> Shares {
    let all = shares.total / STRANGER_DIVISOR;
    Shares::new(all, base_divisor, shares.cap / STRANGER_DIVISOR)
}

impl CallerGate {
    /// Creates a gate with the shares of projects, for callers with a key and for those without one.
    pub(super) fn new(capacity: Capacity, [shares, of_strangers]: [Shares; 2]) -> Self {
        let of_address = of_strangers.cap as usize / STRANGER_ADDRESS_DIVISOR;
        Self {
            capacity,
            projects: Gate::new(shares),
            strangers: Gate::new(of_strangers),
            stranger_addresses: KeyedLimit::new(of_address.max(1)),
        }
    }

    /// Takes a permit, if the caller may have one now.
    ///
    /// # Errors
    /// [`errors::PROJECT_BUSY`], [`errors::ADDRESS_BUSY`] or [`errors::NODE_BUSY`] if it may not.
    pub(crate) fn try_acquire(&self, caller: &Caller) -> Result<CallerPermit, Error> {
        let (gate, of_address) = self.gate_of(caller)?;
        self.permit(gate.try_acquire(&caller.tenant), of_address)
    }

    /// Takes a permit, immediately or after waiting in the queue.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire), if no permit becomes free in time.
    pub(super) async fn acquire(
        &self,
        caller: &Caller,
        queue: Queue,
    ) -> Result<CallerPermit, Error> {
        let (gate, of_address) = self.gate_of(caller)?;
        let permit = gate.acquire(&caller.tenant, queue).await;
        self.permit(permit, of_address)
    }

    /// Returns the permits that count for a caller, and takes that of the caller's address.
    fn gate_of(
        &self,
        caller: &Caller,
    ) -> Result<(&Gate<Arc<str>>, Option<OwnedSemaphorePermit>), Error> {
        let Some(address) = caller.stranger else {
            return Ok((&self.projects, None));
        };
        let key = (caller.tenant.clone(), counted_as(address));
        let of_address = self.stranger_addresses.try_acquire(&key);
        let of_address = of_address.ok_or_else(|| errors::address_busy(self.capacity))?;
        Ok((&self.strangers, Some(of_address)))
    }

    fn permit(
        &self,
        of_project: Result<Permit<Arc<str>>, Busy>,
        of_address: Option<OwnedSemaphorePermit>,
    ) -> Result<CallerPermit, Error> {
        Ok(CallerPermit {
            _of_project: of_project.map_err(|busy| errors::busy(self.capacity, busy))?,
            _of_address: of_address,
        })
    }
}
