//! Comments on pages.

use serde_json::Value;
use toolkit_sdk::prelude::*;

use crate::api::{API, Page, Part, id, list};
use crate::text;

/// A comment.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Comment {
    id: String,
    /// Id of the discussion to which the comment belongs, for replies with `NOTION_CREATE_COMMENT`.
    discussion: String,
    text: String,
    /// Id of the author.
    author: String,
    created_time: String,
}

impl Comment {
    fn from_json(value: Value) -> Self {
        Self {
            id: text::string(&value["id"]),
            discussion: text::string(&value["discussion_id"]),
            text: text::plain(&value["rich_text"]),
            author: text::string(&value["created_by"]["id"]),
            created_time: text::string(&value["created_time"]),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListComments {
    /// Id or URL of a page, or id of a block.
    #[schemars(length(min = 1))]
    page: String,
    #[serde(flatten)]
    part: Part,
}

/// Lists the comments of open discussions on a page or block.
#[tool(
    read_only,
    idempotent,
    example = r#"{"page": "59833787-2cf9-4fdf-8782-e53db20768a5"}"#
)]
pub(crate) fn list_comments(input: ListComments) -> Result<Page<Comment>> {
    let request = API
        .get("/comments")
        .query("block_id", id(&input.page))
        .query("page_size", input.part.limit.clamp(1, 100))
        .query_opt("start_cursor", input.part.cursor);
    list(request, Comment::from_json)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewComment {
    /// Id or URL of the page to comment on; or reply in a `discussion`.
    page: Option<String>,
    /// Id of the discussion to reply in, from `NOTION_LIST_COMMENTS`.
    discussion: Option<String>,
    /// Text, in Markdown.
    #[schemars(length(min = 1))]
    markdown: String,
}

/// Adds a comment to a page, or replies in a discussion.
#[tool(
    important,
    example = r#"{"page": "59833787-2cf9-4fdf-8782-e53db20768a5", "markdown": "**Looks good**, one question inside"}"#
)]
pub(crate) fn create_comment(input: NewComment) -> Result<Comment> {
    let body = match (&input.page, &input.discussion) {
        (Some(page), None) => {
            json!({ "parent": { "page_id": id(page) }, "markdown": input.markdown })
        }
        (None, Some(discussion)) => {
            json!({ "discussion_id": discussion, "markdown": input.markdown })
        }
        _ => {
            return Err(ToolError::invalid_input(
                "give either `page` or `discussion`",
            ));
        }
    };
    Ok(Comment::from_json(
        API.post("/comments").json(&body).send()?.json()?,
    ))
}
