//! Users.

use toolkit_sdk::prelude::*;

use crate::items::{API, MAX_ITEMS};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Name {
    /// Name of the user, in upper and lower case as on the site.
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]{1,64}$"))]
    name: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct User {
    name: String,
    karma: i64,
    /// Time at which the account was created, in seconds since 1970.
    created_at: u64,
    /// Self-description of the user, as HTML.
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<String>,
    /// Number of the user's stories and comments.
    post_count: usize,
    /// Numbers of the latest 30 posts, newest first.
    latest_posts: Vec<u64>,
}

#[derive(Deserialize)]
struct Stored {
    id: String,
    #[serde(default)]
    karma: i64,
    #[serde(default)]
    created: u64,
    about: Option<String>,
    #[serde(default)]
    submitted: Vec<u64>,
}

/// Gets a user of Hacker News by name: karma, age of the account, self-description, and latest
/// posts. To read all posts of a user use `search_posts` with `author`.
#[tool(read_only, idempotent, open_world, example = r#"{"name": "pg"}"#)]
pub(crate) fn get_user(input: Name) -> Result<User> {
    let found: Option<Stored> = API
        .get("/user/{name}.json")
        .path("name", &input.name)
        .send()?
        .json()?;
    let Some(mut user) = found else {
        return Err(ToolError::not_found(format!(
            "Hacker News has no user `{}`",
            input.name
        )));
    };
    let post_count = user.submitted.len();
    user.submitted.truncate(MAX_ITEMS);
    Ok(User {
        name: user.id,
        karma: user.karma,
        created_at: user.created,
        about: user.about,
        post_count,
        latest_posts: user.submitted,
    })
}
