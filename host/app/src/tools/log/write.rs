//! The writer: takes what was entered, a group at a time, and makes it durable.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use serde_json::value::RawValue;
use store::{Batch, CommitError, Store, Time};
use tokio::{sync::mpsc, time::timeout};

use super::{
    Bell, Entry, GROUP, Message,
    page::{Detail, Details, Executed, Line, Page, Sent, Status, cut, place},
};
use crate::{Error, Result, catalog::Usage, clock::Clock, projects::LogVisibility, vault::Vault};

/// How long a record may wait for others.
const BEHIND: Duration = Duration::from_millis(20);
/// How long the writer waits before it tries again what the store refused.
const AGAIN: Duration = Duration::from_millis(500);
/// How many milliseconds pass before the counts of runs are written again.
const COUNTS: i64 = 60_000;
/// How often it tries when the server is stopping.
const LAST_TRIES: u32 = 6;

/// Writes what is entered. It ends when every [`Log`](super::Log) is gone and everything is written.
pub struct Writer {
    pub(super) from: mpsc::Receiver<Message>,
    pub(super) bell: Arc<Bell>,
    pub(super) store: Store,
    pub(super) vault: Arc<Vault>,
    pub(super) clock: Clock,
    pub(super) payload: usize,
    pub(super) usage: Arc<Usage>,
    /// When the counts of runs were last written.
    pub(super) counted: Time,
}

/// What became of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Yes,
    /// The store will never take it.
    Refused,
    /// The server stopped first.
    No,
}

impl Writer {
    /// Writes until there is nothing more to come.
    pub async fn run(mut self) {
        let mut group = Vec::with_capacity(GROUP);
        while self.from.recv_many(&mut group, GROUP).await > 0 {
            // Closed and empty means that nobody will ring; what came is written at once.
            if group.len() < GROUP && !group.iter().any(Message::hurries) && !self.from.is_closed() {
                // Time is up or the bell has rung: either way it is time to write.
                let _ = timeout(BEHIND, self.bell.rung.notified()).await;
            }
            while group.len() < GROUP
                && let Ok(more) = self.from.try_recv()
            {
                group.push(more);
            }
            self.bell.entered.store(self.from.len(), Ordering::Relaxed);
            self.write(std::mem::take(&mut group)).await;
            if self.clock.now().0 - self.counted.0 >= COUNTS {
                self.save_counts().await;
            }
        }
        self.save_counts().await;
    }

    async fn save_counts(&mut self) {
        self.counted = self.clock.now();
        if let Err(cause) = self.usage.save(&self.store, self.counted).await {
            tracing::warn!(%cause, "how often toolkits run could not be written");
        }
    }

    async fn write(&self, group: Vec<Message>) {
        let mut entries = Vec::with_capacity(group.len());
        let mut waiting = Vec::new();
        for message in group {
            match message {
                Message::Entry(entry, done) => {
                    entries.push(*entry);
                    waiting.extend(done);
                }
                Message::Settle(done) => waiting.push(done),
            }
        }
        self.keep_cassettes(&entries).await;
        let written = match self.commit(&entries).await {
            Written::Refused if entries.len() > 1 => self.one_by_one(&entries).await,
            written => written == Written::Yes,
        };
        for entry in &entries {
            self.usage.count(&entry.release.slug);
        }
        if written {
            for done in waiting {
                // Whoever waited may have gone.
                let _ = done.send(());
            }
        }
    }

    /// One record that the store refuses must not take the others with it.
    async fn one_by_one(&self, entries: &[Entry]) -> bool {
        let mut all = true;
        for entry in entries {
            all &= self.commit(std::slice::from_ref(entry)).await == Written::Yes;
        }
        all
    }

