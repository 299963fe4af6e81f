//! Publishing: from bytes to something that can be called.
//!
//! What is published never changes: a version holds one digest for good. Order: check and compile (in the sandbox), keep the
//! component, commit the version, swap the catalogue. A crash after any step leaves a component nobody names, or a version
//! that is complete; never a version without its component.

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use manifest::Manifest;
use sandbox::{Digest, InstallError, Installed};
use serde::{Deserialize, Serialize};
use store::{Batch, Change, Collection, CommitError, Document, Field, Kind, Query, Store, Time};

use super::{Catalog, Index, Release, Texts, changes, check, packed::Packed};
use crate::{App, Error, INSTALLATION, Result};

/// The largest component, in bytes.
pub const COMPONENT: usize = 24 << 20;
const PAGE: u64 = 500;
/// Tools of another toolkit that are named where they stand in the way.
const NAMED: usize = 5;
/// By how many milliseconds the clocks of servers may differ.
const SKEW: i64 = 10 * 60 * 1000;

/// The collection of published versions. The id is `<slug>.<version>`.
pub(crate) static COLLECTION: Collection = Collection {
    name: "toolkit_versions",
    fields: &[Field::new("slug", Kind::Text), Field::new("digest", Kind::Text)],
};

/// A published version, as stored. The component itself is a blob under its digest.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    slug: String,
    version: String,
    digest: Digest,
    size: u64,
    manifest: Packed,
    #[serde(default)]
    signed_by: Option<String>,
    #[serde(default)]
    deprecated_at: Option<Time>,
}

impl Document for Stored {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// What publishing came to.
pub struct Published {
    /// The version.
    pub release: Arc<Release>,
    /// False when the same bytes were published before.
    pub new: bool,
}

/// Reads the catalogue from the store.
///
/// # Errors
/// When the store cannot be read, or the file of texts not be written.
pub async fn load(store: &Store, mut texts: Texts) -> Result<Catalog> {
    let (mut index, mut newest) = (Index::default(), 0);
    for page in 0.. {
        let query = Query::of(INSTALLATION).page(page * PAGE, PAGE);
        let found = store.find::<Stored>(&query).await?;
        let last = (found.records.len() as u64) < PAGE;
        for record in found.records {
            newest = newest.max(record.updated_at.0);
            index.put(Arc::new(release(&record.body, record.created_at, &mut texts)?));
        }
        if last {
            break;
        }
    }
    Ok(Catalog::new(index, newest, texts))
}

/// Takes over what other servers have published or deprecated.
///
/// Everything is found by when it was changed, by the clock of the server that did: after an announcement, so far back that
/// clocks may differ by [`SKEW`].
///
/// # Errors
/// When the store cannot be read.
pub(crate) async fn refresh(app: &App, change: Change) -> Result<()> {
    let newest = app.catalog.newest.load(Ordering::Relaxed);
    let since = match change {
        Change::Announced => newest.saturating_sub(SKEW),
        Change::Perhaps => newest.saturating_add(1),
    };
    let query = Query::of(INSTALLATION).at_least("updated_at", since);
    if app.store.find::<Stored>(&query.clone().page(0, 0)).await?.total == 0 {
        return Ok(());
    }
    let mut texts = app.catalog.changing.lock().await;
    for page in 0.. {
        let found = app.store.find::<Stored>(&query.clone().page(page * PAGE, PAGE)).await?.records;
        let last = (found.len() as u64) < PAGE;
        for record in found {
            app.catalog.newest.fetch_max(record.updated_at.0, Ordering::Relaxed);
            let index = app.catalog.index();
            let known = index.toolkit(&record.body.slug).and_then(|known| known.releases.get(&record.body.version));
            if known.is_none_or(|known| known.deprecated_at != record.body.deprecated_at) {
                app.catalog.put(Arc::new(release(&record.body, record.created_at, &mut texts)?));
            }
        }
        if last {
            return Ok(());
        }
    }
    Ok(())
}

/// Slug and version that a component gives itself; both can be parts of an address.
///
/// # Errors
/// When it has no readable manifest, or its slug is none.
pub fn identity(component: &[u8]) -> Result<(String, String)> {
    let manifest = manifest::extract(component).map_err(|cause| Error::ComponentInvalid(vec![cause.to_string()]))?;
    if !manifest::is_slug(&manifest.slug) {
        return Err(Error::ComponentInvalid(vec![format!("slug: `{}` is none", crate::cut(&manifest.slug))]));
    }
    Ok((manifest.slug, manifest.version.into()))
}

/// What a publication brings besides the component.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terms<'a> {
    /// A minisign file over the component.
    pub signature: Option<&'a str>,
    /// Whether the version may break what worked with an earlier one of the same day.
    pub breaking: bool,
}

