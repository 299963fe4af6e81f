//! Messages and threads.

use toolkit_sdk::prelude::*;

use crate::api::{API, Page, Part, list};
use crate::time;

/// A message.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Message {
    /// Id of the message within its channel.
    pub(crate) ts: String,
    /// Time of the message, RFC 3339.
    #[serde(skip_deserializing)]
    time: String,
    /// Id of the author; missing for some bots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// Id of the bot that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bot_id: Option<String>,
    /// Subtype of a message that no user wrote, for example `channel_join`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subtype: Option<String>,
    /// Text in Slack's markup: `*bold*`, `<https://…|link>`, `<@U012AB3CD>` for a user,
    /// `<#C012AB3CD>` for a channel.
    #[serde(default)]
    text: String,
    /// `ts` of the first message of the thread, if the message is part of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) thread_ts: Option<String>,
    /// Number of replies in the thread that this message started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply_count: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reactions: Vec<Reaction>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<Attached>,
    /// Attachments of bots and links; returned as text if there is no other text.
    #[serde(default, skip_serializing)]
    attachments: Vec<Attachment>,
}

/// An emoji reaction to a message.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Reaction {
    /// Name of the emoji, without colons.
    name: String,
    count: u64,
}

/// A file in a message.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Attached {
    /// Id of the file, for `SLACK_DOWNLOAD_FILE`.
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mimetype: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Attachment {
    fallback: Option<String>,
    text: Option<String>,
}

impl Message {
    /// Adds the time, and the text of attachments if the message has no other text.
    pub(crate) fn to_output(mut self) -> Self {
        self.time = time::iso_from_ts(&self.ts);
        if self.text.is_empty() {
            let words = self
                .attachments
                .drain(..)
                .filter_map(|attachment| attachment.text.or(attachment.fallback));
            self.text = words.collect::<Vec<_>>().join("\n");
        }
        self
    }
}

impl Page<Message> {
    fn to_output(mut self) -> Self {
        self.items = self.items.into_iter().map(Message::to_output).collect();
        self
    }
}

/// A message that was sent.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Sent {
    /// Id of the channel.
    channel: String,
    /// Id of the message, for `SLACK_UPDATE_MESSAGE`, and for `thread_ts` of replies.
    ts: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewMessage {
    /// Id of a channel or conversation, or `#name` of a public channel. For a direct message, use
    /// the id from `SLACK_OPEN_CONVERSATION`.
    #[schemars(length(min = 1))]
    channel: String,
    /// Text, in Markdown; `<@U012AB3CD>` mentions a user by id, `<!here>` all active members.
    #[schemars(length(min = 1, max = 12000))]
    text: String,
    /// Replies in the thread of the message with this `ts`.
    thread_ts: Option<String>,
    /// Also shows a reply in a thread to the whole channel.
    #[serde(default)]
    reply_broadcast: bool,
    /// Shows previews of the links in the text.
    #[serde(default = "yes")]
    unfurl_links: bool,
}

fn yes() -> bool {
    true
}

