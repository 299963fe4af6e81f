//! Retention of events and their deliveries.

use std::time::Duration;

use store::{Collection, Query};

use super::{delivery, outbox, triggers::actions};
use crate::{
    App, Result,
    work::{JobClaim, erase_all},
};

/// Interval at which old events are erased.
pub(crate) const RETENTION_INTERVAL: Duration = Duration::from_secs(600);
/// Number of records that are erased in one batch.
const RECORDS_PER_BATCH: u64 = 256;

/// Erases the events, deliveries and runs of actions that are older than the retention. This is a job that one server
/// at a time runs.
pub(crate) async fn erase_old(app: &App, claim: &JobClaim) -> Result<()> {
    let retention = i64::try_from(app.webhooks.retention.as_millis()).unwrap_or(i64::MAX);
    let oldest = claim.batch().await?.now.0.saturating_sub(retention);
    let collections: [&'static Collection; 3] = [
        &outbox::COLLECTION,
        &delivery::COLLECTION,
        &actions::COLLECTION,
    ];
    for collection in collections {
        let query = Query::all_projects().below("created_at", oldest);
        erase_all(claim, collection, query, RECORDS_PER_BATCH, |_| true).await?;
    }
    Ok(())
}
