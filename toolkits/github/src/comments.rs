//! Comments on issues and pull requests.

use toolkit_sdk::prelude::*;

use crate::api::{Done, Page, Part, Repo, done, list, login};
use crate::issues::IssueNumber;

/// A comment.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Comment {
    /// Id of the comment, for `update_issue_comment` and `delete_issue_comment`.
    id: u64,
    /// Login of the author.
    #[serde(
        rename(deserialize = "user"),
        default,
        deserialize_with = "login",
        skip_serializing_if = "Option::is_none"
    )]
    author: Option<String>,
    /// Text, in Markdown.
    #[serde(default)]
    body: String,
    created_at: String,
    updated_at: String,
    /// URL of the web page.
    #[serde(rename(deserialize = "html_url"))]
    url: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListComments {
    #[serde(flatten)]
    issue: IssueNumber,
    /// Only comments created or changed since this time, RFC 3339: `2026-01-31T00:00:00Z`.
    since: Option<String>,
    #[serde(flatten)]
    part: Part,
}

/// Lists the comments of an issue, or those in the conversation of a pull request, oldest first.
/// Comments on lines of code are read by `list_review_comments`.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "issue_number": 7}"#
)]
pub(crate) fn list_issue_comments(input: ListComments) -> Result<Page<Comment>> {
    let request = input
        .issue
        .fill(input.issue.repo.get("/issues/{issue_number}/comments"));
    list(request.query_opt("since", input.since), &input.part)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewComment {
    #[serde(flatten)]
    issue: IssueNumber,
    /// Text, in Markdown; `@login` notifies a user.
    #[schemars(length(min = 1))]
    body: String,
}

/// Adds a comment to an issue or to the conversation of a pull request.
#[tool(
    important,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "issue_number": 7, "body": "Fixed in `main`."}"#
)]
pub(crate) fn create_issue_comment(input: NewComment) -> Result<Comment> {
    let request = input
        .issue
        .fill(input.issue.repo.post("/issues/{issue_number}/comments"));
    request.json(&json!({ "body": input.body })).send()?.json()
}

/// A comment, by its id.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct CommentId {
    #[serde(flatten)]
    repo: Repo,
    /// Id of the comment, from `list_issue_comments` or `create_issue_comment`.
    comment_id: u64,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewText {
    #[serde(flatten)]
    comment: CommentId,
    /// The whole new text, in Markdown.
    #[schemars(length(min = 1))]
    body: String,
}

/// Replaces the text of a comment.
#[tool(
    destructive,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "comment_id": 1, "body": "Fixed in 1.2."}"#
)]
pub(crate) fn update_issue_comment(input: NewText) -> Result<Comment> {
    let CommentId { repo, comment_id } = input.comment;
    let request = repo
        .patch("/issues/comments/{comment_id}")
        .path("comment_id", comment_id);
    request.json(&json!({ "body": input.body })).send()?.json()
}

/// Deletes a comment permanently.
#[tool(
    destructive,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "comment_id": 1}"#
)]
pub(crate) fn delete_issue_comment(input: CommentId) -> Result<Done> {
    done(
        input
            .repo
            .delete("/issues/comments/{comment_id}")
            .path("comment_id", input.comment_id),
    )
}
