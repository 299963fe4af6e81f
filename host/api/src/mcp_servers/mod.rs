//! MCP servers.

mod commands;
pub(crate) mod instances;
mod requests;
mod views;

use app::{
    Record,
    agents::mcp_servers::{self, Filter, McpServer},
};
use http::{ApiResult, Created, IN_TABLE, Json, OptionalJson, Path, ProjectKey, Query};

use self::{
    requests::{Create, CreateCustom, DEFAULT_LIMIT, Generate, ListQuery, Update},
    views::{GeneratedView, ListView, RemovedView, View},
};

/// Creates an MCP server of auth configs and of toolkits that need no auth config.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn create(key: ProjectKey, Json(body): Json<Create>) -> ApiResult<Created<View>> {
    let new = body.into_changes(&key.server.branding);
    let created = mcp_servers::create(key.app(), &key.project, &new).await?;
    Ok(Created(view(&key, created).await?))
}

/// Creates an MCP server of toolkits and tools.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn create_custom(
    key: ProjectKey,
    Json(body): Json<CreateCustom>,
) -> ApiResult<Created<View>> {
    let created = mcp_servers::create(key.app(), &key.project, &body.into()).await?;
    Ok(Created(view(&key, created).await?))
}

/// Returns the addresses of an MCP server for users and for connected accounts.
#[utoipa::path(post, path = IN_TABLE, responses(
    (status = 404, description = "The MCP server does not exist in the project"),
))]
pub(crate) async fn generate(
    key: ProjectKey,
    Json(body): Json<Generate>,
) -> ApiResult<Json<GeneratedView>> {
    let found = mcp_servers::get(key.app(), &key.project, &body.mcp_server_id).await?;
    let url = mcp_servers::url(key.app(), &found.id);
    let with_helper_tools =
        body.managed_auth_by_service == Some(true) || found.body.with_helper_tools;
    let view = GeneratedView::new(url, &body, with_helper_tools, &key.server.branding);
    Ok(Json(view))
}

/// Lists MCP servers, those that were changed last first.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn list(
    key: ProjectKey,
    Query(query): Query<ListQuery>,
) -> ApiResult<Json<ListView>> {
    listed(&key, query, None).await
}

/// Lists the MCP servers with tools of a toolkit, those that were changed last first.
#[utoipa::path(get, path = IN_TABLE, operation_id = "list_of_toolkit")]
pub(crate) async fn list_of_toolkit(
    key: ProjectKey,
    Path(toolkit): Path<String>,
    Query(query): Query<ListQuery>,
) -> ApiResult<Json<ListView>> {
    key.app().catalog.snapshot().releases_of(&toolkit)?;
    listed(&key, query, Some(toolkit)).await
}

async fn listed(
    key: &ProjectKey,
    query: ListQuery,
    toolkit: Option<String>,
) -> ApiResult<Json<ListView>> {
    let page = requests::page(query.page_no, query.limit, DEFAULT_LIMIT);
    let filter = Filter {
        toolkit,
        ..query.into()
    };
    let found = mcp_servers::list(key.app(), &key.project, &filter, page.window(false)?).await?;
    let views = views(key, found.items).await?;
    Ok(Json(ListView::new(views, &page, found.total)))
}

/// Returns an MCP server.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn read(key: ProjectKey, Path(id): Path<String>) -> ApiResult<Json<View>> {
    let found = mcp_servers::get(key.app(), &key.project, &id).await?;
    Ok(Json(view(&key, found).await?))
}

/// Changes the given fields of an MCP server.
#[utoipa::path(patch, path = IN_TABLE)]
pub(crate) async fn update(
    key: ProjectKey,
    Path(id): Path<String>,
    OptionalJson(body): OptionalJson<Update>,
) -> ApiResult<Json<View>> {
    let changed = mcp_servers::change(key.app(), &key.project, &id, &body.into()).await?;
    Ok(Json(view(&key, changed).await?))
}

/// Deletes an MCP server and its instances. The accounts of its users stay.
#[utoipa::path(delete, path = IN_TABLE)]
pub(crate) async fn remove(
    key: ProjectKey,
    Path(id): Path<String>,
) -> ApiResult<Json<RemovedView>> {
    mcp_servers::remove(key.app(), &key.project, &id).await?;
    Ok(Json(RemovedView::new(id)))
}

async fn view(key: &ProjectKey, record: Record<McpServer>) -> ApiResult<View> {
    let mut views = views(key, vec![record]).await?;
    Ok(views.remove(0))
}

async fn views(key: &ProjectKey, records: Vec<Record<McpServer>>) -> ApiResult<Vec<View>> {
    let ids: Vec<_> = records.iter().map(|record| &*record.id).collect();
    let instances = mcp_servers::count_instances(key.app(), &key.project, &ids).await?;
    let catalog = key.app().catalog.snapshot();
    let views = records.into_iter().map(|record| {
        let instances = instances.get(&record.id).copied();
        let changed_tools = mcp_servers::changed_tools(&catalog, &record.body)?;
        Ok(View::new(key, &catalog, instances, record, changed_tools))
    });
    views.collect()
}
