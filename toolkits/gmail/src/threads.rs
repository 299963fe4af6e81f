//! Conversations.

use toolkit_sdk::prelude::*;

use crate::API;
use crate::message::{Email, RawMessage};
use crate::messages::{Id, existing, summary_of, ten};

/// Max size of the text of each mail of a conversation, in bytes.
const MAX_TEXT_BYTES: usize = 20_000;
/// Max number of mails of a conversation in one response.
const MAX_MAILS: usize = 50;
/// Fields requested for each conversation in a list.
const LIST_FIELDS: &str = "id,messages(id,threadId,labelIds,snippet,internalDate,payload/headers)";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Search {
    /// Query in the syntax of Gmail's search box: `subject:offer from:ada@example.com`. Defaults to
    /// all conversations.
    query: Option<String>,
    /// Ids of labels that the conversation must all have: `INBOX`, `UNREAD`, `Label_7`.
    #[serde(default)]
    label_ids: Vec<String>,
    /// Max number of conversations to return.
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
    threads: Vec<Id>,
    next_page_token: Option<String>,
}

/// A conversation in Google's format.
#[derive(Deserialize)]
struct Conversation {
    #[serde(default)]
    id: String,
    #[serde(default)]
    messages: Vec<RawMessage>,
}

/// A conversation in a list.
#[derive(Serialize, JsonSchema)]
struct Summary {
    id: String,
    /// Number of mails in the conversation.
    message_count: usize,
    /// Newest mail, without its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest: Option<Email>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Found {
    /// Conversations, newest first.
    items: Vec<Summary>,
    /// `page_token` of the next request; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

/// Finds conversations with Gmail's search operators, or lists the newest: the number of mails and
/// the newest mail of each. `get_thread` reads one.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("https://www.googleapis.com/auth/gmail.readonly"),
    example = r#"{"query": "subject:offer", "label_ids": ["INBOX"]}"#
)]
pub(crate) fn search_threads(input: Search) -> Result<Found> {
    let request = API
        .get("/threads")
        .query_opt("q", input.query)
        .query_each("labelIds", &input.label_ids)
        .query("maxResults", input.limit.clamp(1, 40))
        .query_opt("pageToken", input.page_token);
    let Listed {
        threads,
        next_page_token,
    } = request.send()?.json()?;
    let raw = existing::<Conversation>(
        threads
            .iter()
            .map(|thread| summary_of("/threads/{id}", &thread.id, LIST_FIELDS)),
    )?;
    let items = raw
        .into_iter()
        .map(|mut thread| Summary {
            id: thread.id,
            message_count: thread.messages.len(),
            newest: thread.messages.pop().map(RawMessage::summary),
        })
        .collect();
    Ok(Found {
        items,
        next_page_token,
    })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ThreadId {
    /// Id of the conversation: `thread_id` of a mail, or an id from `search_threads`.
    #[schemars(length(min = 1))]
    thread_id: String,
}

/// A whole conversation.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Thread {
    id: String,
    /// Mails, oldest first; of a very long conversation only the newest 50.
    messages: Vec<Email>,
    /// Number of older mails that are left out; `search_emails` finds them.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Reads a conversation: all its mails, oldest first, with their texts. Use it to understand the
/// conversation before replying with `reply_to_email`.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("https://www.googleapis.com/auth/gmail.readonly"),
    example = r#"{"thread_id": "18c2f1b5a7d3e9f0"}"#
)]
pub(crate) fn get_thread(input: ThreadId) -> Result<Thread> {
    let request = API
        .get("/threads/{id}")
        .path("id", &input.thread_id)
        .query("format", "full");
    let Conversation { id, messages } = request.send()?.json()?;
    let left_out = messages.len().saturating_sub(MAX_MAILS);
    let messages = messages
        .into_iter()
        .skip(left_out)
        .map(|raw| raw.whole(MAX_TEXT_BYTES))
        .collect();
    Ok(Thread {
        id,
        messages,
        left_out,
    })
}
