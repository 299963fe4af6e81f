//! Test events, which show whether the endpoint of a subscription accepts messages.

use bytes::Bytes;
use store::Batch;
use uuid::Uuid;

use super::{
    delivery::{COLLECTION, DeliveryView},
    event::{EventKind, NewEvent, TriggerSource},
    subscriptions,
};
use crate::{
    App, Error, Result,
    core::ids::{AccountId, AuthConfigId, DeliveryId, SubscriptionId, TriggerInstanceId},
    projects::Project,
};

/// Default payload of a test event.
const TEST_PAYLOAD: &[u8] = br#"{"test":true}"#;

/// Sends an event to a subscription that no trigger caused, to test its endpoint. Returns the
/// delivery. Fails if the subscription does not exist, the event exceeds the quota of the project,
/// or the payload is not JSON.
pub async fn send_test_event(
    app: &App,
    project: &Project,
    subscription: &SubscriptionId,
    payload: Option<Bytes>,
) -> Result<DeliveryView> {
    let payload = payload.unwrap_or(Bytes::from_static(TEST_PAYLOAD));
    let event = test_event(app, payload);
    let to = subscription.as_str();
    let sent = app.store.change(&COLLECTION, to, || async {
        let record = subscriptions::record(app, project, subscription).await?;
        let batch = Batch::at(app.clock.now()).check(&record);
        let added = app.outbox.add_for(&project.id, batch, &event, &record);
        Ok::<_, Error>((added.await?, ()))
    });
    sent.await?;
    let id = DeliveryId::for_event(event.id, subscription);
    DeliveryView::read(app, project, subscription, &id).await
}

/// Creates an event of a trigger that does not exist.
fn test_event(app: &App, data: Bytes) -> NewEvent {
    let source = TriggerSource {
        log_id: app.sequence.log(app.clock.now()),
        trigger_slug: "TEST_EVENT".to_owned(),
        trigger_id: TriggerInstanceId::random(),
        trigger_uuid: Uuid::new_v4(),
        account_id: AccountId::random(),
        account_uuid: Uuid::new_v4(),
        auth_config_id: AuthConfigId::random(),
        user_id: "test".to_owned(),
        action: None,
    };
    NewEvent {
        trigger: Some(source),
        ..NewEvent::new(EventKind::TriggerMessage, data)
    }
}
