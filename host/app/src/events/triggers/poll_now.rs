//! One poll on request, so that a configuration can be tried out.

use super::{
    polling::{self, Polled, RETRY_DELAY},
    progress::Progress,
    record,
};
use crate::{
    App, Result,
    core::{clock::time_after, ids::TriggerInstanceId},
    events::errors,
    projects::Project,
    work::LEASE_TTL,
};

/// Polls an instance now, as its schedule would, and returns what the poll found. The next poll
/// follows after an interval. Fails if the instance does not exist, is deleted, disabled or not
/// polled, is being polled, or if the poll could not run.
pub async fn poll_now(app: &App, project: &Project, id: &TriggerInstanceId) -> Result<Polled> {
    let instance = record(app, project, id).await?;
    if !instance.body.is_enabled() {
        return Err(errors::instance_disabled(id));
    }
    let progress = Progress::get(app, &project.id, id.as_str()).await?;
    if progress.body.work.due.is_none() {
        return Err(errors::instance_not_polled(id, &instance.body.trigger));
    }
    let claim = app.claims().take(progress, LEASE_TTL).await?;
    let claim = claim.ok_or_else(|| errors::instance_busy(id))?;
    let polled = claim.keep(polling::poll(app, &claim)).await;
    let polled = polled.map_err(|_| errors::instance_changed(id))?;
    if polled.is_err() {
        let batch = claim.batch().await?;
        let due = time_after(batch.now, RETRY_DELAY);
        // If the claim has ended, the instance was deleted, disabled or claimed by another server.
        claim
            .end(batch, |progress| progress.work.due = Some(due))
            .await
            .ok();
    }
    polled
}
