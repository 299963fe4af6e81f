//! Translation of legacy ids, which are UUIDs, to current ids.
//!
//! Every object has its own UUID from the start. An installation that replaces an older system also
//! knows the UUIDs of that system: the operator loads them as pairs ([`load`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use store::{Batch, Collection, CommitError, Document, Erasure, Query, Record, Store, Time};
use uuid::Uuid;

use crate::{
    App, Error, Result,
    accounts::{Account, auth_configs::AuthConfig},
    core::{
        ids::{AccountId, AuthConfigId, TriggerInstanceId},
        truncate,
    },
    events::triggers::Instance,
    lifecycle::errors,
    projects::{Project, StoredProject},
};

/// The collection of pairs of an older system, by kind and UUID.
pub(crate) static COLLECTION: Collection = Collection {
    name: "legacy_ids",
    erasure: Erasure::Project,
    fields: &[],
};
/// Number of pairs that are written in one batch.
const BATCH_SIZE: usize = 500;
/// Maximum size of a file of pairs, in bytes.
pub const MAX_FILE_BYTES: u64 = 256 << 20;
/// Maximum number of problems that a refusal lists.
const MAX_PROBLEMS: usize = 20;

/// The kind of object that a legacy id names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Kind {
    /// A connected account.
    ConnectedAccount,
    /// An auth config.
    AuthConfig,
    /// A trigger instance.
    TriggerInstance,
}

/// A pair as stored: the current id, under kind and UUID.
#[derive(Debug, Serialize, Deserialize)]
struct Pair {
    id: String,
}

impl Document for Pair {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// One line of a file of pairs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    project: String,
    #[serde(rename = "type")]
    kind: Kind,
    uuid: Uuid,
    nanoid: String,
}

/// The result of loading pairs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The number of new pairs.
    pub new: usize,
    /// The number of pairs that were loaded before.
    pub known: usize,
}

/// The reason why pairs were not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Lines are invalid, with one text for each and at most twenty in total. Nothing was loaded.
    #[error("{}", .0.join("\n  "))]
    Lines(Vec<String>),
    /// The store refused. Loading the same file again continues after the pairs that were written.
    #[error("{0}")]
    Store(#[from] Error),
}

impl Kind {
    /// Returns the name of the kind for messages.
    fn name(self) -> &'static str {
        match self {
            Self::ConnectedAccount => "connected account",
            Self::AuthConfig => "auth config",
            Self::TriggerInstance => "trigger instance",
        }
    }

    /// Returns the id of a pair's record.
    fn record_id(self, uuid: Uuid) -> String {
        let kind = match self {
            Self::ConnectedAccount => "account",
            Self::AuthConfig => "auth_config",
            Self::TriggerInstance => "trigger",
        };
        format!("{kind}:{uuid}")
    }
}

/// Returns the current id of the object with a legacy id. Fails if the project never had such an
/// object, or if it is deleted.
pub async fn translate(app: &App, project: &Project, kind: Kind, uuid: Uuid) -> Result<String> {
    let record_id = kind.record_id(uuid);
    let pair = app.store.get::<Pair>(project.id.as_str(), &record_id);
    let (field, id) = match pair.await? {
        Some(pair) => ("id", pair.body.id),
        None => ("uuid", uuid.to_string()),
    };
    let object = match kind {
        Kind::ConnectedAccount => find_object::<Account>(&app.store, project, field, &id).await?,
        Kind::AuthConfig => find_object::<AuthConfig>(&app.store, project, field, &id).await?,
        Kind::TriggerInstance => {
            let found = find_object::<Instance>(&app.store, project, field, &id).await?;
            // A pair may name an instance of the older system that this server does not have.
            found.or_else(|| (field == "id").then_some((id, true)))
        }
    };
    match object {
        Some((id, true)) => Ok(id),
        Some((_, false)) => Err(errors::legacy_gone(kind.name(), uuid)),
        None => Err(errors::legacy_not_found(kind.name(), uuid)),
    }
}

