//! Drafts.

use toolkit_sdk::prelude::*;

use crate::API;
use crate::mail::{Mail, Place, Target, Texts, deliver};
use crate::message::{Email, RawMessage};
use crate::messages::{Id, existing, ten};
use crate::mime::{Message, text};
use crate::send::{Sent, headers_of, place_after, prefixed, receivers};

/// Max size of the text of a single draft, in bytes.
const MAX_TEXT_BYTES: usize = 100_000;
/// Fields requested for each draft in a list.
const LIST_FIELDS: &str = "id,message(id,threadId,labelIds,snippet,internalDate,payload/headers)";

/// A draft in Google's format.
#[derive(Deserialize)]
struct RawDraft {
    id: String,
    #[serde(default)]
    message: RawMessage,
}

/// A draft.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Draft {
    /// Id of the draft, for `update_draft` and `send_draft`.
    draft_id: String,
    message: Email,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct List {
    /// Query in the syntax of Gmail's search box: `to:ada@example.com`. Defaults to all drafts.
    query: Option<String>,
    /// Max number of drafts to return.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 40))]
    limit: u32,
    /// Token of the next page: `next_page_token` of the previous response.
    page_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    #[serde(default)]
    drafts: Vec<Id>,
    next_page_token: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Found {
    /// Drafts, newest first, without their texts.
    items: Vec<Draft>,
    /// `page_token` of the next request; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

/// Lists drafts with recipients, subject and the beginning of the text.
#[tool(
    read_only,
    idempotent,
    scopes("https://www.googleapis.com/auth/gmail.readonly"),
    example = r#"{"query": "to:ada@example.com"}"#
)]
pub(crate) fn list_drafts(input: List) -> Result<Found> {
    let request = API
        .get("/drafts")
        .query_opt("q", input.query)
        .query("maxResults", input.limit.clamp(1, 40));
    let Listed {
        drafts,
        next_page_token,
    } = request
        .query_opt("pageToken", input.page_token)
        .send()?
        .json()?;
    let drafts = existing::<RawDraft>(
        drafts
            .iter()
            .map(|draft: &Id| read(&draft.id, "metadata").query("fields", LIST_FIELDS)),
    )?;
    let items = drafts
        .into_iter()
        .map(|draft| Draft {
            draft_id: draft.id,
            message: draft.message.summary(),
        })
        .collect();
    Ok(Found {
        items,
        next_page_token,
    })
}

fn read(id: &str, format: &str) -> Request {
    API.get("/drafts/{id}")
        .path("id", id)
        .query("format", format)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DraftId {
    /// Id of the draft, from `list_drafts`.
    #[schemars(length(min = 1))]
    draft_id: String,
}

/// Reads a draft with its whole text.
#[tool(
    read_only,
    idempotent,
    scopes("https://www.googleapis.com/auth/gmail.readonly"),
    example = r#"{"draft_id": "r-8213449761520304"}"#
)]
pub(crate) fn get_draft(input: DraftId) -> Result<Draft> {
    let RawDraft { id, message } = read(&input.draft_id, "full").send()?.json()?;
    Ok(Draft {
        draft_id: id,
        message: message.whole(MAX_TEXT_BYTES),
    })
}

/// A draft that was saved.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Made {
    /// Id of the draft, for `update_draft` and `send_draft`.
    draft_id: String,
    message_id: String,
    /// Id of the conversation.
    thread_id: String,
}

impl From<RawDraft> for Made {
    fn from(RawDraft { id, message }: RawDraft) -> Self {
        Self {
            draft_id: id,
            message_id: message.id,
            thread_id: message.thread_id,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Create {
    #[serde(flatten)]
    mail: Mail,
    /// Id of a mail to reply to: puts the draft into its conversation and fills in `to` and
    /// `subject` if they are not given.
    reply_to_message_id: Option<String>,
    /// With `reply_to_message_id`: also addresses all other recipients of that mail.
    #[serde(default)]
    reply_all: bool,
}

/// Writes a mail and saves it as a draft, to be reviewed and sent by the user, or for `send_draft`.
/// Also for replies, with `reply_to_message_id`.
#[tool(
    important,
    scopes(
        "https://www.googleapis.com/auth/gmail.compose",
        "https://www.googleapis.com/auth/gmail.readonly"
    ),
    example = r#"{"to": ["ada@example.com"], "subject": "Offer", "body": "Dear Ada,\n\nhere is the **offer**."}"#
)]
pub(crate) fn create_draft(input: Create) -> Result<Made> {
    let Create {
        mut mail,
        reply_to_message_id,
        reply_all,
    } = input;
    let place = match &reply_to_message_id {
        None => Place::default(),
        Some(id) => {
            let original = headers_of(id)?;
            if mail.to.is_empty() {
                let receivers = receivers(&original, reply_all, mail.from_email.as_deref())?;
                mail.to = receivers.to;
                mail.cc.extend(receivers.cc);
            }
            if mail.subject.is_empty() {
                mail.subject = prefixed("Re:", original.header("Subject"));
            }
            place_after(&original)
        }
    };
    keep(Target::NewDraft, &mail, place)
}

fn keep(target: Target<'_>, mail: &Mail, place: Place) -> Result<Made> {
    let mut headers = mail.headers()?;
    headers.extend(place.headers);
    let Texts { plain, html } = mail.content.texts();
    let message = Message {
        headers,
        plain,
        html,
        attachments: &mail.content.attachments,
    };
    Ok(deliver::<RawDraft>(target, place.thread_id.as_ref(), &message)?.into())
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Update {
    /// Id of the draft, from `list_drafts`.
    #[schemars(length(min = 1))]
    draft_id: String,
    #[serde(flatten)]
    mail: Mail,
}

/// Replaces the content of a draft, including its attachments. It stays in its conversation.
#[tool(
    destructive,
    idempotent,
    scopes(
        "https://www.googleapis.com/auth/gmail.compose",
        "https://www.googleapis.com/auth/gmail.readonly"
    ),
    example = r#"{"draft_id": "r-8213449761520304", "to": ["ada@example.com"], "subject": "Offer", "body": "Dear Ada,"}"#
)]
pub(crate) fn update_draft(input: Update) -> Result<Made> {
    let request =
        read(&input.draft_id, "metadata").query("fields", "id,message(threadId,payload/headers)");
    let before: RawDraft = request.send()?.json()?;
    let headers = ["In-Reply-To", "References"]
        .into_iter()
        .filter_map(|name| {
            let value = before.message.header(name)?;
            Some((name, references(value)))
        })
        .collect();
    let thread_id = Some(before.message.thread_id.clone()).filter(|id| !id.is_empty());
    keep(
        Target::Draft(&input.draft_id),
        &input.mail,
        Place { thread_id, headers },
    )
}

/// Formats the ids of mails for a header, one per line.
fn references(value: &str) -> String {
    value
        .split_whitespace()
        .map(text)
        .collect::<Vec<_>>()
        .join("\r\n ")
}

/// Sends a draft as it is. The draft becomes a sent mail.
#[tool(
    open_world,
    important,
    scopes("https://www.googleapis.com/auth/gmail.compose"),
    example = r#"{"draft_id": "r-8213449761520304"}"#
)]
pub(crate) fn send_draft(input: DraftId) -> Result<Sent> {
    API.post("/drafts/send")
        .json(&json!({ "id": input.draft_id }))
        .send()?
        .json()
}
