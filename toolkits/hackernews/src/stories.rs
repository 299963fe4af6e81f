//! The lists of the front page.

use toolkit_sdk::prelude::*;

use crate::items::{API, Item, items, page, twenty};

/// A list of stories.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum List {
    /// The front page.
    #[default]
    Top,
    /// The newest.
    New,
    /// The best of the last days.
    Best,
    /// Ask HN.
    Ask,
    /// Show HN.
    Show,
    /// Job offers.
    Job,
}

impl List {
    /// Numbers of its stories.
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
    /// Which list to read.
    #[serde(default)]
    list: List,
    /// How many stories to read.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 30))]
    limit: usize,
    /// How many to skip, to read on.
    #[serde(default)]
    offset: usize,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Stories {
    /// In the order of the list.
    stories: Vec<Item>,
    /// How many stories the list has.
    total: usize,
    /// Where the next page begins; missing at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
}

/// Reads the front page of Hacker News or another of its lists: top, new, best, Ask HN, Show HN or jobs. Answers title, link,
/// author, points and number of comments of each story, at most 30 at once. To find stories by words use `search_posts`.
#[tool(read_only, idempotent, open_world, important, example = r#"{"list": "top", "limit": 10}"#)]
pub(crate) fn list_stories(input: Listing) -> Result<Stories> {
    let ids = input.list.ids()?;
    let (page, next_offset) = page(&ids, input.offset, input.limit);
    Ok(Stories { stories: items(page)?, total: ids.len(), next_offset })
}
