//! Changes between the versions of toolkits.

use std::sync::Arc;

use app::{
    catalog::{self, ChangelogEntry, Release, Toolkit},
    core::clock::iso,
};
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::snapshot;
use crate::{
    Server,
    http::{
        auth::ProjectKey,
        error::ApiResult,
        page::{Listed, ShortPage},
        path::Path,
        reply::Json,
        signature::IN_TABLE,
    },
};

/// The newest versions of every toolkit.
#[derive(Serialize, ToSchema)]
#[schema(as = Changelog)]
pub(crate) struct ChangelogView {
    items: Vec<ToolkitChanges>,
}

#[derive(Serialize, ToSchema)]
struct ToolkitChanges {
    #[schema(value_type = String)]
    slug: Arc<str>,
    name: String,
    display_name: String,
    versions: Vec<VersionChanges>,
}

#[derive(Serialize, ToSchema)]
struct VersionChanges {
    version: String,
    #[schema(value_type = String)]
    changelog: Arc<str>,
}

/// Lists the changes between versions of every toolkit.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn changelog(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
) -> ApiResult<Json<ChangelogView>> {
    let toolkits = catalog::changelog(&server.app).await?.into_iter();
    let items = toolkits.map(|(toolkit, entries)| ToolkitChanges::new(&toolkit, entries));
    Ok(Json(ChangelogView {
        items: items.collect(),
    }))
}

impl ToolkitChanges {
    fn new(toolkit: &Toolkit, entries: Vec<ChangelogEntry>) -> Self {
        let name = &toolkit.current().name;
        Self {
            slug: toolkit.slug.clone(),
            name: name.clone(),
            display_name: name.clone(),
            versions: entries.into_iter().map(VersionChanges::from).collect(),
        }
    }
}

impl From<ChangelogEntry> for VersionChanges {
    fn from(entry: ChangelogEntry) -> Self {
        Self {
            version: entry.version,
            changelog: entry.text,
        }
    }
}

/// A version of a toolkit with its changes.
#[derive(Serialize, ToSchema)]
#[schema(as = ToolkitVersion)]
pub(crate) struct VersionView {
    version: String,
    /// Time of the publication.
    #[schema(format = DateTime)]
    created_at: String,
    is_deprecated: bool,
    /// Changes since the version before, one per line.
    #[schema(value_type = String)]
    changelog: Arc<str>,
}

impl VersionView {
    fn new(release: &Release, changelog: Arc<str>) -> Self {
        Self {
            version: release.version.as_str().to_owned(),
            created_at: iso(release.published_at),
            is_deprecated: release.deprecated_at.is_some(),
            changelog,
        }
    }
}

/// Lists the versions of a toolkit with their changes, newest first and at most 50 on a page.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn versions(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(slug): Path<String>,
    ShortPage(page): ShortPage,
) -> ApiResult<Json<Listed<VersionView>>> {
    let (snapshot, page) = snapshot(&server, page)?;
    let (releases, total) = page.cut(snapshot.releases_of(&slug)?);
    let mut items = Vec::with_capacity(releases.len());
    for release in releases {
        let changes = catalog::changes(&server.app, &snapshot, release).await?;
        items.push(VersionView::new(release, changes));
    }
    Ok(Json(Listed::counted(items, &page, total)))
}
