//! Triggers: events that Slack sends to an app (Events API), and polling for messages of one
//! channel.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use toolkit_sdk::mismatch;
use toolkit_sdk::prelude::*;
use toolkit_sdk::webhook::{Secret, Signature};

use crate::api::API;
use crate::messages::Message;

/// Signature of a request: HMAC-SHA256 over version, time and body
/// (<https://docs.slack.dev/authentication/verifying-requests-from-slack>).
const WEBHOOK_SIGNATURE: Signature = Signature::header("x-slack-signature")
    .prefix("v0=")
    .hint("enter the signing secret of the app that sends here");
/// Max age of a request, in seconds. An older one may be a replay of a captured request.
const MAX_REQUEST_AGE_SECONDS: u64 = 5 * 60;
/// Max number of messages that one poll reads. More are not expected between two polls.
const MAX_MESSAGES_PER_POLL: usize = 1000;
/// Number of messages that one request reads.
const PAGE_SIZE: usize = 100;
/// Max number of messages that one poll reports. The next poll follows immediately.
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

/// Fires for the events to which a Slack app subscribes: messages, mentions, reactions, new members
/// and so on. Needs an app at api.slack.com/apps with the URL of this trigger under Event
/// Subscriptions, and its signing secret here.
#[trigger(webhook)]
pub(crate) fn event_received(config: Config, request: Inbound) -> Result<Received<Event>> {
    receive(&config.signing_secret, &request, |event| {
        let kind = event["type"].as_str().unwrap_or_default();
        (config.types.is_empty() || config.types.iter().any(|wanted| wanted == kind))
            && is_in(event, config.channel.as_deref())
    })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Mentions {
    /// Signing secret of the app: api.slack.com/apps, the app, Basic Information.
    #[schemars(length(min = 16))]
    signing_secret: Secret,
    /// Only mentions in the channel with this id.
    channel: Option<String>,
}

/// A message that mentions the app.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Mention {
    /// Id of the channel.
    channel: String,
    /// Id of the author; missing for a bot without a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// Text, in Slack's markup; the mention is `<@USER_ID>`.
    text: String,
    /// Id of the message within its channel.
    ts: String,
    /// `ts` of the first message of the thread, for a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thread_ts: Option<String>,
}

/// Fires when a message mentions the app in a channel of which it is a member. Needs an app at
/// api.slack.com/apps that subscribes to `app_mention`, with the URL of this trigger under Event
/// Subscriptions, and its signing secret here.
#[trigger(webhook)]
pub(crate) fn app_mentioned(config: Mentions, request: Inbound) -> Result<Received<Mention>> {
    receive(&config.signing_secret, &request, |event| {
        event["type"] == "app_mention" && is_in(event, config.channel.as_deref())
    })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Reactions {
    /// Signing secret of the app: api.slack.com/apps, the app, Basic Information.
    #[schemars(length(min = 16))]
    signing_secret: Secret,
    /// Only these emoji, by name and without colons: `white_check_mark`. If empty, all.
    #[serde(default)]
    reactions: Vec<String>,
    /// Only reactions in the channel with this id.
    channel: Option<String>,
}

/// A reaction to a message.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Reaction {
    /// Name of the emoji, without colons.
    reaction: String,
    /// Id of the user who reacted.
    user: String,
    /// Id of the author of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item_user: Option<String>,
    item: Reacted,
    /// Time of the reaction, in seconds since 1970.
    event_ts: String,
}

/// The message of a reaction.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Reacted {
    /// Id of the channel.
    channel: String,
    /// Id of the message within its channel.
    ts: String,
}

/// Fires when a user adds a reaction to a message of a channel of which the app is a member. Needs
/// an app at api.slack.com/apps that subscribes to `reaction_added`, with the URL of this trigger
/// under Event Subscriptions, and its signing secret here.
#[trigger(webhook)]
pub(crate) fn reaction_added(config: Reactions, request: Inbound) -> Result<Received<Reaction>> {
    receive(&config.signing_secret, &request, |event| {
        let reaction = event["reaction"].as_str().unwrap_or_default();
        event["type"] == "reaction_added"
            && event["item"]["type"] == "message"
            && (config.reactions.is_empty()
                || config.reactions.iter().any(|wanted| wanted == reaction))
            && is_in(event, config.channel.as_deref())
    })
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
        event: Value,
    },
    #[serde(other)]
    Other,
}

/// Verifies a request, and reports its event if it is wanted. The challenge of a new URL is
/// answered.
fn receive<T: DeserializeOwned>(
    secret: &Secret,
    request: &Inbound,
    is_wanted: impl FnOnce(&Value) -> bool,
) -> Result<Received<T>> {
    verify(secret, request)?;
    let (id, event) = match request.json()? {
        Delivery::UrlVerification { challenge } => return Ok(Received::nothing().answer(challenge)),
        Delivery::EventCallback { event_id, event } => (event_id, event),
        Delivery::Other => return Ok(Received::nothing()),
    };
    if !is_wanted(&event) {
        return Ok(Received::nothing());
    }
    let event = T::deserialize(event).map_err(|cause| {
        let reason = mismatch::reason(&cause);
        ToolError::invalid_input(format!("the event does not have Slack's form: {reason}"))
    })?;
    Ok(Received::event(id, event))
}

/// Returns true if an event is in a channel, which Slack sends in three forms, or if no channel is
/// given.
fn is_in(event: &Value, channel: Option<&str>) -> bool {
    let place = event.get("channel").unwrap_or(&event["item"]["channel"]);
    let id = place.as_str().or_else(|| place["id"].as_str());
    channel.is_none() || id == channel
}

/// Verifies the signature of a request, and refuses old requests.
fn verify(secret: &Secret, request: &Inbound) -> Result<()> {
    let time = request
        .header("x-slack-request-timestamp")
        .unwrap_or_default();
    let message = [b"v0:", time.as_bytes(), b":", &request.body];
    WEBHOOK_SIGNATURE.verify_message(request, secret, message)?;
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
