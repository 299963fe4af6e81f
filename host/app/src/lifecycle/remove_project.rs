//! Deletion of projects: every use is refused immediately, and the project's data is erased.
//!
//! One batch hides the project, ends its API keys and records the removal. From then on no request,
//! callback, link or job finds the project. Every operation that adds a secret to it depends on a
//! record that no longer exists: an auth config, a webhook subscription, a webhook endpoint, a file,
//! a consent for an assistant and a key depend on the project, an account and a dynamic client on their auth config, a
//! connection attempt and a trigger instance on their account. Operations that are still running are
//! therefore refused, and the order in which the collections are erased, that of [`COLLECTIONS`], leaves
//! nothing behind. Each collection declares with what its records are erased.
//!
//! The request that deletes the project then erases its data in batches of bounded size, under a
//! claim on the removal record. If the request is interrupted, a queue continues. The execution log
//! stays until its retention ends, together with the data key that opens it.

use gate::Shares;
use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Erasure, Field, Query, Record};

use crate::{
    App, COLLECTIONS, Result, accounts,
    agents::session_files,
    core::{
        AUDIT_LOG_TARGET, INSTALLATION_PROJECT,
        clock::time_after,
        errors,
        ids::{OrganizationId, ProjectId},
    },
    events::triggers,
    files, projects,
    work::{
        Admission, Claim, Claimable, LEASE_TTL, Next, Queue, WorkState, erase_all, retry_delay,
    },
};

/// The collection of removal records, under the ids of deleted projects of which data may be left.
pub(crate) static COLLECTION: Collection = Collection {
    name: "project_removals",
    erasure: Erasure::Other("a removal erases its record at its end"),
    fields: &[Field::due("due")],
};

/// Maximum number of projects whose data a server erases at a time.
const MAX_CONCURRENT_REMOVALS: u64 = 2;
/// Maximum number of records that are erased in one batch.
pub const RECORDS_PER_BATCH: u64 = 256;

/// The record of a deleted project whose data is being erased.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Removal {
    #[serde(flatten)]
    work: WorkState,
}

impl Document for Removal {
    const COLLECTION: &'static Collection = &COLLECTION;
}

impl Claimable for Removal {
    fn work(&mut self) -> &mut WorkState {
        &mut self.work
    }
}

pub(crate) fn queue() -> Queue<Removal, App> {
    Queue {
        name: "project_removals",
        shares: Shares::whole(MAX_CONCURRENT_REMOVALS),
        lease_ttl: LEASE_TTL,
        retry_delay,
        admission: Admission::by_project(),
        work: |app: &App, claim, ()| {
            Box::pin(async move {
                finish(app, &claim).await?;
                Ok(Next::Ended)
            })
        },
    }
}

/// Deletes a project. With `revoke`, its accounts are deleted first, and their providers are asked
/// to revoke the tokens as far as they can be reached. Fails if the project does not exist.
pub async fn remove(
    app: &App,
    organization: &OrganizationId,
    id: &ProjectId,
    revoke: bool,
) -> Result<()> {
    if revoke {
        let project = projects::get(app, organization, id).await?;
        triggers::subscribing::unsubscribe_before_removal(app, &project, None).await;
        accounts::remove_all(app, &project).await?;
    }
    let removed = projects::revoke_keys_where(
        app,
        id.as_str(),
        |_| true,
        || async {
            let now = app.clock.now();
            let project = projects::record(app, organization, id).await?;
            // The queue continues if this request is interrupted.
            let work = WorkState::due_at(time_after(now, LEASE_TTL));
            let batch = Batch::at(now).remove(&project);
            let batch = batch.insert(INSTALLATION_PROJECT, id.as_str(), &Removal { work });
            Ok((batch, ()))
        },
    );
    removed.await?;
    tracing::info!(target: AUDIT_LOG_TARGET, project = id.as_str(), "a project was deleted");
    if let Err(cause) = erase_now(app, id).await {
        tracing::warn!(%cause, project = %id, "the data of a deleted project is not completely erased; a job retries");
    }
    Ok(())
}

