//! Publication of components as versions of toolkits.
//!
//! A published version never changes: it has one digest permanently. A publication first checks and
//! compiles the component in the sandbox, then stores the component, commits the version, and
//! updates the catalog. A crash after any step leaves either a component that no version names, or
//! a complete version. It never leaves a version without its component.
//!
//! Names and compatibility are judged against all earlier publications. A commit depends on a
//! record that every publication changes, so servers that publish at the same moment cannot break
//! these rules together.

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use manifest::Manifest;
use sandbox::{Digest, InstallError, Installed};
use serde::{Deserialize, Serialize};
use store::{Batch, Change, Collection, Document, Field, Kind, Query, Record, Store, Time};

use super::{Catalog, Release, SchemaFile, Snapshot, changes, check, compressed::Compressed};
use crate::{
    App, Error, Result,
    catalog::errors,
    core::{AUDIT_LOG_TARGET, INSTALLATION_PROJECT},
};

/// Maximum size of a component, in bytes.
pub const MAX_COMPONENT_BYTES: usize = 24 << 20;
/// Number of versions that are read from the store in one query.
const VERSIONS_PER_QUERY: u64 = 500;
/// Maximum number of conflicting tools of another toolkit that an error names.
const MAX_NAMED_CONFLICTS: usize = 5;
/// Maximum assumed difference between the clocks of servers, in milliseconds.
const MAX_CLOCK_SKEW_MS: i64 = 10 * 60 * 1000;

/// The collection of published versions. The id is `<slug>.<version>`.
pub(crate) static COLLECTION: Collection = Collection {
    name: "toolkit_versions",
    fields: &[
        Field::new("slug", Kind::Text),
        Field::new("digest", Kind::Text),
    ],
};

/// The collection of the [`Fence`].
pub(crate) static PUBLICATIONS_COLLECTION: Collection = Collection {
    name: "toolkit_publications",
    fields: &[],
};
const FENCE_ID: &str = "last";
/// Revision of the fence of which the catalog is not known to have all publications.
pub(super) const UNKNOWN_FENCE: i64 = -1;

/// The last publication of any server. Each publication changes this record, so that of two servers
/// that judge the same catalog, only one can commit.
#[derive(Debug, Serialize, Deserialize)]
struct Fence {
    /// The id of the published version.
    version: String,
}

impl Document for Fence {
    const COLLECTION: &'static Collection = &PUBLICATIONS_COLLECTION;
}

/// A published version as stored. The component itself is a blob under its digest.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    slug: String,
    version: String,
    digest: Digest,
    size: u64,
    manifest: Compressed,
    #[serde(default)]
    signed_by: Option<String>,
    #[serde(default)]
    deprecated_at: Option<Time>,
}

