//! Webhook trigger for events that Linear sends.

use toolkit_sdk::prelude::*;
use toolkit_sdk::webhook::{Secret, Signature};

/// Signature of a delivery: HMAC-SHA256 over the body (<https://linear.app/developers/webhooks>).
const SIGNATURE: Signature = Signature::header("linear-signature")
    .hint("enter the signing secret of the webhook that sends here");
/// Max age of a delivery, in milliseconds. An older one may be a replay of a captured delivery.
const MAX_DELIVERY_AGE_MS: u64 = 60_000;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Config {
    /// Signing secret of the webhook: linear.app, Settings, API, Webhooks.
    #[schemars(length(min = 16))]
    signing_secret: Secret,
    /// Only events of these types: `Issue`, `Comment`, `Project`, `Cycle`, `IssueLabel` and so on.
    /// If empty, all types that the webhook sends.
    #[serde(default)]
    types: Vec<String>,
    /// Only these actions: `create`, `update`, `remove`. If empty, all actions.
    #[serde(default)]
    actions: Vec<String>,
}

/// An event.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all(deserialize = "camelCase"))]
pub(crate) struct Event {
    /// Action: `create`, `update`, `remove` and so on.
    action: String,
    /// Type of the object: `Issue`, `Comment`, `Project` and so on.
    #[serde(rename = "type")]
    kind: String,
    /// Time of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
    /// User or application that caused the event: `id`, `name`, `type`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    actor: Value,
    /// Object after the event, or before it was removed.
    #[serde(default)]
    data: Value,
    /// For an update: old values of the members that changed.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    updated_from: Value,
    /// URL of the object's web page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

/// Time at which a delivery was sent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    /// Time in milliseconds since 1970.
    webhook_timestamp: u64,
}

/// Fires when issues, comments, projects and so on are created, changed or removed. Needs a webhook
/// at Linear with the URL of this trigger, and its signing secret here.
#[trigger(webhook)]
pub(crate) fn event_received(config: Config, request: Inbound) -> Result<Received<Event>> {
    SIGNATURE.verify(&request, &config.signing_secret)?;
    let Sent { webhook_timestamp } = request.json()?;
    if clock::now().abs_diff(webhook_timestamp) > MAX_DELIVERY_AGE_MS {
        return Err(ToolError::unauthorized(
            "the delivery was sent more than a minute ago; Linear sends each at once",
        ));
    }
    let Some(delivery) = request.header("linear-delivery") else {
        return Err(ToolError::invalid_input(
            "the delivery has no `linear-delivery`; Linear sends one with each",
        ));
    };
    let event: Event = request.json()?;
    let wanted = |list: &[String], own: &String| list.is_empty() || list.contains(own);
    let wanted = wanted(&config.types, &event.kind) && wanted(&config.actions, &event.action);
    Ok(if wanted {
        Received::event(delivery, event)
    } else {
        Received::nothing()
    })
}
