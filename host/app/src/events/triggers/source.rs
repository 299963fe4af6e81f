//! The origin of events: their ids, and the trigger instance that they come from.

use sha2::{Digest, Sha256};
use store::Record;
use uuid::Uuid;

use super::Instance;
use crate::{App, Result, core::ids::TriggerInstanceId, events::outbox::TriggerSource};

/// Returns the id of an event of an instance: the same for the same event at its source.
pub(super) fn event_id(instance: &str, event: &str) -> Uuid {
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
    let Instance {
        trigger,
        user_id,
        account,
        account_uuid,
        auth_config,
        uuid,
        action,
        ..
    } = &instance.body;
    Ok(TriggerSource {
        log_id: app.sequence.log(app.clock.now()),
        trigger_slug: trigger.clone(),
        trigger_id: TriggerInstanceId::parse(&instance.id)?,
        trigger_uuid: *uuid,
        account_id: account.clone(),
        account_uuid: *account_uuid,
        auth_config_id: auth_config.clone(),
        user_id: user_id.clone(),
        action: *action,
    })
}
