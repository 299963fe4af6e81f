//! The execution log: what ran, for whom, and what came of it.
//!
//! Writing a record durably costs far more than running a small tool, so records are written in groups, at most 20 ms or 256
//! records behind. None is dropped: a call takes its place in the buffer before its tool runs, and waits, or is refused with
//! nothing started, while the buffer is full. Sealing and serialising happen here too, off the path of the request. A reader
//! first waits until everything entered before it is written, so that an answer's `log_id` can be looked up at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use sandbox::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::{
    Batch, Collection, CommitError, Document, Field, Found as Page, Kind, Query, Record, Scalar, Store, Test, Time,
};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::timeout,
};

use crate::{
    App, Error, Result,
    catalog::Found,
    clock::Clock,
    connections::Source,
    ids::{AccountId, AuthConfigId, LogId},
    projects::{LogVisibility, Project, SharedProject},
    vault::{DataKey, Place, Sealed, Vault},
};

const GROUP: usize = 256;
const BEHIND: Duration = Duration::from_millis(20);
/// How long a call waits for a place in a full buffer.
const PLACE: Duration = Duration::from_secs(2);
/// How long the writer waits before it tries again what the store refused.
const AGAIN: Duration = Duration::from_millis(500);
/// How often it tries when the server is stopping.
const LAST_TRIES: u32 = 6;

/// The collection this room owns.
pub(crate) static COLLECTION: Collection = Collection {
    name: "executions",
    fields: &[
        Field::new("tool", Kind::Text),
        Field::new("toolkit", Kind::Text),
        Field::new("status", Kind::Text),
        Field::new("user", Kind::Text),
        Field::new("account", Kind::Text),
        Field::new("auth_config", Kind::Text),
        Field::new("request", Kind::Text),
    ],
};

/// A record, as stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct Executed {
    /// Slug.
    pub tool: String,
    /// Slug.
    pub toolkit: String,
    /// Exact.
    pub version: String,
    /// `success` or `failed`.
    pub status: Status,
    /// On whose behalf.
    pub user: String,
    /// With which account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountId>,
    /// How that was connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_config: Option<AuthConfigId>,
    /// Where the credential came from.
    pub source: Source,
    /// The request that asked for it.
    pub request: String,
    /// When it ended.
    pub ended_at: Time,
    /// Processor time in microseconds.
    pub cpu_us: u64,
    /// Wall-clock time in microseconds.
    pub wall_us: u64,
    /// Bytes of guest memory at most.
    pub memory: u64,
    /// Calls of host functions.
    pub host_calls: u32,
    /// Requests to the external application.
    pub requests: usize,
    /// Kind of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Absent when the project keeps no data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<Sealed<Detail>>,
}

impl Document for Executed {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The tool answered.
    Success,
    /// The tool failed or was stopped.
    Failed,
}

/// What was said, in and out.
#[derive(Debug, Serialize, Deserialize)]
pub struct Detail {
    /// As they came, or a note that they were too large to keep.
    pub arguments: Box<RawValue>,
    /// As it was answered, or such a note.
    pub data: Box<RawValue>,
    /// Of a failure.
    #[serde(default)]
    pub error: Option<String>,
    /// What the tool wrote.
    #[serde(default)]
    pub log: Vec<Line>,
    /// What it sent.
    #[serde(default)]
    pub requests: Vec<Sent>,
}

/// A line the tool wrote.
#[derive(Debug, Serialize, Deserialize)]
pub struct Line {
    /// `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// Milliseconds since the start.
    pub at_ms: u64,
    /// The text.
    pub message: String,
}

