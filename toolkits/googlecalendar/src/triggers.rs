//! Polling triggers for a calendar.

use jiff::{SignedDuration, Timestamp};
use toolkit_sdk::prelude::*;

use crate::API;
use crate::events::{EVENTS_PATH, Event, now, primary, written};

/// Number of events in one page: for reported changes, and for the initial listing, of which only
/// the final sync token is needed.
const PAGE_SIZE: u32 = 50;
const SKIPPED_PAGE_SIZE: u32 = 2500;
/// Max number of pages that one poll skips. The next poll continues.
const MAX_SKIPPED_PAGES: u32 = 40;
/// Max difference between the clocks of Google and of this platform.
const MAX_CLOCK_DIFFERENCE: SignedDuration = SignedDuration::from_mins(5);
/// Max number of events that one poll checks for their start.
const MAX_STARTING_EVENTS: usize = 1000;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Config {
    /// Id of the calendar, from `list_calendars`; `primary` is the main calendar of the account.
    #[serde(default = "primary")]
    calendar_id: String,
}

/// Position of the last poll.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// Token after which changes are reported; missing until the initial listing is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    sync_token: Option<String>,
    /// Token of the next page to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    page_token: Option<String>,
}

/// A page of events or changes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    #[serde(default)]
    items: Vec<Changed>,
    next_page_token: Option<String>,
    next_sync_token: Option<String>,
}

/// An event at one of its versions.
#[derive(Deserialize)]
pub(crate) struct Changed {
    etag: String,
    created: Option<String>,
    #[serde(flatten)]
    event: Event,
}

impl Changed {
    /// Returns the event with an id unique to its version, so that a version read again is not
    /// reported twice.
    pub(crate) fn identified(self) -> (String, Event) {
        let version = self.etag.trim_matches('"');
        (format!("{} {version}", self.event.id), self.event)
    }
}

/// Result of a look for changes.
struct Changes {
    found: Vec<Changed>,
    cursor: Cursor,
    more: bool,
}

/// Fires when an event of a calendar is created, changed, answered or deleted. A deleted one has
/// the status `cancelled` and little else.
#[trigger(
    poll,
    scopes("https://www.googleapis.com/auth/calendar.events.readonly")
)]
pub(crate) fn event_changed(
    config: Config,
    cursor: Option<Cursor>,
) -> Result<Polled<Event, Cursor>> {
    let Changes {
        found,
        cursor,
        more,
    } = changes(&config, cursor)?;
    let news = found.into_iter().map(Changed::identified);
    Ok(Polled::new(cursor).events(news).more(more))
}

/// Position of the last poll for new events.
#[derive(Serialize, Deserialize)]
pub(crate) struct CreatedCursor {
    #[serde(flatten)]
    changes: Cursor,
    /// Time of the last poll that read every change.
    since: String,
}

/// Fires when an event of a calendar is created, also as an invitation; once for a series.
#[trigger(
    poll,
    scopes("https://www.googleapis.com/auth/calendar.events.readonly")
)]
pub(crate) fn event_created(
    config: Config,
    cursor: Option<CreatedCursor>,
) -> Result<Polled<Event, CreatedCursor>> {
    let now = timestamp()?;
    let since = cursor
        .as_ref()
        .and_then(|cursor| cursor.since.parse().ok())
        .unwrap_or(now);
    let Changes {
        found,
        cursor: changes,
        more,
    } = changes(&config, cursor.map(|cursor| cursor.changes))?;
    let earliest = since.checked_sub(MAX_CLOCK_DIFFERENCE).unwrap_or(since);
    let is_new = |changed: &Changed| {
        let created = changed.created.as_deref().map(str::parse::<Timestamp>);
        created.is_some_and(|created| created.is_ok_and(|created| created >= earliest))
            && changed.event.status.as_deref() != Some("cancelled")
            // A changed occurrence of a new series is not a separate event.
            && !changed.event.is_occurrence()
    };
    // An event changed soon after its creation is read again. The platform drops it by its
    // id.
    let news = found
        .into_iter()
        .filter(is_new)
        .map(|changed| (changed.event.id.clone(), changed.event));
    let next = CreatedCursor {
        changes,
        since: written(if more { since } else { now }),
    };
    Ok(Polled::new(next).events(news).more(more))
}

