//! Full-text search, provided by Algolia for Hacker News.

use toolkit_sdk::prelude::*;

const SEARCH_API: Client = Client::new("https://hn.algolia.com/api/v1");
const DAY_SECONDS: u64 = 24 * 3600;

/// Kind of post to search for.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    Story,
    Comment,
    AskHn,
    ShowHn,
    Job,
    Poll,
}

impl Kind {
    fn tag(self) -> &'static str {
        match self {
            Self::Story => "story",
            Self::Comment => "comment",
            Self::AskHn => "ask_hn",
            Self::ShowHn => "show_hn",
            Self::Job => "job",
            Self::Poll => "poll",
        }
    }
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Order {
    /// Best match first, then points.
    #[default]
    Relevance,
    /// Newest first.
    Date,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Search {
    /// Words to find; leave it empty to list all posts that match the filters.
    #[serde(default)]
    query: String,
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    order: Order,
    /// Only posts of this user.
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]{1,64}$"))]
    author: Option<String>,
    /// Only comments on the story with this number.
    story: Option<u64>,
    /// Only posts with at least this many points.
    min_points: Option<u32>,
    /// Only posts of this many last days.
    #[schemars(range(min = 1))]
    within_days: Option<u32>,
    /// Max number of posts to return.
    #[serde(default = "crate::items::twenty")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
    /// Page to return, starting at 0.
    #[serde(default)]
    page: u32,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Found {
    posts: Vec<Post>,
    /// Number of matching posts, approximate if there are many.
    total: u64,
    /// Number of pages; the search returns no more than the first 1,000 posts.
    pages: u32,
}

/// A matching story or comment.
#[derive(Serialize, JsonSchema)]
struct Post {
    id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Text of a comment or text story, as HTML.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    author: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    points: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment_count: Option<u64>,
    /// For a comment: number of its story.
    #[serde(skip_serializing_if = "Option::is_none")]
    story_id: Option<u64>,
    /// Time of the post, RFC 3339.
    posted_at: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SearchResponse {
    hits: Vec<Hit>,
    nb_hits: u64,
    nb_pages: u32,
}

#[derive(Deserialize)]
struct Hit {
    #[serde(rename = "objectID")]
    id: String,
    title: Option<String>,
    story_title: Option<String>,
    url: Option<String>,
    story_text: Option<String>,
    comment_text: Option<String>,
    #[serde(default)]
    author: String,
    points: Option<i64>,
    num_comments: Option<u64>,
    story_id: Option<u64>,
    #[serde(default)]
    created_at: String,
}

impl From<Hit> for Post {
    fn from(hit: Hit) -> Self {
        let id = hit.id.parse().unwrap_or_default();
        Self {
            id,
            title: hit.title.or(hit.story_title),
            url: hit.url,
            text: hit.comment_text.or(hit.story_text),
            author: hit.author,
            points: hit.points,
            comment_count: hit.num_comments,
            story_id: hit.story_id.filter(|story| *story != id),
            posted_at: hit.created_at,
        }
    }
}

/// Searches stories or comments of Hacker News by words, author, points and age, best match or
/// newest first. Use it to find discussions of a subject, or all posts of a user.
#[tool(
    read_only,
    idempotent,
    open_world,
    important,
    example = r#"{"query": "webassembly components", "min_points": 100, "limit": 5}"#,
    example = r#"{"kind": "comment", "author": "pg", "order": "date"}"#
)]
pub(crate) fn search_posts(input: Search) -> Result<Found> {
    let mut tags = vec![input.kind.tag().to_owned()];
    tags.extend(input.author.map(|author| format!("author_{author}")));
    tags.extend(input.story.map(|story| format!("story_{story}")));
    let mut numbers: Vec<String> = input
        .min_points
        .map(|points| format!("points>={points}"))
        .into_iter()
        .collect();
    numbers.extend(input.within_days.map(|days| {
        let since = clock::now_seconds().saturating_sub(u64::from(days) * DAY_SECONDS);
        format!("created_at_i>={since}")
    }));
    let path = match input.order {
        Order::Relevance => "/search",
        Order::Date => "/search_by_date",
    };
    let request = SEARCH_API
        .get(path)
        .query("query", &input.query)
        .query_list("tags", tags, ",")
        .query_list("numericFilters", numbers, ",")
        .query("hitsPerPage", input.limit.clamp(1, 100))
        .query("page", input.page);
    let answer: SearchResponse = request.send()?.json()?;
    let posts = answer.hits.into_iter().map(Post::from).collect();
    Ok(Found {
        posts,
        total: answer.nb_hits,
        pages: answer.nb_pages,
    })
}
