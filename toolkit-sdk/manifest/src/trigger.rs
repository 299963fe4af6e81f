//! Events that a toolkit can report.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::EgressRule;

/// A kind of event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "S: Deserialize<'de>"))]
pub struct Trigger<S = Value> {
    /// `TOOLKIT_EVENT`, upper case, at most 64 characters, beginning with the toolkit's slug.
    pub slug: String,
    /// For people, for example `New story`.
    pub name: String,
    /// When it fires and what it brings.
    pub description: String,
    /// Whether the platform asks or the application tells.
    pub kind: TriggerKind,
    /// JSON Schema of what the person configures; an object schema.
    pub config: S,
    /// JSON Schema of one event.
    pub payload: S,
    /// Scopes of the external application that the trigger needs.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Hosts it may reach; absent means all of the toolkit's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress: Option<Vec<EgressRule>>,
}

/// How events arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerKind {
    /// The platform calls `poll` at an interval.
    Poll,
    /// The application sends a request, which `receive` reads.
    Webhook,
}
