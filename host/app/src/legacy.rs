//! From the ids that older clients keep, UUIDs, to those of today.
//!
//! Every object has a UUID of its own from the start. An installation that takes the place of an older system also knows the
//! UUIDs of that one: the operator loads them as pairs ([`load`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use store::{Batch, Collection, CommitError, Document, Query, Record, Store, Time};
use uuid::Uuid;

use crate::{
    App, Error, Result,
    auth_configs::AuthConfig,
    connections::Account,
    cut,
    ids::{AccountId, AuthConfigId, TriggerInstanceId},
    projects::{Project, StoredProject},
};

/// Pairs of an older system, under kind and UUID.
pub(crate) static COLLECTION: Collection = Collection { name: "legacy_ids", fields: &[] };
/// Pairs that are written in one batch.
const BATCH: usize = 500;
/// Bytes of a file of pairs.
pub const FILE: u64 = 256 << 20;
/// Problems that a refusal lists.
const PROBLEMS: usize = 20;

/// What an older id names.
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

/// A pair, as stored.
#[derive(Debug, Serialize, Deserialize)]
struct Pair {
    id: String,
}

impl Document for Pair {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// A line of a file of pairs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    project: String,
    #[serde(rename = "type")]
    kind: Kind,
    uuid: Uuid,
    nanoid: String,
}

/// What came of loading pairs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Pairs that were not known.
    pub new: usize,
    /// Pairs that were loaded before.
    pub known: usize,
}

/// Why nothing was loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Lines are wrong, one text for each; no more than twenty.
    #[error("{}", .0.join("\n  "))]
    Lines(Vec<String>),
    /// The store refused. Loading the same file again goes on where this ended.
    #[error("{0}")]
    Store(#[from] Error),
}

impl Kind {
    /// For people.
    fn name(self) -> &'static str {
        match self {
            Self::ConnectedAccount => "connected account",
            Self::AuthConfig => "auth config",
            Self::TriggerInstance => "trigger instance",
        }
    }

    /// The id of a pair's record.
    fn place(self, uuid: Uuid) -> String {
        let kind = match self {
            Self::ConnectedAccount => "account",
            Self::AuthConfig => "auth_config",
            Self::TriggerInstance => "trigger",
        };
        format!("{kind}:{uuid}")
    }
}

/// The id of today of an object with an older one.
///
/// # Errors
/// When the project never had such an object, or it is deleted.
pub async fn translate(app: &App, project: &Project, kind: Kind, uuid: Uuid) -> Result<String> {
    let (found, id) = match app.store.get::<Pair>(project.id.as_str(), &kind.place(uuid)).await? {
        Some(pair) => ("id", pair.body.id),
        None => ("uuid", uuid.to_string()),
    };
    let object = match kind {
        Kind::ConnectedAccount => object::<Account>(&app.store, project, found, &id).await?,
        Kind::AuthConfig => object::<AuthConfig>(&app.store, project, found, &id).await?,
        // This server has none of its own; a pair says all that is known.
        Kind::TriggerInstance if found == "id" => return Ok(id),
        Kind::TriggerInstance => None,
    };
    match object {
        Some((id, true)) => Ok(id),
        Some((_, false)) => Err(Error::LegacyGone { kind: kind.name(), uuid }),
        None => Err(Error::LegacyNotFound { kind: kind.name(), uuid }),
    }
}

/// The id of an object, deleted ones included, and whether it is live.
async fn object<T: Document>(
    store: &Store,
    project: &Project,
    field: &str,
    value: &str,
) -> Result<Option<(String, bool)>> {
    let query = Query::of(project.id.as_str()).is(field, value).with_deleted().page(0, 1);
    let found = store.find::<T>(&query).await?.records.pop();
    Ok(found.map(|record: Record<T>| (record.id.clone(), record.is_live())))
}

/// Loads pairs, a JSON object a line: `project`, `type`, `uuid`, `nanoid`. Every line is checked before anything is written.
///
/// # Errors
/// When a line cannot be read, names an object that is not there, or gives a UUID a second meaning; or the store refuses.
pub async fn load(store: &Store, text: &str, now: Time) -> std::result::Result<Loaded, LoadError> {
    let (mut pairs, mut problems) = (BTreeMap::new(), Vec::new());
    let mut loaded = Loaded::default();
    for (number, text) in text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
        let checked = match serde_json::from_str::<Line>(text) {
            Ok(line) => check(store, &line).await?.map(|known| (line, known)),
            Err(cause) => Err(cause.to_string()),
        };
        match checked {
            Ok((_, true)) => loaded.known += 1,
            Ok((line, false)) => {
                let place = line.kind.place(line.uuid);
                match pairs.insert(place, (line.project, line.nanoid.clone())) {
                    Some((_, other)) if other != line.nanoid => {
                        problems.push(at(number, "an earlier line has another `nanoid`"))
                    }
                    _ => {}
                }
            }
            Err(problem) => problems.push(at(number, &problem)),
        }
        if problems.len() == PROBLEMS {
            break;
        }
    }
    if !problems.is_empty() {
        return Err(LoadError::Lines(problems));
    }
    loaded.new = pairs.len();
    let pairs: Vec<_> = pairs.into_iter().collect();
    for part in pairs.chunks(BATCH) {
        let insert = |batch: Batch, (place, (project, id)): &(String, (String, String))| {
            batch.insert(project, place, &Pair { id: id.clone() })
        };
        store.commit(part.iter().fold(Batch::at(now), insert)).await.map_err(|cause| match cause {
            CommitError::Taken { .. } => Error::Unavailable("somebody else loads pairs".into()),
            other => other.into(),
        })?;
    }
    Ok(loaded)
}

fn at(number: usize, problem: &str) -> String {
    format!("line {}: {problem}", number + 1)
}

/// What is wrong with a line; whether its pair is known.
async fn check(store: &Store, line: &Line) -> Result<std::result::Result<bool, String>> {
    let Line { project, kind, uuid, nanoid } = line;
    let formed = match kind {
        Kind::ConnectedAccount => AccountId::parse(nanoid).map(drop),
        Kind::AuthConfig => AuthConfigId::parse(nanoid).map(drop),
        Kind::TriggerInstance => TriggerInstanceId::parse(nanoid).map(drop),
    };
    if let Err(cause) = formed {
        return Ok(Err(cause.to_string()));
    }
    let there = match kind {
        Kind::ConnectedAccount => store.get::<Account>(project, nanoid).await?.is_some(),
        Kind::AuthConfig => store.get::<AuthConfig>(project, nanoid).await?.is_some(),
        Kind::TriggerInstance => store.lookup::<StoredProject>(project).await?.is_some(),
    };
    if !there {
        return Ok(Err(format!("project {} has no {} {nanoid}", cut(project), kind.name())));
    }
    match store.lookup::<Pair>(&kind.place(*uuid)).await? {
        Some(pair) if pair.project == *project && pair.body.id == *nanoid => Ok(Ok(true)),
        Some(pair) => Ok(Err(format!("{uuid} stands for {} of project {} already", pair.body.id, pair.project))),
        None => Ok(Ok(false)),
    }
}
