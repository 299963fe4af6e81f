//! Stories, comments, jobs and polls: all are items with a number.

use toolkit_sdk::prelude::*;

pub(crate) const API: Client = Client::new("https://hacker-news.firebaseio.com/v0");
/// Requests of one call, with room for the list itself: the platform allows fifty.
pub(crate) const MOST: usize = 30;

/// A story, comment, job, poll or poll option.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Item {
    pub(crate) id: u64,
    /// `story`, `comment`, `job`, `poll` or `pollopt`.
    #[serde(rename(deserialize = "type"))]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// The page that a story links to; missing when the story is a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The text of a comment, job or text story, as HTML.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Name of the user who posted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// When it was posted, in seconds since 1970.
    #[serde(rename(deserialize = "time"), default)]
    posted_at: u64,
    /// Points.
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<i64>,
    /// Comments below a story, at every depth.
    #[serde(rename(deserialize = "descendants"), skip_serializing_if = "Option::is_none")]
    comment_count: Option<u64>,
    /// Numbers of the direct replies, best first.
    #[serde(rename(deserialize = "kids"), default, skip_serializing_if = "Vec::is_empty")]
    replies: Vec<u64>,
    /// For a comment: the story or comment it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u64>,
    #[serde(default, skip_serializing_if = "is_false")]
    deleted: bool,
    /// Hidden by moderators or by its readers.
    #[serde(default, skip_serializing_if = "is_false")]
    dead: bool,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ItemNumber {
    /// The number in the address `news.ycombinator.com/item?id=…`.
    #[schemars(range(min = 1))]
    id: u64,
}

/// Gets one story, comment, job or poll by its number: title, link, text, author, points, and the numbers of its replies. Use
/// `list_comments` to read the replies themselves.
#[tool(read_only, idempotent, open_world, example = r#"{"id": 8863}"#)]
pub(crate) fn get_item(input: ItemNumber) -> Result<Item> {
    item(input.id)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Thread {
    /// The number of a story, or of a comment, to read the replies to it.
    #[schemars(range(min = 1))]
    id: u64,
    /// How many comments to read.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 30))]
    limit: usize,
    /// How many to skip, to read on.
    #[serde(default)]
    offset: usize,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Comments {
    /// Best first; deleted and hidden ones are left out.
    comments: Vec<Item>,
    /// Direct replies that there are.
    total: usize,
    /// Where the next page begins; missing at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
}

/// Reads the direct replies to a story or comment, best first. Call it again with the number of a comment to go deeper, or
/// with `offset` to read on.
#[tool(read_only, idempotent, open_world, important, example = r#"{"id": 8863, "limit": 10}"#)]
pub(crate) fn list_comments(input: Thread) -> Result<Comments> {
    let replies = item(input.id)?.replies;
    let (page, next_offset) = page(&replies, input.offset, input.limit);
    let comments = items(page)?.into_iter().filter(|comment| !comment.deleted && !comment.dead).collect();
    Ok(Comments { comments, total: replies.len(), next_offset })
}

fn item(id: u64) -> Result<Item> {
    let found: Option<Item> = API.get("/item/{id}.json").path("id", id).send()?.json()?;
    found.ok_or_else(|| ToolError::not_found(format!("Hacker News has no item {id}")))
}

/// Reads several items at once; what is not there is left out.
pub(crate) fn items(ids: &[u64]) -> Result<Vec<Item>> {
    let requests = ids.iter().map(|id| API.get("/item/{id}.json").path("id", id));
    let found: Result<Vec<Option<Item>>> = http::send_all(requests).into_iter().map(|answer| answer?.json()).collect();
    Ok(found?.into_iter().flatten().collect())
}

/// A part of a list, and where the next one begins.
pub(crate) fn page(ids: &[u64], offset: usize, limit: usize) -> (&[u64], Option<usize>) {
    let start = offset.min(ids.len());
    let end = start.saturating_add(limit.clamp(1, MOST)).min(ids.len());
    (&ids[start..end], (end < ids.len()).then_some(end))
}

pub(crate) fn twenty() -> usize {
    20
}

fn is_false(value: &bool) -> bool {
    !value
}
