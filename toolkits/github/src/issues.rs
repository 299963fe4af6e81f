//! Issues. For GitHub a pull request is also an issue; the tools say so where it matters.

use serde::Deserializer;
use serde::de::IgnoredAny;
use toolkit_sdk::prelude::*;

use crate::api::{
    Direction, Done, Page, Part, Repo, done, is_false, list, login, logins, shorten, word,
};
use crate::labels::label_names;

/// An issue, or a pull request in the form of an issue.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Issue {
    pub(crate) number: u64,
    title: String,
    /// Repository of the issue: `OWNER/NAME`.
    #[serde(
        rename(deserialize = "repository_url"),
        default,
        deserialize_with = "repository",
        skip_serializing_if = "Option::is_none"
    )]
    repository: Option<String>,
    /// `open` or `closed`.
    state: String,
    /// Reason for the state: `completed`, `not_planned` or `duplicate` if closed, `reopened` if
    /// open again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state_reason: Option<String>,
    /// Login of the author.
    #[serde(
        rename(deserialize = "user"),
        default,
        deserialize_with = "login",
        skip_serializing_if = "Option::is_none"
    )]
    author: Option<String>,
    /// Text, in Markdown; in lists a long text is cut and ends in `…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) body: Option<String>,
    #[serde(default, deserialize_with = "label_names")]
    labels: Vec<String>,
    /// Logins of the assignees.
    #[serde(default, deserialize_with = "logins")]
    assignees: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    milestone: Option<Milestone>,
    #[serde(rename(deserialize = "comments"), default)]
    comment_count: u64,
    /// True if only collaborators may comment.
    #[serde(default, skip_serializing_if = "is_false")]
    locked: bool,
    /// True if it is a pull request; `get_pull_request` returns more.
    #[serde(
        rename(deserialize = "pull_request"),
        default,
        deserialize_with = "is_there",
        skip_serializing_if = "is_false"
    )]
    pub(crate) is_pull_request: bool,
    created_at: String,
    updated_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    closed_at: Option<String>,
    /// URL of the web page.
    #[serde(rename(deserialize = "html_url"))]
    url: String,
}

/// A milestone.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Milestone {
    number: u64,
    title: String,
}

/// Deserializes an API URL such as `https://api.github.com/repos/OWNER/NAME` to `OWNER/NAME`.
fn repository<'de, D: Deserializer<'de>>(json: D) -> Result<Option<String>, D::Error> {
    let address = Option::<String>::deserialize(json)?;
    Ok(address.and_then(|address| Some(address.split_once("/repos/")?.1.to_owned())))
}

fn is_there<'de, D: Deserializer<'de>>(json: D) -> Result<bool, D::Error> {
    Ok(Option::<IgnoredAny>::deserialize(json)?.is_some())
}

/// State of the issues or pull requests to list.
#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Listed {
    #[default]
    Open,
    Closed,
    All,
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    /// Time of creation.
    #[default]
    Created,
    /// Time of the last change.
    Updated,
    /// Number of comments.
    Comments,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListIssues {
    #[serde(flatten)]
    repo: Repo,
    #[serde(default)]
    state: Listed,
    /// Only issues with all of these labels.
    #[serde(default)]
    labels: Vec<String>,
    /// Login of an assignee; `none` for issues without assignee, `*` for any.
    assignee: Option<String>,
    /// Login of the author.
    creator: Option<String>,
    /// Number of a milestone; `none` for issues without one, `*` for any.
    milestone: Option<String>,
    /// Only issues changed since this time, RFC 3339: `2026-01-31T00:00:00Z`.
    since: Option<String>,
    #[serde(default)]
    sort: Order,
    #[serde(default)]
    direction: Direction,
    #[serde(flatten)]
    part: Part,
}

/// Lists the issues of a repository, by state, label, assignee, author or milestone. The list
/// contains pull requests, marked by `is_pull_request`; `list_pull_requests` lists those alone. To
/// find issues by words or in several repositories use `search_issues`.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "labels": ["bug"], "limit": 10}"#
)]
pub(crate) fn list_issues(input: ListIssues) -> Result<Page<Issue>> {
    let request = input
        .repo
        .get("/issues")
        .query("state", word(input.state))
        .query_list("labels", &input.labels, ",")
        .query_opt("assignee", input.assignee)
        .query_opt("creator", input.creator)
        .query_opt("milestone", input.milestone)
        .query_opt("since", input.since)
        .query("sort", word(input.sort))
        .query("direction", word(input.direction));
    Ok(list(request, &input.part)?.each(|issue: &mut Issue| shorten(&mut issue.body)))
}

