//! The origin of events: their ids, and the trigger instance that they come from.

use sandbox::Event;
use sha2::{Digest, Sha256};
use store::Record;
use uuid::Uuid;

use super::Instance;
use crate::{
    App, Result,
    core::ids::TriggerInstanceId,
    events::event::{EventKind, NewEvent, TriggerSource},
};

/// Returns an event that an instance reports now. Fails if the record of the instance is damaged.
pub(super) fn new_event(app: &App, instance: &Record<Instance>, event: &Event) -> Result<NewEvent> {
    Ok(NewEvent {
        id: event_id(&instance.id, &event.id),
        kind: EventKind::TriggerMessage,
        data: event.payload.clone(),
        trigger: Some(trigger_source(app, instance)?),
        account: None,
    })
}

/// Returns the id of an event of an instance: the same for the same event at its source.
fn event_id(instance: &str, event: &str) -> Uuid {
    let hash = Sha256::new()
        .chain_update(instance)
        .chain_update([0])
        .chain_update(event)
        .finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// Returns the origin of an event that an instance reports now. Fails if the record is damaged.
pub(super) fn trigger_source(app: &App, instance: &Record<Instance>) -> Result<TriggerSource> {
    let body = &instance.body;
    Ok(TriggerSource {
        log_id: app.sequence.log(app.clock.now()),
        trigger_slug: body.trigger.clone(),
        trigger_id: TriggerInstanceId::parse(&instance.id)?,
        trigger_uuid: body.uuid,
        account_id: body.account.clone(),
        account_uuid: body.account_uuid,
        auth_config_id: body.auth_config.clone(),
        user_id: body.user_id.clone(),
        action: body.action,
    })
}
