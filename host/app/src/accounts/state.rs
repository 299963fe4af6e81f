//! Status of an account and the events that change it.
//!
//! [`Status::after`] alone decides on a change of status. Every change asks it inside its
//! transaction, so that the decision rests on the status at the time of the write, not at the time
//! of the request.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// Status of a connected account.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE", const_into_str)]
pub enum Status {
    /// Fields are missing that the user must fill in.
    Initializing,
    /// The user must authorize the connection at the provider.
    Initiated,
    /// The account is connected and usable.
    Active,
    /// The project has paused the account.
    Inactive,
    /// The provider refused the connection, or rejects the credential.
    Failed,
    /// The user did not connect the account in time, or its credential cannot be refreshed.
    Expired,
    /// The credential was revoked.
    Revoked,
}

/// Event in the life of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The user was redirected to the provider.
    Redirected,
    /// The provider issued a credential after the user authorized it.
    Authorized,
    /// The user or the project filled in a credential.
    Filled,
    /// The user or the provider refused, or the attempt yielded no credential.
    AttemptFailed,
    /// The user did not connect the account in time.
    TimedOut,
    /// The credential can no longer be refreshed.
    RefreshFailed,
    /// The provider rejects the credential that was filled in.
    CredentialRejected,
    /// The project resumes the account.
    Enabled,
    /// The project pauses the account.
    Disabled,
    /// The project asks the user to connect the account again.
    ReconnectRequested,
    /// The credential was revoked.
    Revoked,
}

impl Status {
    /// Returns true if the account has a credential that is expected to work.
    #[must_use]
    pub fn is_connected(self) -> bool {
        matches!(self, Self::Active | Self::Inactive)
    }

    /// Returns true if the account waits for its user to connect it.
    pub(crate) fn is_pending(self) -> bool {
        matches!(self, Self::Initializing | Self::Initiated)
    }

    /// Returns the status after an event, or `None` if the event cannot happen in this status.
    ///
    /// A connected account stays connected while its user connects it again, whatever the outcome.
    /// An expired pending account may still be connected, because the user may stay at the provider
    /// for longer than the account waits.
    #[must_use]
    pub fn after(self, event: Event) -> Option<Self> {
        use Status::{Active, Expired, Failed, Inactive, Initializing, Initiated, Revoked};
        Some(match (event, self) {
            (Event::Redirected, Initializing | Initiated) => Initiated,
            (Event::Redirected, Active | Inactive) => self,
            (Event::Authorized, Initializing | Initiated | Active | Expired) => Active,
            (Event::Authorized, Inactive) => Inactive,
            (Event::Filled, Inactive) => Inactive,
            (Event::Filled, _) => Active,
            (Event::AttemptFailed, Initializing | Initiated | Expired) => Failed,
            (Event::AttemptFailed, Active | Inactive) => self,
            (Event::TimedOut, Initializing | Initiated) => Expired,
            (Event::RefreshFailed, Active | Inactive) => Expired,
            (Event::CredentialRejected, Active | Inactive) => Failed,
            (Event::Enabled, Active | Inactive) => Active,
            (Event::Disabled, Active | Inactive) => Inactive,
            (Event::ReconnectRequested, Active) => Active,
            (Event::ReconnectRequested, _) => Initiated,
            (Event::Revoked, Active | Inactive | Expired | Revoked) => Revoked,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests;
