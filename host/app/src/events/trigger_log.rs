//! The log of triggers: one entry for each event of a trigger, with its deliveries.
//!
//! Entries are read from the events, newest first. The conditions of a list are tested on the events
//! and deliveries that it reads, at most [`MAX_READ_EVENTS`] for one page. A page also ends when its
//! entries have [`MAX_PAGE_BYTES`]. It may therefore have fewer entries than asked for although
//! another page follows.

use serde_json::value::RawValue;
use store::{Cursor, Query, Record, Time};
use uuid::Uuid;

use super::{
    delivery::{self, Attempt, Delivery, DeliveryStatus, DeliveryView},
    errors,
    event::{self, EVENTS_PER_READ, Event, EventKind, TriggerSource},
    message,
};
use crate::{
    App, Result,
    accounts::auth_configs,
    core::ids::{AuthConfigId, LogId},
    projects::Project,
};

/// Maximum number of events that are read for one page.
pub const MAX_READ_EVENTS: u64 = 2_000;
/// Size of the payloads, and of the kept responses of endpoints, after which a page ends.
pub const MAX_PAGE_BYTES: usize = 4 << 20;

/// Filter of a list. Absent fields do not filter.
#[derive(Debug, Default)]
pub struct Filter {
    /// Time of the oldest event.
    pub since: Option<Time>,
    /// Time of the newest event.
    pub until: Option<Time>,
    /// Outcome of the deliveries.
    pub outcome: Option<Outcome>,
    /// Id of the user.
    pub user: Option<String>,
    /// Legacy id of the auth config.
    pub auth_config: Option<Uuid>,
    /// Texts that fields must contain, in any case.
    pub contained: Vec<(SearchField, String)>,
}

/// A field that can be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchField {
    /// Any of the others.
    Any,
    /// Slug of the trigger type.
    Trigger,
    /// Id of the trigger instance.
    Instance,
    /// Id of the connected account.
    Account,
    /// Id of the user.
    User,
    /// Id of the entry.
    Id,
}

/// Outcome of the deliveries of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All deliveries have succeeded.
    Success,
    /// A delivery has failed.
    Error,
    /// Some deliveries are open, and the others have succeeded.
    Pending,
}

/// An entry: an event of a trigger.
#[derive(Debug)]
pub struct Entry {
    /// Id of the entry.
    pub id: LogId,
    /// Id of the project.
    pub project: String,
    /// Id of the message.
    pub message_id: String,
    /// Time of the event.
    pub created_at: Time,
    /// Slug of the toolkit; empty if the catalog does not have the trigger type any more.
    pub toolkit: String,
    /// Trigger instance and account.
    pub source: TriggerSource,
    /// Deliveries with their attempts, oldest first.
    pub deliveries: Vec<(DeliveryView, Vec<Attempt>)>,
    /// Payload, as JSON, if it was asked for.
    pub payload: Option<Box<RawValue>>,
}

impl Entry {
    /// Returns the outcome of the deliveries.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        outcome(self.deliveries.iter().map(|(delivery, _)| &delivery.record))
    }

    /// Returns the size of the payload and of the kept responses of endpoints.
    fn size(&self) -> usize {
        let attempts = self.deliveries.iter().flat_map(|(_, attempts)| attempts);
        let responses = attempts.filter_map(|attempt| attempt.response.as_ref());
        let payload = self.payload.as_ref().map_or(0, |data| data.get().len());
        payload + responses.map(String::len).sum::<usize>()
    }
}

/// A page of entries.
#[derive(Debug, Default)]
pub struct EntryPage {
    /// The entries, newest first.
    pub entries: Vec<Entry>,
    /// Cursor after which the next page starts, or `None` on the last page.
    pub next: Option<Cursor>,
}

