//! A webhook trigger for a calendar, and the notification channels that Google sends it through
//! (<https://developers.google.com/workspace/calendar/api/guides/push>).
//!
//! A notification says only that something has changed. The trigger reads the latest changes, and the
//! platform drops those that were reported already. A channel expires after a week at the latest, and
//! the platform renews it.

use jiff::Timestamp;
use toolkit_sdk::prelude::*;
use toolkit_sdk::subscription::{Endpoint, Subscribe, Subscription};
use toolkit_sdk::webhook::{Algorithm, Secret};

use crate::API;
use crate::events::{EVENTS_PATH, Event, primary, written};
use crate::triggers::Changed;

/// Max time between a change and its notification, in milliseconds. Google repeats a notification
/// that was refused.
const MAX_DELAY_MS: u64 = 30 * 60 * 1000;
/// Max difference between the clocks of Google and of this platform, in milliseconds.
const MAX_CLOCK_DIFFERENCE_MS: u64 = 60 * 1000;
/// Max number of changes that one notification reports.
const MAX_CHANGES: usize = 500;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Config {
    /// Id of the calendar, from `list_calendars`; `primary` is the main calendar of the account.
    #[serde(default = "primary")]
    calendar_id: String,
    /// Token of a notification channel. Leave it out to have a channel opened and renewed.
    #[schemars(length(min = 16))]
    token: Secret,
}

/// Fires as soon as an event of a calendar is created, changed, answered or deleted. A deleted one has
/// the status `cancelled` and little else. Opens a notification channel at Google and renews it.
#[trigger(
    webhook,
    subscription = "Channels",
    scopes("https://www.googleapis.com/auth/calendar.events.readonly")
)]
pub(crate) fn calendar_changed(config: Config, request: Inbound) -> Result<Received<Event>> {
    let token = request.header("x-goog-channel-token").unwrap_or_default();
    if !config
        .token
        .verify(Algorithm::Token, b"", token.as_bytes())?
    {
        return Err(ToolError::unauthorized(
            "the notification does not have the token of the channel",
        ));
    }
    let mut received = Received::nothing();
    if request.header("x-goog-resource-state") == Some("sync") {
        return Ok(received);
    }
    let opened = request.header("x-goog-channel-id").and_then(opened_at);
    let since_ms = clock::now().saturating_sub(MAX_DELAY_MS).max(
        opened
            .unwrap_or_default()
            .saturating_sub(MAX_CLOCK_DIFFERENCE_MS),
    );
    let since = Timestamp::from_millisecond(i64::try_from(since_ms).unwrap_or(i64::MAX))
        .unwrap_or(Timestamp::MAX);
    let request = API
        .get(EVENTS_PATH)
        .path("calendar", &config.calendar_id)
        .query("orderBy", "updated")
        .query("showDeleted", true)
        .query("updatedMin", written(since));
    let paging = Paging::cursor("pageToken", "/nextPageToken")
        .items("/items")
        .size("maxResults", 250);
    for changed in request.items::<Changed>(paging, MAX_CHANGES) {
        let (id, event) = changed?.identified();
        received = received.and(id, event);
    }
    Ok(received)
}

/// Returns the time at which a channel was opened, in milliseconds. Its id starts with it.
fn opened_at(channel: &str) -> Option<u64> {
    channel.split_once('-')?.0.parse().ok()
}

/// Notification channels.
pub(crate) struct Channels;

/// A notification channel.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Channel {
    id: String,
    resource_id: String,
    /// Time in milliseconds.
    expiration: Option<String>,
}

impl Subscribe for Channels {
    type Config = Config;
    const SECRET: &'static str = "token";
    const SECRET_POINTER: &'static str = "/token";

    fn subscribe(
        config: Config,
        endpoint: &Endpoint,
        previous: Option<&Subscription>,
    ) -> Result<Subscription> {
        let own = endpoint.url.split('/').find(|part| part.starts_with("we_"));
        let wanted = json!({
            "id": format!("{}-{}", clock::now(), own.unwrap_or("channel")),
            "type": "web_hook",
            "address": endpoint.url,
            "token": endpoint.secret,
        });
        let channel: Channel = API
            .post("/calendars/{calendar}/events/watch")
            .path("calendar", &config.calendar_id)
            .json(&wanted)
            .send()?
            .json()?;
        if let Some(previous) = previous
            && let Err(failure) = stop(previous)
        {
            log::warn!("the previous channel stays open until it expires: {failure}");
        }
        let subscription = Subscription::new(channel.id).data(channel.resource_id);
        let expiration = channel.expiration.and_then(|time| time.parse().ok());
        Ok(match expiration {
            Some(time) => subscription.expires_at_ms(time),
            None => subscription,
        })
    }

    fn unsubscribe(_: Config, _: &Endpoint, previous: Option<&Subscription>) -> Result<()> {
        // Google does not list channels. An unknown one expires.
        previous.map_or(Ok(()), stop)
    }
}

fn stop(channel: &Subscription) -> Result<()> {
    let body = json!({ "id": channel.id, "resourceId": channel.data });
    API.post("/channels/stop").json(&body).send()?;
    Ok(())
}