    /// Commits, and tries again for as long as the server runs.
    async fn commit(&self, entries: &[Entry]) -> Written {
        let mut last_tries = 0;
        loop {
            let cause = match self.batch(entries).await {
                Ok(batch) => match self.store.commit(batch).await {
                    Ok(()) => return Written::Yes,
                    // Trying again cannot help.
                    Err(cause @ (CommitError::Taken { .. } | CommitError::Stale | CommitError::Invalid(_))) => {
                        tracing::error!(%cause, records = entries.len(), "log records were refused");
                        return Written::Refused;
                    }
                    Err(cause) => Error::from(cause),
                },
                Err(cause) => cause,
            };
            last_tries += u32::from(self.from.is_closed());
            if last_tries > LAST_TRIES {
                tracing::error!(%cause, records = entries.len(), "log records are lost: the server stops");
                return Written::No;
            }
            tracing::warn!(%cause, records = entries.len(), "log records wait for the store");
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn batch(&self, entries: &[Entry]) -> Result<Batch> {
        let mut projects: Vec<(&str, Vec<&Entry>)> = Vec::new();
        for entry in entries {
            let project = entry.project.id.as_str();
            match projects.iter_mut().find(|(own, _)| *own == project) {
                Some((_, entries)) => entries.push(entry),
                None => projects.push((project, vec![entry])),
            }
        }
        let mut batch = Batch::at(self.clock.now());
        for (project, entries) in projects {
            for page in cut(&entries, self.payload) {
                batch = self.page(batch, project, &page).await?;
            }
        }
        Ok(batch)
    }

    async fn page(&self, batch: Batch, project: &str, entries: &[&Entry]) -> Result<Batch> {
        let Some(last) = entries.last() else { return Ok(batch) };
        let (id, ended_at) = (last.id.as_str(), entries.iter().map(|entry| entry.ended_at).max().unwrap_or_default());
        let page = Page::of(entries.iter().map(|entry| record(entry)).collect());
        let batch = batch.insert_created(ended_at, project, id, &page);
        let said: Vec<_> = entries.iter().map(|entry| detail(entry, self.payload)).collect();
        if said.iter().all(Option::is_none) {
            return Ok(batch);
        }
        let key = self.vault.key(project, batch.now).await?;
        let details = Details { sealed: key.seal(place(project, id), &said)? };
        Ok(batch.insert_created(ended_at, project, id, &details))
    }
}

impl Message {
    /// Somebody waits for it.
    fn hurries(&self) -> bool {
        !matches!(self, Self::Entry(_, None))
    }
}

fn record(entry: &Entry) -> Executed {
    let failure = entry.error.as_deref().map(|error| error.split(':').next().unwrap_or_default().to_owned());
    let usage = entry.outcome.usage;
    Executed {
        id: entry.id.clone(),
        tool: entry.tool.to_string(),
        toolkit: entry.release.slug.to_string(),
        version: entry.release.version.to_string(),
        status: if failure.is_some() { Status::Failed } else { Status::Success },
        user: entry.user.clone(),
        account: entry.account.clone(),
        auth_config: entry.auth_config.clone(),
        source: entry.source,
        request: entry.request_id.clone(),
        started_at: entry.started_at,
        ended_at: entry.ended_at,
        cpu_us: micros(usage.cpu),
        wall_us: micros(usage.wall),
        memory: usage.peak_memory,
        host_calls: usage.host_calls,
        requests: entry.outcome.requests.len(),
        tokens: entry.tokens.clone(),
        failure,
    }
}

fn detail(entry: &Entry, payload: usize) -> Option<Detail> {
    if entry.project.stored.config.log_visibility == LogVisibility::DontStoreData {
        return None;
    }
    let log = entry.outcome.log.iter().map(|line| Line {
        level: line.level.to_string(),
        at_ms: millis(line.at),
        message: line.message.clone(),
    });
    let requests = entry.outcome.requests.iter().map(|request| Sent {
        method: request.method.clone(),
        url: request.url.clone(),
        status: request.status,
        error: request.error.clone(),
        elapsed_ms: millis(request.elapsed),
        sent: request.sent,
        received: request.received,
    });
    Some(Detail {
        arguments: bounded(&entry.arguments, payload),
        data: bounded(&entry.data, payload),
        error: entry.error.clone(),
        log: log.collect(),
        requests: requests.collect(),
    })
}

/// JSON text as it is, or a note in its place.
fn bounded(json: &Bytes, most: usize) -> Box<RawValue> {
    let kept = if json.len() <= most { serde_json::from_slice(json).ok() } else { None };
    kept.unwrap_or_else(|| {
        let note = serde_json::json!({"omitted": true, "bytes": json.len()});
        serde_json::value::to_raw_value(&note).unwrap_or_default()
    })
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
