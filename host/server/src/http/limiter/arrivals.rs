//! Limits on bodies that are arriving: their number, and the memory that they take. Their requests
//! hold no concurrency permit in the meantime.

use std::{collections::HashMap, net::IpAddr, sync::Arc};

use app::{Error, core::keyed_limit::KeyedLimit};
use gate::Capacity;
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use super::counted_as;
use crate::{config::Limits, http::errors};

/// Divisor of the memory for arriving bodies that one project may use; below, the one for an
/// address without a key.
const OWNER_PART: usize = 4;
const ADDRESS_PART: usize = 16;

/// Bodies that are arriving.
pub(crate) struct Arrivals {
    addresses: KeyedLimit<IpAddr>,
    owners: KeyedLimit<Arc<str>>,
    max_bytes: usize,
    arrived: Mutex<Arrived>,
}

/// Bytes of arriving bodies that have arrived.
#[derive(Debug, Default)]
struct Arrived {
    bytes: usize,
    by_payer: HashMap<Payer, usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Payer {
    Address(IpAddr),
    /// A project, or the organization for requests with its own key.
    Owner(Arc<str>),
}

/// One arriving body, counted until it is dropped.
pub(crate) struct Arrival<'a> {
    of: &'a Arrivals,
    payer: Payer,
    bytes: usize,
    _permits: (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>),
}

impl Arrivals {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            addresses: KeyedLimit::new(limits.bodies_per_address),
            owners: KeyedLimit::new(limits.bodies_per_project),
            max_bytes: limits.bodies_mib << 20,
            arrived: Mutex::default(),
        }
    }

    /// Counts one more body. A request without a valid key has no owner.
    ///
    /// # Errors
    /// [`errors::ADDRESS_BUSY`] or [`errors::PROJECT_BUSY`] if the address or the owner is at its
    /// limit of arriving bodies.
    pub(crate) fn enter(
        &self,
        address: IpAddr,
        owner: Option<Arc<str>>,
    ) -> Result<Arrival<'_>, Error> {
        let address = counted_as(address);
        let of_address = self.addresses.try_acquire(&address);
        let of_address = of_address.ok_or_else(errors::address_busy)?;
        let of_owner = owner.as_ref().map(|owner| {
            let permit = self.owners.try_acquire(owner);
            permit.ok_or_else(|| errors::project_busy(Capacity::Bodies))
        });
        Ok(Arrival {
            of: self,
            payer: owner.map_or(Payer::Address(address), Payer::Owner),
            bytes: 0,
            _permits: (of_address, of_owner.transpose()?),
        })
    }
}

impl Arrival<'_> {
    /// Counts bytes that have arrived. A payer's only body may exceed the payer's share.
    ///
    /// # Errors
    /// If the memory for arriving bodies, or the payer's share of it, is used up.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Error> {
        let max_bytes = self.of.max_bytes;
        let mut arrived = self.of.arrived.lock();
        if arrived.bytes + bytes > max_bytes && arrived.bytes > self.bytes {
            return Err(errors::node_busy(Capacity::Memory));
        }
        let (part, refusal): (_, fn() -> Error) = match &self.payer {
            Payer::Owner(_) => (OWNER_PART, || errors::project_busy(Capacity::Memory)),
            Payer::Address(_) => (ADDRESS_PART, errors::address_busy),
        };
        let share = arrived.by_payer.get(&self.payer).copied().unwrap_or(0);
        if share + bytes > max_bytes / part && share > self.bytes {
            return Err(refusal());
        }
        arrived.by_payer.insert(self.payer.clone(), share + bytes);
        arrived.bytes += bytes;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        let mut arrived = self.of.arrived.lock();
        arrived.bytes -= self.bytes;
        if let Some(share) = arrived.by_payer.get_mut(&self.payer) {
            *share -= self.bytes;
            if *share == 0 {
                arrived.by_payer.remove(&self.payer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arriving_bodies_are_bounded_by_number_and_bytes() {
        let limits = Limits {
            bodies_per_address: 3,
            bodies_per_project: 2,
            bodies_mib: 1,
            ..Default::default()
        };
        let arrivals = Arrivals::new(&limits);
        let (one, other) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let owner: Arc<str> = "a".into();
        let mut first = arrivals.enter(one, Some(owner.clone())).unwrap();
        let mut second = arrivals.enter(one, Some(owner.clone())).unwrap();
        let refused = arrivals.enter(other, Some(owner.clone())).err().unwrap();
        assert!(refused.is(&errors::PROJECT_BUSY), "{refused}");
        let mut stranger = arrivals.enter(one, None).unwrap();
        let refused = arrivals.enter(one, None).err().unwrap();
        assert!(refused.is(&errors::ADDRESS_BUSY), "{refused}");
        first.grow((1 << 20) / OWNER_PART).unwrap();
        let refused = second.grow(1).unwrap_err();
        assert!(refused.is(&errors::PROJECT_BUSY), "{refused}");
        assert!(
            refused.to_string().ends_with("limit of memory"),
            "{refused}"
        );
        stranger.grow((1 << 20) / ADDRESS_PART + 1).unwrap();
        let refused = stranger.grow(1 << 20).unwrap_err();
        assert!(refused.is(&errors::NODE_BUSY), "{refused}");
        let mut neighbor = arrivals.enter(other, None).unwrap();
        neighbor.grow(1).unwrap();
        drop((first, second, stranger, neighbor));
        let left = arrivals.arrived.lock();
        assert!(left.by_payer.is_empty() && left.bytes == 0, "{left:?}");
        drop(left);
        assert!(arrivals.enter(one, Some(owner)).is_ok());
    }
}
