//! The router: the operations of the API under both prefixes, and the pages.

use std::sync::Arc;

use app::projects::permissions::{
    Access,
    Area::{McpServers, SessionToolExecution, Sessions, ToolExecution},
};
use axum::{
    Router,
    middleware::from_fn_with_state,
    routing::{MethodRouter, get, post},
};

use crate::{
    Server,
    api::{
        compat::not_offered,
        description,
        table::{PREFIXES, rows},
    },
    http::{
        error,
        operation::{Deadline, MaxBody, Operation, Permission, perform},
    },
    mcp,
    web::{docs, files, health, link},
};

/// Builds the router.
pub(crate) fn router(server: Arc<Server>) -> Router {
    let by_rules = |handler: MethodRouter<Arc<Server>>, operation: Operation| {
        handler.route_layer(from_fn_with_state((server.clone(), operation), perform))
    };
    let page = |handler| by_rules(handler, Operation::default());
    let transfer = Operation {
        deadline: Deadline::OfItsOwn,
        ..Operation::default()
    };
    let tool_call = |permission| Operation {
        permission,
        deadline: Deadline::OfItsOwn,
        max_body: MaxBody::Execute,
        is_run: true,
        ignores_idempotency_key: true,
        ..Operation::default()
    };
    let of_server = Permission::OneOf(&[ToolExecution, McpServers], Access::Write);
    let mcp_server = || {
        let handler = post(mcp::server).get(mcp::server).delete(mcp::server);
        by_rules(handler, tool_call(of_server))
    };
    let of_session = &[ToolExecution, Sessions, SessionToolExecution];
    let of_session = tool_call(Permission::OneOf(of_session, Access::Write));
    let mcp_session = post(mcp::session).get(mcp::session).delete(mcp::session);
    let mcp_session = by_rules(mcp_session, of_session);
    // Health probes are answered even when the server is at its concurrency limit.
    let mut router = Router::new()
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .route(
            "/files/{project}/{id}",
            by_rules(get(files::get).put(files::put), transfer),
        )
        .route(
            "/oauth/clients/{id}",
            page(get(link::client_metadata::read)),
        )
        .route("/link/done", page(get(link::page::done)))
        .route(
            "/link/{token}",
            page(get(link::page::show).post(link::page::submit)),
        )
        .route("/v3/mcp/{id}", mcp_server())
        .route("/v3/mcp/{id}/mcp", mcp_server())
        .route("/tool_router/{id}/mcp", mcp_session)
        .route("/docs", page(get(docs::page)))
        .route("/docs/{asset}", page(get(docs::asset)));
    let rows = rows();
    let description = docs::description(description::text(&rows, &server.branding));
    for prefix in PREFIXES {
        let path = format!("{prefix}/openapi.json");
        router = router.route(&path, page(description.clone()));
        for row in &rows {
            let path = format!("{prefix}{}", row.path);
            router = router.route(&path, by_rules(row.handler.clone(), row.operation));
        }
        for (path, handler) in not_offered::routes() {
            router = router.route(&format!("{prefix}{path}"), handler);
        }
    }
    router
        .fallback(error::unknown_route)
        .method_not_allowed_fallback(error::wrong_method)
        .with_state(server)
}
