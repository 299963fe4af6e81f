//! Retention of files: those of live projects end with `files.keep_days`, and deleted projects keep
//! nothing.

use std::time::Duration;

use super::remove_project;
use crate::{App, Result, core::ids::ProjectId, files, projects, work::JobClaim};

/// Interval at which old files are erased.
pub(super) const FILE_RETENTION_INTERVAL: Duration = Duration::from_secs(3_600);
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
