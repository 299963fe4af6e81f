//! Reviews of pull requests, and comments on lines of code.

use toolkit_sdk::prelude::*;

use crate::api::{Page, Part, list, login};
use crate::pulls::{PullNumber, PullRequest};

/// A review.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Review {
    id: u64,
    /// Login of the reviewer.
    #[serde(
        rename(deserialize = "user"),
        default,
        deserialize_with = "login",
        skip_serializing_if = "Option::is_none"
    )]
    author: Option<String>,
    /// `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED`, `DISMISSED` or `PENDING`.
    state: String,
    /// Text, in Markdown.
    #[serde(default)]
    body: String,
    /// SHA of the reviewed commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    submitted_at: Option<String>,
    /// URL of the web page.
    #[serde(rename(deserialize = "html_url"))]
    url: String,
}

/// A comment on lines of code.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReviewComment {
    /// Id of the comment, for `reply_to_review_comment`.
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
    body: String,
    /// Path of the file.
    path: String,
    /// Last line of the comment's range; missing if the code has changed since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// First line of a range of several lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_line: Option<u64>,
    /// `RIGHT` for the new code, `LEFT` for the old code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    side: Option<String>,
    /// Lines of the diff around the comment.
    diff_hunk: String,
    /// Id of the comment that this one replies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    in_reply_to_id: Option<u64>,
    /// Id of the review with this comment.
    #[serde(
        rename(deserialize = "pull_request_review_id"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    review_id: Option<u64>,
    created_at: String,
    /// URL of the web page.
    #[serde(rename(deserialize = "html_url"))]
    url: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListReviews {
    #[serde(flatten)]
    pull: PullNumber,
    #[serde(flatten)]
    part: Part,
}

/// Lists the reviews of a pull request, oldest first, with the reviewers and their verdicts:
/// approved, changes requested or commented.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "pull_number": 7}"#
)]
pub(crate) fn list_reviews(input: ListReviews) -> Result<Page<Review>> {
    list(
        input
            .pull
            .fill(input.pull.repo.get("/pulls/{pull_number}/reviews")),
        &input.part,
    )
}

/// Lists the comments on lines of code in a pull request, oldest first. Comments in its
/// conversation are read by `list_issue_comments`.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "pull_number": 7}"#
)]
pub(crate) fn list_review_comments(input: ListReviews) -> Result<Page<ReviewComment>> {
    list(
        input
            .pull
            .fill(input.pull.repo.get("/pulls/{pull_number}/comments")),
        &input.part,
    )
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CreateReview {
    #[serde(flatten)]
    pull: PullNumber,
    #[serde(flatten)]
    review: NewReview,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct NewReview {
    event: Verdict,
    /// Text, in Markdown; required unless the verdict is `APPROVE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// Comments on lines of code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    comments: Vec<LineComment>,
    /// Commit that was reviewed, `head.sha`. Defaults to the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit_id: Option<String>,
}

/// Verdict of a review.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Verdict {
    /// Approves the pull request for merging.
    Approve,
    /// Requests changes before the pull request is merged.
    RequestChanges,
    /// Neither approves nor requests changes.
    Comment,
}

/// A comment on one or more lines that the diff shows.
#[derive(Deserialize, Serialize, JsonSchema)]
struct LineComment {
    /// Path of the file, as in `list_pull_request_files`.
    path: String,
    /// Line of the comment, or the last of several, by its number in the file.
    #[schemars(range(min = 1))]
    line: u64,
    /// First of several lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    start_line: Option<u64>,
    #[serde(default)]
    side: Side,
    /// Text, in Markdown; a block ```` ```suggestion ```` proposes other code for the lines.
    body: String,
}

/// Version of the file to which a line number refers.
#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
enum Side {
    /// The new code: added and unchanged lines.
    #[default]
    Right,
    /// The old code: removed lines.
    Left,
}

/// Reviews a pull request: approves it, requests changes or comments, with comments on lines of
/// code. Everything is published at once.
#[tool(
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "pull_number": 7, "event": "COMMENT", "body": "One question.", "comments": [{"path": "src/main.rs", "line": 12, "body": "Can this fail?"}]}"#
)]
pub(crate) fn create_review(input: CreateReview) -> Result<Review> {
    let CreateReview { pull, review } = input;
    if review.body.is_none() && !matches!(review.event, Verdict::Approve) {
        return Err(ToolError::invalid_input(
            "a review that does not approve needs a `body`",
        ));
    }
    pull.fill(pull.repo.post("/pulls/{pull_number}/reviews"))
        .json(&review)
        .send()?
        .json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Reply {
    #[serde(flatten)]
    pull: PullNumber,
    /// Id of the first comment of the thread, from `list_review_comments`.
    comment_id: u64,
    /// Text, in Markdown.
    #[schemars(length(min = 1))]
    body: String,
}

/// Replies to a comment on lines of code. Takes the first comment of a thread: one without
/// `in_reply_to_id`.
#[tool(
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "pull_number": 7, "comment_id": 1, "body": "Done."}"#
)]
pub(crate) fn reply_to_review_comment(input: Reply) -> Result<ReviewComment> {
    let request = input.pull.fill(
        input
            .pull
            .repo
            .post("/pulls/{pull_number}/comments/{comment_id}/replies"),
    );
    request
        .path("comment_id", input.comment_id)
        .json(&json!({ "body": input.body }))
        .send()?
        .json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct RequestReviewers {
    #[serde(flatten)]
    pull: PullNumber,
    #[serde(flatten)]
    reviewers: Reviewers,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Reviewers {
    /// Logins of collaborators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reviewers: Vec<String>,
    /// Slugs of teams of the organization: `core` in `octo-org/core`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    team_reviewers: Vec<String>,
}

/// Requests reviews of a pull request from users or teams, who are notified.
#[tool(
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "pull_number": 7, "reviewers": ["octocat"]}"#
)]
pub(crate) fn request_reviewers(input: RequestReviewers) -> Result<PullRequest> {
    let RequestReviewers { pull, reviewers } = input;
    if reviewers.reviewers.is_empty() && reviewers.team_reviewers.is_empty() {
        return Err(ToolError::invalid_input(
            "no reviewer is given; give `reviewers` or `team_reviewers`",
        ));
    }
    pull.fill(pull.repo.post("/pulls/{pull_number}/requested_reviewers"))
        .json(&reviewers)
        .send()?
        .json()
}
