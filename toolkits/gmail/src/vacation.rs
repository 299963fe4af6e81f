//! Automatic reply during an absence.

use jiff::Timestamp;
use toolkit_sdk::prelude::*;

use crate::API;
use crate::message::is_false;
use crate::text::{to_html, to_markdown};

const VACATION_PATH: &str = "/settings/vacation";

/// Settings of the automatic reply in Google's format.
#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct VacationSettings {
    enable_auto_reply: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_body_plain_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_body_html: Option<String>,
    restrict_to_contacts: bool,
    restrict_to_domain: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time: Option<String>,
}

/// Settings of the automatic reply.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Reply {
    /// True if the reply is turned on.
    enabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    /// Text in Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// Start time, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_time: Option<String>,
    /// End time, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time: Option<String>,
    /// True if only contacts get the reply.
    #[serde(skip_serializing_if = "is_false")]
    contacts_only: bool,
    /// True if only members of the same organization get the reply.
    #[serde(skip_serializing_if = "is_false")]
    domain_only: bool,
}

impl From<VacationSettings> for Reply {
    fn from(kept: VacationSettings) -> Self {
        let html = kept
            .response_body_html
            .map(|html| to_markdown(&html))
            .filter(|text| !text.is_empty());
        Self {
            enabled: kept.enable_auto_reply,
            subject: kept.response_subject,
            body: html.or(kept.response_body_plain_text),
            start_time: rfc_3339(kept.start_time),
            end_time: rfc_3339(kept.end_time),
            contacts_only: kept.restrict_to_contacts,
            domain_only: kept.restrict_to_domain,
        }
    }
}

/// Converts milliseconds since 1970 to RFC 3339.
fn rfc_3339(milliseconds: Option<String>) -> Option<String> {
    let moment = Timestamp::from_millisecond(milliseconds?.parse().ok()?).ok()?;
    Some(moment.to_string())
}

/// Gets the automatic reply for absences: its state, text and period.
#[tool(
    read_only,
    idempotent,
    scopes("https://www.googleapis.com/auth/gmail.readonly"),
    example = "{}"
)]
pub(crate) fn get_vacation_reply() -> Result<Reply> {
    Ok(API
        .get(VACATION_PATH)
        .send()?
        .json::<VacationSettings>()?
        .into())
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Change {
    /// Turns the reply on or off.
    enabled: bool,
    subject: Option<String>,
    /// Text of the reply, in Markdown.
    body: Option<String>,
    /// Start time: `2026-03-01T00:00:00+01:00`.
    start_time: Option<String>,
    /// End time, written like `start_time`.
    end_time: Option<String>,
    /// Replies only to contacts.
    contacts_only: Option<bool>,
    /// Replies only to members of the same organization.
    domain_only: Option<bool>,
}

/// Turns the automatic reply on or off, and sets its text and period. Fields that are left out stay
/// unchanged.
#[tool(
    destructive,
    idempotent,
    scopes("https://www.googleapis.com/auth/gmail.settings.basic"),
    example = r#"{"enabled": true, "subject": "Away", "body": "I am back on **Monday**.", "end_time": "2026-03-09T00:00:00+01:00"}"#
)]
pub(crate) fn set_vacation_reply(input: Change) -> Result<Reply> {
    let start = input
        .start_time
        .as_ref()
        .map(|text| milliseconds("start_time", text))
        .transpose()?;
    let end = input
        .end_time
        .as_ref()
        .map(|text| milliseconds("end_time", text))
        .transpose()?;
    let mut kept: VacationSettings = API.get(VACATION_PATH).send()?.json()?;
    kept.enable_auto_reply = input.enabled;
    kept.response_subject = input.subject.or(kept.response_subject);
    if let Some(body) = input.body {
        kept.response_body_html = Some(to_html(&body));
        kept.response_body_plain_text = Some(body);
    }
    kept.restrict_to_contacts = input.contacts_only.unwrap_or(kept.restrict_to_contacts);
    kept.restrict_to_domain = input.domain_only.unwrap_or(kept.restrict_to_domain);
    kept.start_time = start.or(kept.start_time);
    kept.end_time = end.or(kept.end_time);
    Ok(API
        .put(VACATION_PATH)
        .json(&kept)
        .send()?
        .json::<VacationSettings>()?
        .into())
}

/// Converts an argument to milliseconds since 1970.
fn milliseconds(argument: &str, text: &str) -> Result<String> {
    let moment: Timestamp = text.parse().map_err(|_| {
        ToolError::invalid_input(format!(
            "`{argument}` is `{text}`; write a moment such as `2026-03-01T00:00:00+01:00`"
        ))
    })?;
    Ok(moment.as_millisecond().to_string())
}
