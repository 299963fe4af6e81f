//! Attendees, their responses, and notifications.

use serde::Deserializer;
use toolkit_sdk::prelude::*;

use crate::API;
use crate::events::{EVENT_PATH, Event, EventId, is_false};

/// An attendee of an event.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all(deserialize = "camelCase"))]
pub(crate) struct Attendee {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    email: Option<String>,
    #[serde(
        rename(deserialize = "displayName"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    name: Option<String>,
    /// `needsAction`, `accepted`, `declined` or `tentative`.
    #[serde(
        rename(deserialize = "responseStatus"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    response: Option<String>,
    /// Note that the attendee sent with the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
    /// True if attendance is optional.
    #[serde(default, skip_serializing_if = "is_false")]
    optional: bool,
    /// True if the attendee is the owner of this calendar.
    #[serde(
        rename(deserialize = "self"),
        default,
        skip_serializing_if = "is_false"
    )]
    you: bool,
    /// True if the attendee is a room or other resource.
    #[serde(default, skip_serializing_if = "is_false")]
    resource: bool,
}

/// Deserializes a person to the email address.
pub(crate) fn mail<'de, D: Deserializer<'de>>(json: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    struct Person {
        email: Option<String>,
    }
    Ok(Option::<Person>::deserialize(json)?.and_then(|person| person.email))
}

/// Recipients of an email about the change.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Notify {
    /// All attendees.
    #[default]
    All,
    /// Only attendees that do not use Google Calendar.
    ExternalOnly,
    /// No recipients.
    None,
}

impl Notify {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::ExternalOnly => "externalOnly",
            Self::None => "none",
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Respond {
    #[serde(flatten)]
    event: EventId,
    response: Answer,
    /// Note to the organizer.
    comment: Option<String>,
    #[serde(default)]
    notify: Notify,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Accepted,
    Declined,
    Tentative,
}

/// Responds to an invitation for the owner of the calendar: accepts, declines, or tentatively
/// accepts. The id of one occurrence responds for only that one, the id of the series for all.
#[tool(
    idempotent,
    open_world,
    important,
    scopes("https://www.googleapis.com/auth/calendar.events"),
    example = r#"{"event_id": "7cbh8rpc10lrc0ckih9tafss99", "response": "accepted"}"#
)]
pub(crate) fn respond_to_event(input: Respond) -> Result<Event> {
    let event: Event = input.event.fill(API.get(EVENT_PATH)).send()?.json()?;
    let own = event
        .attendees
        .iter()
        .find(|attendee| attendee.you)
        .and_then(|attendee| attendee.email.as_ref());
    let Some(own) = own else {
        let title = event.summary.as_deref().unwrap_or(&event.id);
        return Err(ToolError::conflict(format!(
            "the user is not invited to `{title}` and cannot respond; add attendees with `update_event`"
        )));
    };
    let mut answer = json!({ "email": own, "responseStatus": input.response });
    if let Some(comment) = input.comment {
        answer["comment"] = comment.into();
    }
    // With `attendeesOmitted`, Google leaves all other attendees unchanged.
    let body = json!({ "attendeesOmitted": true, "attendees": [answer] });
    input
        .event
        .fill(API.patch(EVENT_PATH))
        .query("sendUpdates", input.notify.word())
        .json(&body)
        .send()?
        .json()
}
