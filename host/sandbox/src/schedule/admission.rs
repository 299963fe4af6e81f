//! Admits calls to the sandbox.
//!
//! A call needs a permit before any part of it starts. Tenants share the permits of the node
//! ([`gate::Shares`]). If a tenant may not have one now, its call waits for a limited time in a
//! limited queue.

use std::sync::Arc;

use gate::{Capacity, Gate, Queue, Shares};
use tokio::sync::Semaphore;

use crate::{Refusal, Settings};

/// Part of all permits that a tenant takes whenever they are free.
const BASE_DIVISOR: u64 = 32;

/// Issues permits to calls.
pub(crate) struct CallAdmission {
    gate: Gate<Arc<str>, Arc<Semaphore>>,
    queue: Queue,
}

/// Right to run one call. It is released when dropped.
pub(crate) struct Permit(gate::Permit<Arc<str>, Arc<Semaphore>>);

impl Permit {
    /// Returns the concurrency limit for the tenant's long-running computations.
    pub(crate) fn cpu_permits(&self) -> &Arc<Semaphore> {
        self.0.state()
    }
}

impl CallAdmission {
    pub(crate) fn new(settings: &Settings) -> Self {
        let busy_per_tenant = settings.busy_per_tenant.max(1);
        Self {
            gate: Gate::with_state(
                call_shares(settings.live, settings.live_per_tenant),
                move || Arc::new(Semaphore::new(busy_per_tenant)),
            ),
            queue: Queue {
                all: settings.queue,
                per_key: settings.queue_per_tenant,
                wait: settings.queue_wait,
            },
        }
    }

    /// Returns the number of running calls and the number of waiting calls.
    pub(crate) fn counts(&self) -> (usize, usize) {
        self.gate.counts()
    }

    /// Returns a permit for a call of `tenant`, immediately or within the maximum wait time.
    pub(crate) async fn acquire(&self, tenant: &Arc<str>) -> Result<Permit, Refusal> {
        self.gate
            .acquire(tenant, self.queue)
            .await
            .map(Permit)
            .map_err(|busy| Refusal::busy(Capacity::Calls, busy))
    }
}

/// Returns the shares of tenants in a number of live calls, of which one tenant has at most `per_tenant`.
#[must_use]
pub const fn call_shares(live: usize, per_tenant: usize) -> Shares {
    Shares::new(live as u64, BASE_DIVISOR, per_tenant as u64)
}