/// Reads the next page of changes. Without a position, finds the current one.
fn changes(config: &Config, cursor: Option<Cursor>) -> Result<Changes> {
    let Some(Cursor {
        sync_token: Some(token),
        page_token,
    }) = cursor
    else {
        return begin(config, cursor.and_then(|cursor| cursor.page_token));
    };
    let request = list(config)
        .query("syncToken", &token)
        .query_opt("pageToken", page_token);
    let response = request.query("maxResults", PAGE_SIZE).send_any()?;
    if response.status() == 410 {
        log::warn!(
            "Google has forgotten where the last poll stood; changes since then are not reported"
        );
        return begin(config, None);
    }
    if !response.is_success() {
        return Err(response.error());
    }
    let Page {
        items,
        next_page_token,
        next_sync_token,
    } = response.json()?;
    Ok(Changes {
        found: items,
        more: next_page_token.is_some(),
        cursor: Cursor {
            sync_token: next_sync_token.or(Some(token)),
            page_token: next_page_token,
        },
    })
}

/// Returns the current time.
fn timestamp() -> Result<Timestamp> {
    now()
        .parse()
        .map_err(|_| ToolError::internal("the clock shows no time"))
}

fn list(config: &Config) -> Request {
    API.get(EVENTS_PATH).path("calendar", &config.calendar_id)
}

/// Reads all events to the end, where Google returns the token for later changes.
fn begin(config: &Config, mut page_token: Option<String>) -> Result<Changes> {
    for _ in 0..MAX_SKIPPED_PAGES {
        let request = list(config)
            .query_opt("pageToken", page_token)
            .query("maxResults", SKIPPED_PAGE_SIZE);
        let page: Page = request
            .query("fields", "nextPageToken,nextSyncToken")
            .send()?
            .json()?;
        if page.next_page_token.is_none() {
            let sync_token = page.next_sync_token;
            let cursor = Cursor {
                sync_token: Some(sync_token.ok_or_else(|| {
                    ToolError::upstream("Google's list of events has no token for the next poll")
                })?),
                page_token: None,
            };
            return Ok(Changes {
                found: Vec::new(),
                cursor,
                more: false,
            });
        }
        page_token = page.next_page_token;
    }
    let cursor = Cursor {
        sync_token: None,
        page_token,
    };
    Ok(Changes {
        found: Vec::new(),
        cursor,
        more: true,
    })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Starting {
    /// Id of the calendar, from `list_calendars`; `primary` is the main calendar of the account.
    #[serde(default = "primary")]
    calendar_id: String,
    /// Number of minutes before its start at which an event is reported.
    #[serde(default = "ten")]
    #[schemars(range(min = 0, max = 10080))]
    minutes_before: u32,
}

fn ten() -> u32 {
    10
}

/// Time up to which starting events were reported.
#[derive(Serialize, Deserialize)]
pub(crate) struct Reported {
    until: String,
}

/// Fires some minutes before an event starts, once for each occurrence; at once for an event that
/// is created later than that. Not for all-day events.
#[trigger(
    poll,
    scopes("https://www.googleapis.com/auth/calendar.events.readonly")
)]
pub(crate) fn event_starting(
    config: Starting,
    cursor: Option<Reported>,
) -> Result<Polled<Event, Reported>> {
    let now = timestamp()?;
    let ahead = SignedDuration::from_mins(config.minutes_before.into());
    let until = now
        .checked_add(ahead)
        .map_err(|_| ToolError::invalid_input("`minutes_before` is too large"))?;
    // Includes events that started since the last poll. The platform drops events that were already
    // reported, by their ids.
    let from = cursor
        .and_then(|reported| reported.until.parse().ok())
        .map_or(now, |until: Timestamp| until.min(now));
    let request = API
        .get(EVENTS_PATH)
        .path("calendar", &config.calendar_id)
        .query("singleEvents", true)
        .query("orderBy", "startTime")
        .query("timeMin", written(from))
        .query("timeMax", written(until));
    let paging = Paging::cursor("pageToken", "/nextPageToken")
        .items("/items")
        .size("maxResults", 250);
    let mut polled = Polled::new(Reported {
        until: written(until),
    });
    for event in request.items::<Event>(paging, MAX_STARTING_EVENTS) {
        let event = event?;
        let Some(start) = event.start.clone() else {
            continue;
        };
        // Google lists all events that have not ended, including those that started long ago. A
        // date without a time is not a timestamp.
        if start
            .parse::<Timestamp>()
            .is_ok_and(|moment| moment >= from)
        {
            polled = polled.event(format!("{} {start}", event.id), event);
        }
    }
    Ok(polled)
}
