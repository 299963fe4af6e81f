//! Retention of files: those of live projects end with `files.keep_days`, and deleted projects keep
//! nothing. Hidden records of what was deleted end with the events that name it.

use std::time::Duration;

use store::{Cursor, Erasure, Query, Row, Store, Time};

use super::remove_project;
use crate::{
    App, COLLECTIONS, Result,
    accounts::auth_configs,
    agents::mcp_servers,
    core::{clock::time_before, ids::ProjectId},
    files, projects,
    work::JobClaim,
};

/// Interval at which old files are erased.
pub(super) const FILE_RETENTION_INTERVAL: Duration = Duration::from_secs(3_600);
/// Interval at which old hidden records are erased. Finding them reads whole tables of PostgreSQL.
pub(super) const HIDDEN_RETENTION_INTERVAL: Duration = Duration::from_secs(86_400);
/// Number of hidden records that are read and erased in one batch.
const HIDDEN_PER_BATCH: u64 = 256;
const PROJECTS_PER_READ: u64 = 64;

/// Erases old files, and all remaining data of deleted projects. Fails if the claim is lost or the
/// store refuses.
pub(super) async fn erase_files(app: &App, claim: &JobClaim) -> Result<()> {
    let mut after = String::new();
    loop {
        let found = app
            .store
            .scan(&projects::PROJECTS_COLLECTION, &after, PROJECTS_PER_READ)
            .await?;
        let Some(last) = found.last() else {
            return Ok(());
        };
        after.clone_from(&last.id);
        for project in &found {
            if project.is_live() {
                files::erase_old(app, &project.id, claim).await?;
            } else {
                let id = ProjectId::parse(&project.id)?;
                remove_project::erase_left(app, &id, claim).await?;
            }
        }
    }
}

/// Erases the hidden records of accounts, auth configs, trigger instances and keys that were deleted
/// longer ago than events are kept. Fails if the claim is lost or the store refuses.
pub(super) async fn erase_hidden(app: &App, claim: &JobClaim) -> Result<()> {
    let now = claim.batch().await?.now;
    erase_hidden_before(claim, time_before(now, app.webhooks.retention)).await
}

async fn erase_hidden_before(claim: &JobClaim, oldest: Time) -> Result<()> {
    let hiding = COLLECTIONS
        .iter()
        .filter(|of| of.erasure == Erasure::HidingProject);
    for collection in hiding.copied() {
        let mut query = Query::all_projects()
            .only_deleted()
            .below("updated_at", oldest.0)
            .page(0, HIDDEN_PER_BATCH)
            .uncounted()
            .without_bodies();
        loop {
            let rows = claim.store().rows(collection, &query).await?.rows;
            let Some(last) = rows.last() else {
                break;
            };
            query = query.after(Cursor::at(last));
            let mut batch = claim.batch().await?;
            for row in &rows {
                if !(*collection == auth_configs::COLLECTION
                    && is_named(claim.store(), row).await?)
                {
                    batch = batch.purge_row(collection, row);
                }
            }
            claim.succeeded(claim.commit(batch).await).await?;
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

/// Returns true if an MCP server names a deleted auth config. The server then offers no account for its
/// toolkit, instead of one of another auth config.
async fn is_named(store: &Store, auth_config: &Row) -> Result<bool> {
    let naming = Query::for_project(&auth_config.project)
        .is("auth_configs", auth_config.id.as_str())
        .page(0, 1)
        .uncounted();
    let naming = store.rows(&mcp_servers::COLLECTION, &naming).await?;
    Ok(!naming.rows.is_empty())
}

#[cfg(test)]
mod tests {
    use store::{Batch, Record};

    use super::*;
    use crate::{accounts, work::claim_job};

    #[tokio::test]
    async fn old_hidden_records_are_erased() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), COLLECTIONS).unwrap();
        let record = |id: &str, deleted_at: Option<i64>, body: &'static str| Record {
            updated_at: Time(deleted_at.unwrap_or(1)),
            deleted_at: deleted_at.map(Time),
            ..Record::inserted("p", id, Time(1), body.into())
        };
        let batch = Batch::at(Time(9))
            .restore(&accounts::COLLECTION, record("live", None, "{}"))
            .restore(&accounts::COLLECTION, record("old", Some(2), "{}"))
            .restore(&accounts::COLLECTION, record("new", Some(5), "{}"))
            .restore(&auth_configs::COLLECTION, record("unnamed", Some(2), "{}"))
            .restore(&auth_configs::COLLECTION, record("named", Some(2), "{}"));
        let server = record("server", None, r#"{"auth_configs":["named"]}"#);
        let batch = batch.restore(&mcp_servers::COLLECTION, server);
        store.commit(batch).await.unwrap();
        let claim = claim_job(&store).await;
        erase_hidden_before(&claim, Time(3)).await.unwrap();
        let all = Query::for_project("p").with_deleted();
        for (collection, left) in [
            (&accounts::COLLECTION, &["live", "new"][..]),
            (&auth_configs::COLLECTION, &["named"]),
        ] {
            let rows = store.rows(collection, &all).await.unwrap().rows;
            let mut ids: Vec<_> = rows.iter().map(|row| row.id.as_str()).collect();
            ids.sort_unstable();
            assert_eq!(ids, left);
        }
    }
}
