//! Deletion of sessions, with all that belongs to them.

use std::time::Duration;

use store::{Batch, Cursor, Query};

use super::{COLLECTION, ConfigVersion, USE_INTERVAL, get};
use crate::{
    App, Error, Result,
    agents::{approval, errors, session_files},
    core::{
        clock::time_before,
        ids::{ProjectId, SessionId},
    },
    projects::{self, Project},
    work::JobClaim,
};

/// Interval at which unused sessions are erased.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_secs(86_400);
/// Number of unused sessions per read.
const SESSIONS_PER_READ: u64 = 64;

/// Erases the sessions that were not used for the time that the operator has set, with their files and
/// versions. Uses are noted only while there is such a time, so that nothing is erased before it has been
/// set for that long. This is a job that one server at a time runs.
pub(crate) async fn erase_unused(app: &App, claim: &JobClaim) -> Result<()> {
    let now = claim.batch().await?.now;
    let since = claim.body().await.erases_since;
    let Some(retention) = app.sessions.retention else {
        if since.is_some() {
            claim.edit(|job| job.erases_since = None).await?;
        }
        return Ok(());
    };
    let unused_since = time_before(now, retention + USE_INTERVAL);
    match since {
        Some(since) if since <= unused_since => {}
        Some(_) => return Ok(()),
        None => return Ok(claim.edit(|job| job.erases_since = Some(now)).await?),
    }
    let mut query = Query::all_projects()
        .below("updated_at", unused_since.0)
        .page(0, SESSIONS_PER_READ)
        .uncounted()
        .without_bodies();
    loop {
        let rows = app.store.rows(&COLLECTION, &query).await?.rows;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        query = query.after(Cursor::at(last));
        for row in rows {
            // The claim must still be held.
            claim.batch().await?;
            let Some(project) = projects::find(app, &ProjectId::parse(&row.project)?).await? else {
                continue;
            };
            let id = SessionId::parse(&row.id)?;
            let removed = async {
                // It may have been used since the page was read.
                if get(app, &project, &id).await?.updated_at < unused_since {
                    remove(app, &project, &id).await?;
                }
                Ok::<_, Error>(())
            };
            match removed.await {
                Err(cause) if !cause.is(&errors::SESSION_NOT_FOUND) => return Err(cause),
                _ => {}
            }
        }
    }
}

/// Deletes a session, and erases its files, its answered approvals and the versions of its
/// configuration. Fails if the session does not exist.
pub async fn remove(app: &App, project: &Project, id: &SessionId) -> Result<()> {
    get(app, project, id).await?;
    // Files before the session: an interrupted removal can be repeated.
    session_files::erase_session(app, project.id.as_str(), id).await?;
    let versions = Query::for_project(project.id.as_str()).is("session", id.as_str());
    let removed = app.store.change(&COLLECTION, id.as_str(), || async {
        let session = get(app, project, id).await?;
        let versions = app.store.find::<ConfigVersion>(&versions).await?.records;
        let batch = Batch::at(app.clock.now()).purge(&session);
        Ok::<_, Error>((versions.iter().fold(batch, Batch::purge), ()))
    });
    removed.await?;
    // Files and answers that were written before the session was gone.
    session_files::erase_session(app, project.id.as_str(), id).await?;
    approval::erase_session(app, project.id.as_str(), id).await
}
