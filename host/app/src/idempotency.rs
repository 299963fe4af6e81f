//! Requests that take effect at most once, however often they are sent.
//!
//! A request that carries a key is noted before it is begun, and its answer when it has ended; whoever sends it again is
//! given that answer. One that was cut off in between, by a killed server, may have taken effect or not: its key then
//! refuses for as long as it is kept, because doing it again would be a guess. The note is durable before anything is
//! begun, so this holds over restarts and between servers.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use store::{Batch, Collection, CommitError, Document, Query, Record, Store, Time};

use crate::{
    App, Error, Result,
    jobs::Lease,
    projects::Holder,
    quotas::Kind,
    vault::{Place, Sealed},
};

/// How long a key is kept.
const KEPT: Duration = Duration::from_secs(24 * 3_600);
/// Bytes of an answer that is kept.
pub const ANSWER: usize = 1 << 20;
/// Characters of a key.
pub const KEY: usize = 255;
/// Notes erased in one batch.
const BATCH: u64 = 64;
/// How often it is looked for what is old.
pub(crate) const EVERY: Duration = Duration::from_secs(3_600);

/// The collection this room owns. The owner of the API key stands where other records have their project.
pub(crate) static COLLECTION: Collection = Collection { name: "idempotency_keys", fields: &[] };

/// A request, noted.
#[derive(Debug, Serialize, Deserialize)]
struct Noted {
    /// Tells whether another request is the same.
    digest: String,
    state: State,
}

impl Document for Noted {
    const COLLECTION: &'static Collection = &COLLECTION;
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// Begun, and nothing more is known.
    Begun,
    /// Done. The answer is absent when it was too large to keep, its owner's quota was used up, or the project keeps none.
    Done { status: u16, answer: Option<Sealed<String>> },
}

/// What a request turns out to be.
#[derive(Debug)]
pub enum Turn {
    /// The first of its key: to be done, and then to be told to [`end`].
    First(First),
    /// One that was done before.
    Again(Answer),
}

/// A request that was noted and is to be done.
#[derive(Debug)]
pub struct First {
    note: Record<Noted>,
}

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    /// In the numbering every client knows.
    pub status: u16,
    /// JSON.
    pub body: String,
}

/// How a request ended.
#[derive(Debug)]
pub enum Ended {
    /// Done, with this answer.
    Done(Answer),
    /// Done, with an answer that is not to be kept.
    DoneInSilence,
    /// Refused with nothing done: the key may be used again.
    Refused,
}

/// Notes a request under the key that it carries. Keys under different API keys have nothing to do with each other.
///
/// # Errors
/// When the key is no key, was used for another request, has no answer yet, or its answer was not kept.
pub async fn begin(app: &App, holder: &Holder, key: &str, request: &[&[u8]]) -> Result<Turn> {
    if !(1..=KEY).contains(&key.len()) || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::invalid(format!("Idempotency-Key: must be 1 to {KEY} printable characters without blanks")));
    }
    let (owner, now) = (holder.owner_id(), app.clock.now());
    let id = digest(&[holder.key_id.as_bytes(), key.as_bytes()]);
    let body = Noted { digest: digest(request), state: State::Begun };
    for _ in 0..5 {
        match app.store.commit(Batch::at(now).insert(owner, &id, &body)).await {
            Ok(()) => {
                let note = Record {
                    id,
                    project: owner.to_owned(),
                    revision: 1,
                    created_at: now,
                    updated_at: now,
                    deleted_at: None,
                    body,
                };
                return Ok(Turn::First(First { note }));
            }
            Err(CommitError::Taken { .. }) => {}
            Err(cause) => return Err(cause.into()),
        }
        match app.store.get::<Noted>(owner, &id).await? {
            Some(note) if note.created_at < before(now) => erase(&app.store, Batch::at(now).purge(&note)).await?,
            Some(note) => return again(app, &note, &body.digest).await,
            // It was refused meanwhile, or is too old.
            None => {}
        }
    }
    Err(Error::IdempotencyUnanswered)
}

/// What a request is told that was noted before.
async fn again(app: &App, note: &Record<Noted>, digest: &str) -> Result<Turn> {
    if note.body.digest != digest {
        return Err(Error::IdempotencyKeyReused);
    }
    match &note.body.state {
        State::Begun => Err(Error::IdempotencyUnanswered),
        State::Done { answer: None, .. } => Err(Error::IdempotencyAnswerGone),
        State::Done { status, answer: Some(answer) } => {
            let key = app.vault.key(&note.project, app.clock.now()).await?;
            Ok(Turn::Again(Answer { status: *status, body: key.open(place(note), answer)? }))
        }
    }
}

/// Notes how a request ended. One that nobody knows the end of is not told, and stays as it is.
///
/// # Errors
/// When the store refuses.
pub async fn end(app: &App, First { mut note }: First, ended: Ended) -> Result<()> {
    let now = app.clock.now();
    let (status, answer) = match ended {
        Ended::Refused => return erase(&app.store, Batch::at(now).purge(&note)).await,
        Ended::DoneInSilence => (0, None),
        Ended::Done(Answer { status, body })
            if body.len() > ANSWER || !app.quotas.take(Kind::Answers, &note.project, body.len(), now) =>
        {
            (status, None)
        }
        Ended::Done(Answer { status, body }) => {
            let key = app.vault.key(&note.project, now).await?;
            (status, Some(key.seal(place(&note), &body)?))
        }
    };
    note.body.state = State::Done { status, answer };
    Ok(app.store.commit(Batch::at(now).update(&note)).await?)
}

/// Forgets keys that are older than a day: a job, run by one server at a time.
pub(crate) async fn forget(app: &App, lease: &Lease) -> Result<()> {
    let now = app.clock.now();
    loop {
        let old = Query::everywhere().below("created_at", before(now).0).page(0, BATCH);
        let old = app.store.find::<Noted>(&old).await?.records;
        if old.is_empty() {
            return Ok(());
        }
        let batch = old.iter().fold(Batch::at(now), |batch, note| batch.purge(note));
        erase(&app.store, lease.fence(batch)).await?;
    }
}

/// Erases notes. That another server was faster makes no difference.
async fn erase(store: &Store, batch: Batch) -> Result<()> {
    match store.commit(batch).await {
        Ok(()) | Err(CommitError::Stale) => Ok(()),
        Err(cause) => Err(cause.into()),
    }
}

/// What is older than this is not kept.
fn before(now: Time) -> Time {
    Time(now.0.saturating_sub(i64::try_from(KEPT.as_millis()).unwrap_or(i64::MAX)))
}

/// The parts with their lengths, so that no two lists of parts read the same.
fn digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

fn place(note: &Record<Noted>) -> Place<'_> {
    Place { collection: COLLECTION.name, project: &note.project, id: &note.id, field: "answer" }
}
