//! The router: the operations of the API under both prefixes, and the pages.

use std::sync::Arc;

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
        operation::{Deadline, MaxBody, Operation, perform},
    },
    mcp,
    web::{
        docs, files, health, link,
        mcp_oauth::{
            AUTHORIZE_PATH, REGISTER_PATH, RESOURCE_METADATA_PATH, REVOKE_PATH,
            SERVER_METADATA_PATH, TOKEN_PATH, authorize, metadata, register, token,
        },
    },
};

/// Builds the router.
pub(crate) fn router(server: Arc<Server>) -> Router {
    let by_rules = |handler: MethodRouter<Arc<Server>>, operation: Operation| {
        handler.route_layer(from_fn_with_state((server.clone(), operation), perform))
    };
    let page = |handler| by_rules(handler, Operation::default());
    let client_request = Operation {
        ignores_idempotency_key: true,
        ..Operation::default()
    };
    let client = |handler| by_rules(handler, client_request);
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
    let of_server = tool_call(mcp::SERVER_PERMISSION);
    let mcp_server = || by_rules(post(mcp::server).delete(mcp::server), of_server);
    let of_session = tool_call(mcp::SESSION_PERMISSION);
    let mcp_session = by_rules(post(mcp::session).delete(mcp::session), of_session);
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
        .route(
            AUTHORIZE_PATH,
            page(get(authorize::show).post(authorize::decide)),
        )
        .route(TOKEN_PATH, client(post(token::issue)))
        .route(REVOKE_PATH, client(post(token::revoke)))
        .route(REGISTER_PATH, client(post(register::client)))
        .route(SERVER_METADATA_PATH, page(get(metadata::server)))
        .route(
            &format!("{RESOURCE_METADATA_PATH}/{{*endpoint}}"),
            page(get(metadata::resource)),
        )
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
