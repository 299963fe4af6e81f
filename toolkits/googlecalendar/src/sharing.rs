//! Sharing of calendars.

use toolkit_sdk::prelude::*;

use crate::API;
use crate::events::primary;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Share {
    /// Id of the calendar, from `list_calendars`; `primary` is the main calendar of the account.
    #[serde(default = "primary")]
    calendar_id: String,
    /// Email address of a user or group, or name of a domain such as `example.com`.
    #[schemars(length(min = 1))]
    grantee: String,
    kind: Kind,
    role: Role,
    /// Sends an email about it.
    #[serde(default = "yes")]
    notify: bool,
}

fn yes() -> bool {
    true
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Kind {
    User,
    Group,
    /// All users of a domain.
    Domain,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Role {
    /// Sees the busy times of the calendar, and nothing else.
    SeeFreeBusy,
    /// Sees the events.
    See,
    /// Sees and changes the events.
    Edit,
    /// Sees and changes the events, and manages the sharing of the calendar.
    Own,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Self::SeeFreeBusy => "freeBusyReader",
            Self::See => "reader",
            Self::Edit => "writer",
            Self::Own => "owner",
        }
    }
}

/// A sharing rule of a calendar.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Shared {
    /// Id of the rule, for `stop_sharing_calendar`.
    #[serde(rename(serialize = "rule_id"))]
    id: String,
    /// `freeBusyReader`, `reader`, `writer` or `owner`.
    role: String,
}

/// Shares a calendar with a user, a group or a domain, or changes their role.
#[tool(
    idempotent,
    open_world,
    scopes("https://www.googleapis.com/auth/calendar.acls"),
    example = r#"{"grantee": "ada@example.com", "kind": "user", "role": "see"}"#
)]
pub(crate) fn share_calendar(input: Share) -> Result<Shared> {
    let body = json!({ "role": input.role.word(), "scope": { "type": input.kind, "value": input.grantee } });
    let request = API
        .post("/calendars/{calendar}/acl")
        .path("calendar", &input.calendar_id);
    request
        .query("sendNotifications", input.notify)
        .json(&body)
        .send()?
        .json()
}
