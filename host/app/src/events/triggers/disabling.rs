//! Automatic disabling of trigger instances, which is an event, and its end.

use serde::Serialize;
use serde_json::{Map, Value};
use store::{Batch, Record};

use super::{
    DisabledReason, Instance,
    config::{self, Config},
    source,
};
use crate::{
    App, Error, Result, accounts,
    core::clock::iso,
    events::{
        errors,
        event::{EventKind, NewEvent},
    },
    projects::Project,
    work::{Claim, Claimable},
};

#[derive(Serialize)]
struct Data<'a> {
    id: &'a str,
    connected_account_id: &'a str,
    trigger_name: &'a str,
    user_id: &'a str,
    trigger_config: Map<String, Value>,
    disabled_at: String,
    disabled_reason: String,
}

/// Adds the disabling of an instance and its event to a batch.
pub(super) async fn add(
    app: &App,
    project: &Project,
    batch: Batch,
    mut instance: Record<Instance>,
    config: Config,
    reason: DisabledReason,
) -> Result<Batch> {
    let now = batch.now;
    instance.body.disable(Some(reason), now);
    let body = &instance.body;
    let found = app.catalog.trigger(&body.trigger, &body.version).ok();
    let data = Data {
        id: &instance.id,
        connected_account_id: instance.body.account.as_str(),
        trigger_name: &instance.body.trigger,
        user_id: &instance.body.user_id,
        trigger_config: config::mask(found.as_ref(), config),
        disabled_at: iso(now),
        disabled_reason: reason.name(&app.webhooks.operator_word),
    };
    let data = serde_json::to_vec(&data)
        .map_err(|cause| errors::internal(format!("cannot write an event: {cause}")))?;
    let event = NewEvent {
        trigger: Some(source::trigger_source(app, &instance)?),
        ..NewEvent::new(EventKind::TriggerDisabled, data.into())
    };
    let batch = app.outbox.add(&project.id, batch, &event).await?;
    Ok(batch.update(&instance))
}

/// Enables an instance under a claim on a record of it, if its account is active again. Fails if
/// the account is not active.
pub(super) async fn resume<T: Claimable>(
    app: &App,
    project: &Project,
    claim: &Claim<T>,
    instance: &mut Record<Instance>,
) -> Result<()> {
    let account = accounts::active_account(app, project, &instance.body.account).await?;
    let batch = claim.batch().await?.check(&account);
    instance.body.enable(batch.now);
    claim.commit(batch.update(instance)).await?;
    instance.revision += 1;
    Ok(())
}

/// Returns true if the account of an instance was deleted.
pub(super) fn is_account_gone(cause: &Error) -> bool {
    cause.is(&errors::ACCOUNT_NOT_FOUND) || cause.is(&errors::ACCOUNT_DELETED)
}
