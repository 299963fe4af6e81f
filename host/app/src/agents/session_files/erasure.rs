//! Erasure of files of sessions with their blobs.

use futures::{TryStreamExt, stream};
use store::{Batch, Query, Record};

use super::{CONCURRENT_BLOBS, Owner, Stored, turns};
use crate::{
    App, Error, Result,
    core::ids::{ProjectId, SessionId},
    files::{self, total},
    work::{Claim, Claimable, erase_list},
};

/// Number of records that are read in one query while a project is erased.
const READ_BATCH: u64 = 64;

/// Erases the temporary records of a change that failed, and blobs that were written after their
/// records were erased.
pub(super) async fn discard(app: &App, project: &str, ids: &[String]) -> Result<()> {
    let references: Vec<_> = ids.iter().map(String::as_str).collect();
    let existing = app.store.get_many::<Stored>(project, &references).await?;
    for id in ids.iter().filter(|id| !existing.contains_key(*id)) {
        app.store.blobs().remove(&files::blob(id)).await?;
    }
    let temporary: Vec<_> = existing
        .into_values()
        .filter(|record| record.body.place.is_none())
        .collect();
    erase(app, project, &temporary).await
}

pub(super) async fn erase(app: &App, project: &str, records: &[Record<Stored>]) -> Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    remove_blobs(app, records).await?;
    let erased = app
        .store
        .change(&total::TOTALS_COLLECTION, project, || async {
            let ids: Vec<_> = records.iter().map(|record| record.id.as_str()).collect();
            let current = app.store.get_many::<Stored>(project, &ids).await?;
            // A file whose upload was requested again is kept.
            let unchanged: Vec<_> = records
                .iter()
                .filter_map(|record| {
                    let current = current.get(&record.id)?;
                    let same_blob = current.body.blob == record.body.blob;
                    (same_blob && current.body.expires_at == record.body.expires_at)
                        .then_some(current)
                })
                .cloned()
                .collect();
            Ok::<_, Error>((purge(app, project, &unchanged).await?, ()))
        });
    Ok(erased.await?)
}

async fn remove_blobs(app: &App, records: &[Record<Stored>]) -> Result<()> {
    let keys = records.iter().filter_map(|record| record.body.blob.clone());
    stream::iter(keys.map(Ok::<_, Error>))
        .try_for_each_concurrent(CONCURRENT_BLOBS, async |key| {
            Ok(app.store.blobs().remove(&key).await?)
        })
        .await
}

/// Returns a batch that purges records and reduces the total size of the project's files.
async fn purge(app: &App, project: &str, records: &[Record<Stored>]) -> Result<Batch> {
    let counted = records.iter().filter(|record| record.body.place.is_some());
    let bytes = counted.map(|record| record.body.size).sum();
    let total = total::load(app, project).await?.subtract(bytes);
    let batch = total.batch(app.clock.now());
    Ok(records.iter().fold(batch, Batch::purge))
}

/// Erases the files of a session, and its turns.
pub(in crate::agents) async fn erase_session(
    app: &App,
    project: &str,
    session: &SessionId,
) -> Result<()> {
    let owner = Owner {
        project,
        session: session.as_str(),
    };
    erase(app, project, &owner.records(app).await?).await?;
    // A command may take, extend or end its turn meanwhile.
    let turns = Query::for_project(project).is("id", session.as_str());
    erase_list(app, &turns::COLLECTION, turns, 1).await
}

/// Erases the files of all sessions of a project. Fails if the claim is lost.
pub(crate) async fn erase_project<T: Claimable>(
    app: &App,
    project: &ProjectId,
    claim: &Claim<T>,
) -> Result<()> {
    let project = project.as_str();
    loop {
        let query = Query::for_project(project).page(0, READ_BATCH);
        let records = app.store.find::<Stored>(&query).await?.records;
        if records.is_empty() {
            return Ok(());
        }
        remove_blobs(app, &records).await?;
        let committed = claim.commit(purge(app, project, &records).await?).await;
        // If another writer has changed a record, the next query returns what is left.
        claim.succeeded(committed).await?;
        tokio::task::yield_now().await;
    }
}