/// A request the tool sent.
#[derive(Debug, Serialize, Deserialize)]
pub struct Sent {
    /// GET, POST and so on.
    pub method: String,
    /// Without secrets.
    pub url: String,
    /// What the application answered.
    pub status: Option<u16>,
    /// Why it was not sent or not answered.
    pub error: Option<String>,
    /// How long it took.
    pub elapsed_ms: u64,
    /// Bytes of the request's body.
    pub sent: u64,
    /// Bytes of the answer's body.
    pub received: u64,
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

/// A finished run on its way into the log.
pub(crate) struct Entry {
    pub id: LogId,
    pub project: SharedProject,
    pub found: Found,
    pub user: String,
    pub account: Option<AccountId>,
    pub auth_config: Option<AuthConfigId>,
    pub source: Source,
    pub request_id: String,
    pub started_at: Time,
    pub ended_at: Time,
    pub arguments: Bytes,
    pub data: Bytes,
    pub error: Option<String>,
    pub outcome: Outcome,
}

enum Message {
    Entry(Box<Entry>, Option<oneshot::Sender<()>>),
    /// Answered when everything before it is written.
    Settle(oneshot::Sender<()>),
}

/// The way into the log.
pub struct Log {
    to: mpsc::Sender<Message>,
    bell: Arc<Bell>,
    wait: bool,
}

/// A place in the buffer.
pub(crate) struct Slot {
    permit: mpsc::OwnedPermit<Message>,
    bell: Arc<Bell>,
    wait: bool,
}

/// Writes what is entered. It ends when every [`Log`] is gone and everything is written.
pub struct Writer {
    from: mpsc::Receiver<Message>,
    bell: Arc<Bell>,
    store: Store,
    vault: Arc<Vault>,
    clock: Clock,
    payload: usize,
}

/// Wakes the writer before its time: a group is full, or somebody waits. Without it every record would wake it.
#[derive(Default)]
struct Bell {
    entered: AtomicUsize,
    rung: Notify,
}

/// What the operator decides about the log.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// A call answers only when its record is durable.
    pub wait: bool,
    /// Records that may wait to be written.
    pub buffer: usize,
    /// Bytes kept of arguments and of data.
    pub payload: usize,
}

pub(crate) fn open(settings: Settings, store: Store, vault: Arc<Vault>, clock: Clock) -> (Log, Writer) {
    let (to, from) = mpsc::channel(settings.buffer);
    let bell = Arc::new(Bell::default());
    let log = Log { to, bell: bell.clone(), wait: settings.wait };
    (log, Writer { from, bell, store, vault, clock, payload: settings.payload })
}

impl Log {
    /// Takes a place in the buffer, before anything is started.
    pub(crate) async fn reserve(&self) -> Result<Slot> {
        let slot = |permit| Slot { permit, bell: self.bell.clone(), wait: self.wait };
        let reserved = match self.to.clone().try_reserve_owned() {
            Ok(permit) => return Ok(slot(permit)),
            Err(mpsc::error::TrySendError::Full(to)) => timeout(PLACE, to.reserve_owned()).await,
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(stopping()),
        };
        match reserved {
            Ok(Ok(permit)) => Ok(slot(permit)),
            Ok(Err(_)) => Err(stopping()),
            Err(_) => Err(Error::Unavailable("the execution log cannot keep up".into())),
        }
    }

    /// Waits until everything entered before is written.
    async fn settle(&self) -> Result<()> {
        let (done, written) = oneshot::channel();
        self.to.send(Message::Settle(done)).await.map_err(|_| stopping())?;
        self.bell.rung.notify_one();
        written.await.map_err(|_| stopping())
    }
}

impl Slot {
    /// Enters a record. False when the call was to wait for it and it could not be written.
    pub(crate) async fn enter(self, entry: Entry) -> bool {
        let (done, written) = if self.wait { Some(oneshot::channel()).unzip() } else { (None, None) };
        self.permit.send(Message::Entry(Box::new(entry), done));
        if self.bell.entered.fetch_add(1, Ordering::Relaxed) + 1 == GROUP || self.wait {
            self.bell.rung.notify_one();
        }
        match written {
            Some(written) => written.await.is_ok(),
            None => true,
        }
    }
}

