//! Who sees a calendar.

use toolkit_sdk::prelude::*;

use crate::API;
use crate::events::primary;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Share {
    /// Id of the calendar, as `list_calendars` tells it; `primary` is the person's own.
    #[serde(default = "primary")]
    calendar_id: String,
    /// With whom: the mail address of a person or group, or the name of a domain such as `example.com`.
    #[schemars(length(min = 1))]
    with: String,
    kind: Kind,
    role: Role,
    /// Send the person a mail about it.
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
    /// Everybody of a domain.
    Domain,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Role {
    /// Sees when the calendar is busy, and nothing else.
    SeeFreeBusy,
    /// Sees the events.
    See,
    /// Sees and changes the events.
    Edit,
    /// All that, and decides who sees the calendar.
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

/// Somebody who sees a calendar.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Shared {
    /// Names the rule to `stop_sharing_calendar`.
    #[serde(rename(serialize = "rule_id"))]
    id: String,
    /// `freeBusyReader`, `reader`, `writer` or `owner`.
    role: String,
}

/// Shares a calendar with a person, a group or a domain, or changes what they may do with it.
#[tool(
    idempotent,
    open_world,
    scopes("https://www.googleapis.com/auth/calendar.acls"),
    example = r#"{"with": "ada@example.com", "kind": "user", "role": "see"}"#
)]
pub(crate) fn share_calendar(input: Share) -> Result<Shared> {
    let body = json!({ "role": input.role.word(), "scope": { "type": input.kind, "value": input.with } });
    let request = API.post("/calendars/{calendar}/acl").path("calendar", &input.calendar_id);
    request.query("sendNotifications", input.notify).json(&body).send()?.json()
}
