//! Gists: small sets of files, each set at its own URL.

use std::collections::BTreeMap;

use toolkit_sdk::prelude::*;

use crate::api::{API, Done, Page, Part, done, is_false, list, login};

/// A gist.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Gist {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// True if the gist is listed publicly. A secret gist is visible only to those who have its
    /// URL.
    #[serde(default)]
    public: bool,
    /// Files by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    files: Option<BTreeMap<String, Option<GistFile>>>,
    /// Login of the owner.
    #[serde(
        default,
        deserialize_with = "login",
        skip_serializing_if = "Option::is_none"
    )]
    owner: Option<String>,
    #[serde(default)]
    created_at: String,
    #[serde(default)]
    updated_at: String,
    /// URL of the web page.
    #[serde(rename(deserialize = "html_url"), default)]
    url: String,
}

/// A file of a gist.
#[derive(Serialize, Deserialize, JsonSchema)]
struct GistFile {
    /// Size in bytes.
    #[serde(default)]
    size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    /// Content of the file; missing in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// True if `content` holds only the first megabyte.
    #[serde(default, skip_serializing_if = "is_false")]
    truncated: bool,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListGists {
    /// Login of a user whose public gists to list. Defaults to all gists of the connected account.
    username: Option<String>,
    #[serde(flatten)]
    part: Part,
}

/// Lists gists of the connected account, or the public ones of a user, without the content of their
/// files.
#[tool(
    read_only,
    idempotent,
    example = r#"{"limit": 10}"#,
    example = r#"{"username": "octocat"}"#
)]
pub(crate) fn list_gists(input: ListGists) -> Result<Page<Gist>> {
    let request = match &input.username {
        Some(username) => API
            .get("/users/{username}/gists")
            .path("username", username),
        None => API.get("/gists"),
    };
    list(request, &input.part)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct GistId {
    /// Id of the gist: the last part of its URL.
    #[schemars(length(min = 1))]
    gist_id: String,
}

/// Gets one gist with the content of its files.
#[tool(
    read_only,
    idempotent,
    example = r#"{"gist_id": "2decf6c462d9b4418f2"}"#
)]
pub(crate) fn get_gist(input: GistId) -> Result<Gist> {
    API.get("/gists/{gist_id}")
        .path("gist_id", &input.gist_id)
        .send()?
        .json()
}

/// The content of a file.
#[derive(Deserialize, Serialize, JsonSchema)]
struct NewFile {
    #[schemars(length(min = 1))]
    content: String,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub(crate) struct NewGist {
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Files by name: `{"hello.py": {"content": "print(1)"}}`.
    #[schemars(length(min = 1))]
    files: BTreeMap<String, NewFile>,
    /// Lists the gist publicly. A secret gist is visible only to those who have its URL.
    #[serde(default)]
    public: bool,
}

/// Creates a gist of one or more text files, secret unless `public`.
#[tool(
    scopes("gist"),
    example = r##"{"description": "Notes", "files": {"notes.md": {"content": "# Notes"}}}"##
)]
pub(crate) fn create_gist(input: NewGist) -> Result<Gist> {
    API.post("/gists").json(&input).send()?.json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct UpdateGist {
    #[serde(flatten)]
    gist: GistId,
    #[serde(flatten)]
    changes: GistChanges,
}

/// Changes of a gist. Fields that are left out stay unchanged.
#[derive(Deserialize, Serialize, JsonSchema)]
struct GistChanges {
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Files to add or replace, by name; `null` deletes one: `{"old.md": null}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, Option<NewFile>>,
}

/// Changes the description of a gist, or adds, replaces and deletes files in it.
#[tool(
    destructive,
    idempotent,
    scopes("gist"),
    example = r##"{"gist_id": "2decf6c462d9b4418f2", "files": {"notes.md": {"content": "# More notes"}, "old.md": null}}"##
)]
pub(crate) fn update_gist(input: UpdateGist) -> Result<Gist> {
    API.patch("/gists/{gist_id}")
        .path("gist_id", &input.gist.gist_id)
        .json(&input.changes)
        .send()?
        .json()
}

/// Deletes a gist permanently.
#[tool(
    destructive,
    scopes("gist"),
    example = r#"{"gist_id": "2decf6c462d9b4418f2"}"#
)]
pub(crate) fn delete_gist(input: GistId) -> Result<Done> {
    done(
        API.delete("/gists/{gist_id}")
            .path("gist_id", &input.gist_id),
    )
}
