//! Changes between versions, and the compatibility of versions of the same day.
//!
//! A version is a day and a number within it. The number is for corrections: a caller can move to a
//! later version of the same day without an incompatible change, unless the publisher has
//! explicitly allowed one.

use std::{collections::HashMap, sync::Arc};

use manifest::{Change, Manifest, Version};
use parking_lot::Mutex;

use super::{Release, Snapshot, Toolkit, manifest_of};
use crate::{App, Result, catalog::errors};

/// Maximum number of versions of one toolkit in a changelog.
const MAX_VERSIONS: usize = 10;
/// Maximum number of lines for one version.
const MAX_LINES_PER_VERSION: usize = 100;
/// Number of characters of a version that form its day.
const DAY_CHARS: usize = 8;

/// The entries of the changelog, by toolkit, version and previous version. Published versions never
/// change, so their entries never change either.
pub(super) type Changelogs = Mutex<HashMap<(Arc<str>, String, Option<String>), Arc<str>>>;

/// A version in the changelog.
#[derive(Debug)]
pub struct ChangelogEntry {
    /// The version.
    pub version: String,
    /// The changes since the previous version, one per line.
    pub text: Arc<str>,
}

/// Returns the newest versions of every toolkit, newest first, with the changes of each. Fails if a
/// manifest cannot be read from the store.
pub async fn changelog(app: &App) -> Result<Vec<(Arc<Toolkit>, Vec<ChangelogEntry>)>> {
    let snapshot = app.catalog.snapshot();
    let mut all = Vec::new();
    for toolkit in snapshot.toolkits() {
        let mut entries = Vec::new();
        for release in toolkit.releases.values().rev().take(MAX_VERSIONS) {
            entries.push(ChangelogEntry {
                version: release.version.as_str().to_owned(),
                text: changes(app, &snapshot, release).await?,
            });
        }
        all.push((toolkit.clone(), entries));
    }
    Ok(all)
}

/// Returns the changes of a version since the version before it in the snapshot, one per line.
/// Fails if a manifest cannot be read from the store.
pub async fn changes(app: &App, snapshot: &Snapshot, release: &Release) -> Result<Arc<str>> {
    let version = release.version.as_str();
    let previous = snapshot.toolkit(&release.slug).and_then(|toolkit| {
        let mut earlier = toolkit.releases.range(..version.to_owned());
        earlier.next_back().map(|(previous, _)| previous.as_str())
    });
    text(app, &release.slug, version, previous).await
}

async fn text(
    app: &App,
    slug: &Arc<str>,
    version: &str,
    previous: Option<&str>,
) -> Result<Arc<str>> {
    let before = previous.map(str::to_owned);
    let key = (slug.clone(), version.to_owned(), before);
    if let Some(text) = app.catalog.changelogs.lock().get(&key) {
        return Ok(text.clone());
    }
    let text: Arc<str> = match previous {
        None => "the first version".into(),
        Some(previous) => {
            let old = manifest_of(app, slug, previous).await?;
            let changes = difference(old, manifest_of(app, slug, version).await?).await?;
            as_list(&changes).into()
        }
    };
    app.catalog.changelogs.lock().insert(key, text.clone());
    Ok(text)
}

/// Returns changes as a list, of which a long one is cut.
fn as_list(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "only the code changed".to_owned();
    }
    let shown = changes.iter().take(MAX_LINES_PER_VERSION);
    let mut lines: Vec<_> = shown.map(|change| format!("- {change}")).collect();
    let more = changes.len() - lines.len();
    if more > 0 {
        lines.push(format!("- and {more} more"));
    }
    lines.join("\n")
}

/// Refuses changes that break callers of the newest earlier version of the same day.
pub(super) async fn check_compatibility(app: &App, manifest: &Manifest) -> Result<()> {
    let Some(previous) = previous_on_same_day(app, &manifest.slug, &manifest.version) else {
        return Ok(());
    };
    let old = manifest_of(app, &manifest.slug, &previous).await?;
    let changes = difference(old, manifest.clone()).await?;
    let breaking = changes.iter().filter(|change| change.is_breaking());
    errors::refuse_problems(breaking.map(Change::to_string).collect(), |lines| {
        errors::breaking_change(&manifest.slug, previous, lines)
    })
}

fn previous_on_same_day(app: &App, slug: &str, version: &Version) -> Option<String> {
    let snapshot = app.catalog.snapshot();
    let releases = &snapshot.toolkit(slug)?.releases;
    let mut earlier = releases.range(..version.as_str().to_owned()).rev();
    let (previous, _) = earlier.find(|(_, release)| release.deprecated_at.is_none())?;
    (previous[..DAY_CHARS] == version.as_str()[..DAY_CHARS]).then(|| previous.clone())
}

/// Compares two manifests on a separate thread. A comparison of large manifests would block the
/// async runtime for too long.
async fn difference(old: Manifest, new: Manifest) -> Result<Vec<Change>> {
    let compared = tokio::task::spawn_blocking(move || manifest::diff(&old, &new)).await;
    compared.map_err(|_| errors::unavailable("the versions could not be compared"))
}
