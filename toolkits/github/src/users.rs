//! Users and organizations.

use toolkit_sdk::prelude::*;

use crate::api::API;

/// A user or an organization.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct User {
    login: String,
    /// `User`, `Organization` or `Bot`.
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    email: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bio: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    company: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    #[serde(
        rename(deserialize = "blog"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    website: Option<String>,
    #[serde(default)]
    public_repos: u64,
    #[serde(default)]
    followers: u64,
    #[serde(default)]
    following: u64,
    created_at: String,
    /// URL of the web page.
    #[serde(rename(deserialize = "html_url"))]
    url: String,
}

/// Gets the connected account: its login and profile. Use it to find the account's own repositories
/// and issues.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("read:user"),
    example = r#"{}"#
)]
pub(crate) fn get_me() -> Result<User> {
    API.get("/user").send()?.json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Username {
    /// Login of the user or organization.
    #[schemars(length(min = 1))]
    username: String,
}

/// Gets the public profile of a user or organization by login.
#[tool(read_only, idempotent, example = r#"{"username": "octocat"}"#)]
pub(crate) fn get_user(input: Username) -> Result<User> {
    API.get("/users/{username}")
        .path("username", &input.username)
        .send()?
        .json()
}
