//! Channels and direct messages, which Slack calls conversations.

use toolkit_sdk::prelude::*;

use crate::api::{API, Page, Part, list};

/// A channel or conversation.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Channel {
    /// Id of the channel, for `channel` of other tools.
    id: String,
    /// Name without `#`; missing for direct messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Id of the other user of a direct message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(default)]
    is_private: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    is_im: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    is_mpim: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    is_archived: bool,
    /// True if the connected account is a member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    is_member: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    num_members: Option<u64>,
    #[serde(default, skip_serializing_if = "Words::is_empty")]
    topic: Words,
    #[serde(default, skip_serializing_if = "Words::is_empty")]
    purpose: Words,
}

/// A text that Slack stores together with its author.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Words {
    value: String,
}

impl Words {
    fn is_empty(&self) -> bool {
        self.value.is_empty()
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

#[derive(Deserialize)]
struct ResponseBody {
    channel: Channel,
}

/// A kind of conversation.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    PublicChannel,
    PrivateChannel,
    /// Direct messages of two users.
    Im,
    /// Direct messages of several users.
    Mpim,
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::PublicChannel => "public_channel",
            Self::PrivateChannel => "private_channel",
            Self::Im => "im",
            Self::Mpim => "mpim",
        }
    }
}

fn channels() -> Vec<Kind> {
    vec![Kind::PublicChannel, Kind::PrivateChannel]
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListChannels {
    /// Kinds of conversations to list.
    #[serde(default = "channels")]
    #[schemars(length(min = 1))]
    types: Vec<Kind>,
    /// Includes archived channels.
    #[serde(default)]
    archived: bool,
    #[serde(flatten)]
    part: Part,
}

/// Lists channels, and direct messages if requested. Use it to find the id of a channel by its
/// name.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("channels:read", "groups:read", "im:read", "mpim:read"),
    example = r#"{"types": ["public_channel"]}"#
)]
pub(crate) fn list_channels(input: ListChannels) -> Result<Page<Channel>> {
    let request = API.get("/conversations.list").query_list(
        "types",
        input.types.iter().map(|kind| kind.word()),
        ",",
    );
    list(
        request.query("exclude_archived", !input.archived),
        &input.part,
        "channels",
    )
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct OfChannel {
    /// Id of a channel or conversation.
    #[schemars(length(min = 1))]
    channel: String,
}

/// Gets one channel or conversation: name, topic, purpose, number of members.
#[tool(
    read_only,
    idempotent,
    scopes("channels:read", "groups:read", "im:read", "mpim:read"),
    example = r#"{"channel": "C012AB3CD"}"#
)]
pub(crate) fn get_channel(input: OfChannel) -> Result<Channel> {
    let request = API
        .get("/conversations.info")
        .query("channel", &input.channel)
        .query("include_num_members", true);
    Ok(request.send()?.json::<ResponseBody>()?.channel)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListMembers {
    #[serde(flatten)]
    of: OfChannel,
    #[serde(flatten)]
    part: Part,
}

/// Lists the ids of the members of a channel or conversation; `SLACK_GET_USER` gets their names.
#[tool(
    read_only,
    idempotent,
    scopes("channels:read", "groups:read", "im:read", "mpim:read"),
    example = r#"{"channel": "C012AB3CD"}"#
)]
pub(crate) fn list_channel_members(input: ListMembers) -> Result<Page<String>> {
    list(
        API.get("/conversations.members")
            .query("channel", &input.of.channel),
        &input.part,
        "members",
    )
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewChannel {
    /// Name of lower-case letters, digits, `-` and `_`.
    #[schemars(length(min = 1, max = 80))]
    name: String,
    /// Makes the channel visible only to invited users.
    #[serde(default)]
    is_private: bool,
}

/// Creates a channel; the connected account is its first member.
#[tool(
    scopes("channels:manage", "groups:write"),
    example = r#"{"name": "project-apollo"}"#
)]
pub(crate) fn create_channel(input: NewChannel) -> Result<Channel> {
    let body = json!({ "name": input.name, "is_private": input.is_private });
    Ok(API
        .post("/conversations.create")
        .json(&body)
        .send()?
        .json::<ResponseBody>()?
        .channel)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Invite {
    #[serde(flatten)]
    of: OfChannel,
    /// Ids of users.
    #[schemars(length(min = 1, max = 100))]
    users: Vec<String>,
}

/// Adds users to a channel. The connected account must be a member of it.
#[tool(
    scopes("channels:manage", "groups:write"),
    example = r#"{"channel": "C012AB3CD", "users": ["U012AB3CD", "U012AB3CE"]}"#
)]
pub(crate) fn invite_to_channel(input: Invite) -> Result<Channel> {
    let body = json!({ "channel": input.of.channel, "users": input.users.join(",") });
    Ok(API
        .post("/conversations.invite")
        .json(&body)
        .send()?
        .json::<ResponseBody>()?
        .channel)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct With {
    /// Ids of the other users: one for a direct message, several for a group.
    #[schemars(length(min = 1, max = 8))]
    users: Vec<String>,
}

/// Opens a direct message with one or more users, or finds the existing one. Send messages to the
/// id that it returns.
#[tool(
    idempotent,
    important,
    scopes("im:write", "mpim:write"),
    example = r#"{"users": ["U012AB3CD"]}"#
)]
pub(crate) fn open_conversation(input: With) -> Result<Channel> {
    let body = json!({ "users": input.users.join(","), "return_im": true });
    Ok(API
        .post("/conversations.open")
        .json(&body)
        .send()?
        .json::<ResponseBody>()?
        .channel)
}
