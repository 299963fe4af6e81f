//! News: pages that were edited, and what a webhook of the integration tells.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::{Digest, Sha256};
use toolkit_sdk::prelude::*;

use crate::api::{API, id};
use crate::pages::Described;

/// Pages that one request reads.
const PAGE: u64 = 50;
/// Requests of one poll: more is not edited between two polls.
const MOST_REQUESTS: usize = 10;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Config {
    /// Only entries of the data source with this id; left out, all pages that are shared with the integration.
    data_source: Option<String>,
}

/// Where the last poll stood. Notion tells times in whole minutes, and more may be edited within the last one.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// The last edit seen.
    time: String,
}

/// Pages as Notion lists them.
#[derive(Deserialize)]
struct Edited {
    results: Vec<Value>,
    next_cursor: Option<String>,
}

/// Fires for each page that is made or edited, with its properties and without its content; several edits within a minute are one.
#[trigger(poll, egress("POST api.notion.com/v1/"))]
pub(crate) fn page_edited(config: Config, cursor: Option<Cursor>) -> Result<Polled<Described, Cursor>> {
    let Some(Cursor { time }) = cursor else {
        let newest = edited(&config, 1, None)?.results;
        let time = newest.first().map(|page| time_of(page).to_owned()).unwrap_or_default();
        return Ok(Polled::new(Cursor { time }));
    };
    let mut pages: Vec<Value> = Vec::new();
    let mut next: Option<String> = None;
    for _ in 0..MOST_REQUESTS {
        let Edited { results, next_cursor } = edited(&config, PAGE, next)?;
        let old = results.iter().position(|page| time_of(page) < time.as_str());
        pages.extend(results.into_iter().take(old.unwrap_or(usize::MAX)));
        next = next_cursor.filter(|_| old.is_none());
        if next.is_none() {
            break;
        }
    }
    let newest = pages.first().map_or(time, |page| time_of(page).to_owned());
    let event =
        |page: Value| (format!("{} {}", page["id"].as_str().unwrap_or_default(), time_of(&page)), Described::of(page));
    // Those of the last minute are told again; the platform knows them by their ids.
    Ok(Polled::new(Cursor { time: newest }).events(pages.into_iter().rev().map(event)))
}

/// Those last edited first.
fn edited(config: &Config, limit: u64, cursor: Option<String>) -> Result<Edited> {
    let newest = json!({ "timestamp": "last_edited_time", "direction": "descending" });
    let (request, mut body) = match &config.data_source {
        Some(source) => {
            let request = API.post("/data_sources/{source}/query").path("source", id(source));
            (request, json!({ "sorts": [newest], "page_size": limit }))
        }
        None => {
            let filter = json!({ "property": "object", "value": "page" });
            (API.post("/search"), json!({ "sort": newest, "filter": filter, "page_size": limit }))
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
    /// The verification token that Notion sent here, see the trigger's first event; left out until then.
    #[schemars(length(min = 16), extend("writeOnly" = true))]
    verification_token: Option<String>,
    /// Only events of these types: `page.created`, `page.content_updated`, `page.properties_updated`, `comment.created` and so on.
    /// Empty: all that the subscription has.
    #[serde(default)]
    types: Vec<String>,
}

/// What happened.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Event {
    /// `page.created`, `page.content_updated`, `comment.created` and so on; `verification` for the token.
    #[serde(rename = "type")]
    kind: String,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    /// What it happened to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entity: Option<Entity>,
    /// Who did it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    authors: Vec<Entity>,
    /// More about it, depending on the type.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    data: Value,
    /// To be entered at Notion and in this trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verification_token: Option<String>,
}

/// A page, a person and so on.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Entity {
    id: String,
    /// `page`, `data_source`, `block`, `comment`, `person`, `bot`.
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

/// Fires for what a webhook subscription of the integration tells: pages, data sources and comments that are made, changed or deleted.
/// Make the subscription at Notion (the integration's settings, Webhooks) with this trigger's address: the first event is the token
/// to enter there and here. Nothing else is believed until then.
#[trigger(webhook)]
pub(crate) fn event_received(config: Subscription, request: Inbound) -> Result<Received<Event>> {
    let Some(token) = &config.verification_token else {
        let Handshake { verification_token } = request.json()?;
        let token = Some(verification_token.clone());
        let event = Event { kind: "verification".to_owned(), verification_token: token, ..Event::default() };
        // The token itself is nothing for logs.
        let id = HEXLOWER.encode(&Sha256::digest(&verification_token));
        return Ok(Received::event(id, event));
    };
    verify(token, &request)?;
    let Delivery { id, event } = request.json()?;
    let wanted = config.types.is_empty() || config.types.contains(&event.kind);
    Ok(if wanted { Received::event(id, event) } else { Received::nothing() })
}

/// Checks that who sent this knows the token: HMAC-SHA256 over the bytes as they came, compared in constant time.
fn verify(token: &str, request: &Inbound) -> Result<()> {
    let hint = "enter the token that the subscription was verified with";
    let Some(signature) = request.header("x-notion-signature").and_then(|text| text.strip_prefix("sha256=")) else {
        return Err(ToolError::unauthorized(format!("the delivery is not signed; {hint}")));
    };
    let signature = HEXLOWER_PERMISSIVE.decode(signature.as_bytes()).unwrap_or_default();
    let mut mac = Hmac::<Sha256>::new_from_slice(token.as_bytes())
        .map_err(|cause| ToolError::internal(format!("the token cannot be used: {cause}")))?;
    mac.update(&request.body);
    mac.verify_slice(&signature).map_err(|_| ToolError::unauthorized(format!("the signature is wrong; {hint}")))
}
