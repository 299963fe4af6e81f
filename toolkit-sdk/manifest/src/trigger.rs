//! Events that a toolkit can report.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{EgressRule, Subscribing};

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
    /// Ability to subscribe at the provider. Without it, users enter the address of a webhook there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<Subscribing>,
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

impl TriggerKind {
    /// Returns true if the events arrive as requests of the provider.
    #[must_use]
    pub const fn receives_webhooks(self) -> bool {
        match self {
            Self::Poll => false,
            Self::Webhook => true,
        }
    }
}

/// Returns the names of the properties that a schema marks as `writeOnly`, at any depth. Their
/// values are secrets.
#[must_use]
pub fn write_only_names(schema: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    collect_write_only(schema, &mut names);
    names
}

fn collect_write_only(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            let properties = members.get("properties").and_then(Value::as_object);
            let secret = properties
                .into_iter()
                .flatten()
                .filter(|(_, property)| property["writeOnly"] == true);
            names.extend(secret.map(|(name, _)| name.clone()));
            members
                .values()
                .for_each(|value| collect_write_only(value, names));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|value| collect_write_only(value, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn write_only_names_are_found_anywhere() {
        let schema = json!({
            "properties": {
                "secret": { "type": "string", "writeOnly": true },
                "words": { "type": "array", "items": { "properties": { "word": { "writeOnly": true } } } },
                "inner": { "$ref": "#/$defs/Inner" },
                "open": { "writeOnly": false },
            },
            "$defs": { "Inner": { "properties": { "token": { "writeOnly": true } } } },
        });
        let names: Vec<_> = write_only_names(&schema).into_iter().collect();
        assert_eq!(names, ["secret", "token", "word"]);
    }
}
