//! Toolkits.

pub(crate) mod changelog;
mod detail;
pub(crate) mod publication;
mod schemes;
pub(crate) mod scopes;
mod types;

use std::{collections::HashSet, sync::Arc};

use app::{
    accounts::oauth_apps,
    catalog::{self, LATEST, Snapshot, ToolkitFilter, ToolkitKind, ToolkitOrder},
};
use axum::extract::State;

use self::{
    detail::DetailView,
    types::{CategoryView, ListBody, ListQuery, ManagedBy, Order, ReadQuery, View},
};
use crate::{
    Server,
    http::{
        auth::ProjectKey,
        body::OptionalJson,
        error::ApiResult,
        errors,
        page::{Listed, Page},
        path::Path,
        query::{self, Query},
        reply::Json,
        signature::IN_TABLE,
    },
};

/// Maximum number of toolkits that one request may name.
const MAX_NAMED_TOOLKITS: usize = 1_000;

/// Lists toolkits.
#[utoipa::path(get, path = IN_TABLE)]
#[expect(deprecated, reason = "older clients send this filter")]
pub(crate) async fn list(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
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
        order: order(&server, query.sort_by).await?,
        kind: kind.or(older).unwrap_or(ToolkitKind::Any),
    };
    page_of_toolkits(&server, &filter, page).await
}

/// Lists toolkits by slug: more than fit into a query, or deprecated ones.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn several(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
    OptionalJson(body): OptionalJson<ListBody>,
) -> ApiResult<Json<Listed<View>>> {
    let managed_by = body.managed_by.as_deref();
    let managed_by: Option<ManagedBy> = managed_by
        .map(|word| query::word("managed_by", word, &server.branding))
        .transpose()?;
    let sort_by = body.sort_by.as_deref();
    let sort_by = sort_by
        .map(|word| query::word("sort_by", word, &server.branding))
        .transpose()?;
    let slugs = body.toolkits.unwrap_or_default();
    if slugs.len() > MAX_NAMED_TOOLKITS {
        return Err(errors::invalid(format!("toolkits: at most {MAX_NAMED_TOOLKITS}")).into());
    }
    let filter = ToolkitFilter {
        deprecated: !slugs.is_empty(),
        slugs,
        category: body.category.unwrap_or_default(),
        search: String::new(),
        order: order(&server, sort_by).await?,
        kind: managed_by.map_or(ToolkitKind::Any, ToolkitKind::from),
    };
    let page = Page::new(body.limit, body.cursor.as_deref())?;
    page_of_toolkits(&server, &filter, page).await
}

async fn page_of_toolkits(
    server: &Server,
    filter: &ToolkitFilter,
    page: Page,
) -> ApiResult<Json<Listed<View>>> {
    let (snapshot, page) = snapshot(server, page)?;
    let managed: HashSet<_> = oauth_apps::list(&server.app)
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

async fn order(server: &Server, order: Option<Order>) -> ApiResult<ToolkitOrder> {
    Ok(match order {
        None => ToolkitOrder::Newest,
        Some(Order::Usage) => ToolkitOrder::Usage(catalog::usage(&server.app).await?),
        Some(Order::Alphabetically) => ToolkitOrder::Name,
    })
}

/// Returns the same snapshot of the catalog for all pages of a list. Later publications appear in
/// the next list.
pub(super) fn snapshot(server: &Server, page: Page) -> ApiResult<(Arc<Snapshot>, Page)> {
    let snapshot = server.app.catalog.snapshot_at(page.as_of()?);
    let page = page.with_newest(Some(snapshot.as_of()));
    Ok((snapshot, page))
}

/// Lists the categories in use.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn categories(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
    page: Page,
) -> ApiResult<Json<Listed<CategoryView>>> {
    let (snapshot, page) = snapshot(&server, page)?;
    let (found, total) = page.cut(snapshot.categories());
    let items = found.iter().map(|id| CategoryView::new(id)).collect();
    Ok(Json(Listed::counted(items, &page, total)))
}

/// Reads one version of a toolkit.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn read(
    _key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(slug): Path<String>,
    Query(query): Query<ReadQuery>,
) -> ApiResult<Json<DetailView>> {
    let snapshot = server.app.catalog.snapshot();
    let release = snapshot.release(&slug, query.version.as_deref().unwrap_or(LATEST))?;
    let toolkit = snapshot
        .toolkit(&slug)
        .ok_or_else(|| errors::toolkit_not_found(slug))?;
    let managed = oauth_apps::list(&server.app)
        .await?
        .into_iter()
        .find(|app| *app.id == *toolkit.slug);
    let managed = managed.map(|app| app.body);
    Ok(Json(DetailView::new(toolkit, release, managed.as_ref())))
}
