//! Comments on issues.

use toolkit_sdk::prelude::*;

use crate::api::{Page, Part, ask, name, page};
use crate::issues::OfIssue;

const COMMENT_FIELDS: &str = "id body url createdAt user { name } parent { name: id }";

/// A comment.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all(deserialize = "camelCase"))]
pub(crate) struct Comment {
    /// Id of the comment, for `LINEAR_UPDATE_COMMENT` and for `parent` of replies.
    id: String,
    /// Text, in Markdown.
    body: String,
    /// Name of the author; missing for applications.
    #[serde(
        rename(deserialize = "user"),
        deserialize_with = "name",
        skip_serializing_if = "Option::is_none"
    )]
    author: Option<String>,
    /// Id of the comment that this one replies to.
    #[serde(deserialize_with = "name", skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    created_at: String,
    /// URL of the web page.
    url: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListComments {
    #[serde(flatten)]
    of: OfIssue,
    #[serde(flatten)]
    part: Part,
}

/// Lists the comments on an issue, with their replies.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("read"),
    egress("POST api.linear.app/graphql"),
    example = r#"{"issue": "ENG-123"}"#
)]
pub(crate) fn list_comments(input: ListComments) -> Result<Page<Comment>> {
    let query = format!(
        "query($id: String!, $first: Int, $after: String) {{ issue(id: $id) {{ comments(first: $first, after: $after) {{ nodes {{ {COMMENT_FIELDS} \
         }} pageInfo {{ hasNextPage endCursor }} }} }} }}"
    );
    let mut variables = json!({ "id": input.of.issue });
    input.part.fill(&mut variables);
    page(&query, &variables, "/issue/comments")
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewComment {
    #[serde(flatten)]
    of: OfIssue,
    /// Text, in Markdown.
    #[schemars(length(min = 1))]
    body: String,
    /// Id of the comment to reply to.
    parent: Option<String>,
}

/// Adds a comment to an issue, or replies to a comment.
#[tool(
    important,
    scopes("comments:create"),
    example = r#"{"issue": "ENG-123", "body": "Fixed by [#45](https://example.com/pulls/45)"}"#
)]
pub(crate) fn create_comment(input: NewComment) -> Result<Comment> {
    let mut body = json!({ "issueId": input.of.issue, "body": input.body });
    if let Some(parent) = input.parent {
        body["parentId"] = parent.into();
    }
    let query = format!(
        "mutation($input: CommentCreateInput!) {{ commentCreate(input: $input) {{ success comment {{ {COMMENT_FIELDS} }} }} }}"
    );
    ask(&query, &json!({ "input": body }), "/commentCreate/comment")
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ChangedComment {
    /// Id of the comment, from `LINEAR_LIST_COMMENTS`.
    #[schemars(length(min = 1))]
    comment: String,
    /// New text, in Markdown.
    #[schemars(length(min = 1))]
    body: String,
}

/// Replaces the text of a comment that the connected account wrote.
#[tool(
    destructive,
    idempotent,
    scopes("write"),
    example = r#"{"comment": "0bc3a1f5-6e5c-4f6e-a4c3-2f2e4a5a1a11", "body": "Fixed, and **released**"}"#
)]
pub(crate) fn update_comment(input: ChangedComment) -> Result<Comment> {
    let query = format!(
        "mutation($id: String!, $input: CommentUpdateInput!) {{ commentUpdate(id: $id, input: $input) \
         {{ success comment {{ {COMMENT_FIELDS} }} }} }}"
    );
    ask(
        &query,
        &json!({ "id": input.comment, "input": { "body": input.body } }),
        "/commentUpdate/comment",
    )
}
