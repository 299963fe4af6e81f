//! The end of a project: everything refuses at once, and what the project kept is erased.
//!
//! One batch hides the project, ends its API keys and notes the removal. From then on no request, callback, link or job finds the
//! project, and whatever adds a secret to it depends on a record that is gone: an auth config, a file and a key on the project, an
//! account and a registered client on their auth config, an attempt to connect on its account. So what is under way ends with a
//! refusal, and the order in which the collections are erased leaves nothing behind.
//!
//! The rest is erased in batches of bounded size, by the request that deletes the project. Where that is cut off, the note is
//! still there, and a job goes on. The execution log stays until its retention ends, and with it the data key that opens it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::{Batch, Collection, CommitError, Document, Query};

use super::keys;
use crate::{
    App, Error, INSTALLATION, Result, auth_configs, connections, files, idempotency,
    ids::{OrganisationId, ProjectId},
    jobs::Lease,
};

/// Deleted projects of which something may be left, under the ids of the projects.
pub(crate) static COLLECTION: Collection = Collection { name: "project_removals", fields: &[] };

/// Time from one look for removals that were cut off to the next.
pub(crate) const EVERY: Duration = Duration::from_secs(5);
/// Number of records that are erased in one batch.
pub const RECORDS_PER_BATCH: u64 = 256;

/// What is erased besides files, in this order: each depends on those before it, and cannot be made without them.
static ERASED: [&Collection; 8] = [
    &auth_configs::COLLECTION,
    &connections::CREDENTIALS,
    &connections::COLLECTION,
    &connections::FLOWS,
    &connections::CLIENTS,
    &keys::COLLECTION,
    &idempotency::COLLECTION,
    &files::TOTALS,
];

/// The note that a project was deleted and is being erased.
#[derive(Debug, Serialize, Deserialize)]
struct Removal {}

impl Document for Removal {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// Makes the batches of a job depend on its lease.
type Fence<'a> = &'a (dyn Fn(Batch) -> Batch + Sync);

/// Deletes a project. With `revoke` its accounts are deleted before, and their applications told to forget the tokens, as far as
/// they can be reached.
///
/// # Errors
/// When there is none, or the store refuses.
pub async fn remove(app: &App, organisation: &OrganisationId, id: &ProjectId, revoke: bool) -> Result<()> {
    if revoke {
        connections::remove_all(app, &super::get(app, organisation, id).await?).await?;
    }
    let hidden = keys::end(
        app,
        id.as_str(),
        |_| true,
        || async {
            let project = super::record(app, organisation, id).await?;
            let batch = Batch::at(app.clock.now()).remove(&project);
            Ok((batch.insert(INSTALLATION, id.as_str(), &Removal {}), ()))
        },
    );
    hidden.await?;
    if let Err(cause) = erase(app, id, &|batch| batch).await {
        tracing::warn!(%cause, project = %id, "what is left of a deleted project waits to be erased");
    }
    Ok(())
}

/// Goes on with removals that were cut off: a job, run by one server at a time.
pub(crate) async fn finish(app: &App, lease: &Lease) -> Result<()> {
    let left = app.store.find::<Removal>(&Query::of(INSTALLATION)).await?.records;
    for removal in left {
        if let Err(cause) = erase(app, &ProjectId::parse(&removal.id)?, &|batch| lease.fence(batch)).await {
            tracing::warn!(%cause, project = removal.id, "what is left of a deleted project could not be erased");
        }
    }
    Ok(())
}

/// Erases what is still there of a project that was deleted without a note, as earlier versions did.
pub(crate) async fn erase_left(app: &App, id: &ProjectId, fence: Fence<'_>) -> Result<()> {
    for at in ERASED {
        if app.store.rows(at, &Query::of(id.as_str()).page(0, 0)).await?.total > 0 {
            return erase(app, id, fence).await;
        }
    }
    files::forget(app, id, fence).await
}

/// Erases what a deleted project kept, and then the note of its removal.
async fn erase(app: &App, id: &ProjectId, fence: Fence<'_>) -> Result<()> {
    for at in ERASED {
        erase_all(app, at, id, fence).await?;
    }
    files::forget(app, id, fence).await?;
    let note = app.store.get::<Removal>(INSTALLATION, id.as_str()).await?;
    let Some(note) = note else { return Ok(()) };
    match app.store.commit(fence(Batch::at(app.clock.now()).purge(&note))).await {
        // Another server has come to the end, too.
        Ok(()) | Err(CommitError::Stale) => Ok(()),
        Err(cause) => Err(Error::from(cause)),
    }
}

/// Erases every record that a collection has of a project.
async fn erase_all(app: &App, at: &'static Collection, id: &ProjectId, fence: Fence<'_>) -> Result<()> {
    // Records that were deleted before are hidden, and hold as much as the others.
    for query in [Query::of(id.as_str()), Query::of(id.as_str()).with_deleted()] {
        let query = query.page(0, RECORDS_PER_BATCH);
        loop {
            let rows = app.store.rows(at, &query).await?.rows;
            if rows.is_empty() {
                break;
            }
            let batch = Batch::at(app.clock.now());
            let batch = rows.iter().fold(batch, |batch, row| batch.purge_row(at, row));
            match app.store.commit(fence(batch)).await {
                // A request that was under way has changed one: the next look shows what is left.
                Ok(()) | Err(CommitError::Stale) => tokio::task::yield_now().await,
                Err(cause) => return Err(cause.into()),
            }
        }
    }
    Ok(())
}
