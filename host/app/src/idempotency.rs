//! Requests that take effect at most once, no matter how often they are sent.
//!
//! A request with an idempotency key is recorded before it starts, and its response is recorded
//! when it ends. A repeated request gets the recorded response. A request that was interrupted, for
//! example by a killed server, may or may not have taken effect. Its key refuses requests for as
//! long as it is kept, because doing the request again would be a guess. The record is durable
//! before the request starts, so the guarantee holds over restarts and between servers.

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

/// Time for which a key is kept.
const KEPT: Duration = Duration::from_secs(24 * 3_600);
/// Maximum size of a response that is kept, in bytes.
pub const ANSWER: usize = 1 << 20;
/// Maximum length of a key, in characters.
pub const KEY: usize = 255;
/// Maximum number of records that are erased in one batch.
const BATCH: u64 = 64;
/// Interval at which expired keys are erased.
pub(crate) const EVERY: Duration = Duration::from_secs(3_600);

/// The collection of idempotency keys. The owner of the API key takes the place of the project id
/// of other records.
pub(crate) static COLLECTION: Collection = Collection {
    name: "idempotency_keys",
    fields: &[],
};

/// The record of a request.
#[derive(Debug, Serialize, Deserialize)]
struct Noted {
    /// A digest of the request. A request with another digest is a different request.
    digest: String,
    state: State,
}

impl Document for Noted {
    const COLLECTION: &'static Collection = &COLLECTION;
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// The request has started, and its end is not recorded.
    Begun,
    /// The request is done. The response is absent if it was too large, the quota of its owner was
    /// used up, or the project keeps no responses.
    Done {
        status: u16,
        answer: Option<Sealed<String>>,
    },
}

/// The result of recording a request.
#[derive(Debug)]
pub enum Turn {
    /// The first request with its key. The caller does it and then reports its outcome to [`end`].
    First(First),
    /// A repeated request, with the response of the first one.
    Again(Answer),
}

/// A recorded request that is still to be done.
#[derive(Debug)]
pub struct First {
    note: Record<Noted>,
}

/// A recorded response.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status code.
    pub status: u16,
    /// The body, as JSON.
    pub body: String,
}

/// The outcome of a request.
#[derive(Debug)]
pub enum Ended {
    /// The request was done, with this response.
    Done(Answer),
    /// The request was done, and its response is not kept.
    DoneInSilence,
    /// The request was refused without any effect. The key may be used again.
    Refused,
}

/// Records a request under its idempotency key. Keys of different API keys are independent.
///
/// # Errors
/// Returns an error if the key is malformed, was used for another request, has no response yet, or
/// its response was not kept.
pub async fn begin(app: &App, holder: &Holder, key: &str, request: &[&[u8]]) -> Result<Turn> {
    if !(1..=KEY).contains(&key.len()) || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::invalid(format!(
            "Idempotency-Key: must be 1 to {KEY} printable characters without blanks"
        )));
    }
    let (owner, now) = (holder.owner_id(), app.clock.now());
    let id = digest(&[holder.key_id.as_bytes(), key.as_bytes()]);
    let body = Noted {
        digest: digest(request),
        state: State::Begun,
    };
    for _ in 0..5 {
        match app
            .store
            .commit(Batch::at(now).insert(owner, &id, &body))
            .await
        {
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
            Some(note) if note.created_at < before(now) => {
                erase(&app.store, Batch::at(now).purge(&note)).await?
            }
            Some(note) => return again(app, &note, &body.digest).await,
            // The record was erased in the meantime, because the request was refused or the key
            // expired.
            None => {}
        }
    }
    Err(Error::IdempotencyUnanswered)
}

/// Returns the result for a request whose key is already recorded.
async fn again(app: &App, note: &Record<Noted>, digest: &str) -> Result<Turn> {
    if note.body.digest != digest {
        return Err(Error::IdempotencyKeyReused);
    }
    match &note.body.state {
        State::Begun => Err(Error::IdempotencyUnanswered),
        State::Done { answer: None, .. } => Err(Error::IdempotencyAnswerGone),
        State::Done {
            status,
            answer: Some(answer),
        } => {
            let key = app.vault.key(&note.project, app.clock.now()).await?;
            Ok(Turn::Again(Answer {
                status: *status,
                body: key.open(place(note), answer)?,
            }))
        }
    }
}

/// Records the outcome of a request. The caller does not report a request whose outcome is unknown,
/// and its record stays unchanged.
///
/// # Errors
/// Returns an error if the store refuses.
pub async fn end(app: &App, First { mut note }: First, ended: Ended) -> Result<()> {
    let now = app.clock.now();
    let (status, answer) = match ended {
        Ended::Refused => return erase(&app.store, Batch::at(now).purge(&note)).await,
        Ended::DoneInSilence => (0, None),
        Ended::Done(Answer { status, body })
            if body.len() > ANSWER
                || !app
                    .quotas
                    .take(Kind::Answers, &note.project, body.len(), now) =>
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

/// Erases keys that are older than a day. This is a job that one server at a time runs.
pub(crate) async fn forget(app: &App, lease: &Lease) -> Result<()> {
    let now = app.clock.now();
    loop {
        let old = Query::all_projects()
            .below("created_at", before(now).0)
            .page(0, BATCH);
        let old = app.store.find::<Noted>(&old).await?.records;
        if old.is_empty() {
            return Ok(());
        }
        let batch = old
            .iter()
            .fold(Batch::at(now), |batch, note| batch.purge(note));
        erase(&app.store, lease.fence(batch)).await?;
    }
}

/// Erases records. A record that another server has erased or changed first is not an error.
async fn erase(store: &Store, batch: Batch) -> Result<()> {
    match store.commit(batch).await {
        Ok(()) | Err(CommitError::Stale) => Ok(()),
        Err(cause) => Err(cause.into()),
    }
}

/// Returns the creation time before which keys are expired.
fn before(now: Time) -> Time {
    Time(
        now.0
            .saturating_sub(i64::try_from(KEPT.as_millis()).unwrap_or(i64::MAX)),
    )
}

/// Computes a digest over the parts and their lengths, so that no two lists of parts give the same
/// input.
fn digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

fn place(note: &Record<Noted>) -> Place<'_> {
    Place {
        collection: COLLECTION.name,
        project: &note.project,
        id: &note.id,
        field: "answer",
    }
}
