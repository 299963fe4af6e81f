//! Story lists of the front page.

use toolkit_sdk::prelude::*;

use crate::items::{API, Item, items, page, twenty};

/// A list of stories.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum List {
    /// Front page.
    #[default]
    Top,
    /// Newest stories.
    New,
    /// Best stories of the last days.
    Best,
    /// Ask HN.
    Ask,
    /// Show HN.
    Show,
    /// Job offers.
    Job,
}

impl List {
    /// Fetches the numbers of the stories in the list.
    pub(crate) fn ids(self) -> Result<Vec<u64>> {
        let name = match self {
            Self::Top => "topstories",
            Self::New => "newstories",
            Self::Best => "beststories",
            Self::Ask => "askstories",
            Self::Show => "showstories",
            Self::Job => "jobstories",
        };
        API.get("/{list}.json").path("list", name).send()?.json()
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Listing {
    /// List to read.
    #[serde(default)]
    list: List,
    /// Max number of stories to return.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 30))]
    limit: usize,
    /// Number of stories to skip: `next_offset` of the previous response.
    #[serde(default)]
    offset: usize,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Stories {
    /// Stories in the order of the list.
    stories: Vec<Item>,
    /// Number of stories in the list.
    total: usize,
    /// `offset` of the next page; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
}

/// Reads the front page of Hacker News or another of its lists: top, new, best, Ask HN, Show HN or
/// jobs. Returns title, link, author, points and number of comments of each story, at most 30 at
/// once. To find stories by words use `search_posts`.
#[tool(
    read_only,
    idempotent,
    open_world,
    important,
    example = r#"{"list": "top", "limit": 10}"#
)]
pub(crate) fn list_stories(input: Listing) -> Result<Stories> {
    let ids = input.list.ids()?;
    let (page, next_offset) = page(&ids, input.offset, input.limit);
    Ok(Stories {
        stories: items(page)?,
        total: ids.len(),
        next_offset,
    })
}
