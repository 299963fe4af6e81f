//! Retention of files: those of live projects end with `files.keep_days`, and deleted projects keep
//! nothing. Hidden records of what was deleted end with the events that name it.

use std::time::Duration;

use store::{Cursor, Erasure, Query, Row};

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
/// Number of hidden records that are read and erased at once.
const HIDDEN_PER_BATCH: u64 = 256;
/// Number of projects that are read at once.
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
    let oldest = time_before(claim.batch().await?.now, app.webhooks.retention);
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
            let rows = app.store.rows(collection, &query).await?.rows;
            let Some(last) = rows.last() else {
                break;
            };
            query = query.after(Cursor {
                value: None,
                created_at: last.created_at,
                id: last.id.clone(),
            });
            let mut batch = claim.batch().await?;
            for row in &rows {
                if !(*collection == auth_configs::COLLECTION && is_named(app, row).await?) {
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
async fn is_named(app: &App, auth_config: &Row) -> Result<bool> {
    let naming = Query::for_project(&auth_config.project)
        .is("auth_configs", auth_config.id.as_str())
        .page(0, 1)
        .uncounted();
    Ok(!app
        .store
        .rows(&mcp_servers::COLLECTION, &naming)
        .await?
        .rows
        .is_empty())
}
