//! Deletion of projects: every use is refused at once, and the project's data is erased.
//!
//! One batch hides the project, ends its API keys and records the removal. From then on no request,
//! callback, link or job finds the project. Every operation that adds a secret to it depends on a
//! record that no longer exists: an auth config, a file and a key depend on the project, an account
//! and a dynamic client on their auth config, a connection attempt on its account. Operations that
//! are still running are therefore refused, and the order in which the collections are erased
//! leaves nothing behind.
//!
//! The request that deletes the project then erases its data in batches of bounded size. If the
//! request is interrupted, the removal record is still stored, and a job continues. The execution
//! log stays until its retention ends, together with the data key that opens it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::{Batch, Collection, CommitError, Document, Query};

use crate::{
    App, Error, Result,
    accounts::{self, auth_configs},
    core::{
        INSTALLATION,
        ids::{OrganizationId, ProjectId},
    },
    files,
    projects::{self, idempotency},
    work::Lease,
};

/// The collection of removal records, under the ids of deleted projects of which data may be left.
pub(crate) static COLLECTION: Collection = Collection {
    name: "project_removals",
    fields: &[],
};

/// Interval at which the job looks for interrupted removals.
pub(crate) const INTERVAL: Duration = Duration::from_secs(5);
/// Maximum number of records that are erased in one batch.
pub const RECORDS_PER_BATCH: u64 = 256;

/// The collections that are erased besides files, in this order. Records of each depend on records
/// of those before it, and cannot be created without them.
static ERASED_COLLECTIONS: [&Collection; 8] = [
    &auth_configs::COLLECTION,
    &accounts::CREDENTIALS,
    &accounts::COLLECTION,
    &accounts::CONNECTION_ATTEMPTS,
    &accounts::CLIENTS,
    &projects::API_KEYS,
    &idempotency::COLLECTION,
    &files::TOTALS,
];

/// The record of a deleted project whose data is being erased.
#[derive(Debug, Serialize, Deserialize)]
struct Removal {}

impl Document for Removal {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// A function that makes the batches of a job depend on its lease.
type Fence<'a> = &'a (dyn Fn(Batch) -> Batch + Sync);

/// Deletes a project. With `revoke`, its accounts are deleted first, and their providers are asked
/// to revoke the tokens as far as they can be reached.
///
/// # Errors
/// Returns an error if the project does not exist or the store refuses.
pub async fn remove(
    app: &App,
    organization: &OrganizationId,
    id: &ProjectId,
    revoke: bool,
) -> Result<()> {
    if revoke {
        accounts::remove_all(app, &projects::get(app, organization, id).await?).await?;
    }
    let hidden = projects::revoke_keys_where(
        app,
        id.as_str(),
        |_| true,
        || async {
            let project = projects::record(app, organization, id).await?;
            let batch = Batch::at(app.clock.now()).remove(&project);
            Ok((batch.insert(INSTALLATION, id.as_str(), &Removal {}), ()))
        },
    );
    hidden.await?;
    if let Err(cause) = erase(app, id, &|batch| batch).await {
        tracing::warn!(%cause, project = %id, "the data of a deleted project is not completely erased; a job retries");
    }
    Ok(())
}

/// Continues interrupted removals. This is a job that one server at a time runs.
pub(crate) async fn finish_removals(app: &App, lease: &Lease) -> Result<()> {
    let left = app
        .store
        .find::<Removal>(&Query::for_project(INSTALLATION))
        .await?
        .records;
    for removal in left {
        if let Err(cause) = erase(app, &ProjectId::parse(&removal.id)?, &|batch| {
            lease.fence(batch)
        })
        .await
        {
            tracing::warn!(%cause, project = removal.id, "the data of a deleted project could not be erased; a job retries");
        }
    }
    Ok(())
}

/// Erases the remaining data of a project that was deleted without a removal record, as by earlier
/// versions.
pub(crate) async fn erase_left(app: &App, id: &ProjectId, fence: Fence<'_>) -> Result<()> {
    for collection in ERASED_COLLECTIONS {
        if app
            .store
            .rows(collection, &Query::for_project(id.as_str()).page(0, 0))
            .await?
            .total
            > 0
        {
            return erase(app, id, fence).await;
        }
    }
    files::erase_project(app, id, fence).await
}

/// Erases the data of a deleted project, and then its removal record.
async fn erase(app: &App, id: &ProjectId, fence: Fence<'_>) -> Result<()> {
    for collection in ERASED_COLLECTIONS {
        erase_all(app, collection, id, fence).await?;
    }
    files::erase_project(app, id, fence).await?;
    let removal = app.store.get::<Removal>(INSTALLATION, id.as_str()).await?;
    let Some(removal) = removal else {
        return Ok(());
    };
    match app
        .store
        .commit(fence(Batch::at(app.clock.now()).purge(&removal)))
        .await
    {
        // Another server has finished the same removal.
        Ok(()) | Err(CommitError::Stale) => Ok(()),
        Err(cause) => Err(Error::from(cause)),
    }
}

/// Erases every record of a project in one collection.
async fn erase_all(
    app: &App,
    collection: &'static Collection,
    id: &ProjectId,
    fence: Fence<'_>,
) -> Result<()> {
    // Deleted records are hidden and hold as much data as the others.
    for query in [
        Query::for_project(id.as_str()),
        Query::for_project(id.as_str()).with_deleted(),
    ] {
        let query = query.page(0, RECORDS_PER_BATCH);
        loop {
            let rows = app.store.rows(collection, &query).await?.rows;
            if rows.is_empty() {
                break;
            }
            let batch = Batch::at(app.clock.now());
            let batch = rows
                .iter()
                .fold(batch, |batch, row| batch.purge_row(collection, row));
            match app.store.commit(fence(batch)).await {
                // A running request has changed one of the records. The next query returns what is
                // left.
                Ok(()) | Err(CommitError::Stale) => tokio::task::yield_now().await,
                Err(cause) => return Err(cause.into()),
            }
        }
    }
    Ok(())
}
