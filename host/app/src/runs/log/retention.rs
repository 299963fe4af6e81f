//! Retention of the log by age.
//!
//! The old pages of a project are read and erased in small batches. Other tasks run between two
//! batches. Details and cassettes have the creation time of their page or execution, and are erased by
//! the same limit.

use std::time::Duration;

use store::{Query, Store, Time};

use super::{CASSETTES_COLLECTION, DETAILS_COLLECTION, PAGES_COLLECTION};
use crate::{
    App, Result,
    core::clock::time_before,
    projects,
    work::{Claim, Claimable, JobClaim, erase_all},
};

/// Maximum number of records that are erased in one batch.
const ERASE_BATCH: u64 = 32;
/// Number of projects that are read in one query.
const READ_BATCH: u64 = 256;
/// Interval at which old records are erased.
pub(crate) const RETENTION_INTERVAL: Duration = Duration::from_secs(3_600);

pub(crate) async fn erase_old(app: &App, claim: &JobClaim) -> Result<()> {
    let Some(age) = app.log.retention else {
        return Ok(());
    };
    erase_in_all_projects(&app.store, claim, time_before(app.clock.now(), age)).await
}

/// Erases what is older than a time in all projects, including deleted ones.
async fn erase_in_all_projects<T: Claimable>(
    store: &Store,
    claim: &Claim<T>,
    cutoff: Time,
) -> Result<()> {
    let mut after = String::new();
    loop {
        let projects = store
            .scan(&projects::PROJECTS_COLLECTION, &after, READ_BATCH)
            .await?;
        let Some(last) = projects.last() else {
            return Ok(());
        };
        after.clone_from(&last.id);
        for project in &projects {
            for collection in [
                &CASSETTES_COLLECTION,
                &DETAILS_COLLECTION,
                &PAGES_COLLECTION,
            ] {
                let old = Query::for_project(&project.id).below("created_at", cutoff.0);
                erase_all(claim, collection, old, ERASE_BATCH).await?;
            }
        }
    }
}

#[cfg(test)]
mod tests;