/// An issue, by its number.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct IssueNumber {
    #[serde(flatten)]
    pub(crate) repo: Repo,
    /// Number of the issue or pull request: 7 in `#7`.
    #[schemars(range(min = 1))]
    pub(crate) issue_number: u64,
}

impl IssueNumber {
    /// Fills in the issue number of a path.
    pub(crate) fn fill(&self, request: Request) -> Request {
        request.path("issue_number", self.issue_number)
    }
}

/// Gets one issue with its text, labels, assignees and state. Its comments are read by
/// `list_issue_comments`.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "issue_number": 7}"#
)]
pub(crate) fn get_issue(input: IssueNumber) -> Result<Issue> {
    input
        .fill(input.repo.get("/issues/{issue_number}"))
        .send()?
        .json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CreateIssue {
    #[serde(flatten)]
    repo: Repo,
    #[serde(flatten)]
    issue: NewIssue,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct NewIssue {
    #[schemars(length(min = 1))]
    title: String,
    /// Text, in Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// Names of labels; missing labels are created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    /// Logins of the assignees, at most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    assignees: Vec<String>,
    /// Number of a milestone.
    #[serde(skip_serializing_if = "Option::is_none")]
    milestone: Option<u64>,
}

/// Opens an issue. GitHub silently drops labels, assignees and milestone if the account may not set
/// them: compare the response.
#[tool(
    important,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "title": "Crash on start", "body": "It stops.", "labels": ["bug"]}"#
)]
pub(crate) fn create_issue(input: CreateIssue) -> Result<Issue> {
    input.repo.post("/issues").json(&input.issue).send()?.json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct UpdateIssue {
    #[serde(flatten)]
    issue: IssueNumber,
    #[serde(flatten)]
    changes: IssueChanges,
}

/// Changes of an issue. Fields that are left out stay unchanged.
#[derive(Deserialize, Serialize, JsonSchema)]
struct IssueChanges {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The whole new text, in Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// New state: closes or reopens the issue.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
    /// Reason for the new state; only together with `state`.
    #[serde(skip_serializing_if = "Option::is_none")]
    state_reason: Option<Reason>,
    /// All labels that the issue should have; `[]` for none. To add or remove single ones use
    /// `add_issue_labels` and `remove_issue_label`.
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<Vec<String>>,
    /// Logins of all assignees that the issue should have; `[]` for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    assignees: Option<Vec<String>>,
    /// Number of a milestone.
    #[serde(skip_serializing_if = "Option::is_none")]
    milestone: Option<u64>,
}

/// State of an issue or pull request.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Open,
    Closed,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Reason {
    Completed,
    NotPlanned,
    Duplicate,
    Reopened,
}

/// Changes an issue: title, text, labels, assignees, milestone or state. Give only the fields to
/// change.
#[tool(
    destructive,
    idempotent,
    important,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "issue_number": 7, "state": "closed", "state_reason": "completed"}"#
)]
pub(crate) fn update_issue(input: UpdateIssue) -> Result<Issue> {
    let request = input
        .issue
        .fill(input.issue.repo.patch("/issues/{issue_number}"));
    request.json(&input.changes).send()?.json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct LockIssue {
    #[serde(flatten)]
    issue: IssueNumber,
    reason: Option<LockReason>,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
enum LockReason {
    #[serde(rename = "off-topic")]
    OffTopic,
    #[serde(rename = "too heated")]
    TooHeated,
    #[serde(rename = "resolved")]
    Resolved,
    #[serde(rename = "spam")]
    Spam,
}

/// Locks the conversation of an issue or pull request, so that only collaborators may comment.
#[tool(
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "issue_number": 7, "reason": "resolved"}"#
)]
pub(crate) fn lock_issue(input: LockIssue) -> Result<Done> {
    let request = input
        .issue
        .fill(input.issue.repo.put("/issues/{issue_number}/lock"));
    let body = input
        .reason
        .map_or_else(|| json!({}), |reason| json!({ "lock_reason": reason }));
    done(request.json(&body))
}

/// Unlocks the conversation of an issue or pull request.
#[tool(
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "issue_number": 7}"#
)]
pub(crate) fn unlock_issue(input: IssueNumber) -> Result<Done> {
    done(input.fill(input.repo.delete("/issues/{issue_number}/lock")))
}
