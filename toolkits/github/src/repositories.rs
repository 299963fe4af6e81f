//! Repositories.

use toolkit_sdk::prelude::*;

use crate::api::{API, Page, Part, Repo, is_false, list, word};

/// A repository.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Repository {
    /// Full name: `OWNER/NAME`.
    full_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    private: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    fork: bool,
    /// True if the repository is read-only.
    #[serde(default, skip_serializing_if = "is_false")]
    archived: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default_branch: Option<String>,
    /// The main programming language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    topics: Option<Vec<String>>,
    #[serde(
        rename(deserialize = "stargazers_count"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    stars: Option<u64>,
    #[serde(
        rename(deserialize = "forks_count"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    forks: Option<u64>,
    /// Number of open issues and pull requests together.
    #[serde(
        rename(deserialize = "open_issues_count"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    open_issues: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    license: Option<License>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    homepage: Option<String>,
    /// Permissions of the connected account in this repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    permissions: Option<Permissions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
    /// Time of the last push.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pushed_at: Option<String>,
    /// URL of the web page.
    #[serde(rename(deserialize = "html_url"))]
    url: String,
}

/// A license.
#[derive(Serialize, Deserialize, JsonSchema)]
struct License {
    name: String,
    /// SPDX identifier, for example `MIT`; `NOASSERTION` if GitHub does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spdx_id: Option<String>,
}

/// Permissions in a repository.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Permissions {
    #[serde(default)]
    admin: bool,
    #[serde(default)]
    push: bool,
    #[serde(default)]
    pull: bool,
}

/// Gets one repository: description, default branch, language, license, counts, and permissions of
/// the connected account.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo"}"#
)]
pub(crate) fn get_repository(input: Repo) -> Result<Repository> {
    input.get("").send()?.json()
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Order {
    Created,
    /// Time of the last change of settings or description.
    Updated,
    /// Time of the last push.
    #[default]
    Pushed,
    /// Full name.
    FullName,
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Visibility {
    #[default]
    All,
    Public,
    Private,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListMine {
    #[serde(default)]
    visibility: Visibility,
    #[serde(default)]
    sort: Order,
    #[serde(flatten)]
    part: Part,
}

/// Lists the repositories that the connected account owns or has access to, including private ones,
/// last pushed first.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("repo"),
    example = r#"{"visibility": "private", "limit": 10}"#
)]
pub(crate) fn list_my_repositories(input: ListMine) -> Result<Page<Repository>> {
    let request = API
        .get("/user/repos")
        .query("visibility", word(input.visibility));
    list(request.query("sort", word(input.sort)), &input.part)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListOfUser {
    /// Login of the user.
    #[schemars(length(min = 1))]
    username: String,
    #[serde(default)]
    sort: Order,
    #[serde(flatten)]
    part: Part,
}

/// Lists the public repositories of a user.
#[tool(read_only, idempotent, example = r#"{"username": "octocat"}"#)]
pub(crate) fn list_user_repositories(input: ListOfUser) -> Result<Page<Repository>> {
    let request = API
        .get("/users/{username}/repos")
        .path("username", &input.username);
    list(request.query("sort", word(input.sort)), &input.part)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListOfOrganization {
    /// Login of the organization.
    #[schemars(length(min = 1))]
    org: String,
    #[serde(default)]
    sort: Order,
    #[serde(flatten)]
    part: Part,
}

/// Lists the repositories of an organization that the connected account may see.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"org": "octo-org"}"#
)]
pub(crate) fn list_organization_repositories(
    input: ListOfOrganization,
) -> Result<Page<Repository>> {
    let request = API.get("/orgs/{org}/repos").path("org", &input.org);
    list(request.query("sort", word(input.sort)), &input.part)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CreateRepository {
    /// Login of the organization that owns the repository. Defaults to the connected account.
    org: Option<String>,
    #[serde(flatten)]
    repository: NewRepository,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct NewRepository {
    /// Name of letters, digits, `-`, `_` and `.`.
    #[schemars(length(min = 1, max = 100))]
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default = "yes")]
    private: bool,
    /// Starts the repository with a README, and so with a branch. Without it, branches and files
    /// need a push or `put_file` first.
    #[serde(default)]
    auto_init: bool,
    /// Template of the `.gitignore` file: `Rust`, `Python`.
    #[serde(skip_serializing_if = "Option::is_none")]
    gitignore_template: Option<String>,
    /// Template of the license: `mit`, `apache-2.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    license_template: Option<String>,
}

fn yes() -> bool {
    true
}

/// Creates a repository, private by default, for the connected account or an organization.
#[tool(
    scopes("repo"),
    example = r#"{"name": "octo-repo", "description": "For tests.", "auto_init": true}"#
)]
pub(crate) fn create_repository(input: CreateRepository) -> Result<Repository> {
    let request = match &input.org {
        Some(org) => API.post("/orgs/{org}/repos").path("org", org),
        None => API.post("/user/repos"),
    };
    request.json(&input.repository).send()?.json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Fork {
    #[serde(flatten)]
    repo: Repo,
    #[serde(flatten)]
    fork: NewFork,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct NewFork {
    /// Login of the organization that owns the fork. Defaults to the connected account.
    #[serde(skip_serializing_if = "Option::is_none")]
    organization: Option<String>,
    /// Name of the fork, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Copies only the default branch.
    #[serde(default)]
    default_branch_only: bool,
}

/// Forks a repository. GitHub copies it in the background: the fork may be empty for some minutes.
#[tool(
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "default_branch_only": true}"#
)]
pub(crate) fn fork_repository(input: Fork) -> Result<Repository> {
    input.repo.post("/forks").json(&input.fork).send()?.json()
}
