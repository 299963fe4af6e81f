//! Sending of emails, and their delivery status.

use toolkit_sdk::prelude::*;

use crate::api::{API, Id, Page, Part, read};
use crate::outgoing::{Attached, Attachment, Mail};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct One {
    #[serde(flatten)]
    mail: Mail,
    /// Time at which to send, at most 30 days ahead: RFC 3339, or words such as `in 1 hour`.
    /// Defaults to now.
    scheduled_at: Option<String>,
    /// Files, together at most 40 MB.
    #[serde(default)]
    attachments: Vec<Attachment>,
    /// Unique key for this email, for example `invoice-17`. Sending again with the same key within
    /// 24 hours sends nothing and returns the first id.
    #[schemars(length(min = 1, max = 256))]
    idempotency_key: Option<String>,
}

#[derive(Serialize)]
struct Outgoing {
    #[serde(flatten)]
    mail: Mail,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduled_at: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attached>,
}

/// Sends one email, now or later, with HTML or plain text and attachments. Returns the id, with
/// which the email can be looked up, rescheduled or canceled. The sender's domain must be verified:
/// see `list_domains`. For many different emails use `send_email_batch`.
#[tool(
    open_world,
    important,
    example = r#"{"from_email": "Acme <hello@acme.com>", "to": ["ada@example.com"], "subject": "Hello", "text": "It works."}"#
)]
pub(crate) fn send_email(input: One) -> Result<Id> {
    input.mail.check()?;
    let attachments: Result<Vec<Attached>> = input
        .attachments
        .into_iter()
        .map(Attached::try_from)
        .collect();
    let body = Outgoing {
        mail: input.mail,
        scheduled_at: input.scheduled_at,
        attachments: attachments?,
    };
    API.post("/emails")
        .header_opt("idempotency-key", input.idempotency_key)
        .json(&body)
        .send()?
        .json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Many {
    /// Emails, each sent separately.
    #[schemars(length(min = 1, max = 100))]
    emails: Vec<Mail>,
    /// Unique key for the whole batch; sending again with it within 24 hours sends nothing.
    #[schemars(length(min = 1, max = 256))]
    idempotency_key: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Sent {
    /// Ids in the order of the emails.
    data: Vec<Id>,
}

/// Sends up to 100 different emails at once, without attachments and without a later time. If one
/// of them is not valid, none is sent.
#[tool(
    open_world,
    example = r#"{"emails": [{"from_email": "hello@acme.com", "to": ["ada@example.com"], "subject": "Hello", "text": "It works."}]}"#
)]
pub(crate) fn send_email_batch(input: Many) -> Result<Sent> {
    input.emails.iter().try_for_each(Mail::check)?;
    API.post("/emails/batch")
        .header_opt("idempotency-key", input.idempotency_key)
        .json(&input.emails)
        .send()?
        .json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct EmailId {
    /// Id of the email, from `send_email`.
    #[schemars(length(min = 1))]
    id: String,
}

/// A sent or scheduled email.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Email {
    id: String,
    from: String,
    to: Vec<String>,
    #[serde(default)]
    subject: String,
    created_at: String,
    /// Last event: `scheduled`, `queued`, `sent`, `delivered`, `delivery_delayed`, `opened`,
    /// `clicked`, `bounced`, `complained`, `failed`, `canceled`, `suppressed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_event: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheduled_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    html: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cc: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bcc: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<Vec<String>>,
}

/// Gets one email with its content and its last event: delivered, bounced, opened and so on.
#[tool(
    read_only,
    idempotent,
    important,
    example = r#"{"id": "49a3999c-0ce1-4ea6-ab68-afcd6dc2e794"}"#
)]
pub(crate) fn get_email(input: EmailId) -> Result<Email> {
    API.get("/emails/{id}").path("id", &input.id).send()?.json()
}

/// Lists sent and scheduled emails, newest first, without their content, with the last event of
/// each.
#[tool(read_only, idempotent, example = r#"{"limit": 10}"#)]
pub(crate) fn list_emails(input: Part) -> Result<Page<Email>> {
    read(API.get("/emails"), &input)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewTime {
    /// Id of the email, from `send_email`.
    #[schemars(length(min = 1))]
    id: String,
    /// New time, at most 30 days ahead: RFC 3339, or words such as `in 1 hour`.
    scheduled_at: String,
}

/// Changes the time of a scheduled email. Works only until it is sent.
#[tool(
    idempotent,
    example = r#"{"id": "49a3999c-0ce1-4ea6-ab68-afcd6dc2e794", "scheduled_at": "2026-11-22T09:00:00Z"}"#
)]
pub(crate) fn reschedule_email(input: NewTime) -> Result<Id> {
    let body = json!({ "scheduled_at": input.scheduled_at });
    API.patch("/emails/{id}")
        .path("id", &input.id)
        .json(&body)
        .send()?
        .json()
}

/// Cancels a scheduled email, so that it is never sent. This cannot be undone.
#[tool(
    destructive,
    idempotent,
    example = r#"{"id": "49a3999c-0ce1-4ea6-ab68-afcd6dc2e794"}"#
)]
pub(crate) fn cancel_email(input: EmailId) -> Result<Id> {
    API.post("/emails/{id}/cancel")
        .path("id", &input.id)
        .send()?
        .json()
}
