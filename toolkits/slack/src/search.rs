//! Search, which Slack allows to users and not to bots.

use toolkit_sdk::prelude::*;

use crate::api::API;
use crate::time;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Search {
    /// Words, and Slack's filters: `in:#general`, `from:@ada`, `after:2026-01-31`, `has:link`,
    /// `"exact words"`.
    #[schemars(length(min = 1))]
    query: String,
    #[serde(default)]
    sort: Sort,
    /// Max number of messages to return.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// Page to return, starting at 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1, max = 100))]
    page: u32,
}

/// Order of the results.
#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Sort {
    /// Best match first.
    #[default]
    Score,
    /// Newest first.
    Timestamp,
}

fn twenty() -> u32 {
    20
}

fn first() -> u32 {
    1
}

#[derive(Deserialize)]
struct SearchResponse {
    messages: Matches,
}

#[derive(Deserialize)]
struct Matches {
    total: u64,
    #[serde(default)]
    matches: Vec<Match>,
}

/// A message that was found.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Match {
    ts: String,
    /// Time of the message, RFC 3339.
    #[serde(skip_deserializing)]
    time: String,
    channel: Place,
    /// Id of the author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    username: Option<String>,
    #[serde(default)]
    text: String,
    /// URL of the message.
    permalink: String,
}

/// Channel of a message.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Place {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

/// Search results.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Found {
    /// Number of matches on all pages.
    total: u64,
    items: Vec<Match>,
}

// The scope search:read is for user tokens. It is not declared, since Slack would refuse a request
// for it together with bot scopes.
/// Searches all messages that the connected user can see. Needs a user token (xoxp-…) with the
/// scope search:read; with a bot's token, read channels with `SLACK_READ_CHANNEL` instead.
#[tool(
    read_only,
    idempotent,
    important,
    example = r#"{"query": "outage in:#incidents", "sort": "timestamp"}"#
)]
pub(crate) fn search_messages(input: Search) -> Result<Found> {
    let sort = if matches!(input.sort, Sort::Score) {
        "score"
    } else {
        "timestamp"
    };
    let request = API
        .get("/search.messages")
        .query("query", &input.query)
        .query("sort", sort)
        .query("count", input.limit.clamp(1, 100))
        .query("page", input.page.clamp(1, 100));
    let SearchResponse {
        messages: Matches {
            total,
            matches: mut items,
        },
    } = request.send()?.json()?;
    for item in &mut items {
        item.time = time::iso_from_ts(&item.ts);
    }
    Ok(Found { total, items })
}
