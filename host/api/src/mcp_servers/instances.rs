//! Instances of MCP servers.

use app::{
    Listed, Record,
    agents::mcp_servers::{self, Instance, McpServer},
    core::clock::iso,
    lifecycle,
};
use http::{
    ApiResult, Created, IN_TABLE, Json, Page, Path, ProjectKey, Query, errors, number_or_null,
};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::requests::{order, page};
use crate::{Direction, OrderBy};

/// Instances on a page of a request that names no limit.
const DEFAULT_INSTANCE_LIMIT: u64 = 20;

/// Filter and order of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct InstancesQuery {
    /// Part of the user id.
    search: Option<String>,
    /// Time by which the list is ordered; `updated_at` without it.
    #[param(inline)]
    order_by: Option<OrderBy>,
    /// `desc` without it.
    #[param(inline)]
    order_direction: Option<Direction>,
    /// Number of the page, from 1.
    page_no: Option<f64>,
    /// Instances on a page, 20 without it and at most 1000.
    #[serde(default, deserialize_with = "number_or_null")]
    limit: Option<f64>,
}

view! {
    /// A page of the instances of an MCP server.
    #[schema(as = McpInstances)]
    pub(crate) struct InstancesView from (
        server: Record<McpServer>,
        found: Listed<Record<Instance>>,
        page: &Page,
    ) {
        instances: Vec<InstanceView> = found.items.into_iter().map(Into::into).collect(),
        server_id: String = server.id,
        server_name: String = server.body.name,
        /// At least one, even if the list is empty.
        total_pages: u64 = found.total.div_ceil(page.limit).max(1),
        /// Number of this page, from one.
        current_page: u64 = page.number,
    }
}

view! {
    /// An instance of an MCP server.
    #[schema(as = McpInstance)]
    pub(crate) struct InstanceView from instance: Record<Instance> {
        id: String = instance.id,
        /// User of the instance.
        instance_id: String = instance.body.user_id,
        mcp_server_id: String = instance.body.server,
        #[schema(format = DateTime)] created_at: String = iso(instance.created_at),
        #[schema(format = DateTime)] updated_at: String = iso(instance.body.changed_at),
    }
}

#[derive(Deserialize, ToSchema)]
#[schema(as = CreateMcpInstance)]
pub(crate) struct CreateInstance {
    #[schema(min_length = 1)]
    user_id: String,
}

view! {
    /// Success of the deletion of an instance.
    #[schema(as = RemovedMcpInstance)]
    pub(crate) struct RemovedInstanceView from (removed: u64) {
        message: &'static str = "the instance is deleted",
        /// Number of accounts of the user that were deleted with it.
        deleted_connected_accounts: u64 = removed,
    }
}

/// Lists the instances of an MCP server.
#[utoipa::path(get, path = IN_TABLE, operation_id = "list_instances")]
pub(crate) async fn list_instances(
    key: ProjectKey,
    Path(id): Path<String>,
    Query(query): Query<InstancesQuery>,
) -> ApiResult<Json<InstancesView>> {
    let found = mcp_servers::get(key.app(), &key.project, &id).await?;
    let page = page(query.page_no, query.limit, DEFAULT_INSTANCE_LIMIT);
    let order = order(query.order_by, query.order_direction);
    let search = query.search.as_deref().unwrap_or_default();
    let window = page.window(false)?;
    let instances =
        mcp_servers::list_instances(key.app(), &key.project, &id, search, order, window).await?;
    Ok(Json(InstancesView::new(found, instances, &page)))
}

/// Creates the instance of a user who has connected an account of each auth config.
#[utoipa::path(post, path = IN_TABLE, responses(
    (status = 403, description = "The key does not have the permission, or the user has no active account of an auth config"),
    (status = 409, description = "The user has an instance already"),
))]
pub(crate) async fn create_instance(
    key: ProjectKey,
    Path(id): Path<String>,
    Json(body): Json<CreateInstance>,
) -> ApiResult<Created<InstanceView>> {
    let user = body.user_id.trim();
    if user.is_empty() {
        return Err(errors::invalid("user_id: must not be empty").into());
    }
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