/// Publishes a component under a version.
///
/// # Errors
/// When a signature is required and not good, the version holds other bytes, the component breaks rules or limits, or what
/// worked with an earlier version of the same day, or the store refuses. Nothing is changed then.
pub async fn publish(app: &App, slug: &str, version: &str, component: Bytes, terms: Terms<'_>) -> Result<Published> {
    if component.len() > COMPONENT {
        return Err(Error::ComponentTooLarge);
    }
    let signed_by = app.trusted.check(&component, terms.signature)?;
    let digest = Digest::of(&component);
    if let Some(release) = same(app, slug, version, digest)? {
        return Ok(Published { release, new: false });
    }
    let mut problems = named_right(slug, version, &component);
    let installed = match app.sandbox.install(component.clone()).await {
        Ok(installed) => Some(installed),
        Err(InstallError::PastLimit(lines)) if problems.is_empty() => return Err(Error::ComponentLimit(lines)),
        Err(InstallError::Refused(more) | InstallError::PastLimit(more)) => {
            problems.extend(more.into_iter().filter(|line| !problems.contains(line)).collect::<Vec<_>>());
            None
        }
        Err(InstallError::TooLarge) => return Err(Error::ComponentTooLarge),
        Err(InstallError::Unavailable(why)) => return Err(Error::Unavailable(why)),
    };
    let Some(installed) = installed.filter(|_| problems.is_empty()) else {
        return Err(Error::ComponentInvalid(problems));
    };
    let manifest = serde_json::to_string(&installed.manifest)
        .map_err(|cause| Error::Internal(format!("a manifest could not be written: {cause}")))?;
    // Told early; it is judged again when nobody else can publish.
    refuse_names_of_others(&app.catalog.index(), &installed.manifest)?;
    let installed = usable(app, installed).await?;
    app.store.blobs().put(&blob(digest), component).await?;
    let stored = Stored {
        slug: slug.to_owned(),
        version: version.to_owned(),
        digest,
        size: installed.size,
        manifest: Packed::of(&manifest)?,
        signed_by,
        deprecated_at: None,
    };
    enter(app, stored, &installed.manifest, terms.breaking).await
}

/// The manifest of a version.
///
/// # Errors
/// When there is no such version, or the store cannot be read.
pub async fn manifest_of(app: &App, slug: &str, version: &str) -> Result<Manifest> {
    let missing = || Error::VersionNotFound { slug: super::cut(slug), version: super::cut(version) };
    let stored = app.store.get::<Stored>(INSTALLATION, &id(slug, version)).await?.ok_or_else(missing)?;
    serde_json::from_str(&stored.body.manifest.json()?).map_err(|cause| unreadable(&stored.body, &cause))
}

/// Leaves a version to those who name it exactly. Doing it again changes nothing.
///
/// # Errors
/// When there is no such version, or the store refuses.
pub async fn deprecate(app: &App, slug: &str, version: &str) -> Result<Arc<Release>> {
    let missing = || Error::VersionNotFound { slug: super::cut(slug), version: super::cut(version) };
    let mut texts = app.catalog.changing.lock().await;
    let slug = slug.to_ascii_lowercase();
    let mut record = app.store.get::<Stored>(INSTALLATION, &id(&slug, version)).await?.ok_or_else(missing)?;
    if record.body.deprecated_at.is_none() {
        let now = app.clock.now();
        record.body.deprecated_at = Some(now);
        app.store.commit(Batch::at(now).update(&record).announce()).await?;
    }
    let release = Arc::new(release(&record.body, record.created_at, &mut texts)?);
    app.catalog.put(release.clone());
    Ok(release)
}

impl Catalog {
    /// Swaps in a catalogue with one more release. The caller holds `changing`.
    fn put(&self, release: Arc<Release>) {
        let mut next = Index::clone(&self.current.load());
        next.put(release);
        self.current.store(Arc::new(next));
    }
}

/// Commits a version and swaps the catalogue. Unless it is `breaking`, it has to keep what its day has promised.
async fn enter(app: &App, stored: Stored, manifest: &Manifest, breaking: bool) -> Result<Published> {
    let mut texts = app.catalog.changing.lock().await;
    refuse_names_of_others(&app.catalog.index(), manifest)?;
    if !breaking {
        changes::keeps_the_days_promises(app, manifest).await?;
    }
    let now = app.clock.now();
    let id = id(&stored.slug, &stored.version);
    match app.store.commit(Batch::at(now).insert(INSTALLATION, &id, &stored).announce()).await {
        Ok(()) => {}
        // Somebody published the version meanwhile.
        Err(CommitError::Taken { .. }) => {
            drop(texts);
            refresh(app, Change::Announced).await?;
            let Stored { slug, version, digest, .. } = stored;
            return match same(app, &slug, &version, digest)? {
                Some(release) => Ok(Published { release, new: false }),
                None => Err(Error::VersionTaken { slug, version }),
            };
        }
        Err(cause) => return Err(cause.into()),
    }
    let release = Arc::new(release(&stored, now, &mut texts)?);
    app.catalog.put(release.clone());
    Ok(Published { release, new: true })
}

/// The version, when it holds these very bytes.
fn same(app: &App, slug: &str, version: &str, digest: Digest) -> Result<Option<Arc<Release>>> {
    let index = app.catalog.index();
    let Some(release) = index.toolkit(slug).and_then(|toolkit| toolkit.releases.get(version)) else { return Ok(None) };
    if release.digest == digest {
        return Ok(Some(release.clone()));
    }
    Err(Error::VersionTaken { slug: slug.to_owned(), version: version.to_owned() })
}

