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

mod checks;
mod stored;

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use manifest::Manifest;
pub use sandbox::MAX_COMPONENT_BYTES;
use sandbox::{Digest, InstallError};
use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Erasure, Record};

pub(crate) use self::stored::{COLLECTION, refresh};
pub use self::stored::{load, manifest_of};
use self::{
    checks::{check_schemas, check_tool_names, identity_problems},
    stored::{MAX_CLOCK_SKEW_MS, Stored, id, read_since, release},
};
use super::{Catalog, Release, Snapshot, changes, compressed::Compressed};
use crate::{
    App, Error, Result,
    catalog::errors,
    core::{AUDIT_LOG_TARGET, INSTALLATION_PROJECT, truncate},
};

/// The collection of the [`FencingToken`].
pub(crate) static PUBLICATIONS_COLLECTION: Collection = Collection {
    name: "toolkit_publications",
    erasure: Erasure::Other("it counts the publications of the installation"),
    fields: &[],
};
const FENCING_TOKEN_ID: &str = "last";
/// Revision of the fence of which the catalog is not known to have all publications.
pub(super) const UNKNOWN_FENCE: i64 = -1;

/// The last publication of any server. Each publication changes this record, so that of two servers
/// that judge the same catalog, only one can commit.
#[derive(Debug, Serialize, Deserialize)]
struct FencingToken {
    version: String,
}

impl Document for FencingToken {
    const COLLECTION: &'static Collection = &PUBLICATIONS_COLLECTION;
}

/// The result of a publication.
pub struct Published {
    /// The published release.
    pub release: Arc<Release>,
    /// False if the same bytes were already published as this version.
    pub new: bool,
}

/// Returns the slug and the version that a component declares. Both are safe as parts of a URL
/// path. Fails if the manifest cannot be read or the slug is invalid.
pub fn identity(component: &[u8]) -> Result<(String, String)> {
    let manifest = manifest::extract(component)
        .map_err(|cause| errors::component_invalid(cause.to_string()))?;
    if !manifest::is_slug(&manifest.slug) {
        return Err(errors::component_invalid(format!(
            "slug: `{}` is not a valid slug",
            truncate(&manifest.slug)
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

/// Publishes a component as a version of a toolkit. Fails if a required signature is missing or
/// invalid, if the version has other bytes, or if the component breaks rules, limits, or callers of
/// an earlier version of the same day. Nothing was changed in these cases.
pub async fn publish(
    app: &App,
    slug: &str,
    version: &str,
    component: Bytes,
    terms: Terms<'_>,
) -> Result<Published> {
    if component.len() > MAX_COMPONENT_BYTES {
        return Err(too_large());
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
    let accepted = match app.sandbox.install(component.clone()).await {
        Ok(installed) => Some(installed),
        Err(InstallError::PastLimit(lines)) if problems.is_empty() => {
            return Err(errors::component_limit(lines));
        }
        Err(InstallError::Refused(mut more) | InstallError::PastLimit(mut more)) => {
            more.retain(|line| !problems.contains(line));
            problems.append(&mut more);
            None
        }
        Err(InstallError::TooLarge) => return Err(too_large()),
        Err(InstallError::Unavailable(why)) => return Err(errors::unavailable(why)),
    };
    let Some(installed) = accepted.filter(|_| problems.is_empty()) else {
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

/// Deprecates a version, which is then used only if it is named exactly, or ends its deprecation. Fails
/// if the version does not exist.
pub async fn set_deprecated(
    app: &App,
    slug: &str,
    version: &str,
    deprecated: bool,
) -> Result<Arc<Release>> {
    let mut schema_file = app.catalog.changing.lock().await;
    let toolkit = slug.to_ascii_lowercase();
    let mut record = stored::find(app, &toolkit, version)
        .await?
        .ok_or_else(|| stored::missing(app, slug, version))?;
    if record.body.deprecated_at.is_some() != deprecated {
        let now = app.clock.now();
        record.body.deprecated_at = deprecated.then_some(now);
        let batch = Batch::at(now).update(&record).announce();
        app.store.commit(batch).await?;
        tracing::info!(
            target: AUDIT_LOG_TARGET,
            toolkit,
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
        .change(&PUBLICATIONS_COLLECTION, FENCING_TOKEN_ID, || async {
            let mut schema_file = app.catalog.changing.lock().await;
            let fence: Option<Record<FencingToken>> = app
                .store
                .get(INSTALLATION_PROJECT, FENCING_TOKEN_ID)
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
                .announce()
                .insert(INSTALLATION_PROJECT, &id, &stored);
            let body = FencingToken {
                version: id.clone(),
            };
            let fenced = match fence {
                Some(old) => batch.update(&Record { body, ..old }),
                None => batch.insert(INSTALLATION_PROJECT, FENCING_TOKEN_ID, &body),
            };
            Ok::<_, Error>((fenced, (schema_file, Ok((now, revision + 1)))))
        });
    let (mut schema_file, entered) = entering.await?;
    match entered {
        Ok((now, revision)) => {
            let release = Arc::new(release(&stored, now, &mut schema_file)?);
            app.catalog.put(release.clone());
            app.catalog.fence.store(revision, Ordering::Relaxed);
            log_publication(&stored);
            Ok(Published { release, new: true })
        }
        Err(release) => Ok(Published {
            release,
            new: false,
        }),
    }
}

fn log_publication(stored: &Stored) {
    tracing::info!(
        target: AUDIT_LOG_TARGET,
        toolkit = stored.slug,
        version = stored.version,
        signed = stored.signed_by.is_some(),
        "a version of a toolkit was published"
    );
}

fn too_large() -> Error {
    errors::component_too_large(MAX_COMPONENT_BYTES >> 20)
}

/// Returns the published version if it has exactly these bytes.
fn already_published(
    app: &App,
    slug: &str,
    version: &str,
    digest: Digest,
) -> Result<Option<Arc<Release>>> {
    let snapshot = app.catalog.snapshot();
    let toolkit = snapshot.toolkit(slug);
    match toolkit.and_then(|toolkit| toolkit.releases.get(version)) {
        Some(release) if release.digest != digest => Err(errors::version_taken(slug, version)),
        same => Ok(same.cloned()),
    }
}

/// Returns the key under which a component is stored.
pub(crate) fn blob(digest: Digest) -> String {
    format!("{digest}.wasm")
}