/// Erases the data of a deleted project, unless a worker does so.
async fn erase_now(app: &App, id: &ProjectId) -> Result<()> {
    let Some(removal) = record(app, id).await? else {
        return Ok(());
    };
    let Some(claim) = app.claims().take(removal, LEASE_TTL).await? else {
        return Ok(());
    };
    let finished = claim.keep(finish(app, &claim)).await;
    finished.map_err(errors::unavailable)?
}

/// Erases the data of a deleted project, and then its removal record.
async fn finish(app: &App, claim: &Claim<Removal>) -> Result<()> {
    erase(app, &ProjectId::parse(claim.id())?, claim).await?;
    Ok(claim.erase(claim.batch().await?).await?)
}

/// Erases the remaining data of a deleted project whose removal no queue finishes, because an
/// earlier version deleted it.
pub(crate) async fn erase_left<T: Claimable>(
    app: &App,
    id: &ProjectId,
    claim: &Claim<T>,
) -> Result<()> {
    erase(app, id, claim).await?;
    let removal = record(app, id).await?;
    if let Some(removal) = removal.filter(|removal| removal.body.work.due.is_none()) {
        let batch = claim.batch().await?.purge(&removal);
        claim.commit(batch).await?;
    }
    Ok(())
}

async fn record(app: &App, id: &ProjectId) -> Result<Option<Record<Removal>>> {
    Ok(app.store.get(INSTALLATION_PROJECT, id.as_str()).await?)
}

/// Erases the data of a deleted project.
async fn erase<T: Claimable>(app: &App, id: &ProjectId, claim: &Claim<T>) -> Result<()> {
    erase_records(claim, id).await?;
    session_files::erase_project(app, id, claim).await?;
    files::erase_project(app, id, claim).await
}

/// Erases the records of a deleted project that have no blobs.
async fn erase_records<T: Claimable>(claim: &Claim<T>, id: &ProjectId) -> Result<()> {
    let all = Query::for_project(id.as_str());
    let erased = [Erasure::Project, Erasure::HidingProject];
    let erased = COLLECTIONS.iter().filter(|of| erased.contains(&of.erasure));
    for collection in erased {
        erase_all(claim, collection, all.clone(), RECORDS_PER_BATCH).await?;
    }
    // Hidden records hold as much data as the others. No index of PostgreSQL has them, so that
    // finding them reads the whole table.
    let hiding = COLLECTIONS.iter();
    for collection in hiding.filter(|of| of.erasure == Erasure::HidingProject) {
        let hidden = all.clone().only_deleted();
        erase_all(claim, collection, hidden, RECORDS_PER_BATCH).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use store::{Store, Time};

    use super::*;
    use crate::work::claim_job;

    /// Puts a live and a hidden record of two projects into every collection, and erases one project.
    #[tokio::test]
    async fn deleted_project_leaves_no_record_anywhere() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), COLLECTIONS).unwrap();
        let (gone, other) = (ProjectId::random(), ProjectId::random());
        for (collection, project) in COLLECTIONS
            .iter()
            .flat_map(|of| [(of, &gone), (of, &other)])
        {
            let record = |id: &str, deleted_at| {
                let id = format!("{id} of {project}");
                Record {
                    deleted_at,
                    ..Record::inserted(project.as_str(), &id, Time(1), "{}".into())
                }
            };
            let batch = Batch::at(Time(1)).restore(collection, record("live", None));
            let batch = batch.restore(collection, record("hidden", Some(Time(1))));
            store.commit(batch).await.unwrap();
        }
        erase_records(&claim_job(&store).await, &gone)
            .await
            .unwrap();
        let count = async |collection: &'static Collection, project: &ProjectId, hidden: bool| {
            let all = Query::for_project(project.as_str());
            let all = if hidden { all.only_deleted() } else { all };
            store.rows(collection, &all).await.unwrap().rows.len()
        };
        for collection in COLLECTIONS {
            let live = count(collection, &gone, false).await;
            let hidden = count(collection, &gone, true).await;
            let left = match collection.erasure {
                Erasure::Project => (0, 1),
                Erasure::HidingProject => (0, 0),
                // The other records stay, or are erased with their blobs.
                Erasure::ProjectWithBlobs | Erasure::Other(_) => (1, 1),
            };
            assert_eq!((live, hidden), left, "{}", collection.name);
            assert_eq!(
                count(collection, &other, false).await,
                1,
                "{}",
                collection.name
            );
        }
    }
}
