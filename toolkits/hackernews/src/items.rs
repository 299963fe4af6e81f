//! Stories, comments, jobs and polls. All are items with a number.

use toolkit_sdk::prelude::*;

pub(crate) const API: Client = Client::new("https://hacker-news.firebaseio.com/v0");
/// Max number of items in one call. The platform allows fifty requests, which leaves some for the
/// list itself.
pub(crate) const MAX_ITEMS: usize = 30;

/// A story, comment, job, poll or poll option.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Item {
    pub(crate) id: u64,
    /// `story`, `comment`, `job`, `poll` or `pollopt`.
    #[serde(rename(deserialize = "type"))]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// URL that a story links to; missing for stories with text.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Text of a comment, job or text story, as HTML.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Name of the author.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// Time of the post, in seconds since 1970.
    #[serde(rename(deserialize = "time"), default)]
    posted_at: u64,
    /// Points.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<i64>,
    /// Number of comments on a story, at every depth.
    #[serde(
        rename(deserialize = "descendants"),
        skip_serializing_if = "Option::is_none"
    )]
    comment_count: Option<u64>,
    /// Numbers of the direct replies, best first.
    #[serde(
        rename(deserialize = "kids"),
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    replies: Vec<u64>,
    /// For a comment: number of the story or comment that it replies to.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u64>,
    #[serde(default, skip_serializing_if = "is_false")]
    deleted: bool,
    /// True if hidden by moderators or by readers.
    #[serde(default, skip_serializing_if = "is_false")]
    dead: bool,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ItemNumber {
    /// Number in the URL `news.ycombinator.com/item?id=…`.
    #[schemars(range(min = 1))]
    id: u64,
}

/// Gets one story, comment, job or poll by its number: title, link, text, author, points, and the
/// numbers of its replies. Use `list_comments` to read the replies themselves.
#[tool(read_only, idempotent, open_world, example = r#"{"id": 8863}"#)]
pub(crate) fn get_item(input: ItemNumber) -> Result<Item> {
    item(input.id)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Thread {
    /// Number of the story or comment whose replies to read.
    #[schemars(range(min = 1))]
    id: u64,
    /// Max number of comments to return.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 30))]
    limit: usize,
    /// Number of replies to skip: `next_offset` of the previous response.
    #[serde(default)]
    offset: usize,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Comments {
    /// Comments, best first; deleted and hidden ones are left out.
    comments: Vec<Item>,
    /// Number of direct replies.
    total: usize,
    /// `offset` of the next page; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
}

/// Lists the direct replies to a story or comment, best first. Call it again with the number of a
/// comment to go deeper, or with `offset` for the next page.
#[tool(
    read_only,
    idempotent,
    open_world,
    important,
    example = r#"{"id": 8863, "limit": 10}"#
)]
pub(crate) fn list_comments(input: Thread) -> Result<Comments> {
    let replies = item(input.id)?.replies;
    let (page, next_offset) = page(&replies, input.offset, input.limit);
    let comments = items(page)?
        .into_iter()
        .filter(|comment| !comment.deleted && !comment.dead)
        .collect();
    Ok(Comments {
        comments,
        total: replies.len(),
        next_offset,
    })
}

fn item(id: u64) -> Result<Item> {
    let found: Option<Item> = API.get("/item/{id}.json").path("id", id).send()?.json()?;
    found.ok_or_else(|| ToolError::not_found(format!("Hacker News has no item {id}")))
}

/// Fetches several items concurrently. Missing items are omitted.
pub(crate) fn items(ids: &[u64]) -> Result<Vec<Item>> {
    let requests = ids
        .iter()
        .map(|id| API.get("/item/{id}.json").path("id", id));
    let found: Result<Vec<Option<Item>>> = http::send_all(requests)
        .into_iter()
        .map(|answer| answer?.json())
        .collect();
    Ok(found?.into_iter().flatten().collect())
}

/// Returns one page of a list, and the offset of the next page.
pub(crate) fn page(ids: &[u64], offset: usize, limit: usize) -> (&[u64], Option<usize>) {
    let start = offset.min(ids.len());
    let end = start
        .saturating_add(limit.clamp(1, MAX_ITEMS))
        .min(ids.len());
    (&ids[start..end], (end < ids.len()).then_some(end))
}

pub(crate) fn twenty() -> usize {
    20
}

fn is_false(value: &bool) -> bool {
    !value
}
