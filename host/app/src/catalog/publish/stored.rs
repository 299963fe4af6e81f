//! Published versions in the store, and the catalog built from them.

use std::sync::{Arc, atomic::Ordering};

use manifest::Manifest;
use sandbox::Digest;
use serde::{Deserialize, Serialize};
use store::{Change, Collection, Document, Erasure, Field, Kind, Query, Record, Store, Time};

use crate::{
    App, Error, Result,
    catalog::{
        Catalog, Release, SchemaFile, Snapshot, compressed::Compressed, errors,
        versions::described_version,
    },
    core::{INSTALLATION_PROJECT, shown_slug},
};

/// Number of versions that are read from the store in one query.
const VERSIONS_PER_QUERY: u64 = 500;
/// Maximum assumed difference between the clocks of servers, in milliseconds.
pub(super) const MAX_CLOCK_SKEW_MS: i64 = 10 * 60 * 1000;

/// The collection of published versions. The id is `<slug>.<version>`.
pub(crate) static COLLECTION: Collection = Collection {
    name: "toolkit_versions",
    erasure: Erasure::Other("toolkits belong to the installation"),
    fields: &[
        Field::new("slug", Kind::Text),
        Field::new("digest", Kind::Text),
    ],
};

/// A published version as stored. The component itself is a blob under its digest.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Stored {
    pub(super) slug: String,
    pub(super) version: String,
    pub(super) digest: Digest,
    pub(super) size: u64,
    pub(super) manifest: Compressed,
    #[serde(default)]
    pub(super) signed_by: Option<String>,
    #[serde(default)]
    pub(super) deprecated_at: Option<Time>,
}

impl Document for Stored {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// Reads the catalog from the store. Fails if the schema file cannot be written.
pub async fn load(store: &Store, mut schema_file: SchemaFile) -> Result<Catalog> {
    let (mut snapshot, mut newest) = (Snapshot::default(), 0);
    let query = Query::for_project(INSTALLATION_PROJECT);
    for_each_version(store, &query, |record| {
        newest = newest.max(record.updated_at.0);
        let release = release(&record.body, record.created_at, &mut schema_file)?;
        snapshot.put(Arc::new(release));
        Ok(())
    })
    .await?;
    Ok(Catalog::new(snapshot, newest, schema_file))
}

/// Reads the versions that a query selects, page by page.
async fn for_each_version(
    store: &Store,
    query: &Query,
    mut add: impl FnMut(Record<Stored>) -> Result<()>,
) -> Result<()> {
    for page in 0.. {
        let query = query
            .clone()
            .page(page * VERSIONS_PER_QUERY, VERSIONS_PER_QUERY);
        let records = store.find::<Stored>(&query).await?.records;
        let is_last = (records.len() as u64) < VERSIONS_PER_QUERY;
        records.into_iter().try_for_each(&mut add)?;
        if is_last {
            break;
        }
    }
    Ok(())
}

/// Reads the versions that other servers have published or deprecated.
///
/// Changed versions are found by their time of change, which the clock of the changing server
/// gives. After an announcement, the query therefore goes back by [`MAX_CLOCK_SKEW_MS`]. Fails if
/// the store cannot be read, or a stored manifest cannot be used.
pub(crate) async fn refresh(app: &App, change: Change) -> Result<()> {
    let newest = app.catalog.newest.load(Ordering::Relaxed);
    let since = match change {
        Change::Announced => newest.saturating_sub(MAX_CLOCK_SKEW_MS),
        Change::Possible => newest.saturating_add(1),
    };
    let query = Query::for_project(INSTALLATION_PROJECT).at_least("updated_at", since);
    let changed = app.store.find::<Stored>(&query.page(0, 0)).await?;
    if changed.total == 0 {
        return Ok(());
    }
    let mut schema_file = app.catalog.changing.lock().await;
    read_since(app, since, &mut schema_file).await
}

/// Adds the versions that were changed since a time to the catalog.
pub(super) async fn read_since(app: &App, since: i64, schema_file: &mut SchemaFile) -> Result<()> {
    let catalog = &app.catalog;
    let query = Query::for_project(INSTALLATION_PROJECT).at_least("updated_at", since);
    for_each_version(&app.store, &query, |record| {
        let updated_at = record.updated_at.0;
        catalog.newest.fetch_max(updated_at, Ordering::Relaxed);
        let snapshot = catalog.snapshot();
        let known = snapshot
            .toolkit(&record.body.slug)
            .and_then(|toolkit| toolkit.releases.get(&record.body.version));
        if known.is_none_or(|known| known.deprecated_at != record.body.deprecated_at) {
            let release = release(&record.body, record.created_at, schema_file)?;
            catalog.put(Arc::new(release));
        }
        Ok(())
    })
    .await
}

/// Returns the manifest of a version. Fails if the version does not exist.
pub async fn manifest_of(app: &App, slug: &str, version: &str) -> Result<Manifest> {
    let stored = find(app, slug, version)
        .await?
        .ok_or_else(|| missing(app, slug, version))?;
    serde_json::from_str(&stored.body.manifest.json()?)
        .map_err(|cause| unreadable(&stored.body, &cause))
}

/// Returns the error for a version that does not exist, or whose toolkit does not.
pub(super) fn missing(app: &App, slug: &str, version: &str) -> Error {
    let snapshot = app.catalog.snapshot();
    match snapshot.releases_of(slug) {
        Ok(_) => errors::version_not_found(shown_slug(slug), described_version(version)),
        Err(cause) => cause,
    }
}

/// Returns the record of a version, if it exists.
pub(super) async fn find(app: &App, slug: &str, version: &str) -> Result<Option<Record<Stored>>> {
    let id = id(slug, version);
    Ok(app.store.get(INSTALLATION_PROJECT, &id).await?)
}

/// Builds the release of a stored version. Its schemas are not parsed.
pub(super) fn release(
    stored: &Stored,
    published_at: Time,
    schema_file: &mut SchemaFile,
) -> Result<Release> {
    let text = stored.manifest.json()?;
    let manifest = serde_json::from_str(&text).map_err(|cause| unreadable(stored, &cause))?;
    let (digest, size) = (stored.digest, stored.size);
    let release = Release::new(manifest, digest, size, published_at, schema_file)?;
    Ok(Release {
        signed_by: stored.signed_by.clone(),
        deprecated_at: stored.deprecated_at,
        ..release
    })
}

fn unreadable(stored: &Stored, cause: &serde_json::Error) -> Error {
    errors::internal(format!(
        "the manifest of {} {} cannot be read: {cause}",
        stored.slug, stored.version
    ))
}

pub(super) fn id(slug: &str, version: &str) -> String {
    format!("{slug}.{version}")
}
