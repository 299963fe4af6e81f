//! Trigger types: the kinds of events that toolkits report.

mod types;

use std::sync::Arc;

use app::catalog::LATEST;
use axum::extract::State;

use self::types::{ListQuery, ReadQuery, Slugs, View};
use crate::{
    Server,
    api::toolkits::snapshot,
    http::{
        auth::ProjectKey,
        error::ApiResult,
        page::{Listed, Page},
        path::Path,
        query::Query,
        reply::Json,
        signature::IN_TABLE,
    },
};

/// Lists trigger types.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn list(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
    Query(query): Query<ListQuery>,
    page: Page,
) -> ApiResult<Json<Listed<View>>> {
    let versions = query.toolkit_versions.selector(LATEST);
    let (catalog, page) = snapshot(&server, page)?;
    let (found, total) = page.cut(catalog.triggers(&query.toolkit_slugs.0, &versions));
    let views = found.iter().map(View::new).collect::<Result<_, _>>()?;
    Ok(Json(Listed::counted(views, &page, total)))
}

/// Lists the slugs of all trigger types.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn slugs(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
) -> ApiResult<Json<Slugs>> {
    Ok(Json(Slugs::new(&server.app.catalog.snapshot())))
}

/// Reads one version of a trigger type.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn read(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(slug): Path<String>,
    Query(query): Query<ReadQuery>,
) -> ApiResult<Json<View>> {
    let versions = query.toolkit_versions.selector(LATEST);
    let found = server.app.catalog.snapshot().trigger(&slug, &versions)?;
    Ok(Json(View::new(&found)?))
}
