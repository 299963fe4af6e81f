//! Webhook triggers for events that Linear sends.

use toolkit_sdk::mismatch;
use toolkit_sdk::prelude::*;
use toolkit_sdk::webhook::{Secret, Signature};

use crate::api::name;
use crate::hooks::{EventHooks, IssueHooks};

/// Signature of a delivery: HMAC-SHA256 over the body (<https://linear.app/developers/webhooks>).
const WEBHOOK_SIGNATURE: Signature = Signature::header("linear-signature")
    .hint("enter the signing secret of the webhook that sends here");
/// Max age of a delivery, in milliseconds. An older one may be a replay of a captured delivery.
const MAX_DELIVERY_AGE_MS: u64 = 60_000;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Config {
    /// Signing secret of the webhook: linear.app, Settings, API, Webhooks. Leave it out to have a
    /// webhook created, for which the account must be an admin's.
    #[schemars(length(min = 16))]
    signing_secret: Secret,
    /// Only events of these types: `Issue`, `Comment`, `Project`, `Cycle`, `IssueLabel` and so on.
    /// If empty, all types that the webhook sends. Needed to have a webhook created.
    #[serde(default)]
    pub(crate) types: Vec<String>,
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

/// Fires when issues, comments, projects and so on are created, changed or removed. Creates a webhook
/// for the `types` in all public teams; with a `signing_secret`, enter the URL of this trigger at
/// Linear.
#[trigger(webhook, subscription = "EventHooks")]
pub(crate) fn event_received(config: Config, request: Inbound) -> Result<Received<Event>> {
    let (delivery, event) = receive(&config.signing_secret, &request)?;
    let wanted = admits(&config.types, &event.kind) && admits(&config.actions, &event.action);
    Ok(if wanted {
        Received::event(delivery, event)
    } else {
        Received::nothing()
    })
}

/// Returns true if a list has a word or is empty.
fn admits(list: &[String], word: &str) -> bool {
    list.is_empty() || list.iter().any(|listed| listed == word)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Issues {
    /// Signing secret of the webhook: linear.app, Settings, API, Webhooks. Leave it out to have a
    /// webhook created, for which the account must be an admin's.
    #[schemars(length(min = 16))]
    signing_secret: Secret,
    /// Only issues of the team with this key, for example `ENG`.
    pub(crate) team: Option<String>,
}

/// An event of an issue.
#[derive(Serialize, JsonSchema)]
pub(crate) struct IssueEvent {
    issue: ChangedIssue,
    /// User or application that caused the event: `id`, `name`, `type`.
    #[serde(skip_serializing_if = "Value::is_null")]
    actor: Value,
    /// For an update: old values of the members that changed, under Linear's names.
    #[serde(skip_serializing_if = "Value::is_null")]
    updated_from: Value,
}

/// An issue after an event.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all(deserialize = "camelCase"))]
struct ChangedIssue {
    id: String,
    /// Identifier, for example `ENG-123`, for tools.
    identifier: String,
    title: String,
    /// Text, in Markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Name of its state.
    #[serde(default, deserialize_with = "name")]
    state: Option<String>,
    /// `No priority`, `Urgent`, `High`, `Medium` or `Low`.
    #[serde(
        rename(deserialize = "priorityLabel"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    priority: Option<String>,
    /// Name of the assignee.
    #[serde(
        default,
        deserialize_with = "name",
        skip_serializing_if = "Option::is_none"
    )]
    assignee: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    team: Option<Team>,
    #[serde(
        default,
        deserialize_with = "name",
        skip_serializing_if = "Option::is_none"
    )]
    project: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    labels: Vec<Label>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    estimate: Option<f64>,
    /// Due date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due_date: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    updated_at: Option<String>,
    /// URL of the web page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Team {
    /// Key, for example `ENG`.
    key: String,
    name: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Label {
    name: String,
}

/// Fires when an issue is created. Creates a webhook for the team, or for all public teams; with a
/// `signing_secret`, enter one at Linear that sends issues to the URL of this trigger.
#[trigger(webhook, subscription = "IssueHooks")]
pub(crate) fn issue_created(config: Issues, request: Inbound) -> Result<Received<IssueEvent>> {
    issue(&config, &request, "create")
}

/// Fires when an issue is changed: its state, assignee, title and so on. Creates a webhook for the
/// team, or for all public teams; with a `signing_secret`, enter one at Linear that sends issues to the
/// URL of this trigger.
#[trigger(webhook, subscription = "IssueHooks")]
pub(crate) fn issue_updated(config: Issues, request: Inbound) -> Result<Received<IssueEvent>> {
    issue(&config, &request, "update")
}

/// Reports the issue of a delivery with this action. Other deliveries are acknowledged and dropped.
fn issue(config: &Issues, request: &Inbound, action: &str) -> Result<Received<IssueEvent>> {
    let (delivery, event) = receive(&config.signing_secret, request)?;
    if event.kind != "Issue" || event.action != action {
        return Ok(Received::nothing());
    }
    let mut issue = ChangedIssue::deserialize(event.data).map_err(|cause| {
        let reason = mismatch::reason(&cause);
        ToolError::invalid_input(format!("the issue does not have Linear's form: {reason}"))
    })?;
    let team = issue.team.as_ref().map(|team| team.key.as_str());
    if config.team.is_some() && config.team.as_deref() != team {
        return Ok(Received::nothing());
    }
    issue.url = event.url;
    let event = IssueEvent {
        issue,
        actor: event.actor,
        updated_from: event.updated_from,
    };
    Ok(Received::event(delivery, event))
}

/// Verifies a delivery, and returns its id and its event.
fn receive(secret: &Secret, request: &Inbound) -> Result<(String, Event)> {
    WEBHOOK_SIGNATURE.verify(request, secret)?;
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
    Ok((delivery.to_owned(), request.json()?))
}
