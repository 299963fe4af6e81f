//! Search. GitHub returns the first 1,000 matches of a query and allows few queries per minute.

use toolkit_sdk::prelude::*;

use crate::api::{API, Counted, Direction, Part, count, shorten, word};
use crate::issues::Issue;
use crate::pulls::full_name;
use crate::repositories::Repository;

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum RepositoryOrder {
    Stars,
    Forks,
    HelpWantedIssues,
    Updated,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct SearchRepositories {
    /// Words and qualifiers: `web framework language:rust stars:>1000`, `org:octo-org`,
    /// `user:octocat`, `topic:cli`, `pushed:>2026-01-01`, `archived:false`.
    #[schemars(length(min = 1, max = 256))]
    query: String,
    /// Order of the results. Defaults to the best match first.
    sort: Option<RepositoryOrder>,
    #[serde(default)]
    direction: Direction,
    #[serde(flatten)]
    part: Part,
}

/// Searches repositories by words, language, owner, topic, stars and dates.
#[tool(
    read_only,
    idempotent,
    open_world,
    example = r#"{"query": "web framework language:rust", "sort": "stars", "limit": 5}"#
)]
pub(crate) fn search_repositories(input: SearchRepositories) -> Result<Counted<Repository>> {
    let request = API
        .get("/search/repositories")
        .query("q", &input.query)
        .query_opt("sort", input.sort.map(word));
    count(request.query("order", word(input.direction)), &input.part)
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum IssueOrder {
    Comments,
    Reactions,
    Interactions,
    Created,
    Updated,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct SearchIssues {
    /// Words and qualifiers: `crash in:title repo:octo-org/octo-repo is:issue is:open label:bug`,
    /// `is:pr author:octocat`, `review-requested:@me`, `assignee:@me`, `no:assignee`,
    /// `updated:>2026-01-01`, `org:octo-org`.
    #[schemars(length(min = 1, max = 4096))]
    query: String,
    /// Order of the results. Defaults to the best match first.
    sort: Option<IssueOrder>,
    #[serde(default)]
    direction: Direction,
    #[serde(flatten)]
    part: Part,
}

/// Searches issues and pull requests by words, state, author, label, reviewer and dates, in one
/// repository or in all that the account may see. Include `is:issue` or `is:pr`.
#[tool(
    read_only,
    idempotent,
    open_world,
    important,
    scopes("repo"),
    example = r#"{"query": "repo:octo-org/octo-repo is:issue is:open crash"}"#,
    example = r#"{"query": "is:pr is:open review-requested:@me", "sort": "updated"}"#
)]
pub(crate) fn search_issues(input: SearchIssues) -> Result<Counted<Issue>> {
    let request = API
        .get("/search/issues")
        .query("q", &input.query)
        .query_opt("sort", input.sort.map(word))
        .query("order", word(input.direction))
        .query("advanced_search", true);
    Ok(count(request, &input.part)?.each(|issue: &mut Issue| shorten(&mut issue.body)))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct SearchCode {
    /// Words and qualifiers: `parse_header repo:octo-org/octo-repo`, `org:octo-org language:rust`,
    /// `path:src`, `filename:Cargo.toml`, `extension:rs`. At least one word is required.
    #[schemars(length(min = 1, max = 256))]
    query: String,
    #[serde(flatten)]
    part: Part,
}

/// A matching file.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct CodeMatch {
    path: String,
    /// Repository of the file: `OWNER/NAME`.
    #[serde(deserialize_with = "full_name")]
    repository: Option<String>,
    /// Fragments of the file around the matches.
    #[serde(rename(deserialize = "text_matches"), default)]
    fragments: Vec<Fragment>,
    /// URL of the web page.
    #[serde(rename(deserialize = "html_url"))]
    url: String,
}

/// A fragment of a file.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Fragment {
    #[serde(rename(deserialize = "fragment"), default)]
    text: String,
}

/// Searches the code of default branches, in files below 384 KB, and returns the matching
/// fragments. Read a file with `get_file`.
#[tool(
    read_only,
    idempotent,
    open_world,
    important,
    scopes("repo"),
    example = r#"{"query": "parse_header repo:octo-org/octo-repo"}"#
)]
pub(crate) fn search_code(input: SearchCode) -> Result<Counted<CodeMatch>> {
    let request = API.get("/search/code").query("q", &input.query);
    count(
        request.header("accept", "application/vnd.github.text-match+json"),
        &input.part,
    )
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct SearchUsers {
    /// Words and qualifiers: `ada in:name`, `type:org`, `location:Zurich`,
    /// `language:rust followers:>100`.
    #[schemars(length(min = 1, max = 256))]
    query: String,
    #[serde(flatten)]
    part: Part,
}

/// A matching user or organization.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct UserMatch {
    login: String,
    /// `User`, `Organization` or `Bot`.
    #[serde(rename = "type")]
    kind: String,
    /// URL of the web page.
    #[serde(rename(deserialize = "html_url"))]
    url: String,
}

/// Searches users and organizations by name, location, language and followers. `get_user` returns
/// more about one.
#[tool(
    read_only,
    idempotent,
    open_world,
    example = r#"{"query": "ada in:name", "limit": 5}"#
)]
pub(crate) fn search_users(input: SearchUsers) -> Result<Counted<UserMatch>> {
    count(
        API.get("/search/users").query("q", &input.query),
        &input.part,
    )
}