/// Whether the component is what it is published as.
fn named_right(slug: &str, version: &str, component: &[u8]) -> Vec<String> {
    // What cannot be read is reported by the sandbox, with everything else.
    let Ok(manifest) = manifest::extract(component) else { return Vec::new() };
    let mut problems = Vec::new();
    if manifest.slug != slug {
        problems.push(format!("slug: the component is `{}`, it cannot be published as `{slug}`", manifest.slug));
    }
    if manifest.version.as_str() != version {
        let own = manifest.version;
        problems.push(format!("version: the component is {own}, it cannot be published as {}", super::cut(version)));
    }
    problems
}

/// Refuses tools whose names belong to another toolkit.
///
/// A toolkit owns its tools and every name that begins with its own slug. So of two toolkits `a` and `a_b`, only the second takes new
/// tools that begin with `A_B_`, and it cannot come after `a` has some. A name that a toolkit has already stays its own.
fn refuse_names_of_others(index: &Index, manifest: &Manifest) -> Result<()> {
    let mut problems = Vec::new();
    for tool in &manifest.tools {
        if let Some(owner) = owner(index, &manifest.slug, &tool.slug).filter(|owner| ***owner != *manifest.slug) {
            problems.push(format!("tools.{}: the name is used by toolkit {owner}", tool.slug));
        }
    }
    if index.toolkit(&manifest.slug).is_none() {
        let prefix = format!("{}_", manifest.slug.to_ascii_uppercase());
        // A longer slug that begins with this one owns its names.
        let is_used =
            |(tool, owner): &(&Arc<str>, &Arc<str>)| tool.starts_with(&prefix) && owner.len() < manifest.slug.len();
        let mut used: Vec<_> = index.tools.iter().filter(is_used).collect();
        used.sort();
        let line = |(tool, owner): &(_, _)| {
            format!("slug: toolkit {owner} has the tool {tool}, whose name begins with this slug")
        };
        problems.extend(used.iter().take(NAMED).map(line));
    }
    if problems.is_empty() { Ok(()) } else { Err(Error::ComponentInvalid(problems)) }
}

/// Finds the toolkit that the name of a toolkit's tool belongs to: the one that has it, or another one with a longer slug that it begins
/// with.
fn owner<'a>(index: &'a Index, toolkit: &str, tool: &str) -> Option<&'a Arc<str>> {
    let tool = tool.to_ascii_uppercase();
    let has = index.tools.get(tool.as_str());
    has.or_else(|| {
        let longer = tool.rmatch_indices('_').map(|(end, _)| end).take_while(|end| *end > toolkit.len());
        let mut slugs = longer.map(|end| tool[..end].to_ascii_lowercase());
        slugs.find_map(|slug| index.toolkits.get(slug.as_str())).map(|toolkit| &toolkit.slug)
    })
}

/// Refuses schemas that cannot be used. They are compiled one toolkit at a time, on a thread of its own.
async fn usable(app: &App, installed: Installed) -> Result<Installed> {
    let place = app.catalog.compiling.clone().acquire_owned().await;
    let compiled = tokio::task::spawn_blocking(move || {
        let _place = place;
        let problems = unusable_schemas(&installed.manifest);
        if problems.is_empty() { Ok(installed) } else { Err(Error::ComponentInvalid(problems)) }
    });
    compiled.await.unwrap_or_else(|broken| Err(Error::Unavailable(format!("the schemas cannot be compiled: {broken}"))))
}

fn unusable_schemas(manifest: &Manifest) -> Vec<String> {
    let mut problems = Vec::new();
    for tool in &manifest.tools {
        let output = (!tool.loose_output).then_some(("output", &tool.output));
        for (name, schema) in [("input", &tool.input)].into_iter().chain(output) {
            if let Some(problem) = check::problem(schema) {
                problems.push(format!("tools.{}.{name}: {problem}", tool.slug));
            }
        }
    }
    problems
}

/// A version as the catalogue keeps it. Schemas are not taken apart.
fn release(stored: &Stored, published_at: Time, texts: &mut Texts) -> Result<Release> {
    let Stored { digest, size, signed_by, deprecated_at, .. } = stored;
    let manifest = stored.manifest.json()?;
    let manifest = serde_json::from_str(&manifest).map_err(|cause| unreadable(stored, &cause))?;
    let release = Release::new(manifest, *digest, *size, published_at, texts)?;
    Ok(Release { signed_by: signed_by.clone(), deprecated_at: *deprecated_at, ..release })
}

fn unreadable(stored: &Stored, cause: &serde_json::Error) -> Error {
    Error::Internal(format!("the manifest of {} {} cannot be read: {cause}", stored.slug, stored.version))
}

fn id(slug: &str, version: &str) -> String {
    format!("{slug}.{version}")
}

/// The key under which a component is kept.
pub(crate) fn blob(digest: Digest) -> String {
    format!("{digest}.wasm")
}
