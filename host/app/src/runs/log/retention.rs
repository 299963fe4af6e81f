//! Retention of the log by age and by number of executions.
//!
//! The pages of a project are ordered by age. The oldest are read and erased in small batches until
//! one must stay. Other tasks run between two batches. Details and cassettes have the creation time
//! of their page or execution, and are erased by the same limit.

use std::time::Duration;

use store::{Query, Store, Time};

use super::{
    CASSETTES_COLLECTION, DETAILS_COLLECTION, PAGES_COLLECTION,
    page::{MAX_PAGE_RUNS, Page},
};
use crate::{
    App, Result,
    core::clock::time_before,
    projects,
    work::{Claim, Claimable, JobClaim, erase_all},
};

/// Maximum number of records that are erased in one batch.
const ERASE_BATCH: u64 = 32;
/// Number of projects or pages that are read in one query.
const READ_BATCH: u64 = 256;
/// Interval at which old records are erased.
pub(crate) const RETENTION_INTERVAL: Duration = Duration::from_secs(3_600);

/// The retention settings of the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct Retention {
    /// Executions that ended longer ago than this are erased.
    pub age: Option<Duration>,
    /// The number of newest executions of each project that stay. Up to one page more may stay.
    pub runs: Option<u64>,
}

impl Retention {
    fn keeps_all(&self) -> bool {
        self.age.is_none() && self.runs.is_none()
    }
}

/// Erases old records.
pub(crate) async fn erase_old(app: &App, claim: &JobClaim) -> Result<()> {
    let retention = app.log.retention;
    if retention.keeps_all() {
        return Ok(());
    }
    erase_in_all_projects(&app.store, claim, retention, app.clock.now()).await
}

/// Goes through all projects once, including deleted ones.
async fn erase_in_all_projects<T: Claimable>(
    store: &Store,
    claim: &Claim<T>,
    retention: Retention,
    now: Time,
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
            let cutoff = cutoff(store, &project.id, retention, now).await?;
            for collection in [
                &CASSETTES_COLLECTION,
                &DETAILS_COLLECTION,
                &PAGES_COLLECTION,
            ] {
                let oldest_first = Query::for_project(&project.id);
                erase_all(claim, collection, oldest_first, ERASE_BATCH, |row| {
                    row.created_at < cutoff
                })
                .await?;
            }
        }
    }
}

/// Returns the creation time before which records of a project are erased.
async fn cutoff(store: &Store, project: &str, retention: Retention, now: Time) -> Result<Time> {
    let by_age = retention
        .age
        .map_or(Time(i64::MIN), |age| time_before(now, age));
    let by_number = match retention.runs {
        Some(runs) => oldest_kept(store, project, runs).await?,
        None => None,
    };
    Ok(by_number.map_or(by_age, |time| time.max(by_age)))
}

/// Returns the creation time of the page with the last of the `runs` newest executions, or `None`
/// if the project has no more than these.
async fn oldest_kept(store: &Store, project: &str, runs: u64) -> Result<Option<Time>> {
    let query = Query::for_project(project).descending();
    let pages = store.find::<Page>(&query.clone().page(0, 1)).await?.total;
    if pages.saturating_mul(MAX_PAGE_RUNS as u64) <= runs {
        return Ok(None);
    }
    let (mut found, mut offset) = (0, 0);
    while offset < pages {
        let read = store
            .find::<Page>(&query.clone().page(offset, READ_BATCH))
            .await?
            .records;
        if read.is_empty() {
            break;
        }
        offset += read.len() as u64;
        for page in read {
            found += page.body.runs.len() as u64;
            if found >= runs {
                return Ok(Some(page.created_at));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
