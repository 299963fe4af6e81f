//! Finding and reading mail.

use toolkit_sdk::prelude::*;

use crate::API;
use crate::message::{Email, HEADERS, Told};

/// Bytes of the text of a mail that is read alone.
const LONGEST: usize = 100_000;
/// What is asked for of each mail in a list.
const SUMMARY: &str = "id,threadId,labelIds,snippet,internalDate,payload/headers";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Search {
    /// As in Gmail's search box: `from:ada@example.com is:unread newer_than:7d has:attachment subject:(invoice)`. Left out: all mail.
    query: Option<String>,
    /// Ids of labels that all must be on it: `INBOX`, `UNREAD`, `STARRED`, `Label_7`.
    #[serde(default)]
    label_ids: Vec<String>,
    /// Also mail in spam and bin.
    #[serde(default)]
    include_spam_and_trash: bool,
    /// How many to answer.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 40))]
    limit: u32,
    /// Reads on; `next_page_token` of the answer before.
    page_token: Option<String>,
}

pub(crate) fn ten() -> u32 {
    10
}

/// A part of what was found.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Found {
    /// Newest first, without their texts.
    items: Vec<Email>,
    /// The `page_token` to read on with; missing at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

/// A thing of which Google tells nothing but its id.
#[derive(Deserialize)]
pub(crate) struct Id {
    pub(crate) id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    #[serde(default)]
    messages: Vec<Id>,
    next_page_token: Option<String>,
}

/// Finds mail by Gmail's own search words, or lists the newest: sender, subject, date, labels and how each begins. `get_email` reads
/// one, `search_threads` finds whole conversations.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("https://www.googleapis.com/auth/gmail.readonly"),
    example = r#"{"query": "from:ada@example.com is:unread", "limit": 5}"#
)]
pub(crate) fn search_emails(input: Search) -> Result<Found> {
    let request = API.get("/messages").query_opt("q", input.query).query_each("labelIds", &input.label_ids);
    let request = if input.include_spam_and_trash { request.query("includeSpamTrash", true) } else { request };
    let request = request.query("maxResults", input.limit.clamp(1, 40)).query_opt("pageToken", input.page_token);
    let Listed { messages, next_page_token } = request.send()?.json()?;
    let told = existing::<Told>(messages.iter().map(|message| summary_of("/messages/{id}", &message.id, SUMMARY)))?;
    Ok(Found { items: told.into_iter().map(Told::summary).collect(), next_page_token })
}

/// A request for the headers of a mail or a thread.
pub(crate) fn summary_of(path: &str, id: &str, fields: &str) -> Request {
    let request = API.get(path).path("id", id).query("format", "metadata").query_each("metadataHeaders", HEADERS);
    request.query("fields", fields)
}

/// What is still there of what was listed a moment ago.
pub(crate) fn existing<T: serde::de::DeserializeOwned>(requests: impl IntoIterator<Item = Request>) -> Result<Vec<T>> {
    let mut found = Vec::new();
    for answer in http::send_all(requests) {
        match answer {
            Ok(response) => found.push(response.json()?),
            Err(gone) if gone.kind() == "not_found" => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct MessageId {
    /// Id of the mail, as `search_emails` tells it.
    #[schemars(length(min = 1))]
    message_id: String,
}

/// Reads one mail: people, subject, the whole text, and which files are attached (`get_attachment` gets one). Reading does not mark
/// it as read; `change_labels` does, by removing `UNREAD`.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("https://www.googleapis.com/auth/gmail.readonly"),
    example = r#"{"message_id": "18c2f1b5a7d3e9f0"}"#
)]
pub(crate) fn get_email(input: MessageId) -> Result<Email> {
    Ok(whole(&input.message_id)?.whole(LONGEST))
}

/// A mail with everything in it but its attachments.
pub(crate) fn whole(id: &str) -> Result<Told> {
    API.get("/messages/{id}").path("id", id).query("format", "full").send()?.json()
}
