//! Events that a toolkit can report.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::EgressRule;

/// A kind of event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "S: Deserialize<'de>"))]
pub struct Trigger<S = Value> {
    /// Slug `TOOLKIT_EVENT`, upper case, at most 64 characters, beginning with the toolkit's slug.
    pub slug: String,
    /// Display name, for example `New story`.
    pub name: String,
    /// Description of the event and its data.
    pub description: String,
    /// Delivery of the event: by polling or by webhook.
    pub kind: TriggerKind,
    /// JSON Schema of the user's configuration, an object schema.
    pub config: S,
    /// JSON Schema of one event.
    pub payload: S,
    /// Scopes of the provider that the trigger needs.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Hosts it may reach; all of the toolkit's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Vec<EgressRule>>,
}

/// The delivery of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerKind {
    /// The platform calls `poll` at an interval.
    Poll,
    /// The provider sends a request, which `receive` reads.
    Webhook,
}
