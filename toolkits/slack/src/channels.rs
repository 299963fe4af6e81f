//! Channels and direct messages, which Slack calls conversations.

use toolkit_sdk::prelude::*;

use crate::api::{API, Page, Part, list};

/// A channel or conversation.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Channel {
    /// What other tools take as `channel`.
    id: String,
    /// Without `#`; direct messages have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The other person of a direct message.
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
    /// Whether the connected account is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    is_member: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    num_members: Option<u64>,
    #[serde(default, skip_serializing_if = "Words::is_empty")]
    topic: Words,
    #[serde(default, skip_serializing_if = "Words::is_empty")]
    purpose: Words,
}

/// A text that Slack keeps together with its author.
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
struct Answer {
    channel: Channel,
}

/// A kind of conversation.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    PublicChannel,
    PrivateChannel,
    /// Direct messages of two.
    Im,
    /// Direct messages of several.
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
    /// Which kinds.
    #[serde(default = "channels")]
    #[schemars(length(min = 1))]
    types: Vec<Kind>,
    /// Also those that are archived.
    #[serde(default)]
    archived: bool,
    #[serde(flatten)]
    part: Part,
}

/// Lists channels, and direct messages when asked for. Use it to find the id of a channel by its name.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("channels:read", "groups:read", "im:read", "mpim:read"),
    example = r#"{"types": ["public_channel"]}"#
)]
pub(crate) fn list_channels(input: ListChannels) -> Result<Page<Channel>> {
    let request = API.get("/conversations.list").query_list("types", input.types.iter().map(|kind| kind.word()), ",");
    list(request.query("exclude_archived", !input.archived), &input.part, "channels")
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct OfChannel {
    /// Id of a channel or conversation.
    #[schemars(length(min = 1))]
    channel: String,
}

/// Gets one channel or conversation: name, topic, purpose, how many members.
#[tool(
    read_only,
    idempotent,
    scopes("channels:read", "groups:read", "im:read", "mpim:read"),
    example = r#"{"channel": "C012AB3CD"}"#
)]
pub(crate) fn get_channel(input: OfChannel) -> Result<Channel> {
    let request = API.get("/conversations.info").query("channel", &input.channel).query("include_num_members", true);
    Ok(request.send()?.json::<Answer>()?.channel)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListMembers {
    #[serde(flatten)]
    of: OfChannel,
    #[serde(flatten)]
    part: Part,
}

/// Lists the ids of the people in a channel or conversation; `SLACK_GET_USER` tells who they are.
#[tool(
    read_only,
    idempotent,
    scopes("channels:read", "groups:read", "im:read", "mpim:read"),
    example = r#"{"channel": "C012AB3CD"}"#
)]
pub(crate) fn list_channel_members(input: ListMembers) -> Result<Page<String>> {
    list(API.get("/conversations.members").query("channel", &input.of.channel), &input.part, "members")
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewChannel {
    /// Lower-case letters, digits, `-` and `_`.
    #[schemars(length(min = 1, max = 80))]
    name: String,
    /// Only for those who are invited.
    #[serde(default)]
    is_private: bool,
}

/// Creates a channel; the connected account is its first member.
#[tool(scopes("channels:manage", "groups:write"), example = r#"{"name": "project-apollo"}"#)]
pub(crate) fn create_channel(input: NewChannel) -> Result<Channel> {
    let body = json!({ "name": input.name, "is_private": input.is_private });
    Ok(API.post("/conversations.create").json(&body).send()?.json::<Answer>()?.channel)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Invite {
    #[serde(flatten)]
    of: OfChannel,
    /// Ids of people.
    #[schemars(length(min = 1, max = 100))]
    users: Vec<String>,
}

/// Adds people to a channel. The connected account must be in it.
#[tool(
    scopes("channels:manage", "groups:write"),
    example = r#"{"channel": "C012AB3CD", "users": ["U012AB3CD", "U012AB3CE"]}"#
)]
pub(crate) fn invite_to_channel(input: Invite) -> Result<Channel> {
    let body = json!({ "channel": input.of.channel, "users": input.users.join(",") });
    Ok(API.post("/conversations.invite").json(&body).send()?.json::<Answer>()?.channel)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct With {
    /// Ids of the other people: one for a direct message, several for a group.
    #[schemars(length(min = 1, max = 8))]
    users: Vec<String>,
}

/// Opens a direct message with a person or several, or finds the one that there is. Send to the id that it answers.
#[tool(idempotent, important, scopes("im:write", "mpim:write"), example = r#"{"users": ["U012AB3CD"]}"#)]
pub(crate) fn open_conversation(input: With) -> Result<Channel> {
    let body = json!({ "users": input.users.join(","), "return_im": true });
    Ok(API.post("/conversations.open").json(&body).send()?.json::<Answer>()?.channel)
}
