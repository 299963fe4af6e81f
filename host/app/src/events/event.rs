//! Kinds of events, and the versions of the messages that carry them.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// Kind of an event. The name on the wire carries the operator word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(const_into_str)]
pub enum EventKind {
    /// A trigger fired.
    #[strum(serialize = "trigger.message")]
    TriggerMessage,
    /// A connected account expired.
    #[strum(serialize = "connected_account.expired")]
    AccountExpired,
    /// The server disabled a trigger.
    #[strum(serialize = "trigger.disabled")]
    TriggerDisabled,
    /// The server disabled a webhook subscription. Only streams and the sink carry it.
    #[strum(serialize = "webhook_subscription.disabled")]
    SubscriptionDisabled,
}

/// Version of the messages that carry events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[strum(const_into_str)]
pub enum MessageVersion {
    /// Flat message with the payload of the trigger.
    V1,
    /// Message whose data mixes the payload with ids.
    V2,
    /// Envelope with metadata and data.
    V3,
}

impl EventKind {
    /// The kinds that webhook subscriptions may name.
    pub const SUBSCRIBABLE_KINDS: [Self; 3] = [
        Self::TriggerMessage,
        Self::AccountExpired,
        Self::TriggerDisabled,
    ];

    /// Returns the name on the wire.
    #[must_use]
    pub fn name(self, operator_word: &str) -> String {
        format!("{operator_word}.{}", self.into_str())
    }

    /// Returns the kind with this name on the wire, if webhook subscriptions may name it.
    pub(crate) fn parse(name: &str, operator_word: &str) -> Option<Self> {
        let base = name.strip_prefix(operator_word)?.strip_prefix('.')?;
        Self::SUBSCRIBABLE_KINDS
            .into_iter()
            .find(|kind| kind.into_str() == base)
    }

    /// Returns a description for developers.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::TriggerMessage => "a trigger instance received an event from its provider",
            Self::AccountExpired => "a connected account expired and must be connected again",
            Self::TriggerDisabled => "the server disabled a trigger instance",
            Self::SubscriptionDisabled => "the server disabled a webhook subscription",
        }
    }

    /// Returns the versions of messages that can carry this kind.
    #[must_use]
    pub fn versions(self) -> &'static [MessageVersion] {
        match self {
            Self::TriggerMessage => &[MessageVersion::V1, MessageVersion::V2, MessageVersion::V3],
            Self::AccountExpired | Self::TriggerDisabled | Self::SubscriptionDisabled => {
                &[MessageVersion::V3]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_names_carry_operator_word() {
        for kind in EventKind::SUBSCRIBABLE_KINDS {
            let name = kind.name("acme");
            assert!(name.starts_with("acme."), "{name}");
            assert_eq!(EventKind::parse(&name, "acme"), Some(kind));
            assert_eq!(EventKind::parse(&name, "service"), None);
        }
        assert_eq!(EventKind::parse("acme", "acme"), None);
    }
}
