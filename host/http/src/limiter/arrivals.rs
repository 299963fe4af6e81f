//! Limits on bodies that are arriving: their number, and the memory that they take. Their requests
//! hold no concurrency permit in the meantime.

use std::{net::IpAddr, sync::Arc};

use app::Error;
use gate::{Busy, ByteCapacity, Capacity, KeyedLimit, Reservation, Shares};
use settings::{BODIES_PER_ADDRESS, BODIES_PER_PROJECT, Sandbox};
use tokio::sync::OwnedSemaphorePermit;

use super::counted_as;
use crate::errors;

/// Part of the memory for arriving bodies that a payer takes whenever it is free.
const BODY_BASE_DIVISOR: u64 = 32;
/// Part of this memory that one project has at most.
const OWNER_DIVISOR: u64 = 2;
/// Part of this memory that requests without a key have in addition, and the largest part of it for
/// one address.
const STRANGER_DIVISOR: u64 = 4;

/// Bodies that are arriving.
pub struct Arrivals {
    addresses: KeyedLimit<IpAddr>,
    owners: KeyedLimit<Arc<str>>,
    memory: ByteCapacity<Payer>,
    /// Memory for requests without a key.
    stranger_memory: ByteCapacity<Payer>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Payer {
    Address(IpAddr),
    /// A project, or the organization for requests with its own key.
    Owner(Arc<str>),
}

/// One arriving body, counted until it is dropped.
pub(crate) struct Arrival {
    memory: Reservation<Payer>,
    /// Refusal of a payer that has its maximum.
    own_limit: fn() -> Error,
    _permits: (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>),
}

/// Returns the shares of projects in the memory of arriving bodies, in bytes.
pub const fn body_shares(sandbox: &Sandbox) -> Shares {
    let total = sandbox.buffer_bytes();
    Shares::new(total, BODY_BASE_DIVISOR, total / OWNER_DIVISOR)
}

/// Returns the shares of addresses in the memory of bodies that arrive without a key, in bytes.
pub const fn stranger_body_shares(sandbox: &Sandbox) -> Shares {
    let total = sandbox.buffer_bytes() / STRANGER_DIVISOR;
    Shares::new(total, BODY_BASE_DIVISOR, total / STRANGER_DIVISOR)
}

impl Arrivals {
    pub(super) fn new(sandbox: &Sandbox) -> Self {
        Self {
            addresses: KeyedLimit::new(BODIES_PER_ADDRESS),
            owners: KeyedLimit::new(BODIES_PER_PROJECT),
            memory: ByteCapacity::new(body_shares(sandbox)),
            stranger_memory: ByteCapacity::new(stranger_body_shares(sandbox)),
        }
    }

    /// Counts one more body. A request without a valid key has no owner.
    ///
    /// # Errors
    /// [`errors::ADDRESS_BUSY`] or [`errors::PROJECT_BUSY`] if the address or the owner is at its
    /// limit of arriving bodies.
    pub(crate) fn acquire(
        &self,
        address: IpAddr,
        owner: Option<Arc<str>>,
    ) -> Result<Arrival, Error> {
        let address = counted_as(address);
        let of_address = self.addresses.try_acquire(&address);
        let of_address = of_address.ok_or_else(|| errors::address_busy(Capacity::Bodies))?;
        let of_owner = owner.as_ref().map(|owner| {
            let permit = self.owners.try_acquire(owner);
            permit.ok_or_else(|| errors::project_busy(Capacity::Bodies))
        });
        let permits = (of_address, of_owner.transpose()?);
        let (memory, payer, own_limit): (_, _, fn() -> Error) = match owner {
            Some(owner) => (&self.memory, Payer::Owner(owner), || {
                errors::project_busy(Capacity::Memory)
            }),
            None => {
                let payer = Payer::Address(address);
                (&self.stranger_memory, payer, || {
                    errors::address_busy(Capacity::Memory)
                })
            }
        };
        Ok(Arrival {
            memory: memory.reserve(&payer),
            own_limit,
            _permits: permits,
        })
    }
}

impl Arrival {
    /// Counts bytes that have arrived.
    ///
    /// # Errors
    /// If the memory for arriving bodies, or the payer's share of it, is used up.
    pub(crate) fn grow(&self, bytes: usize) -> Result<(), Error> {
        let grown = self.memory.try_grow(bytes as u64);
        grown.map_err(|busy| match busy {
            Busy::Own => (self.own_limit)(),
            Busy::Others => errors::node_busy(Capacity::Memory),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arriving_bodies_are_bounded_by_number_and_bytes() {
        let sandbox = Sandbox {
            memory_mib: 4,
            ..Sandbox::default()
        };
        let arrivals = Arrivals::new(&sandbox);
        let (one, other) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let owner: Arc<str> = "a".into();
        let acquire = |owner: Option<&Arc<str>>| arrivals.acquire(one, owner.cloned()).unwrap();
        let held: Vec<_> = (0..BODIES_PER_PROJECT)
            .map(|_| acquire(Some(&owner)))
            .collect();
        let refused = arrivals.acquire(other, Some(owner.clone())).err().unwrap();
        assert!(refused.is(&errors::PROJECT_BUSY), "{refused}");
        let strangers: Vec<_> = (BODIES_PER_PROJECT..BODIES_PER_ADDRESS)
            .map(|_| acquire(None))
            .collect();
        let refused = arrivals.acquire(one, None).err().unwrap();
        assert!(refused.is(&errors::ADDRESS_BUSY), "{refused}");
        let most = |shares: Shares| usize::try_from(shares.cap).unwrap();
        held[0].grow(most(body_shares(&sandbox))).unwrap();
        let refused = held[1].grow(1).unwrap_err();
        assert!(refused.is(&errors::PROJECT_BUSY), "{refused}");
        assert!(
            refused.to_string().ends_with("limit of memory"),
            "{refused}"
        );
        let most_of_stranger = most(stranger_body_shares(&sandbox));
        strangers[0].grow(most_of_stranger).unwrap();
        let refused = strangers[0].grow(1).unwrap_err();
        assert!(refused.is(&errors::ADDRESS_BUSY), "{refused}");
        let newcomer = arrivals.acquire(other, Some("b".into())).unwrap();
        let refused = newcomer.grow(300 << 10).unwrap_err();
        assert!(refused.is(&errors::NODE_BUSY), "{refused}");
        newcomer.grow(32 << 10).unwrap();
        drop((held, strangers, newcomer));
        assert_eq!(arrivals.memory.used() + arrivals.stranger_memory.used(), 0);
        assert!(arrivals.acquire(one, Some(owner)).is_ok());
    }
}
