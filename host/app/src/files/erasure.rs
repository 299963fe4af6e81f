//! Erasure of the files of a project.

use store::{Batch, Query, Record, Time};

use super::{File, blob, total};
use crate::{
    App, Result,
    core::{clock::time_before, ids::ProjectId},
    work::{Claim, Claimable},
};

/// Number of records that are read in one query.
const READ_BATCH: u64 = 64;

/// Erases all files of a project. Fails if the claim is lost.
pub(crate) async fn erase_project<T: Claimable>(
    app: &App,
    project: &ProjectId,
    claim: &Claim<T>,
) -> Result<()> {
    erase(app, project.as_str(), Time(i64::MAX), claim).await
}

/// Erases the files of a project that have reached the end of their retention. Fails if the claim
/// is lost.
pub(crate) async fn erase_old<T: Claimable>(
    app: &App,
    project: &str,
    claim: &Claim<T>,
) -> Result<()> {
    let Some(retention) = app.files.settings.retention else {
        return Ok(());
    };
    let cutoff = time_before(app.clock.now(), retention);
    erase(app, project, cutoff, claim).await
}

/// Erases the files of a project that were created before a time, oldest first.
async fn erase<T: Claimable>(
    app: &App,
    project: &str,
    cutoff: Time,
    claim: &Claim<T>,
) -> Result<()> {
    let query = Query::for_project(project).page(0, READ_BATCH);
    loop {
        let oldest = app.store.find::<File>(&query).await?.records.into_iter();
        let old: Vec<_> = oldest.filter(|record| record.created_at < cutoff).collect();
        if old.is_empty() {
            return Ok(());
        }
        remove_blobs(app, &old).await?;
        let bytes = old.iter().map(|record| record.body.size).sum();
        let total = total::load(app, project).await?.subtract(bytes);
        let batch = old.iter().fold(total.batch(app.clock.now()), Batch::purge);
        // If another writer has changed a record, or created the total, the next query returns what is
        // left.
        claim.succeeded(claim.commit(batch).await).await?;
        tokio::task::yield_now().await;
        // An upload that read its record before the commit may have written the bytes again.
        remove_blobs(app, &old).await?;
    }
}

async fn remove_blobs(app: &App, files: &[Record<File>]) -> Result<()> {
    for file in files {
        app.store.blobs().remove(&blob(&file.id)).await?;
    }
    Ok(())
}
