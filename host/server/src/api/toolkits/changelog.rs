//! Changes between the versions of toolkits.

use std::sync::Arc;

use app::catalog::{self, ChangelogEntry, Toolkit};
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    Server,
    http::{auth::ProjectKey, error::ApiResult, reply::Json, signature::IN_TABLE},
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