/// Returns entries, newest first. Fails if a record cannot be decrypted.
pub async fn list(
    app: &App,
    project: &Project,
    filter: &Filter,
    after: Option<Cursor>,
    limit: u64,
    with_payload: bool,
) -> Result<EntryPage> {
    let auth_config = match filter.auth_config {
        Some(uuid) => match auth_configs::id_of_legacy(app, project, uuid).await? {
            None => return Ok(EntryPage::default()),
            found => found,
        },
        None => None,
    };
    let until = filter.until.unwrap_or(Time(i64::MAX)).0;
    let mut query = Query::for_project(project.id.as_str())
        .at_least("created_at", filter.since.unwrap_or_default().0)
        .below("created_at", until.saturating_add(1))
        .descending()
        .page(0, EVENTS_PER_READ)
        .uncounted();
    query.after = after;
    let mut entries = Vec::new();
    let mut read = 0;
    let mut bytes = 0;
    loop {
        let page = app.store.list::<Event>(&query).await?;
        let ids = page.items.iter().map(event::id_of);
        let ids = ids.collect::<Result<Vec<_>>>()?;
        let deliveries = delivery::of_events(app, project, &ids).await?;
        let last = page.items.last().map(|event| event.id.clone());
        for (event, id) in page.items.iter().zip(&ids) {
            read += 1;
            let of_event = deliveries.get(id).map_or(&[][..], Vec::as_slice);
            if filter.admits(event, auth_config.as_ref(), of_event) {
                let entry = entry(app, project, event, of_event, with_payload).await?;
                bytes += entry.size();
                entries.push(entry);
            }
            let is_full = entries.len() as u64 >= limit || bytes >= MAX_PAGE_BYTES;
            if is_full || read >= MAX_READ_EVENTS {
                let is_last = page.next.is_none() && last.as_ref() == Some(&event.id);
                let next = (!is_last).then(|| Cursor::at(event));
                return Ok(EntryPage { entries, next });
            }
        }
        let next = page.next;
        query = match next {
            Some(next) => query.after(next),
            None => return Ok(EntryPage { entries, next }),
        };
    }
}

/// Returns an entry with its payload. Fails if the entry does not exist, or a record cannot be
/// decrypted.
pub async fn get(app: &App, project: &Project, id: &LogId) -> Result<Entry> {
    let query = Query::for_project(project.id.as_str()).is("log", id.as_str());
    let event = app.store.first::<Event>(query).await?;
    let event = event.ok_or_else(|| errors::event_log_not_found(id))?;
    let id = event::id_of(&event)?;
    let deliveries = delivery::of_events(app, project, &[id]).await?;
    let of_event = deliveries.get(&id).map_or(&[][..], Vec::as_slice);
    entry(app, project, &event, of_event, true).await
}

async fn entry(
    app: &App,
    project: &Project,
    event: &Record<Event>,
    deliveries: &[Record<Delivery>],
    with_payload: bool,
) -> Result<Entry> {
    let source = event.body.source.clone();
    let source = source.ok_or_else(|| errors::internal("an event of a trigger has no source"))?;
    let snapshot = app.catalog.snapshot();
    let toolkit = snapshot.toolkit_of_trigger(&source.trigger_slug);
    let mut opened = Vec::new();
    for delivery in deliveries {
        opened.push(delivery::open(app, &project.id, delivery.clone()).await?);
    }
    let payload = match with_payload {
        true => Some(event::payload(app, event).await?),
        false => None,
    };
    Ok(Entry {
        id: source.log_id.clone(),
        project: event.project.clone(),
        message_id: message::message_id(&event.id),
        created_at: event.created_at,
        toolkit: toolkit.map_or_else(String::new, |toolkit| toolkit.slug.to_string()),
        source,
        deliveries: opened,
        payload,
    })
}

fn outcome<'a>(deliveries: impl Iterator<Item = &'a Record<Delivery>>) -> Outcome {
    let mut outcome = Outcome::Success;
    for delivery in deliveries {
        match delivery.body.status {
            DeliveryStatus::Failed => return Outcome::Error,
            DeliveryStatus::Pending => outcome = Outcome::Pending,
            DeliveryStatus::Delivered => {}
        }
    }
    outcome
}

impl Filter {
    fn admits(
        &self,
        event: &Record<Event>,
        auth_config: Option<&AuthConfigId>,
        deliveries: &[Record<Delivery>],
    ) -> bool {
        let Some(source) = &event.body.source else {
            return false;
        };
        event.body.kind == EventKind::TriggerMessage
            && self
                .user
                .as_ref()
                .is_none_or(|user| *user == source.user_id)
            && auth_config.is_none_or(|config| *config == source.auth_config_id)
            && self
                .contained
                .iter()
                .all(|(field, text)| field.contains(source, text))
            && self
                .outcome
                .is_none_or(|wanted| wanted == outcome(deliveries.iter()))
    }
}

impl SearchField {
    fn contains(self, source: &TriggerSource, text: &str) -> bool {
        self.values(source).iter().any(|value| {
            let value = value.to_lowercase();
            value.contains(&text.to_lowercase())
        })
    }

    fn values(self, source: &TriggerSource) -> Vec<&str> {
        match self {
            Self::Any => [
                Self::Trigger,
                Self::Instance,
                Self::Account,
                Self::User,
                Self::Id,
            ]
            .into_iter()
            .flat_map(|field| field.values(source))
            .collect(),
            Self::Trigger => vec![&source.trigger_slug],
            Self::Instance => vec![source.trigger_id.as_str()],
            Self::Account => vec![source.account_id.as_str()],
            Self::User => vec![&source.user_id],
            Self::Id => vec![source.log_id.as_str()],
        }
    }
}
