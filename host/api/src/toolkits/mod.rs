//! Toolkits.

pub(crate) mod changelog;
mod detail;
pub mod publication;
mod schemes;
pub(crate) mod scopes;
mod types;

use std::{collections::HashSet, sync::Arc};

use app::{
    App,
    accounts::oauth_apps,
    catalog::{self, LATEST, Release, Snapshot, ToolkitFilter, ToolkitKind, ToolkitOrder},
};

pub(crate) use self::schemes::shows_field;
use http::{
    ApiResult, IN_TABLE, Json, Listed, OptionalJson, Page, Path, ProjectKey, Query, context,
    errors, query,
};

use self::{
    detail::DetailView,
    types::{CategoryView, ListBody, ListQuery, ManagedBy, Order, ReadQuery, View},
};

/// Maximum number of toolkits that one request may name.
const MAX_NAMED_TOOLKITS: usize = 1_000;

/// Returns the URL of the logo of a toolkit; empty if the toolkit lacks one.
pub(crate) fn logo_url(release: &Release) -> String {
    if release.logo.is_empty() {
        return String::new();
    }
    format!("{}/logos/{}", context::base_url(), release.slug)
}

/// Lists toolkits.
#[utoipa::path(get, path = IN_TABLE)]
#[expect(deprecated, reason = "older clients send this filter")]
pub(crate) async fn list(
    key: ProjectKey,
    Query(query): Query<ListQuery>,
    page: Page,
) -> ApiResult<Json<Listed<View>>> {
    let kind = query.r#type.map(ToolkitKind::from);
    let older = query.managed_by.map(ToolkitKind::from);
    let filter = ToolkitFilter {
        slugs: Vec::new(),
        category: query.category.unwrap_or_default(),
        search: query.search.unwrap_or_default(),
        deprecated: query.include_deprecated.unwrap_or(false),
        order: order(key.app(), query.sort_by).await?,
        kind: kind.or(older).unwrap_or(ToolkitKind::Any),
    };
    page_of_toolkits(key.app(), &filter, page).await
}

/// Lists toolkits by slug: more than fit into a query, or deprecated ones.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn several(
    key: ProjectKey,
    OptionalJson(body): OptionalJson<ListBody>,
) -> ApiResult<Json<Listed<View>>> {
    let branding = &key.server.branding;
    let managed_by = query::word::<ManagedBy>("managed_by", body.managed_by, branding)?;
    let sort_by = query::word("sort_by", body.sort_by, branding)?;
    let slugs = body.toolkits.unwrap_or_default();
    if slugs.len() > MAX_NAMED_TOOLKITS {
        return Err(errors::invalid(format!("toolkits: at most {MAX_NAMED_TOOLKITS}")).into());
    }
    let filter = ToolkitFilter {
        deprecated: !slugs.is_empty(),
        slugs,
        category: body.category.unwrap_or_default(),
        search: String::new(),
        order: order(key.app(), sort_by).await?,
        kind: managed_by.map_or(ToolkitKind::Any, ToolkitKind::from),
    };
    let page = Page::admit(body.limit, body.cursor.as_deref()).await?;
    page_of_toolkits(key.app(), &filter, page).await
}

async fn page_of_toolkits(
    app: &App,
    filter: &ToolkitFilter,
    page: Page,
) -> ApiResult<Json<Listed<View>>> {
    let (snapshot, page) = snapshot(app, page)?;
    let managed: HashSet<_> = oauth_apps::list(app)
        .await?
        .into_iter()
        .map(|app| app.id)
        .collect();
    let (found, total) = page.cut(snapshot.find_toolkits(filter));
    let items = found
        .iter()
        .map(|toolkit| View::new(toolkit, managed.contains(&*toolkit.slug)))
        .collect();
    Ok(Json(Listed::counted(items, &page, total)))
}

async fn order(app: &App, order: Option<Order>) -> ApiResult<ToolkitOrder> {
    Ok(match order {
        None => ToolkitOrder::Newest,
        Some(Order::Usage) => ToolkitOrder::Usage(catalog::usage(app).await?),
        Some(Order::Alphabetically) => ToolkitOrder::Name,
    })
}

/// Returns the same snapshot of the catalog for all pages of a list. Later publications appear in
/// the next list.
pub(super) fn snapshot(app: &App, page: Page) -> ApiResult<(Arc<Snapshot>, Page)> {
    let snapshot = app.catalog.snapshot_at(page.as_of()?);
    let page = page.with_newest(Some(snapshot.as_of()));
    Ok((snapshot, page))
}

/// Lists the categories in use.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn categories(
    key: ProjectKey,
    page: Page,
) -> ApiResult<Json<Listed<CategoryView>>> {
    let (snapshot, page) = snapshot(key.app(), page)?;
    let (found, total) = page.cut(snapshot.categories());
    let items = found.iter().map(|id| CategoryView::new(id)).collect();
    Ok(Json(Listed::counted(items, &page, total)))
}

/// Reads one version of a toolkit.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn read(
    key: ProjectKey,
    Path(slug): Path<String>,
    Query(query): Query<ReadQuery>,
) -> ApiResult<Json<DetailView>> {
    let snapshot = key.app().catalog.snapshot();
    let release = snapshot.release(&slug, query.version.as_deref().unwrap_or(LATEST))?;
    let toolkit = snapshot
        .toolkit(&slug)
        .ok_or_else(|| snapshot.unknown_toolkit(&slug))?;
    let managed = oauth_apps::list(key.app())
        .await?
        .into_iter()
        .find(|app| *app.id == *toolkit.slug);
    let managed = managed.as_ref().map(|app| &app.body);
    Ok(Json(DetailView::new(toolkit, release, managed)))
}
