//! Search and reading of mail.

use toolkit_sdk::prelude::*;

use crate::API;
use crate::message::{Email, RETURNED_HEADERS, RawMessage};

/// Max size of the text of a single mail, in bytes.
const MAX_TEXT_BYTES: usize = 100_000;
/// Fields requested for each mail in a list.
const LIST_FIELDS: &str = "id,threadId,labelIds,snippet,internalDate,payload/headers";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Search {
    /// Query in the syntax of Gmail's search box:
    /// `from:ada@example.com is:unread newer_than:7d has:attachment subject:(invoice)`. Defaults to
    /// all mail.
    query: Option<String>,
    /// Ids of labels that the mail must all have: `INBOX`, `UNREAD`, `STARRED`, `Label_7`.
    #[serde(default)]
    label_ids: Vec<String>,
    /// Includes mail in spam and trash.
    #[serde(default)]
    include_spam_and_trash: bool,
    /// Max number of mails to return.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 40))]
    limit: u32,
    /// Token of the next page: `next_page_token` of the previous response.
    page_token: Option<String>,
}

pub(crate) fn ten() -> u32 {
    10
}

/// One page of search results.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Found {
    /// Mails, newest first, without their texts.
    items: Vec<Email>,
    /// `page_token` of the next request; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

/// An object in a response of which only the id is read.
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

/// Finds mail with Gmail's search operators, or lists the newest: sender, subject, date, labels and
/// the beginning of the text. `get_email` reads one, `search_threads` finds whole conversations.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("https://www.googleapis.com/auth/gmail.readonly"),
    example = r#"{"query": "from:ada@example.com is:unread", "limit": 5}"#
)]
pub(crate) fn search_emails(input: Search) -> Result<Found> {
    let request = API
        .get("/messages")
        .query_opt("q", input.query)
        .query_each("labelIds", &input.label_ids)
        .query_opt(
            "includeSpamTrash",
            input.include_spam_and_trash.then_some(true),
        )
        .query("maxResults", input.limit.clamp(1, 40))
        .query_opt("pageToken", input.page_token);
    let Listed {
        messages,
        next_page_token,
    } = request.send()?.json()?;
    let messages = existing::<RawMessage>(
        messages
            .iter()
            .map(|message| summary_of("/messages/{id}", &message.id, LIST_FIELDS)),
    )?;
    Ok(Found {
        items: messages.into_iter().map(RawMessage::summary).collect(),
        next_page_token,
    })
}

/// Builds a request for the headers of a mail or a thread.
pub(crate) fn summary_of(path: &str, id: &str, fields: &str) -> Request {
    let request = API
        .get(path)
        .path("id", id)
        .query("format", "metadata")
        .query_each("metadataHeaders", RETURNED_HEADERS);
    request.query("fields", fields)
}

/// Sends the requests and skips items that were deleted after they were listed.
pub(crate) fn existing<T: serde::de::DeserializeOwned>(
    requests: impl IntoIterator<Item = Request>,
) -> Result<Vec<T>> {
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
    /// Id of the mail, from `search_emails`.
    #[schemars(length(min = 1))]
    message_id: String,
}

/// Reads one mail: sender, recipients, subject, the whole text, and the list of attachments
/// (`get_attachment` gets one). Reading does not mark it as read; `change_labels` does, by removing
/// `UNREAD`.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("https://www.googleapis.com/auth/gmail.readonly"),
    example = r#"{"message_id": "18c2f1b5a7d3e9f0"}"#
)]
pub(crate) fn get_email(input: MessageId) -> Result<Email> {
    Ok(whole(&input.message_id)?.whole(MAX_TEXT_BYTES))
}

/// Fetches a mail with everything but its attachments.
pub(crate) fn whole(id: &str) -> Result<RawMessage> {
    API.get("/messages/{id}")
        .path("id", id)
        .query("format", "full")
        .send()?
        .json()
}
