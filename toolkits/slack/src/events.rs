//! Triggers: events that Slack sends to an app (Events API), and polling for messages of one
//! channel.

use std::collections::BTreeMap;

use toolkit_sdk::prelude::*;
use toolkit_sdk::webhook::{Secret, Signature};

use crate::api::API;
use crate::messages::Message;

/// Signature of a request: HMAC-SHA256 over version, time and body
/// (<https://docs.slack.dev/authentication/verifying-requests-from-slack>).
const SIGNATURE: Signature = Signature::header("x-slack-signature")
    .prefix("v0=")
    .hint("enter the signing secret of the app that sends here");
/// Max age of a request, in seconds. An older one may be a replay of a captured request.
const MAX_REQUEST_AGE_SECONDS: u64 = 5 * 60;
/// Max number of messages that one poll reads. More are not expected between two polls.
const MAX_MESSAGES_PER_POLL: usize = 1000;
/// Number of messages that one request reads.
const PAGE_SIZE: usize = 100;
/// Max number of messages that one poll reports. The next poll follows at once.
const MAX_EVENTS_PER_POLL: usize = 50;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Channel {
    /// Id of a channel or conversation of which the connected account is a member.
    #[schemars(length(min = 1))]
    channel: String,
}

/// Position of the last poll.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// `ts` of the newest message seen.
    ts: String,
}

#[derive(Deserialize)]
struct History {
    messages: Vec<Message>,
}

/// Fires for each new message of a channel or conversation, oldest first; not for replies in
/// threads. Needs no Slack app of your own; for many channels, or for other events,
/// `SLACK_EVENT_RECEIVED` fires sooner.
#[trigger(
    poll,
    scopes("channels:history", "groups:history", "im:history", "mpim:history")
)]
pub(crate) fn message_posted(
    config: Channel,
    cursor: Option<Cursor>,
) -> Result<Polled<Message, Cursor>> {
    let history = API
        .get("/conversations.history")
        .query("channel", &config.channel);
    let Some(Cursor { ts }) = cursor else {
        let newest: History = history.query("limit", 1).send()?.json()?;
        // In an empty channel, every later message is new.
        let ts = newest
            .messages
            .into_iter()
            .next()
            .map_or_else(|| "0".to_owned(), |message| message.ts);
        return Ok(Polled::new(Cursor { ts }));
    };
    let paging = Paging::cursor("cursor", "/response_metadata/next_cursor")
        .items("/messages")
        .size("limit", PAGE_SIZE);
    let mut messages: Vec<Message> = history
        .query("oldest", &ts)
        .items(paging, MAX_MESSAGES_PER_POLL)
        .collect::<Result<_>>()?;
    messages.reverse();
    let more = messages.len() > MAX_EVENTS_PER_POLL;
    messages.truncate(MAX_EVENTS_PER_POLL);
    let newest = messages.last().map_or(ts, |message| message.ts.clone());
    let written = messages
        .into_iter()
        .filter(|message| message.subtype.as_deref().is_none_or(is_written));
    let events = written.map(|message| (message.ts.clone(), message.to_output()));
    Ok(Polled::new(Cursor { ts: newest }).events(events).more(more))
}

/// Returns true if a message of this subtype was written by a user or bot. Other subtypes report
/// that a member joined or that a setting changed.
fn is_written(subtype: &str) -> bool {
    [
        "bot_message",
        "file_share",
        "me_message",
        "thread_broadcast",
    ]
    .contains(&subtype)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Config {
    /// Signing secret of the app: api.slack.com/apps, the app, Basic Information.
    #[schemars(length(min = 16))]
    signing_secret: Secret,
    /// Only events of these types: `message`, `app_mention`, `reaction_added`,
    /// `member_joined_channel` and so on. If empty, all types to which the app subscribes.
    #[serde(default)]
    types: Vec<String>,
    /// Only events of the channel with this id.
    channel: Option<String>,
}

/// An event.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Event {
    /// Type: `message`, `app_mention`, `reaction_added` and so on.
    #[serde(rename = "type")]
    kind: String,
    /// Subtype of a message, for example `message_changed`; missing for a plain message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subtype: Option<String>,
    /// Id of the channel of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channel: Option<Value>,
    /// Id of the user that caused the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<Value>,
    /// Text of a message, in Slack's markup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Id of a message within its channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ts: Option<String>,
    /// `ts` of the first message of the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thread_ts: Option<String>,
    /// Further members that Slack sends for this type of event.
    #[serde(flatten)]
    more: BTreeMap<String, Value>,
}

/// Body of a request that Slack sends.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Delivery {
    UrlVerification {
        challenge: String,
    },
    EventCallback {
        event_id: String,
        event: Box<Event>,
    },
    #[serde(other)]
    Other,
}

/// Fires for the events to which a Slack app subscribes: messages, mentions, reactions, new members
/// and so on. Needs an app at api.slack.com/apps with the URL of this trigger under Event
/// Subscriptions, and its signing secret here.
#[trigger(webhook)]
pub(crate) fn event_received(config: Config, request: Inbound) -> Result<Received<Event>> {
    verify(&config, &request)?;
    let (id, event) = match request.json()? {
        Delivery::UrlVerification { challenge } => return Ok(Received::nothing().answer(challenge)),
        Delivery::EventCallback { event_id, event } => (event_id, event),
        Delivery::Other => return Ok(Received::nothing()),
    };
    let wanted = config.types.is_empty() || config.types.contains(&event.kind);
    let there = config
        .channel
        .as_ref()
        .is_none_or(|channel| event.place() == Some(channel.as_str()));
    Ok(if wanted && there {
        Received::event(id, *event)
    } else {
        Received::nothing()
    })
}

impl Event {
    /// Returns the channel of the event, which Slack sends in three forms.
    fn place(&self) -> Option<&str> {
        let channel = self
            .channel
            .as_ref()
            .or_else(|| self.more.get("item")?.get("channel"))?;
        channel.as_str().or_else(|| channel.get("id")?.as_str())
    }
}

/// Verifies the signature of a request, and refuses old requests.
fn verify(config: &Config, request: &Inbound) -> Result<()> {
    let time = request
        .header("x-slack-request-timestamp")
        .unwrap_or_default();
    let message = [b"v0:", time.as_bytes(), b":", &request.body];
    SIGNATURE.verify_message(request, &config.signing_secret, message)?;
    let sent: u64 = time
        .parse()
        .map_err(|_| ToolError::unauthorized("the request is not signed with a time"))?;
    if clock::now_seconds().abs_diff(sent) > MAX_REQUEST_AGE_SECONDS {
        return Err(ToolError::unauthorized(
            "the request was signed more than five minutes ago; Slack sends each at once",
        ));
    }
    Ok(())
}
