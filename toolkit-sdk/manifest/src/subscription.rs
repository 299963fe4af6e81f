//! Subscribing at providers: the declaration of a trigger that can do it, and the calls by which it
//! is done.
//!
//! The platform runs a trigger's functions through the `execute` of the contract, under the slug of
//! the trigger. Components of all releases of the contract therefore can have them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Placeholder of the signing secret in a request of a guest. The platform replaces it.
pub const SECRET_PLACEHOLDER: &str = "toolhost:webhook-secret";
/// Address in case files.
pub const CASE_URL: &str = "https://toolhost.example/webhook";

/// Ability of a trigger to subscribe at its provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subscribing {
    /// Property of the configuration that contains the signing secret. The platform creates the
    /// secret.
    pub secret: String,
    /// JSON pointer to the property of a request's body in which the provider expects the secret.
    pub pointer: String,
    /// Properties of the configuration without which it cannot subscribe.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
}

/// Part of a subscription's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubscriptionAction {
    /// Makes sure that the provider sends events to the address.
    Subscribe,
    /// Makes sure that it does not.
    Unsubscribe,
}

/// Arguments of `execute` under the slug of a trigger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubscriptionCall<C = Value> {
    /// Part of the subscription's life.
    pub action: SubscriptionAction,
    /// Configuration of the trigger, with the name of each secret instead of its value.
    pub config: C,
    /// Address to which the provider sends events.
    pub url: String,
    /// Placeholder of the signing secret.
    pub secret: String,
    /// Result of the last subscribing, if it is known.
    #[serde(default)]
    pub previous: Option<Subscription>,
}

/// A subscription at a provider: the data of a call that subscribes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// Id at the provider.
    pub id: String,
    /// Time from which the provider sends no more events, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<i64>,
    /// Further data that unsubscribing needs.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

impl Subscription {
    /// Creates a subscription that does not expire, with its id at the provider.
    #[must_use]
    pub fn new(id: impl ToString) -> Self {
        Self {
            id: id.to_string(),
            expires_at_ms: None,
            data: Value::Null,
        }
    }

    /// Sets the time from which the provider sends no more events, in milliseconds since 1970.
    #[must_use]
    pub fn expires_at_ms(mut self, time: i64) -> Self {
        self.expires_at_ms = Some(time);
        self
    }

    /// Sets further data that unsubscribing needs.
    #[must_use]
    pub fn data(mut self, data: impl Into<Value>) -> Self {
        self.data = data.into();
        self
    }
}