/// Returns the id of an object, including deleted ones, and true if it is live.
async fn find_object<T: Document>(
    store: &Store,
    project: &Project,
    field: &str,
    value: &str,
) -> Result<Option<(String, bool)>> {
    let query = Query::for_project(project.id.as_str())
        .is(field, value)
        .with_deleted();
    let found = store.first::<T>(query).await?;
    Ok(found.map(|record: Record<T>| (record.id.clone(), record.is_live())))
}

/// Loads pairs from lines of JSON objects with the members `project`, `type`, `uuid` and `nanoid`.
/// Every line is checked before any pair is written. Fails if a line cannot be read, names an
/// object that does not exist, or gives a UUID a second meaning.
pub async fn load(store: &Store, text: &str, now: Time) -> std::result::Result<Loaded, LoadError> {
    let mut pairs = BTreeMap::new();
    let mut problems = Vec::new();
    let mut loaded = Loaded::default();
    let lines = text.lines().enumerate();
    for (number, text) in lines.filter(|(_, text)| !text.trim().is_empty()) {
        let checked = match serde_json::from_str::<Line>(text) {
            Ok(line) => check(store, &line).await?.map(|known| (line, known)),
            Err(cause) => Err(cause.to_string()),
        };
        match checked {
            Ok((_, true)) => loaded.known += 1,
            Ok((line, false)) => {
                let record_id = line.kind.record_id(line.uuid);
                let pair = (line.project, line.nanoid);
                let earlier = pairs.insert(record_id, pair.clone());
                if earlier.is_some_and(|earlier| earlier != pair) {
                    let problem = "an earlier line has another `project` or `nanoid`";
                    problems.push(at_line(number, problem));
                }
            }
            Err(problem) => problems.push(at_line(number, &problem)),
        }
        if problems.len() == MAX_PROBLEMS {
            break;
        }
    }
    if !problems.is_empty() {
        return Err(LoadError::Lines(problems));
    }
    loaded.new = pairs.len();
    let pairs: Vec<_> = pairs.into_iter().collect();
    for part in pairs.chunks(BATCH_SIZE) {
        let batch = part
            .iter()
            .fold(Batch::at(now), |batch, (record_id, (project, id))| {
                batch.insert(project, record_id, &Pair { id: id.clone() })
            });
        store.commit(batch).await.map_err(|cause| match cause {
            CommitError::Taken { .. } => errors::unavailable("another process loads pairs"),
            other => other.into(),
        })?;
    }
    Ok(loaded)
}

fn at_line(number: usize, problem: &str) -> String {
    format!("line {}: {problem}", number + 1)
}

/// Checks one line. Returns the problem, or true if its pair is already known.
async fn check(store: &Store, line: &Line) -> Result<std::result::Result<bool, String>> {
    let (project, nanoid, kind) = (&line.project, &line.nanoid, line.kind);
    let parsed = match kind {
        Kind::ConnectedAccount => AccountId::parse(nanoid).map(drop),
        Kind::AuthConfig => AuthConfigId::parse(nanoid).map(drop),
        Kind::TriggerInstance => TriggerInstanceId::parse(nanoid).map(drop),
    };
    if let Err(cause) = parsed {
        return Ok(Err(cause.to_string()));
    }
    let exists = match kind {
        Kind::ConnectedAccount => store.get::<Account>(project, nanoid).await?.is_some(),
        Kind::AuthConfig => store.get::<AuthConfig>(project, nanoid).await?.is_some(),
        Kind::TriggerInstance => store.lookup::<StoredProject>(project).await?.is_some(),
    };
    if !exists {
        let (project, kind) = (truncate(project), kind.name());
        return Ok(Err(format!("project {project} has no {kind} {nanoid}")));
    }
    match store.lookup::<Pair>(&kind.record_id(line.uuid)).await? {
        Some(pair) if pair.project == *project && pair.body.id == *nanoid => Ok(Ok(true)),
        Some(pair) => Ok(Err(format!(
            "{} is already the legacy id of {} of project {}",
            line.uuid, pair.body.id, pair.project
        ))),
        None => Ok(Ok(false)),
    }
}
