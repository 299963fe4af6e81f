//! Upkeep of the cached keys: those that other servers have ended are dropped, and last uses are written.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use store::{Query, Time};

use super::{ApiKey, Holder, KeyCache, Owner};
use crate::{App, Error, Result, projects::StoredProject};

/// Maximum number of cached keys that are checked against the store in one query.
const KEYS_PER_QUERY: usize = 500;
/// Interval at which last uses are written to the store.
const USE_WRITE_INTERVAL: Duration = Duration::from_secs(60);

/// Checks the cached keys against the store and drops those that are no longer valid. Drops all
/// cached keys if the store cannot be read, and the cached projects in either case.
pub(crate) async fn refresh(app: &App) -> Result<()> {
    let KeyCache {
        holders, projects, ..
    } = &app.keys;
    projects.invalidate(|_, _| true);
    for some in holders.all().chunks(KEYS_PER_QUERY) {
        match outdated(app, some).await {
            Ok(gone) if gone.is_empty() => {}
            Ok(gone) => holders.invalidate(|hash, _| gone.contains(hash)),
            Err(cause) => {
                holders.invalidate(|_, _| true);
                return Err(cause);
            }
        }
    }
    Ok(())
}

async fn outdated(app: &App, cached: &[([u8; 32], Arc<Holder>)]) -> Result<Vec<[u8; 32]>> {
    let projects = cached.iter().filter_map(|(_, holder)| match &holder.owner {
        Owner::Project(project) => Some(project.id.to_string()),
        Owner::Organization(_) | Owner::Member(_) => None,
    });
    let query = with_ids(projects.collect());
    let stored_projects = app.store.find::<StoredProject>(&query).await?.records;
    let updated: HashMap<_, _> = stored_projects
        .into_iter()
        .map(|record| (record.id, record.updated_at))
        .collect();
    let query = with_ids(cached.iter().map(|(hash, _)| hex::encode(hash)).collect());
    let stored_keys = app.store.find::<ApiKey>(&query).await?.records;
    let ids: HashSet<_> = stored_keys.into_iter().map(|record| record.id).collect();
    let gone = cached.iter().filter(|(hash, holder)| {
        let is_current = match &holder.owner {
            Owner::Project(project) => {
                updated.get(project.id.as_str()) == Some(&project.updated_at)
            }
            Owner::Organization(_) | Owner::Member(_) => true,
        };
        !is_current || !ids.contains(&hex::encode(hash))
    });
    Ok(gone.map(|(hash, _)| *hash).collect())
}

fn with_ids(ids: Vec<String>) -> Query {
    Query::all_projects().any_of("id", ids)
}

/// Writes the last uses of keys to the store every minute, so that no request waits for these
/// writes. Never returns.
pub(crate) async fn keep_key_uses(app: &App) {
    loop {
        tokio::time::sleep(USE_WRITE_INTERVAL).await;
        write_key_uses(app).await;
    }
}

/// Writes the last uses of keys that are not in the store yet.
pub(crate) async fn write_key_uses(app: &App) {
    for (hash, holder) in app.keys.holders.all() {
        let at = holder.last_use.load(Ordering::Relaxed);
        if holder.written_use.swap(at, Ordering::Relaxed) == at {
            continue;
        }
        let id = hex::encode(hash);
        let (owner, now) = (&holder.owner_id, app.clock.now());
        let written = app
            .store
            .edit(owner, &id, now, |key: &mut ApiKey| -> Result<()> {
                key.used_at = key.used_at.max(Some(Time(at)));
                Ok(())
            });
        if let Err(cause) = written.await.map_err(Error::from) {
            tracing::debug!(%cause, key = holder.key_id, "the last use of a key could not be written");
        }
    }
}
