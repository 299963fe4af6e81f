//! Disabling of webhook subscriptions by the server, which is an event. A disabled subscription gets no
//! messages, so only streams carry it.

use serde::Serialize;
use store::{Batch, Record, Time};

use super::{
    errors,
    event::{EventKind, NewEvent},
    subscriptions::{COLLECTION, DisableReason, Disabled, Subscription},
};
use crate::{
    App, Error, Result,
    core::{clock::iso, ids::ProjectId},
};

#[derive(Serialize)]
struct Data<'a> {
    id: &'a str,
    disabled_at: String,
    disabled_reason: &'static str,
}

/// Disables a subscription after an attempt, unless it is disabled or was deleted. Returns false, and
/// changes nothing, if its endpoint is another one than that of the attempt or has recovered.
pub(super) async fn disable(
    app: &App,
    subscription: &Record<Subscription>,
    reason: DisableReason,
    at: Time,
) -> Result<bool> {
    let Record { project, id, .. } = subscription;
    let owner = ProjectId::parse(project)?;
    let data = serde_json::to_vec(&Data {
        id,
        disabled_at: iso(at),
        disabled_reason: reason.into_str(),
    });
    let data = data.map_err(|cause| errors::internal(format!("cannot write an event: {cause}")))?;
    let disabled = app.store.change(&COLLECTION, id, || async {
        let batch = Batch::at(at);
        let found = app.store.get::<Subscription>(project, id).await?;
        let Some(mut found) = found.filter(|found| found.body.disabled.is_none()) else {
            return Ok((batch, true));
        };
        if !found.body.has_endpoint_of(&subscription.body) {
            return Ok((batch, false));
        }
        found.body.disabled = Some(Disabled { at, reason });
        let event = NewEvent::new(EventKind::SubscriptionDisabled, data.clone().into());
        let batch = app.outbox.add(&owner, batch.update(&found), &event).await?;
        Ok::<_, Error>((batch, true))
    });
    let is_disabled = disabled.await?;
    if is_disabled {
        tracing::warn!(
            subscription = id,
            project,
            ?reason,
            "a webhook subscription is disabled"
        );
    }
    Ok(is_disabled)
}
