//! Polling trigger for new stories.

use toolkit_sdk::prelude::*;

use crate::items::{Item, MAX_ITEMS, items};
use crate::stories::List;

/// A list that stories enter as soon as they are posted. The other lists rank older stories.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Watched {
    /// Every story.
    #[default]
    New,
    /// Ask HN.
    Ask,
    /// Show HN.
    Show,
    /// Job offers.
    Job,
}

impl From<Watched> for List {
    fn from(watched: Watched) -> Self {
        match watched {
            Watched::New => Self::New,
            Watched::Ask => Self::Ask,
            Watched::Show => Self::Show,
            Watched::Job => Self::Job,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Config {
    /// List of stories to report.
    #[serde(default)]
    list: Watched,
    /// Only stories whose title contains one of these words, ignoring case; if empty, all stories.
    #[serde(default)]
    words: Vec<String>,
}

/// Position of the last poll.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// Highest story number seen. Numbers only grow.
    highest: u64,
}

/// Fires for each new story of a list, oldest first, with its title, link, author and text. Choose
/// all stories, Ask HN, Show HN or jobs, and words that the title must contain.
#[trigger(poll)]
pub(crate) fn new_story(config: Config, cursor: Option<Cursor>) -> Result<Polled<Item, Cursor>> {
    let mut ids = List::from(config.list).ids()?;
    ids.sort_unstable();
    let newest = ids.last().copied().unwrap_or_default();
    let Some(Cursor { highest }) = cursor else {
        return Ok(Polled::new(Cursor { highest: newest }));
    };
    ids.retain(|id| *id > highest);
    let more = ids.len() > MAX_ITEMS;
    ids.truncate(MAX_ITEMS);
    let words: Vec<String> = config
        .words
        .iter()
        .map(|word| word.to_lowercase())
        .collect();
    let stories = items(&ids)?
        .into_iter()
        .filter(|story| {
            let title = story.title.as_deref().unwrap_or_default().to_lowercase();
            words.is_empty() || words.iter().any(|word| title.contains(word))
        })
        .map(|story| (story.id, story));
    let highest = ids.last().copied().unwrap_or(highest);
    Ok(Polled::new(Cursor { highest }).events(stories).more(more))
}
