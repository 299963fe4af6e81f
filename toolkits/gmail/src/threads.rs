//! Conversations.

use toolkit_sdk::prelude::*;

use crate::API;
use crate::message::{Email, Told};
use crate::messages::{Id, existing, summary_of, ten};

/// Bytes of the text of each mail of a conversation.
const LONGEST: usize = 20_000;
/// Mails of a conversation that are told at a time.
const MOST: usize = 50;
/// What is asked for of each conversation in a list.
const SUMMARY: &str = "id,messages(id,threadId,labelIds,snippet,internalDate,payload/headers)";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Search {
    /// As in Gmail's search box: `subject:offer from:ada@example.com`. Left out: all.
    query: Option<String>,
    /// Ids of labels that all must be on it: `INBOX`, `UNREAD`, `Label_7`.
    #[serde(default)]
    label_ids: Vec<String>,
    /// How many to answer.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 40))]
    limit: u32,
    /// Reads on; `next_page_token` of the answer before.
    page_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    #[serde(default)]
    threads: Vec<Id>,
    next_page_token: Option<String>,
}

/// A conversation as Google tells it.
#[derive(Deserialize)]
struct Conversation {
    #[serde(default)]
    id: String,
    #[serde(default)]
    messages: Vec<Told>,
}

/// A conversation in a list.
#[derive(Serialize, JsonSchema)]
struct Summary {
    id: String,
    /// Mails in it.
    message_count: usize,
    /// The newest mail, without its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    newest: Option<Email>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Found {
    /// Newest first.
    items: Vec<Summary>,
    /// The `page_token` to read on with; missing at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

/// Finds conversations by Gmail's own search words, or lists the newest: how many mails each has and its newest one. `get_thread` reads
/// one.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("https://www.googleapis.com/auth/gmail.readonly"),
    example = r#"{"query": "subject:offer", "label_ids": ["INBOX"]}"#
)]
pub(crate) fn search_threads(input: Search) -> Result<Found> {
    let request = API.get("/threads").query_opt("q", input.query).query_each("labelIds", &input.label_ids);
    let request = request.query("maxResults", input.limit.clamp(1, 40)).query_opt("pageToken", input.page_token);
    let Listed { threads, next_page_token } = request.send()?.json()?;
    let told = existing(threads.iter().map(|thread| summary_of("/threads/{id}", &thread.id, SUMMARY)))?;
    let summary = |mut thread: Conversation| Summary {
        id: thread.id,
        message_count: thread.messages.len(),
        newest: thread.messages.pop().map(Told::summary),
    };
    Ok(Found { items: told.into_iter().map(summary).collect(), next_page_token })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ThreadId {
    /// Id of the conversation: `thread_id` of a mail, or an id that `search_threads` tells.
    #[schemars(length(min = 1))]
    thread_id: String,
}

/// A whole conversation.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Thread {
    id: String,
    /// Oldest first; of a very long conversation the newest 50.
    messages: Vec<Email>,
    /// Older mails that are not told; `search_emails` finds them.
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Reads a conversation: all its mails, oldest first, with their texts. Use it to understand what was said before answering with
/// `reply_to_email`.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("https://www.googleapis.com/auth/gmail.readonly"),
    example = r#"{"thread_id": "18c2f1b5a7d3e9f0"}"#
)]
pub(crate) fn get_thread(input: ThreadId) -> Result<Thread> {
    let request = API.get("/threads/{id}").path("id", &input.thread_id).query("format", "full");
    let Conversation { id, messages } = request.send()?.json()?;
    let left_out = messages.len().saturating_sub(MOST);
    let messages = messages.into_iter().skip(left_out).map(|told| told.whole(LONGEST)).collect();
    Ok(Thread { id, messages, left_out })
}
