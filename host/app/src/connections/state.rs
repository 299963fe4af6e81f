//! Where an account stands, and what may happen to it from there.
//!
//! [`Status::after`] is the only place that decides it. Whoever changes an account asks it inside the change, so that what was
//! true when a request came does not count, but what is true when it is written.

use serde::{Deserialize, Serialize};

/// Where an account stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// Fields are missing that the user is asked for.
    Initializing,
    /// The user has to agree at the application.
    Initiated,
    /// It runs.
    Active,
    /// Paused by the project.
    Inactive,
    /// The application refused to connect it, or refuses its credential.
    Failed,
    /// Nobody connected it in time, or its credential cannot be renewed.
    Expired,
    /// Its credential was taken back.
    Revoked,
}

/// What happens to an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The user was sent to the application.
    Sent,
    /// The application gave a credential after the user agreed there.
    Agreed,
    /// A credential was filled in, by the user or the project.
    Filled,
    /// The user or the application refused, or no credential came of it.
    Refused,
    /// The user did not connect it in time.
    TimedOut,
    /// The credential cannot be renewed any more.
    Lapsed,
    /// The application does not take the credential that was filled in.
    Rejected,
    /// The project resumes it.
    Enabled,
    /// The project pauses it.
    Disabled,
    /// The user is to connect it once more.
    Asked,
    /// The credential was taken back.
    Revoked,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Initializing, Self::Initiated, Self::Active, Self::Inactive, Self::Failed, Self::Expired, Self::Revoked];

    /// The name on the wire.
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

    /// Whether it has a credential that works, as far as is known.
    #[must_use]
    pub fn is_connected(self) -> bool {
        matches!(self, Self::Active | Self::Inactive)
    }

    /// Where it stands after an event; none when that cannot happen to it.
    ///
    /// An account that is connected stays so while its user connects it once more, whatever comes of it. One that waited too long
    /// may still be connected: the user is at the application for longer than the account waits.
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

    /// Every state under every event, a column for each state in the order of [`Status::ALL`]; `-` where it cannot happen.
    #[test]
    fn every_event_leads_from_every_state_where_the_table_says() {
        let table = [
            (Event::Sent, "INITIATED INITIATED ACTIVE INACTIVE - - -"),
            (Event::Agreed, "ACTIVE ACTIVE ACTIVE INACTIVE - ACTIVE -"),
            (Event::Filled, "ACTIVE ACTIVE ACTIVE INACTIVE ACTIVE ACTIVE ACTIVE"),
            (Event::Refused, "FAILED FAILED ACTIVE INACTIVE - FAILED -"),
            (Event::TimedOut, "EXPIRED EXPIRED - - - - -"),
            (Event::Lapsed, "- - EXPIRED EXPIRED - - -"),
            (Event::Rejected, "- - FAILED FAILED - - -"),
            (Event::Enabled, "- - ACTIVE ACTIVE - - -"),
            (Event::Disabled, "- - INACTIVE INACTIVE - - -"),
            (Event::Asked, "INITIATED INITIATED ACTIVE INITIATED INITIATED INITIATED INITIATED"),
            (Event::Revoked, "- - REVOKED REVOKED - REVOKED REVOKED"),
        ];
        for (event, row) in table {
            let found = Status::ALL.map(|status| status.after(event).map_or("-", Status::as_str)).join(" ");
            assert_eq!(found, row, "{event:?}");
        }
    }
}
