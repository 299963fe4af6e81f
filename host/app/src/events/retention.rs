//! Retention of events, their deliveries and the order of these.

use std::time::Duration;

use store::{Collection, Query};

use super::{
    delivery::{self, DeliveryStatus},
    event, ordering, sink,
    triggers::actions,
};
use crate::{
    App, Result,
    core::clock::time_before,
    work::{JobClaim, erase_all},
};

/// Interval at which old events are erased.
pub(crate) const RETENTION_INTERVAL: Duration = Duration::from_secs(600);
/// Number of records that are erased in one batch.
const RECORDS_PER_BATCH: u64 = 256;

/// Erases the events, deliveries, messages for the sink and runs of actions that are older than the
/// retention, and the lanes that are not used any more. This is a job that one server at a time
/// runs. Fails if the claim is lost or the store refuses.
pub(crate) async fn erase_old(app: &App, claim: &JobClaim) -> Result<()> {
    let oldest = time_before(claim.batch().await?.now, app.webhooks.retention).0;
    // A delivery in progress fails at its next attempt, which lets the one after it go.
    let ended = [DeliveryStatus::Delivered, DeliveryStatus::Failed].map(<&str>::from);
    let ended = Query::all_projects().any_of("status", ended);
    let old = Query::all_projects().below("created_at", oldest);
    let erased: [(&'static Collection, Query); 5] = [
        (&event::COLLECTION, old.clone()),
        (&actions::COLLECTION, old.clone()),
        (&sink::COLLECTION, old),
        (&delivery::COLLECTION, ended.below("created_at", oldest)),
        (
            &ordering::COLLECTION,
            Query::all_projects().below("last_at", oldest),
        ),
    ];
    for (collection, query) in erased {
        erase_all(claim, collection, query, RECORDS_PER_BATCH).await?;
    }
    Ok(())
}
