//! Requests that take effect at most once, no matter how often they are sent.
//!
//! A request with an idempotency key is recorded before it starts, and its response is recorded
//! when it ends. A repeated request gets the recorded response. A request that was interrupted, for
//! example by a killed server, may or may not have taken effect. Its key refuses requests for as
//! long as it is kept, because doing the request again would be a guess. The record is durable
//! before the request starts, so the guarantee holds over restarts and between servers.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use store::{Batch, Collection, CommitError, Document, Erasure, Query, Record, Store};

use crate::{
    App, Result,
    core::{
        clock::time_before,
        vault::{SealContext, Sealed},
    },
    projects::{Holder, errors, quotas::Kind, record_limits},
    work::{JobClaim, erase_all},
};

/// Time for which a key is kept.
const KEY_TTL: Duration = Duration::from_secs(24 * 3_600);
/// Maximum size of a stored response, in bytes.
pub const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// Maximum number of records that are erased in one batch.
const ERASE_BATCH: u64 = 64;
/// Interval at which expired keys are erased.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_secs(3_600);

/// The collection of idempotency keys. The owner of the API key replaces the project id of other
/// records.
pub(crate) static COLLECTION: Collection = Collection {
    name: "idempotency_keys",
    erasure: Erasure::Project,
    fields: &[],
};

#[derive(Debug, Serialize, Deserialize)]
struct IdempotencyRecord {
    /// A digest of the request. A request with another digest is a different request.
    digest: String,
    state: State,
}

impl Document for IdempotencyRecord {
    const COLLECTION: &'static Collection = &COLLECTION;
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// The request has started, and its end is not recorded.
    #[serde(rename = "begun")]
    Started,
    /// The request is done. The response is absent if it was too large, the quota of its owner was
    /// used up, or the project keeps no responses.
    Done {
        status: u16,
        #[serde(rename = "answer")]
        response: Option<Sealed<String>>,
    },
}

/// The result of recording a request.
#[derive(Debug)]
pub enum Claim {
    /// The first request with its key. The caller does it and then reports its outcome to
    /// [`complete`].
    New(Pending),
    /// A repeated request, with the response of the first one.
    Replay(Response),
}

/// A recorded request without a response yet.
#[derive(Debug)]
pub struct Pending {
    record: Record<IdempotencyRecord>,
}

/// A recorded response.
#[derive(Debug)]
pub struct Response {
    /// The status of the response.
    pub status: u16,
    /// The body, as JSON.
    pub body: String,
}

/// The outcome of a request.
#[derive(Debug)]
pub enum Outcome {
    /// The request was done, with this response.
    Done(Response),
    /// The request was done, and its response is not kept.
    DoneWithoutResponse,
    /// The request was refused without any effect. The key may be used again.
    Refused,
}

/// Records a request, given in parts, under its idempotency key. Keys of different API keys are
/// independent. Fails if the key was used for another request, has no response yet, or its response
/// was not kept.
pub async fn claim(app: &App, holder: &Holder, key: &str, request: Vec<Bytes>) -> Result<Claim> {
    let owner = holder.owner_id();
    let size = request.iter().map(Bytes::len).sum();
    let digest_of_request = app
        .large_work
        .scan(&owner.into(), size, move || digest(&request))
        .await?;
    let now = app.clock.now();
    let id = digest(&[holder.key_id.as_bytes(), key.as_bytes()]);
    let body = IdempotencyRecord {
        digest: digest_of_request,
        state: State::Started,
    };
    for _ in 0..5 {
        let batch = Batch::at(now).insert(owner, &id, &body);
        match app.store.commit(batch).await {
            Ok(()) => {
                let record = Record::inserted(owner, &id, now, body);
                if let Err(full) = record_limits::count_bytes(app, owner, 0) {
                    erase(&app.store, Batch::at(now).purge(&record)).await?;
                    return Err(full);
                }
                return Ok(Claim::New(Pending { record }));
            }
            Err(CommitError::Taken { .. }) => {}
            Err(cause) => return Err(cause.into()),
        }
        match app.store.get::<IdempotencyRecord>(owner, &id).await? {
            Some(record) if record.created_at < time_before(now, KEY_TTL) => {
                erase(&app.store, Batch::at(now).purge(&record)).await?
            }
            Some(record) => return replay(app, &record, &body.digest).await,
            // The record was erased in the meantime, because the request was refused or the key
            // expired.
            None => {}
        }
    }
    Err(errors::idempotency_pending())
}

/// Returns the result for a request whose key is already recorded.
async fn replay(app: &App, record: &Record<IdempotencyRecord>, digest: &str) -> Result<Claim> {
    if record.body.digest != digest {
        return Err(errors::idempotency_key_reused());
    }
    match &record.body.state {
        State::Started => Err(errors::idempotency_pending()),
        State::Done { response: None, .. } => Err(errors::idempotency_response_gone()),
        State::Done {
            status,
            response: Some(response),
        } => {
            let (context, now) = (SealContext::of(record, "answer"), app.clock.now());
            let body = app.vault.unseal(context, response, now).await?;
            let status = *status;
            Ok(Claim::Replay(Response { status, body }))
        }
    }
}

/// Records the outcome of a request. The caller does not report a request whose outcome is unknown,
/// and its record stays unchanged.
pub async fn complete(app: &App, Pending { mut record }: Pending, outcome: Outcome) -> Result<()> {
    let now = app.clock.now();
    let (status, response) = match outcome {
        Outcome::Refused => return erase(&app.store, Batch::at(now).purge(&record)).await,
        Outcome::DoneWithoutResponse => (0, None),
        Outcome::Done(Response { status, body })
            if body.len() > MAX_RESPONSE_BYTES
                || !app
                    .quotas
                    .take(Kind::Responses, &record.project, body.len(), now) =>
        {
            (status, None)
        }
        Outcome::Done(Response { status, body }) => {
            let context = SealContext::of(&record, "answer");
            let sealed = app.vault.seal_compressed(context, &body, now).await?;
            (status, Some(sealed))
        }
    };
    record.body.state = State::Done { status, response };
    Ok(app.store.commit(Batch::at(now).update(&record)).await?)
}

/// Erases keys that are older than a day. Fails if the claim is lost or the store refuses.
pub(crate) async fn delete_expired(app: &App, claim: &JobClaim) -> Result<()> {
    let cutoff = time_before(app.clock.now(), KEY_TTL);
    let expired = Query::all_projects().below("created_at", cutoff.0);
    erase_all(claim, &COLLECTION, expired, ERASE_BATCH).await
}

/// Erases a record. One that another server has erased or changed first is not an error.
async fn erase(store: &Store, batch: Batch) -> Result<()> {
    match store.commit(batch).await {
        Ok(()) | Err(CommitError::Stale) => Ok(()),
        Err(cause) => Err(cause.into()),
    }
}

/// Computes a digest over the parts and their lengths, so that no two lists of parts give the same
/// input.
fn digest(parts: &[impl AsRef<[u8]>]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        let part = part.as_ref();
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}
