//! Triggers: polling for edited pages, and webhook events of an integration.

use data_encoding::HEXLOWER;
use serde_json::Value;
use sha2::{Digest, Sha256};
use toolkit_sdk::prelude::*;
use toolkit_sdk::webhook::{Secret, Signature};

use crate::api::{API, id};
use crate::pages::Described;

/// Signature of a delivery: HMAC-SHA256 with the token over the body
/// (<https://developers.notion.com/reference/webhooks>).
const WEBHOOK_SIGNATURE: Signature = Signature::header("x-notion-signature")
    .prefix("sha256=")
    .hint("enter the token that the subscription was verified with");
/// Number of pages that one request reads.
const PAGE_SIZE: u64 = 50;
/// Max number of requests of one poll. More edits are not expected between two polls.
const MAX_REQUESTS_PER_POLL: usize = 10;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Config {
    /// Only entries of the data source with this id. Defaults to all pages that are shared with the
    /// integration.
    data_source: Option<String>,
}

/// Position of the last poll. Notion's times are whole minutes, so the last minute may get more
/// edits.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// Time of the last edit seen.
    time: String,
}

/// A list of pages in Notion's format.
#[derive(Deserialize)]
struct Edited {
    results: Vec<Value>,
    next_cursor: Option<String>,
}

/// Fires for each page that is created or edited, with its properties and without its content;
/// several edits within a minute are one event.
#[trigger(poll, egress("POST api.notion.com/v1/"))]
pub(crate) fn page_edited(
    config: Config,
    cursor: Option<Cursor>,
) -> Result<Polled<Described, Cursor>> {
    let Some(Cursor { time }) = cursor else {
        return begin(&config);
    };
    let pages = edited_since(&config, &time)?;
    let next = position(&pages, time);
    // Edits of the last minute are reported again. The platform drops events that were already
    // reported, by their ids.
    let edits = pages.into_iter().rev().map(|page| {
        let id = page["id"].as_str().unwrap_or_default();
        let event_id = format!("{id} {}", time_of(&page));
        (event_id, Described::from_json(page))
    });
    Ok(Polled::new(next).events(edits))
}

/// Fires for each new page, or new entry of a data source, with its properties and without its
/// content.
#[trigger(poll, egress("POST api.notion.com/v1/"))]
pub(crate) fn page_added(
    config: Config,
    cursor: Option<Cursor>,
) -> Result<Polled<Described, Cursor>> {
    let Some(Cursor { time }) = cursor else {
        return begin(&config);
    };
    let pages = edited_since(&config, &time)?;
    let next = position(&pages, time.clone());
    // A page is edited when it is created, so every new page is among the edited ones. A page that
    // is edited again in its first minute is dropped by its id.
    let added = pages
        .into_iter()
        .rev()
        .filter(|page| {
            page["created_time"]
                .as_str()
                .is_some_and(|created| created >= &*time)
        })
        .map(|page| {
            let id = page["id"].as_str().unwrap_or_default().to_owned();
            (id, Described::from_json(page))
        });
    Ok(Polled::new(next).events(added))
}

/// Starts at the last edit.
fn begin(config: &Config) -> Result<Polled<Described, Cursor>> {
    let newest = edited(config, 1, None)?.results;
    Ok(Polled::new(position(&newest, String::new())))
}

/// Returns the position after these pages, or at `time` if there are none.
fn position(pages: &[Value], time: String) -> Cursor {
    Cursor {
        time: pages.first().map_or(time, |page| time_of(page).to_owned()),
    }
}

/// Fetches the pages that were edited at this time or later, last edited first.
fn edited_since(config: &Config, time: &str) -> Result<Vec<Value>> {
    let mut pages: Vec<Value> = Vec::new();
    let mut next: Option<String> = None;
    for _ in 0..MAX_REQUESTS_PER_POLL {
        let Edited {
            results,
            next_cursor,
        } = edited(config, PAGE_SIZE, next)?;
        let old = results.iter().position(|page| time_of(page) < time);
        pages.extend(results.into_iter().take(old.unwrap_or(usize::MAX)));
        next = next_cursor.filter(|_| old.is_none());
        if next.is_none() {
            break;
        }
    }
    Ok(pages)
}

/// Fetches pages, last edited first.
fn edited(config: &Config, limit: u64, cursor: Option<String>) -> Result<Edited> {
    let newest = json!({ "timestamp": "last_edited_time", "direction": "descending" });
    let (request, mut body) = match &config.data_source {
        Some(source) => {
            let request = API
                .post("/data_sources/{source}/query")
                .path("source", id(source));
            (request, json!({ "sorts": [newest], "page_size": limit }))
        }
        None => {
            let filter = json!({ "property": "object", "value": "page" });
            (
                API.post("/search"),
                json!({ "sort": newest, "filter": filter, "page_size": limit }),
            )
        }
    };
    if let Some(cursor) = cursor {
        body["start_cursor"] = cursor.into();
    }
    request.json(&body).send()?.json()
}

fn time_of(page: &Value) -> &str {
    page["last_edited_time"].as_str().unwrap_or_default()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Subscription {
    /// Verification token that Notion sent to this trigger, from its first event; omit it until
    /// then.
    #[schemars(length(min = 16))]
    verification_token: Option<Secret>,
    /// Only events of these types: `page.created`, `page.content_updated`,
    /// `page.properties_updated`, `comment.created` and so on. If empty, all types of the
    /// subscription.
    #[serde(default)]
    types: Vec<String>,
}

/// An event.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Event {
    /// Type: `page.created`, `page.content_updated`, `comment.created` and so on; `verification`
    /// for the token.
    #[serde(rename = "type")]
    kind: String,
    /// Time of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    /// Object of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entity: Option<Entity>,
    /// Users or bots that caused the event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    authors: Vec<Entity>,
    /// Further data, depending on the type.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    data: Value,
    /// Token to enter at Notion and in this trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verification_token: Option<String>,
}

/// A reference to a page, a user and so on.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Entity {
    id: String,
    /// Type: `page`, `data_source`, `block`, `comment`, `person`, `bot`.
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Handshake {
    verification_token: String,
}

#[derive(Deserialize)]
struct Delivery {
    id: String,
    #[serde(flatten)]
    event: Event,
}

/// Fires for events of a webhook subscription of the integration: pages, data sources and comments
/// that are created, changed or deleted. Create the subscription at Notion (the integration's
/// settings, Webhooks) with the URL of this trigger: the first event contains the token to enter
/// there and here. Until then, no other event is accepted.
#[trigger(webhook)]
pub(crate) fn event_received(config: Subscription, request: Inbound) -> Result<Received<Event>> {
    let Some(token) = &config.verification_token else {
        let Handshake { verification_token } = request.json()?;
        let token = Some(verification_token.clone());
        let event = Event {
            kind: "verification".to_owned(),
            verification_token: token,
            ..Event::default()
        };
        // The event id is a digest, so that the token does not appear in logs.
        let id = HEXLOWER.encode(&Sha256::digest(&verification_token));
        return Ok(Received::event(id, event));
    };
    WEBHOOK_SIGNATURE.verify(&request, token)?;
    let Delivery { id, event } = request.json()?;
    let wanted = config.types.is_empty() || config.types.contains(&event.kind);
    Ok(if wanted {
        Received::event(id, event)
    } else {
        Received::nothing()
    })
}
