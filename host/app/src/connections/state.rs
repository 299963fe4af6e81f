//! Status of an account and the events that change it.
//!
//! [`Status::after`] is the only place that decides on a change of status. Every change asks it
//! inside its transaction, so that the decision rests on the status at the time of the write, not
//! at the time of the request.

use serde::{Deserialize, Serialize};

/// Status of a connected account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
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
    Sent,
    /// The provider issued a credential after the user authorized it.
    Agreed,
    /// The user or the project filled in a credential.
    Filled,
    /// The user or the provider refused, or the attempt yielded no credential.
    Refused,
    /// The user did not connect the account in time.
    TimedOut,
    /// The credential can no longer be refreshed.
    Lapsed,
    /// The provider rejects the credential that was filled in.
    Rejected,
    /// The project resumes the account.
    Enabled,
    /// The project pauses the account.
    Disabled,
    /// The project asks the user to connect the account again.
    Asked,
    /// The credential was revoked.
    Revoked,
}

impl Status {
    /// All statuses.
    pub const ALL: [Self; 7] = [
        Self::Initializing,
        Self::Initiated,
        Self::Active,
        Self::Inactive,
        Self::Failed,
        Self::Expired,
        Self::Revoked,
    ];

    /// Returns the name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initializing => "INITIALIZING",
            Self::Initiated => "INITIATED",
            Self::Active => "ACTIVE",
            Self::Inactive => "INACTIVE",
            Self::Failed => "FAILED",
            Self::Expired => "EXPIRED",
            Self::Revoked => "REVOKED",
        }
    }

    /// Returns true if the account has a credential that is believed to work.
    #[must_use]
    pub fn is_connected(self) -> bool {
        matches!(self, Self::Active | Self::Inactive)
    }

    /// Returns the status after an event, or none if the event cannot happen in this status.
    ///
    /// A connected account stays connected while its user connects it again, whatever the outcome.
    /// An expired pending account may still be connected, because the user may stay at the provider
    /// for longer than the account waits.
    #[must_use]
    pub fn after(self, event: Event) -> Option<Self> {
        use Status::{Active, Expired, Failed, Inactive, Initializing, Initiated, Revoked};
        Some(match (event, self) {
            (Event::Sent, Initializing | Initiated) => Initiated,
            (Event::Sent, Active | Inactive) => self,
            (Event::Agreed, Initializing | Initiated | Active | Expired) => Active,
            (Event::Agreed, Inactive) => Inactive,
            (Event::Filled, Inactive) => Inactive,
            (Event::Filled, _) => Active,
            (Event::Refused, Initializing | Initiated | Expired) => Failed,
            (Event::Refused, Active | Inactive) => self,
            (Event::TimedOut, Initializing | Initiated) => Expired,
            (Event::Lapsed, Active | Inactive) => Expired,
            (Event::Rejected, Active | Inactive) => Failed,
            (Event::Enabled, Active | Inactive) => Active,
            (Event::Disabled, Active | Inactive) => Inactive,
            (Event::Asked, Active) => Active,
            (Event::Asked, _) => Initiated,
            (Event::Revoked, Active | Inactive | Expired | Revoked) => Revoked,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every event in every status. The columns have the order of [`Status::ALL`]; `-` marks an
    /// event that cannot happen.
    #[test]
    fn status_changes_follow_the_table() {
        let table = [
            (Event::Sent, "INITIATED INITIATED ACTIVE INACTIVE - - -"),
            (Event::Agreed, "ACTIVE ACTIVE ACTIVE INACTIVE - ACTIVE -"),
            (
                Event::Filled,
                "ACTIVE ACTIVE ACTIVE INACTIVE ACTIVE ACTIVE ACTIVE",
            ),
            (Event::Refused, "FAILED FAILED ACTIVE INACTIVE - FAILED -"),
            (Event::TimedOut, "EXPIRED EXPIRED - - - - -"),
            (Event::Lapsed, "- - EXPIRED EXPIRED - - -"),
            (Event::Rejected, "- - FAILED FAILED - - -"),
            (Event::Enabled, "- - ACTIVE ACTIVE - - -"),
            (Event::Disabled, "- - INACTIVE INACTIVE - - -"),
            (
                Event::Asked,
                "INITIATED INITIATED ACTIVE INITIATED INITIATED INITIATED INITIATED",
            ),
            (Event::Revoked, "- - REVOKED REVOKED - REVOKED REVOKED"),
        ];
        for (event, row) in table {
            let found = Status::ALL
                .map(|status| status.after(event).map_or("-", Status::as_str))
                .join(" ");
            assert_eq!(found, row, "{event:?}");
        }
    }
}
