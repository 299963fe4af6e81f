//! MCP servers and their instances.

mod commands;
mod types;

use std::sync::Arc;

use app::{
    Record,
    agents::mcp_servers::{self, McpServer},
    lifecycle,
    projects::SharedProject,
};
use axum::extract::State;

use self::types::{
    Create, CreateCustom, CreateInstance, Generate, GeneratedView, InstancesQuery, InstancesView,
    ListQuery, ListView, RemovedInstanceView, RemovedView, Update, View, ViewContext,
};
use crate::{
    Server,
    http::{ApiResult, Created, IN_TABLE, Json, OptionalJson, Path, ProjectKey, Query},
};

/// Creates an MCP server of auth configs and of toolkits that need none.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn create(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<Create>,
) -> ApiResult<Created<View>> {
    let new = body.into_changes(&server.branding);
    let created = mcp_servers::create(key.app(), &key.project, &new).await?;
    Ok(Created(view(&server, &key.project, created).await?))
}

/// Creates an MCP server of toolkits and tools.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn create_custom(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<CreateCustom>,
) -> ApiResult<Created<View>> {
    let created = mcp_servers::create(key.app(), &key.project, &body.into()).await?;
    Ok(Created(view(&server, &key.project, created).await?))
}

/// Returns the addresses of an MCP server for users and for connected accounts.
#[utoipa::path(
    post,
    path = IN_TABLE,
    responses((status = 404, description = "The MCP server does not exist in the project")),
)]
pub(crate) async fn generate(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<Generate>,
) -> ApiResult<Json<GeneratedView>> {
    let found = mcp_servers::get(key.app(), &key.project, &body.mcp_server_id).await?;
    let url = mcp_servers::url(key.app(), &found.id);
    let with_helper_tools = body.with_helper_tools() || found.body.with_helper_tools;
    let view = GeneratedView::new(url, &body, with_helper_tools, &server.branding);
    Ok(Json(view))
}

/// Lists MCP servers, those that were changed last first.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn list(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Query(query): Query<ListQuery>,
) -> ApiResult<Json<ListView>> {
    listed(&server, &key.project, query).await
}

/// Lists the MCP servers with tools of a toolkit, those that were changed last first.
#[utoipa::path(get, path = IN_TABLE, operation_id = "list_of_toolkit")]
pub(crate) async fn list_of_toolkit(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(toolkit): Path<String>,
    Query(query): Query<ListQuery>,
) -> ApiResult<Json<ListView>> {
    key.app().catalog.snapshot().releases_of(&toolkit)?;
    listed(&server, &key.project, query.of_toolkit(toolkit)).await
}

async fn listed(
    server: &Server,
    project: &SharedProject,
    query: ListQuery,
) -> ApiResult<Json<ListView>> {
    let page = query.page();
    let filter = query.into_filter();
    let found = mcp_servers::list(&server.app, project, &filter, page.window(false)?).await?;
    let views = views(server, project, found.items).await?;
    Ok(Json(ListView::new(views, &page, found.total)))
}

/// Returns an MCP server.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn read(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> ApiResult<Json<View>> {
    let found = mcp_servers::get(key.app(), &key.project, &id).await?;
    Ok(Json(view(&server, &key.project, found).await?))
}

/// Changes the given fields of an MCP server.
#[utoipa::path(patch, path = IN_TABLE)]
pub(crate) async fn update(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    OptionalJson(body): OptionalJson<Update>,
) -> ApiResult<Json<View>> {
    let changed = mcp_servers::change(key.app(), &key.project, &id, &body.into()).await?;
    Ok(Json(view(&server, &key.project, changed).await?))
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

/// Lists the instances of an MCP server.
#[utoipa::path(get, path = IN_TABLE, operation_id = "list_instances")]
pub(crate) async fn list_instances(
    key: ProjectKey,
    Path(id): Path<String>,
    Query(query): Query<InstancesQuery>,
) -> ApiResult<Json<InstancesView>> {
    let found = mcp_servers::get(key.app(), &key.project, &id).await?;
    let page = query.page();
    let (search, order) = (query.search.as_deref().unwrap_or_default(), query.order());
    let window = page.window(false)?;
    let instances =
        mcp_servers::list_instances(key.app(), &key.project, &id, search, order, window).await?;
    Ok(Json(InstancesView::new(found, instances, &page)))
}

/// Creates the instance of a user who has connected an account of each auth config.
#[utoipa::path(
    post,
    path = IN_TABLE,
    responses(
        (status = 403, description = "The key does not have the permission, or the user has no active account of an auth config"),
        (status = 409, description = "The user has an instance already"),
    ),
)]
pub(crate) async fn create_instance(
    key: ProjectKey,
    Path(id): Path<String>,
    Json(body): Json<CreateInstance>,
) -> ApiResult<Created<types::InstanceView>> {
    let user = body.user_id()?;
    let created = mcp_servers::create_instance(key.app(), &key.project, &id, user).await?;
    Ok(Created(created.into()))
}

/// Deletes the instance of a user, and the user's accounts of the auth configs of the MCP server.
#[utoipa::path(delete, path = IN_TABLE, operation_id = "remove_instance")]
pub(crate) async fn remove_instance(
    key: ProjectKey,
    Path((id, instance)): Path<(String, String)>,
) -> ApiResult<Json<RemovedInstanceView>> {
    let removed = lifecycle::remove_mcp_instance(key.app(), &key.project, &id, &instance).await?;
    Ok(Json(RemovedInstanceView::new(removed)))
}

async fn view(
    server: &Server,
    project: &SharedProject,
    record: Record<McpServer>,
) -> ApiResult<View> {
    let instances = mcp_servers::count_instances(&server.app, project, &[&record.id]).await?;
    let context = ViewContext::new(server, project);
    let instances = instances.get(&record.id).copied();
    context.view(record, instances)
}

async fn views(
    server: &Server,
    project: &SharedProject,
    records: Vec<Record<McpServer>>,
) -> ApiResult<Vec<View>> {
    let ids: Vec<_> = records.iter().map(|record| &*record.id).collect();
    let instances = mcp_servers::count_instances(&server.app, project, &ids).await?;
    let context = ViewContext::new(server, project);
    let views = records.into_iter().map(|record| {
        let instances = instances.get(&record.id).copied();
        context.view(record, instances)
    });
    views.collect()
}
