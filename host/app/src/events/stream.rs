//! Streams of the events of a project, read from the store.
//!
//! A stream reads what every server has committed. Two servers may commit in another order than
//! that of their clocks, so a stream reads the last [`MAX_COMMIT_DELAY`] again and skips what it
//! has returned. A stream that continues after an event may therefore return events again that
//! happened shortly before, but never misses an event.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use store::{CommitSignal, Cursor, Query, Record, Time};

use super::{
    errors,
    event::{COLLECTION, EVENTS_PER_READ, Event, MessageVersion},
    message,
};
use crate::{
    App, Result,
    catalog::Snapshot,
    core::{clock::time_before, ids::ProjectId, shown_slug},
    projects::Project,
};

/// Maximum difference between the time of an event and that of its commit, with the difference of
/// the clocks of two servers. A poll commits up to a thousand events in one batch.
const MAX_COMMIT_DELAY: Duration = Duration::from_secs(5);
/// Interval at which events of other servers are looked for.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Prefix of the id of the beginning of a stream, before its time in epoch milliseconds.
const POSITION_PREFIX: &str = "at_";

/// Filter of a stream. Empty lists do not filter.
#[derive(Debug, Default)]
pub struct Filter {
    /// Slugs of toolkits, in any case.
    pub toolkits: Vec<String>,
    /// Slugs of trigger types, in any case.
    pub trigger_slugs: Vec<String>,
    /// Ids of trigger instances.
    pub triggers: Vec<String>,
    /// Ids of connected accounts.
    pub accounts: Vec<String>,
    /// Ids of auth configs.
    pub auth_configs: Vec<String>,
    /// Ids of users.
    pub users: Vec<String>,
}

/// An event of a stream.
#[derive(Debug, Clone)]
pub struct StreamedEvent {
    /// Id of the message, after which a stream can continue.
    pub id: String,
    /// Message of version 3.
    pub message: Bytes,
}

/// A stream of the events of a project.
pub struct EventStream {
    project: ProjectId,
    filter: Filter,
    committed: CommitSignal,
    /// Time before which no event is returned.
    start: Time,
    /// Time from which events are read.
    read_from: Time,
    /// Event after which the current read continues.
    cursor: Option<Cursor>,
    /// Events since `read_from` that were returned or do not match the filter, with their times.
    seen: HashMap<String, Time>,
}

impl EventStream {
    /// Opens a stream of the events after a message or a [position](Self::position), or of those
    /// from now on. Fails if the message does not exist any more.
    pub async fn open(
        app: &App,
        project: &Project,
        filter: Filter,
        after: Option<&str>,
    ) -> Result<Self> {
        let committed = app.store.commit_signal(&COLLECTION);
        let mut seen = HashMap::new();
        let start = match (after, after.and_then(opening_time)) {
            (None, _) => app.clock.now(),
            (_, Some(time)) => before(time),
            (Some(id), None) => {
                let unknown = || errors::event_not_found(shown_slug(id));
                let id = id.strip_prefix("msg_").ok_or_else(unknown)?;
                let event = app.store.get::<Event>(project.id.as_str(), id).await?;
                let event = event.ok_or_else(unknown)?;
                seen.insert(event.id, event.created_at);
                before(event.created_at)
            }
        };
        Ok(Self {
            project: project.id.clone(),
            filter,
            committed,
            start,
            read_from: start,
            cursor: None,
            seen,
        })
    }

    /// Returns the id of the start of a stream, after which another stream can start.
    #[must_use]
    pub fn position(&self) -> String {
        format!("{POSITION_PREFIX}{}", self.start.0)
    }

    /// Returns the next events. Waits for some, and returns an empty list after a second without
    /// any.
    pub async fn next(&mut self, app: &App) -> Result<Vec<StreamedEvent>> {
        let events = self.read(app).await?;
        let is_done = !events.is_empty() || self.cursor.is_some();
        if is_done || !self.committed.committed_within(POLL_INTERVAL).await {
            return Ok(events);
        }
        self.read(app).await
    }

    async fn read(&mut self, app: &App) -> Result<Vec<StreamedEvent>> {
        let mut query = Query::for_project(self.project.as_str())
            .at_least("created_at", self.read_from.0)
            .page(0, EVENTS_PER_READ)
            .uncounted();
        query.after = self.cursor.take();
        let page = app.store.list::<Event>(&query).await?;
        let catalog = app.catalog.snapshot();
        let mut events = Vec::new();
        for record in page.items {
            let known = self.seen.insert(record.id.clone(), record.created_at);
            if known.is_none() && self.filter.admits(&record, &catalog) {
                events.push(StreamedEvent {
                    id: message::message_id(&record.id),
                    message: message::write(app, &record, MessageVersion::V3).await?,
                });
            }
        }
        self.cursor = page.next;
        if self.cursor.is_none()
            && let Some(newest) = self.seen.values().max()
        {
            self.read_from = before(*newest).max(self.start);
            self.seen.retain(|_, time| *time >= self.read_from);
        }
        Ok(events)
    }
}

impl Filter {
    fn admits(&self, event: &Record<Event>, catalog: &Snapshot) -> bool {
        let source = event.body.source.as_ref();
        let auth_config = source.map(|source| source.auth_config_id.as_str());
        let slug = source.map(|source| source.trigger_slug.to_ascii_lowercase());
        let toolkit = slug
            .as_ref()
            .and_then(|slug| catalog.toolkit_of_trigger(slug));
        let has_slug = |list: &[String], matches: &dyn Fn(&str, &str) -> bool| {
            let mut wanted = list.iter().map(|own| own.to_ascii_lowercase());
            let slug = slug.as_ref();
            list.is_empty() || slug.is_some_and(|slug| wanted.any(|own| matches(slug, &own)))
        };
        let is_of_toolkit = |slug: &str, own: &str| match toolkit {
            Some(toolkit) => *toolkit.slug == *own,
            // The catalog does not have the trigger type any more.
            None => {
                let rest = slug.strip_prefix(own);
                rest.is_some_and(|rest| rest.starts_with('_'))
            }
        };
        has_slug(&self.trigger_slugs, &|slug: &str, own: &str| slug == own)
            && has_slug(&self.toolkits, &is_of_toolkit)
            && is_one_of(&self.triggers, source.map(|own| own.trigger_id.as_str()))
            && is_one_of(&self.accounts, event.body.account().map(|id| id.as_str()))
            && is_one_of(&self.auth_configs, auth_config)
            && is_one_of(&self.users, source.map(|own| own.user_id.as_str()))
    }
}

/// Returns true if a list is empty or contains a value.
fn is_one_of(list: &[String], value: Option<&str>) -> bool {
    list.is_empty() || value.is_some_and(|value| list.iter().any(|one| one == value))
}

fn opening_time(id: &str) -> Option<Time> {
    let time = id.strip_prefix(POSITION_PREFIX)?.parse().ok()?;
    Some(Time(time))
}

fn before(time: Time) -> Time {
    time_before(time, MAX_COMMIT_DELAY)
}