fn stopping() -> Error {
    Error::Unavailable("the server is stopping".into())
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
        let written = match self.commit(&entries).await {
            Written::Refused if entries.len() > 1 => self.one_by_one(&entries).await,
            written => written == Written::Yes,
        };
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
        let mut batch = Batch::at(self.clock.now());
        for entry in entries {
            let record = self.record(entry).await?;
            batch = batch.insert_created(entry.started_at, entry.project.id.as_str(), entry.id.as_str(), &record);
        }
        Ok(batch)
    }

    async fn record(&self, entry: &Entry) -> Result<Executed> {
        let key = match entry.project.stored.config.log_visibility {
            LogVisibility::ShowAll => Some(self.vault.key(entry.project.id.as_str(), entry.ended_at).await?),
            LogVisibility::DontStoreData => None,
        };
        let failed = entry.error.as_deref().map(|error| error.split(':').next().unwrap_or_default().to_owned());
        let usage = entry.outcome.usage;
        Ok(Executed {
            tool: entry.found.tool.slug.to_string(),
            toolkit: entry.found.release.slug.to_string(),
            version: entry.found.release.version.to_string(),
            status: if failed.is_some() { Status::Failed } else { Status::Success },
            user: entry.user.clone(),
            account: entry.account.clone(),
            auth_config: entry.auth_config.clone(),
            source: entry.source,
            request: entry.request_id.clone(),
            ended_at: entry.ended_at,
            cpu_us: micros(usage.cpu),
            wall_us: micros(usage.wall),
            memory: usage.peak_memory,
            host_calls: usage.host_calls,
            requests: entry.outcome.requests.len(),
            failure: failed,
            detail: key.map(|key| self.detail(&key, entry)).transpose()?,
        })
    }

    fn detail(&self, key: &DataKey, entry: &Entry) -> Result<Sealed<Detail>> {
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
        let detail = Detail {
            arguments: bounded(&entry.arguments, self.payload),
            data: bounded(&entry.data, self.payload),
            error: entry.error.clone(),
            log: log.collect(),
            requests: requests.collect(),
        };
        key.seal(place(&entry.project, entry.id.as_str()), &detail)
    }
}

impl Message {
    /// Somebody waits for it.
    fn hurries(&self) -> bool {
        !matches!(self, Self::Entry(_, None))
    }
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

fn place<'a>(project: &'a Project, id: &'a str) -> Place<'a> {
    Place { collection: COLLECTION.name, project: project.id.as_str(), id, field: "detail" }
}

/// A field of the log that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// A field every record has or may have.
    Stored(&'static str),
    /// A field that no record has yet: nothing equals it.
    Absent,
}

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// Equal.
    Is,
    /// Not equal.
    IsNot,
    /// Has the text as a part.
    Contains,
    /// Does not.
    ContainsNot,
}

/// One condition.
#[derive(Debug, Clone)]
pub struct Condition {
    /// Field.
    pub field: Asked,
    /// Operator.
    pub operator: Operator,
    /// Value.
    pub value: String,
}

/// Which records.
#[derive(Debug, Default)]
pub struct Filter {
    /// All of these.
    pub conditions: Vec<Condition>,
    /// Started at this millisecond or later.
    pub from: Option<i64>,
    /// Started at this millisecond or before.
    pub to: Option<i64>,
}

/// A page of records, newest first, with their total.
///
/// # Errors
/// When the store does not answer.
pub async fn list(
    app: &App,
    project: &Project,
    filter: &Filter,
    offset: u64,
    limit: u64,
) -> Result<(Vec<Record<Executed>>, u64)> {
    app.log.settle().await?;
    let mut query = Query::of(project.id.as_str()).newest().page(offset, limit);
    for Condition { field, operator, value } in &filter.conditions {
        let wanted = matches!(operator, Operator::Is | Operator::Contains);
        match field {
            Asked::Absent if wanted => return Ok((Vec::new(), 0)),
            Asked::Absent => {}
            Asked::Stored(name) => query = query.test(name, test(*operator, value)),
        }
    }
    if let Some(from) = filter.from {
        query = query.at_least("created_at", from);
    }
    if let Some(to) = filter.to {
        query = query.below("created_at", to.saturating_add(1));
    }
    let Page { records, total } = app.store.find(&query).await?;
    Ok((records, total))
}

fn test(operator: Operator, value: &str) -> Test {
    let is = || Test::Is(Scalar::from(value));
    let contains = || Test::Contains(value.to_owned());
    match operator {
        Operator::Is => is(),
        Operator::IsNot => Test::Not(Box::new(is())),
        Operator::Contains => contains(),
        Operator::ContainsNot => Test::Not(Box::new(contains())),
    }
}

/// A record with what was said, as far as it was kept.
///
/// # Errors
/// When there is none, or it does not open.
pub async fn get(app: &App, project: &Project, id: &LogId) -> Result<(Record<Executed>, Option<Detail>)> {
    app.log.settle().await?;
    let found = app.store.get::<Executed>(project.id.as_str(), id.as_str()).await?;
    let record = found.ok_or_else(|| Error::LogNotFound(id.to_string()))?;
    let detail = match &record.body.detail {
        Some(sealed) => {
            let key = app.vault.key(project.id.as_str(), app.clock.now()).await?;
            Some(key.open(place(project, &record.id), sealed)?)
        }
        None => None,
    };
    Ok((record, detail))
}