/// Sends a message to a channel, a user or a thread. Write the text in Markdown: headings, lists,
/// tables, links and code are converted to Slack's format.
#[tool(
    important,
    scopes("chat:write"),
    example = r#"{"channel": "C012AB3CD", "text": "**Deployed** [v1.4](https://example.com/v1.4) to production"}"#
)]
pub(crate) fn send_message(input: NewMessage) -> Result<Sent> {
    let mut body = json!({ "channel": input.channel, "markdown_text": input.text, "unfurl_links": input.unfurl_links });
    if let Some(thread_ts) = input.thread_ts {
        body["thread_ts"] = thread_ts.into();
        body["reply_broadcast"] = input.reply_broadcast.into();
    } else if input.reply_broadcast {
        return Err(ToolError::invalid_input(
            "`reply_broadcast` needs a reply in a thread; give `thread_ts`",
        ));
    }
    API.post("/chat.postMessage").json(&body).send()?.json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ChangedMessage {
    /// Id of the channel.
    #[schemars(length(min = 1))]
    channel: String,
    /// `ts` of the message.
    #[schemars(length(min = 1))]
    ts: String,
    /// New text, in Markdown.
    #[schemars(length(min = 1, max = 12000))]
    text: String,
}

/// Replaces the text of a message that the connected account sent.
#[tool(
    destructive,
    idempotent,
    scopes("chat:write"),
    example = r#"{"channel": "C012AB3CD", "ts": "1401383885.000061", "text": "Deployed, and _rolled back_"}"#
)]
pub(crate) fn update_message(input: ChangedMessage) -> Result<Sent> {
    let body = json!({ "channel": input.channel, "ts": input.ts, "markdown_text": input.text });
    API.post("/chat.update").json(&body).send()?.json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct LaterMessage {
    /// Id of a channel or conversation.
    #[schemars(length(min = 1))]
    channel: String,
    /// Text, in Markdown.
    #[schemars(length(min = 1, max = 12000))]
    text: String,
    /// Time to send it, RFC 3339, at most 120 days ahead: `2026-01-31T09:00:00+01:00`.
    post_at: String,
    /// Replies in the thread of the message with this `ts`.
    thread_ts: Option<String>,
}

/// A scheduled message.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Scheduled {
    /// Id of the scheduled message, for `SLACK_DELETE_SCHEDULED_MESSAGE`.
    scheduled_message_id: String,
    /// Id of the channel.
    channel: String,
}

/// Sends a message later, at a time within the next 120 days.
#[tool(
    scopes("chat:write"),
    example = r#"{"channel": "C012AB3CD", "text": "Stand-up in five minutes", "post_at": "2026-12-01T08:55:00Z"}"#
)]
pub(crate) fn schedule_message(input: LaterMessage) -> Result<Scheduled> {
    let post_at = time::seconds(&input.post_at)?;
    let mut body =
        json!({ "channel": input.channel, "markdown_text": input.text, "post_at": post_at });
    if let Some(thread_ts) = input.thread_ts {
        body["thread_ts"] = thread_ts.into();
    }
    API.post("/chat.scheduleMessage").json(&body).send()?.json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Between {
    /// Only messages after this one: a `ts`, or a time as RFC 3339.
    after: Option<String>,
    /// Only messages before this one: a `ts`, or a time as RFC 3339.
    before: Option<String>,
}

impl Between {
    fn fill(&self, request: Request) -> Result<Request> {
        let oldest = self.after.as_deref().map(time::moment).transpose()?;
        let latest = self.before.as_deref().map(time::moment).transpose()?;
        Ok(request
            .query_opt("oldest", oldest)
            .query_opt("latest", latest))
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ReadChannel {
    /// Id of a channel or conversation.
    #[schemars(length(min = 1))]
    channel: String,
    #[serde(flatten)]
    between: Between,
    #[serde(flatten)]
    part: Part,
}

/// Reads the messages of a channel or conversation, newest first, without the replies in threads.
/// If `reply_count` is present, `SLACK_READ_THREAD` reads them.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("channels:history", "groups:history", "im:history", "mpim:history"),
    example = r#"{"channel": "C012AB3CD", "after": "2026-01-31T00:00:00Z"}"#
)]
pub(crate) fn read_channel(input: ReadChannel) -> Result<Page<Message>> {
    let request = input.between.fill(
        API.get("/conversations.history")
            .query("channel", &input.channel),
    )?;
    Ok(list::<Message>(request, &input.part, "messages")?.to_output())
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ReadThread {
    /// Id of the channel.
    #[schemars(length(min = 1))]
    channel: String,
    /// `ts` of the first message of the thread, or of any message in it.
    #[schemars(length(min = 1))]
    ts: String,
    #[serde(flatten)]
    between: Between,
    #[serde(flatten)]
    part: Part,
}

/// Reads a thread, oldest first: its first message, then the replies.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("channels:history", "groups:history", "im:history", "mpim:history"),
    example = r#"{"channel": "C012AB3CD", "ts": "1401383885.000061"}"#
)]
pub(crate) fn read_thread(input: ReadThread) -> Result<Page<Message>> {
    let request = API
        .get("/conversations.replies")
        .query("channel", &input.channel)
        .query("ts", &input.ts);
    Ok(list::<Message>(input.between.fill(request)?, &input.part, "messages")?.to_output())
}
