//! Users and bots.

use toolkit_sdk::prelude::*;

use crate::api::{API, Page, Part, list};
use crate::time;

/// A user or a bot.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct User {
    /// Id for other tools; `<@ID>` in a message mentions the user.
    id: String,
    /// Short name.
    name: String,
    /// Time zone, for example `Europe/Amsterdam`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tz: Option<String>,
    #[serde(default)]
    is_bot: bool,
    /// True if the account was deactivated.
    #[serde(default)]
    deleted: bool,
    #[serde(default)]
    profile: Profile,
}

/// Profile of a user.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Profile {
    real_name: String,
    display_name: String,
    /// Email address; present only with the scope users:read.email.
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    status_text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    status_emoji: String,
}

#[derive(Deserialize)]
struct ResponseBody {
    user: User,
}

/// The connected account.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Me {
    /// Id of the user, or of the app's own bot user.
    user_id: String,
    user: String,
    team_id: String,
    team: String,
    /// URL of the workspace.
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bot_id: Option<String>,
}

/// Gets the user and the workspace of the connected account.
#[tool(read_only, idempotent, important, example = r#"{}"#)]
pub(crate) fn get_me() -> Result<Me> {
    API.get("/auth.test").send()?.json()
}

/// Lists users and bots of the workspace, including deactivated accounts.
#[tool(
    read_only,
    idempotent,
    scopes("users:read"),
    example = r#"{"limit": 50}"#
)]
pub(crate) fn list_users(input: Part) -> Result<Page<User>> {
    list(API.get("/users.list"), &input, "members")
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct UserId {
    /// Id of a user or bot.
    #[schemars(length(min = 1))]
    user: String,
}

/// Gets a user or bot by id: name, title, time zone, status. Use it to find the author of a
/// message.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("users:read"),
    example = r#"{"user": "U012AB3CD"}"#
)]
pub(crate) fn get_user(input: UserId) -> Result<User> {
    Ok(API
        .get("/users.info")
        .query("user", &input.user)
        .send()?
        .json::<ResponseBody>()?
        .user)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Email {
    #[schemars(length(min = 3), extend("format" = "email"))]
    email: String,
}

/// Finds a user by email address.
#[tool(
    read_only,
    idempotent,
    scopes("users:read", "users:read.email"),
    example = r#"{"email": "ada@example.com"}"#
)]
pub(crate) fn find_user_by_email(input: Email) -> Result<User> {
    Ok(API
        .get("/users.lookupByEmail")
        .query("email", &input.email)
        .send()?
        .json::<ResponseBody>()?
        .user)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewStatus {
    /// Text shown beside the name; empty for none.
    #[schemars(length(max = 100))]
    text: String,
    /// Emoji, for example `:palm_tree:`. By default, Slack shows a speech balloon.
    #[serde(default)]
    emoji: String,
    /// Time at which the status is removed, RFC 3339. By default, it stays.
    until: Option<String>,
}

/// The current status.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Status {
    status_text: String,
    status_emoji: String,
}

#[derive(Deserialize)]
struct Changed {
    profile: Status,
}

// The scope users.profile:write is for user tokens. It is not declared, since Slack would refuse a
// request for it together with bot scopes.
/// Sets the status of the connected user. Needs a user token (xoxp-…) with the scope
/// users.profile:write.
#[tool(
    idempotent,
    example = r#"{"text": "On holiday", "emoji": ":palm_tree:", "until": "2026-12-31T23:00:00Z"}"#
)]
pub(crate) fn set_status(input: NewStatus) -> Result<Status> {
    let expiration = input
        .until
        .as_deref()
        .map(time::seconds)
        .transpose()?
        .unwrap_or(0);
    let profile = json!({ "status_text": input.text, "status_emoji": input.emoji, "status_expiration": expiration });
    Ok(API
        .post("/users.profile.set")
        .json(&json!({ "profile": profile }))
        .send()?
        .json::<Changed>()?
        .profile)
}
