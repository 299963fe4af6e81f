//! Trigger types: the kinds of events that toolkits report.

mod types;

use app::catalog::{LATEST, VersionSelector};
use http::{ApiResult, IN_TABLE, Json, Listed, Page, Path, ProjectKey, Query};

use self::types::{ListQuery, ReadQuery, Slugs, View};
use crate::toolkits::snapshot;

/// Lists trigger types.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn list(
    key: ProjectKey,
    Query(query): Query<ListQuery>,
    page: Page,
) -> ApiResult<Json<Listed<View>>> {
    let versions = query.toolkit_versions.selector(LATEST)?;
    let (catalog, page) = snapshot(key.app(), page)?;
    let (found, total) = page.cut(catalog.triggers(&query.toolkit_slugs, &versions));
    let views = found.iter().map(View::new).collect::<Result<_, _>>()?;
    Ok(Json(Listed::counted(views, &page, total)))
}

/// Lists the slugs of all trigger types.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn slugs(key: ProjectKey) -> ApiResult<Json<Slugs>> {
    let catalog = key.app().catalog.snapshot();
    let found = catalog.triggers(&[], &VersionSelector::all(LATEST));
    let slugs = found.iter().map(|found| found.trigger.slug.to_string());
    Ok(Json(Slugs(slugs.collect())))
}

/// Reads one version of a trigger type.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn read(
    key: ProjectKey,
    Path(slug): Path<String>,
    Query(query): Query<ReadQuery>,
) -> ApiResult<Json<View>> {
    let versions = query.toolkit_versions.selector(LATEST)?;
    let found = key.app().catalog.snapshot().trigger(&slug, &versions)?;
    Ok(Json(View::new(&found)?))
}
