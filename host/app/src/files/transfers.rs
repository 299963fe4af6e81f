//! Limits of the files that are held in memory.

use std::{sync::Arc, time::Duration};

use gate::{Capacity, Gate, Permit, Queue, Shares};

use super::{Links, errors};
use crate::{Result, core::ids::ProjectId};

/// Shares of projects in the large results of tools that are held in memory twice at the same time.
pub const LARGE_RESULT_SHARES: Shares = Shares {
    total: 16,
    reserve: 8,
    base: 1,
    cap: 8,
};
/// Maximum time for which a large result waits for a permit.
pub const MAX_LARGE_RESULT_WAIT: Duration = Duration::from_secs(60);
/// Part of all transfers that a project takes whenever they are free.
const TRANSFER_BASE_DIVISOR: u64 = 16;
/// Maximum time for which a transfer waits for a permit. A transfer waits at most half of its own
/// timeout.
const MAX_TRANSFER_WAIT: Duration = Duration::from_secs(30);

/// The operator's settings of files.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Maximum size of a file, in bytes.
    pub size: u64,
    /// Time for which a file is kept, or `None` for no limit.
    pub retention: Option<Duration>,
    /// Maximum number of files that are sent or received at the same time. Each is held in memory.
    pub transfers: usize,
    /// Maximum number of files of one project that are sent or received at the same time.
    pub transfers_per_project: usize,
    /// Timeout of one transfer.
    pub transfer: Duration,
    /// Maximum total size of the files of a project in bytes, or `None` for no limit.
    pub quota: Option<u64>,
}

/// The state of this module in the app.
pub struct Files {
    /// The signer of links.
    pub links: Links,
    /// The operator's settings.
    pub settings: Settings,
    transfers: Gate<ProjectId>,
    large_results: Gate<Arc<str>>,
}

/// A permit to hold a file in memory.
pub type TransferPermit = Permit<ProjectId>;

/// Returns the shares of projects in a number of transfers, of which one project has at most `per_project`.
#[must_use]
pub const fn transfer_shares(transfers: usize, per_project: usize) -> Shares {
    Shares::new(transfers as u64, TRANSFER_BASE_DIVISOR, per_project as u64)
}

impl Files {
    pub(crate) fn new(links: Links, settings: Settings) -> Self {
        let shares = transfer_shares(settings.transfers, settings.transfers_per_project);
        Self {
            links,
            settings,
            transfers: Gate::new(shares),
            large_results: Gate::new(LARGE_RESULT_SHARES),
        }
    }

    /// Waits for a permit to check and store a large result. The wait does not depend on a client.
    /// Fails if no permit becomes free in time.
    pub(crate) async fn acquire_large_result(&self, tenant: &Arc<str>) -> Result<Permit<Arc<str>>> {
        let permit = self
            .large_results
            .acquire(tenant, Queue::time(MAX_LARGE_RESULT_WAIT));
        let permit = permit.await;
        permit.map_err(|busy| errors::busy(Capacity::Transfers, busy))
    }

    /// Takes a permit to hold a file in memory, if the project may have one now.
    pub fn try_acquire_transfer(&self, project: &ProjectId) -> Option<TransferPermit> {
        self.transfers.try_acquire(project).ok()
    }

    /// Waits for a permit to hold a file in memory. Fails with [`errors::PROJECT_BUSY`] or
    /// [`errors::NODE_BUSY`] if no permit becomes free in time.
    pub async fn acquire_transfer(&self, project: &ProjectId) -> Result<TransferPermit> {
        let wait = MAX_TRANSFER_WAIT.min(self.settings.transfer / 2);
        let permit = self.transfers.acquire(project, Queue::time(wait)).await;
        permit.map_err(|busy| errors::busy(Capacity::Transfers, busy))
    }
}
