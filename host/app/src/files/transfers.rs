//! Limits of the files that are held in memory.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit},
    time::{Instant, timeout_at},
};

use super::{Links, errors};
use crate::{
    Result,
    core::{ids::ProjectId, keyed_limit::KeyedLimit},
};

/// Maximum number of large results of tools that are held in memory twice at the same time.
const MAX_LARGE_RESULTS: usize = 16;
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
    transfers: Arc<Semaphore>,
    transfers_of_projects: KeyedLimit<ProjectId>,
    large_results: Semaphore,
}

/// A permit to hold a file in memory. It counts against the limit of all transfers and against that
/// of its project.
#[derive(Debug)]
pub struct TransferPermit {
    _all: OwnedSemaphorePermit,
    _of_project: OwnedSemaphorePermit,
}

impl Files {
    pub(crate) fn new(links: Links, settings: Settings) -> Self {
        Self {
            links,
            settings,
            transfers: Arc::new(Semaphore::new(settings.transfers)),
            transfers_of_projects: KeyedLimit::new(settings.transfers_per_project),
            large_results: Semaphore::new(MAX_LARGE_RESULTS),
        }
    }

    /// Waits for a permit to check and store a large result. The wait does not depend on a client.
    pub(crate) async fn acquire_large_result(&self) -> Option<SemaphorePermit<'_>> {
        self.large_results.acquire().await.ok()
    }

    /// Takes a permit to hold a file in memory, if one is free.
    pub fn try_acquire_transfer(&self, project: &ProjectId) -> Option<TransferPermit> {
        Some(TransferPermit {
            _of_project: self.transfers_of_projects.try_acquire(project)?,
            _all: self.transfers.clone().try_acquire_owned().ok()?,
        })
    }

    /// Waits for a permit to hold a file in memory. The permit of the project is taken first, so
    /// that a project at its limit does not occupy one of the shared permits while it waits. Fails
    /// with [`errors::PROJECT_BUSY`] or [`errors::NODE_BUSY`] if no permit becomes free in time.
    pub async fn acquire_transfer(&self, project: &ProjectId) -> Result<TransferPermit> {
        let end = Instant::now() + MAX_TRANSFER_WAIT.min(self.settings.transfer / 2);
        let of_project = timeout_at(end, self.transfers_of_projects.acquire(project)).await;
        let of_project = of_project.ok().flatten().ok_or_else(errors::project_busy)?;
        let all = timeout_at(end, self.transfers.clone().acquire_owned()).await;
        let all = all.ok().and_then(std::result::Result::ok);
        let all = all.ok_or_else(errors::node_busy)?;
        Ok(TransferPermit {
            _all: all,
            _of_project: of_project,
        })
    }
}
