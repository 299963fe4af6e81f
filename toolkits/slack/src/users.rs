//! People and bots.

use toolkit_sdk::prelude::*;

use crate::api::{API, Page, Part, list};
use crate::time;

/// A person or a bot.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct User {
    /// What other tools take; `<@ID>` in a message mentions the person.
    id: String,
    /// Short name.
    name: String,
    /// Time zone, for example `Europe/Amsterdam`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tz: Option<String>,
    #[serde(default)]
    is_bot: bool,
    /// The account was closed.
    #[serde(default)]
    deleted: bool,
    #[serde(default)]
    profile: Profile,
}

/// What people say about themselves.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct Profile {
    real_name: String,
    display_name: String,
    /// Only told to accounts with the scope users:read.email.
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
struct Answer {
    user: User,
}

/// The connected account.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Me {
    /// Id of the person, or of the app's own user.
    user_id: String,
    user: String,
    team_id: String,
    team: String,
    /// Address of the workspace.
    url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bot_id: Option<String>,
}

/// Tells who the connected account is, and in which workspace.
#[tool(read_only, idempotent, important, example = r#"{}"#)]
pub(crate) fn get_me() -> Result<Me> {
    API.get("/auth.test").send()?.json()
}

/// Lists people and bots of the workspace, those whose accounts were closed too.
#[tool(read_only, idempotent, scopes("users:read"), example = r#"{"limit": 50}"#)]
pub(crate) fn list_users(input: Part) -> Result<Page<User>> {
    list(API.get("/users.list"), &input, "members")
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct UserId {
    /// Id of a person or bot.
    #[schemars(length(min = 1))]
    user: String,
}

/// Gets a person or bot by id: name, title, time zone, status. Use it to tell who wrote a message.
#[tool(read_only, idempotent, important, scopes("users:read"), example = r#"{"user": "U012AB3CD"}"#)]
pub(crate) fn get_user(input: UserId) -> Result<User> {
    Ok(API.get("/users.info").query("user", &input.user).send()?.json::<Answer>()?.user)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Email {
    #[schemars(length(min = 3), extend("format" = "email"))]
    email: String,
}

/// Finds a person by email address.
#[tool(read_only, idempotent, scopes("users:read", "users:read.email"), example = r#"{"email": "ada@example.com"}"#)]
pub(crate) fn find_user_by_email(input: Email) -> Result<User> {
    Ok(API.get("/users.lookupByEmail").query("email", &input.email).send()?.json::<Answer>()?.user)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewStatus {
    /// Shown beside the name; empty to show none.
    #[schemars(length(max = 100))]
    text: String,
    /// For example `:palm_tree:`; left out, Slack shows a speech balloon.
    #[serde(default)]
    emoji: String,
    /// When it goes away, RFC 3339; left out, it stays.
    until: Option<String>,
}

/// The status that is shown now.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Status {
    status_text: String,
    status_emoji: String,
}

#[derive(Deserialize)]
struct Changed {
    profile: Status,
}

// Its scope, users.profile:write, is one of user tokens: asked for together with those of a bot, Slack would refuse them all.
/// Sets what the connected person's status says. Needs a user token (xoxp-…) with the scope users.profile:write.
#[tool(idempotent, example = r#"{"text": "On holiday", "emoji": ":palm_tree:", "until": "2026-12-31T23:00:00Z"}"#)]
pub(crate) fn set_status(input: NewStatus) -> Result<Status> {
    let expiration = input.until.as_deref().map(time::seconds).transpose()?.unwrap_or(0);
    let profile = json!({ "status_text": input.text, "status_emoji": input.emoji, "status_expiration": expiration });
    Ok(API.post("/users.profile.set").json(&json!({ "profile": profile })).send()?.json::<Changed>()?.profile)
}
