//! Automatic disabling of trigger instances, which is an event.

use serde::Serialize;
use serde_json::{Map, Value};
use store::{Batch, Record};
use uuid::Uuid;

use super::{
    DisabledReason, Instance,
    config::{self, Config},
    source,
};
use crate::{
    App, Result,
    catalog::VersionSelector,
    core::clock::iso,
    events::{
        errors,
        event::EventKind,
        outbox::{self, NewEvent},
    },
    projects::Project,
};

/// Data of the event.
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
    let versions = VersionSelector::all(&instance.body.version);
    let found = app.catalog.snapshot();
    let found = found.trigger(&instance.body.trigger, &versions).ok();
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
        id: Uuid::new_v4(),
        kind: EventKind::TriggerDisabled,
        data: data.into(),
        trigger: Some(source::trigger_source(app, &instance)?),
        account: None,
    };
    let batch = outbox::add(app, &project.id, batch, event).await?;
    Ok(batch.update(&instance))
}