impl Document for Stored {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// The result of a publication.
pub struct Published {
    /// The published release.
    pub release: Arc<Release>,
    /// False if the same bytes were already published as this version.
    pub new: bool,
}

/// Reads the catalog from the store.
///
/// # Errors
/// Returns an error if the store cannot be read or the schema file cannot be written.
pub async fn load(store: &Store, mut schema_file: SchemaFile) -> Result<Catalog> {
    let (mut snapshot, mut newest) = (Snapshot::default(), 0);
    let add = |record: Record<Stored>| {
        newest = newest.max(record.updated_at.0);
        let release = release(&record.body, record.created_at, &mut schema_file)?;
        snapshot.put(Arc::new(release));
        Ok(())
    };
    for_each_version(store, &Query::for_project(INSTALLATION_PROJECT), add).await?;
    Ok(Catalog::new(snapshot, newest, schema_file))
}

/// Reads the versions that a query selects, page by page.
async fn for_each_version(
    store: &Store,
    query: &Query,
    mut add: impl FnMut(Record<Stored>) -> Result<()>,
) -> Result<()> {
    for page in 0.. {
        let query = query.clone();
        let query = query.page(page * VERSIONS_PER_QUERY, VERSIONS_PER_QUERY);
        let found = store.find::<Stored>(&query).await?.records;
        let is_last = (found.len() as u64) < VERSIONS_PER_QUERY;
        found.into_iter().try_for_each(&mut add)?;
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
    if app
        .store
        .find::<Stored>(&query.clone().page(0, 0))
        .await?
        .total
        == 0
    {
        return Ok(());
    }
    let mut schema_file = app.catalog.changing.lock().await;
    read_since(app, since, &mut schema_file).await
}

/// Adds the versions that were changed since a time to the catalog.
async fn read_since(app: &App, since: i64, schema_file: &mut SchemaFile) -> Result<()> {
    let catalog = &app.catalog;
    let add = |record: Record<Stored>| {
        let updated_at = record.updated_at.0;
        catalog.newest.fetch_max(updated_at, Ordering::Relaxed);
        let snapshot = catalog.snapshot();
        let known = snapshot.toolkit(&record.body.slug);
        let known = known.and_then(|known| known.releases.get(&record.body.version));
        if known.is_none_or(|known| known.deprecated_at != record.body.deprecated_at) {
            let release = release(&record.body, record.created_at, schema_file)?;
            catalog.put(Arc::new(release));
        }
        Ok(())
    };
    let query = Query::for_project(INSTALLATION_PROJECT).at_least("updated_at", since);
    for_each_version(&app.store, &query, add).await
}

/// Returns the slug and the version that a component declares. Both are safe as parts of a URL
/// path.
///
/// # Errors
/// Returns an error if the manifest cannot be read or the slug is invalid.
pub fn identity(component: &[u8]) -> Result<(String, String)> {
    let manifest = manifest::extract(component)
        .map_err(|cause| errors::component_invalid(cause.to_string()))?;
    if !manifest::is_slug(&manifest.slug) {
        return Err(errors::component_invalid(format!(
            "slug: `{}` is not a valid slug",
            crate::core::truncate(&manifest.slug)
        )));
    }
    Ok((manifest.slug, manifest.version.into()))
}

/// The terms of a publication, in addition to the component.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terms<'a> {
    /// The minisign signature of the component.
    pub signature: Option<&'a str>,
    /// True if the version may break callers of an earlier version of the same day.
    pub breaking: bool,
}

/// Publishes a component as a version of a toolkit.
///
/// # Errors
/// Returns an error if a required signature is missing or invalid, if the version has other bytes,
/// if the component breaks rules, limits, or callers of an earlier version of the same day, or if
/// the store refuses. Nothing was changed in these cases.
pub async fn publish(
    app: &App,
    slug: &str,
    version: &str,
    component: Bytes,
    terms: Terms<'_>,
) -> Result<Published> {
    if component.len() > MAX_COMPONENT_BYTES {
        return Err(errors::component_too_large());
    }
    let signed_by = app.trusted.check(&component, terms.signature)?;
    let digest = Digest::compute(&component);
    if let Some(release) = already_published(app, slug, version, digest)? {
        return Ok(Published {
            release,
            new: false,
        });
    }
    let mut problems = identity_problems(slug, version, &component);
    let installed = match app.sandbox.install(component.clone()).await {
        Ok(installed) => Some(installed),
        Err(InstallError::PastLimit(lines)) if problems.is_empty() => {
            return Err(errors::component_limit(lines));
        }
        Err(InstallError::Refused(more) | InstallError::PastLimit(more)) => {
            problems.extend(
                more.into_iter()
                    .filter(|line| !problems.contains(line))
                    .collect::<Vec<_>>(),
            );
            None
        }
        Err(InstallError::TooLarge) => return Err(errors::component_too_large()),
        Err(InstallError::Unavailable(why)) => return Err(errors::unavailable(why)),
    };
    let Some(installed) = installed.filter(|_| problems.is_empty()) else {
        return Err(errors::component_invalid(problems));
    };
    let manifest = serde_json::to_string(&installed.manifest)
        .map_err(|cause| errors::internal(format!("a manifest could not be written: {cause}")))?;
    // Conflicts are reported early. They are checked again in a state that no other publication can
    // change before the commit.
    check_tool_names(&app.catalog.snapshot(), &installed.manifest)?;
    let installed = check_schemas(app, installed).await?;
    app.store.blobs().put(&blob(digest), component).await?;
    let stored = Stored {
        slug: slug.to_owned(),
        version: version.to_owned(),
        digest,
        size: installed.size,
        manifest: Compressed::from_json(&manifest)?,
        signed_by,
        deprecated_at: None,
    };
    commit_version(app, stored, &installed.manifest, terms.breaking).await
}

/// Returns the manifest of a version.
///
/// # Errors
/// Returns an error if the version does not exist or the store cannot be read.
pub async fn manifest_of(app: &App, slug: &str, version: &str) -> Result<Manifest> {
    let missing = || errors::version_not_found(super::truncate(slug), super::truncate(version));
    let stored = app
        .store
        .get::<Stored>(INSTALLATION_PROJECT, &id(slug, version))
        .await?
        .ok_or_else(missing)?;
    serde_json::from_str(&stored.body.manifest.json()?)
        .map_err(|cause| unreadable(&stored.body, &cause))
}

/// Deprecates a version, which is then used only if it is named exactly. Deprecating it again has
/// no effect.
///
/// # Errors
/// Returns an error if the version does not exist or the store refuses.
pub async fn deprecate(app: &App, slug: &str, version: &str) -> Result<Arc<Release>> {
    set_deprecated(app, slug, version, true).await
}

/// Ends the deprecation of a version. It has no effect on a version that is not deprecated.
///
/// # Errors
/// Returns an error if the version does not exist or the store refuses.
pub async fn restore(app: &App, slug: &str, version: &str) -> Result<Arc<Release>> {
    set_deprecated(app, slug, version, false).await
}

async fn set_deprecated(
    app: &App,
    slug: &str,
    version: &str,
    deprecated: bool,
) -> Result<Arc<Release>> {
    let missing = || errors::version_not_found(super::truncate(slug), super::truncate(version));
    let mut schema_file = app.catalog.changing.lock().await;
    let slug = slug.to_ascii_lowercase();
    let mut record = app
        .store
        .get::<Stored>(INSTALLATION_PROJECT, &id(&slug, version))
        .await?
        .ok_or_else(missing)?;
    if record.body.deprecated_at.is_some() != deprecated {
        let now = app.clock.now();
        record.body.deprecated_at = deprecated.then_some(now);
        app.store
            .commit(Batch::at(now).update(&record).announce())
            .await?;
        tracing::info!(
            target: AUDIT_LOG_TARGET,
            toolkit = slug,
            version,
            deprecated,
            "the deprecation of a version of a toolkit was changed"
        );
    }
    let release = Arc::new(release(&record.body, record.created_at, &mut schema_file)?);
    app.catalog.put(release.clone());
    Ok(release)
}

impl Catalog {
    /// Replaces the snapshot by one with an additional release. The caller holds `changing`.
    fn put(&self, release: Arc<Release>) {
        let mut next = Snapshot::clone(&self.current.load());
        next.put(release);
        self.current.store(Arc::new(next));
        self.changes.send_replace(());
    }
}

/// Commits a version and adds it to the catalog. Unless it is `breaking`, it must be compatible
/// with the earlier versions of its day.
async fn commit_version(
    app: &App,
    stored: Stored,
    manifest: &Manifest,
    breaking: bool,
) -> Result<Published> {
    let id = id(&stored.slug, &stored.version);
    let entering = app
        .store
        .change(&PUBLICATIONS_COLLECTION, FENCE_ID, || async {
            let mut schema_file = app.catalog.changing.lock().await;
            let fence = app
                .store
                .get::<Fence>(INSTALLATION_PROJECT, FENCE_ID)
                .await?;
            let revision = fence.as_ref().map_or(0, |fence| fence.revision);
            // The catalog counts as incomplete until the commit succeeds.
            if app.catalog.fence.swap(UNKNOWN_FENCE, Ordering::Relaxed) != revision {
                let newest = app.catalog.newest.load(Ordering::Relaxed);
                let since = newest.saturating_sub(MAX_CLOCK_SKEW_MS);
                read_since(app, since, &mut schema_file).await?;
            }
            let now = app.clock.now();
            let existing = already_published(app, &stored.slug, &stored.version, stored.digest)?;
            if let Some(release) = existing {
                return Ok((Batch::at(now), (schema_file, Err(release))));
            }
            check_tool_names(&app.catalog.snapshot(), manifest)?;
            if !breaking {
                changes::check_compatibility(app, manifest).await?;
            }
            let batch = Batch::at(now)
                .insert(INSTALLATION_PROJECT, &id, &stored)
                .announce();
            let body = Fence {
                version: id.clone(),
            };
            let batch = match fence {
                Some(old) => batch.update(&Record { body, ..old }),
                None => batch.insert(INSTALLATION_PROJECT, FENCE_ID, &body),
            };
            Ok::<_, Error>((batch, (schema_file, Ok((now, revision + 1)))))
        });
    let (mut schema_file, entered) = entering.await?;
    match entered {
        Ok((now, revision)) => {
            let release = Arc::new(release(&stored, now, &mut schema_file)?);
            app.catalog.put(release.clone());
            app.catalog.fence.store(revision, Ordering::Relaxed);
            tracing::info!(
                target: AUDIT_LOG_TARGET,
                toolkit = stored.slug,
                version = stored.version,
                signed = stored.signed_by.is_some(),
                "a version of a toolkit was published"
            );
            Ok(Published { release, new: true })
        }
        Err(release) => Ok(Published {
            release,
            new: false,
        }),
    }
}

/// Returns the published version if it has exactly these bytes.
fn already_published(
    app: &App,
    slug: &str,
    version: &str,
    digest: Digest,
) -> Result<Option<Arc<Release>>> {
    let snapshot = app.catalog.snapshot();
    let Some(release) = snapshot
        .toolkit(slug)
        .and_then(|toolkit| toolkit.releases.get(version))
    else {
        return Ok(None);
    };
    if release.digest == digest {
        return Ok(Some(release.clone()));
    }
    Err(errors::version_taken(slug, version))
}

/// Checks that the component declares the slug and the version it is published under.
fn identity_problems(slug: &str, version: &str, component: &[u8]) -> Vec<String> {
    // The sandbox reports an unreadable manifest together with the other problems.
    let Ok(manifest) = manifest::extract(component) else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    if manifest.slug != slug {
        problems.push(format!(
            "slug: the component is `{}`, it cannot be published as `{slug}`",
            manifest.slug
        ));
    }
    if manifest.version.as_str() != version {
        let own = manifest.version;
        problems.push(format!(
            "version: the component is {own}, it cannot be published as {}",
            super::truncate(version)
        ));
    }
    problems
}

/// Refuses tools whose names belong to another toolkit.
///
/// A toolkit owns its tools and every name that begins with its slug. Of two toolkits `a` and
/// `a_b`, only the second can add new tools that begin with `A_B_`, and it cannot be published
/// after `a` has such tools. A toolkit keeps the names that it already has.
fn check_tool_names(snapshot: &Snapshot, manifest: &Manifest) -> Result<()> {
    let mut problems = Vec::new();
    for tool in &manifest.tools {
        if let Some(name_owner) = name_owner(snapshot, &manifest.slug, &tool.slug)
            .filter(|name_owner| ***name_owner != *manifest.slug)
        {
            problems.push(format!(
                "tools.{}: the name is used by toolkit {name_owner}",
                tool.slug
            ));
        }
    }
    if snapshot.toolkit(&manifest.slug).is_none() {
        let prefix = format!("{}_", manifest.slug.to_ascii_uppercase());
        // A longer slug that begins with this one owns its names.
        let is_used = |(tool, name_owner): &(&Arc<str>, &Arc<str>)| {
            tool.starts_with(&prefix) && name_owner.len() < manifest.slug.len()
        };
        let mut used: Vec<_> = snapshot.tools.iter().filter(is_used).collect();
        used.sort();
        let line = |(tool, name_owner): &(_, _)| {
            format!(
                "slug: toolkit {name_owner} has the tool {tool}, whose name begins with this slug"
            )
        };
        problems.extend(used.iter().take(MAX_NAMED_CONFLICTS).map(line));
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(errors::component_invalid(problems))
    }
}

/// Finds the toolkit that owns a tool name of a toolkit: the toolkit that has the tool, or another
/// one whose longer slug is a prefix of the name.
fn name_owner<'a>(snapshot: &'a Snapshot, toolkit: &str, tool: &str) -> Option<&'a Arc<str>> {
    let tool = tool.to_ascii_uppercase();
    let has = snapshot.tools.get(tool.as_str());
    has.or_else(|| {
        let longer = tool
            .rmatch_indices('_')
            .map(|(end, _)| end)
            .take_while(|end| *end > toolkit.len());
        let mut slugs = longer.map(|end| tool[..end].to_ascii_lowercase());
        slugs
            .find_map(|slug| snapshot.toolkits.get(slug.as_str()))
            .map(|toolkit| &toolkit.slug)
    })
}

