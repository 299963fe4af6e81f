//! Changes between the versions of toolkits.

use std::sync::Arc;

use app::{
    catalog::{self, ChangelogEntry, Release, Toolkit},
    core::clock::iso,
};
use http::{ApiResult, IN_TABLE, Json, Listed, Path, ProjectKey, ShortPage};
use serde::Serialize;
use utoipa::ToSchema;

use super::snapshot;

/// The newest versions of every toolkit.
#[derive(Serialize, ToSchema)]
#[schema(as = Changelog)]
pub(crate) struct ChangelogView {
    items: Vec<ToolkitChanges>,
}

view! {
    struct ToolkitChanges from (toolkit: &Toolkit, entries: Vec<ChangelogEntry>) where {
        let name = &toolkit.current().name;
    } {
        slug: String = toolkit.slug.to_string(),
        name: String = name.clone(),
        display_name: String = name.clone(),
        versions: Vec<VersionChanges> = entries.into_iter().map(VersionChanges::from).collect(),
    }
}

view! {
    struct VersionChanges from entry: ChangelogEntry {
        version: String = entry.version,
        changelog: String = entry.text.to_string(),
    }
}

/// Lists the changes between versions of every toolkit.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn changelog(key: ProjectKey) -> ApiResult<Json<ChangelogView>> {
    let toolkits = catalog::changelog(key.app()).await?.into_iter();
    let items = toolkits.map(|(toolkit, entries)| ToolkitChanges::new(&toolkit, entries));
    Ok(Json(ChangelogView {
        items: items.collect(),
    }))
}

view! {
    /// A version of a toolkit with its changes.
    #[schema(as = ToolkitVersion)]
    pub(crate) struct VersionView from (release: &Release, changelog: Arc<str>) {
        version: String = release.version.as_str().to_owned(),
        /// Time of the publication.
        #[schema(format = DateTime)] created_at: String = iso(release.published_at),
        is_deprecated: bool = release.deprecated_at.is_some(),
        /// Changes since the version before, one per line.
        changelog: String = changelog.to_string(),
    }
}

/// Lists the versions of a toolkit with their changes, newest first and at most 50 on a page.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn versions(
    key: ProjectKey,
    Path(slug): Path<String>,
    ShortPage(page): ShortPage,
) -> ApiResult<Json<Listed<VersionView>>> {
    let (snapshot, page) = snapshot(key.app(), page)?;
    let (releases, total) = page.cut(snapshot.releases_of(&slug)?);
    let mut items = Vec::with_capacity(releases.len());
    for release in releases {
        let changes = catalog::changes(key.app(), &snapshot, release).await?;
        items.push(VersionView::new(release, changes));
    }
    Ok(Json(Listed::counted(items, &page, total)))
}