/// Refuses schemas that cannot be used. The schemas of one toolkit at a time are compiled, on a
/// separate thread.
async fn check_schemas(app: &App, installed: Installed) -> Result<Installed> {
    let place = app.catalog.compiling.clone().acquire_owned().await;
    let compiled = tokio::task::spawn_blocking(move || {
        let _place = place;
        let problems = unusable_schemas(&installed.manifest);
        if problems.is_empty() {
            Ok(installed)
        } else {
            Err(errors::component_invalid(problems))
        }
    });
    compiled.await.unwrap_or_else(|broken| {
        Err(errors::unavailable(format!(
            "the schemas cannot be compiled: {broken}"
        )))
    })
}

fn unusable_schemas(manifest: &Manifest) -> Vec<String> {
    let mut problems = Vec::new();
    for tool in &manifest.tools {
        let output = (!tool.loose_output).then_some(("output", &tool.output));
        for (name, schema) in [("input", &tool.input)].into_iter().chain(output) {
            if let Some(problem) = check::schema_problem(schema) {
                problems.push(format!("tools.{}.{name}: {problem}", tool.slug));
            }
        }
    }
    problems
}

/// Builds the release of a stored version. Its schemas are not parsed.
fn release(stored: &Stored, published_at: Time, schema_file: &mut SchemaFile) -> Result<Release> {
    let Stored {
        digest,
        size,
        signed_by,
        deprecated_at,
        ..
    } = stored;
    let manifest = stored.manifest.json()?;
    let manifest = serde_json::from_str(&manifest).map_err(|cause| unreadable(stored, &cause))?;
    let release = Release::new(manifest, *digest, *size, published_at, schema_file)?;
    Ok(Release {
        signed_by: signed_by.clone(),
        deprecated_at: *deprecated_at,
        ..release
    })
}

fn unreadable(stored: &Stored, cause: &serde_json::Error) -> Error {
    errors::internal(format!(
        "the manifest of {} {} cannot be read: {cause}",
        stored.slug, stored.version
    ))
}

fn id(slug: &str, version: &str) -> String {
    format!("{slug}.{version}")
}

/// Returns the key under which a component is stored.
pub(crate) fn blob(digest: Digest) -> String {
    format!("{digest}.wasm")
}
