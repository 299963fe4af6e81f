//! The router: the operations of the API under both prefixes, and the pages.

use std::sync::Arc;

use api::{compat::not_offered, description};
use axum::{
    Extension, Router,
    routing::{MethodRouter, get, post},
};
use http::{
    Server,
    operation::{Deadline, MaxBody, Operation},
    path::API_PREFIXES,
    routes::Routes,
    row::Row,
};
use mcp::oauth::{
    AUTHORIZE_PATH, ENDPOINTS_PATH, PAGE_SEGMENT, REGISTER_PATH, RESOURCE_METADATA_PATH,
    REVOKE_PATH, SERVER_METADATA_PATH, TOKEN_PATH, metadata, register, token,
};
use web::{consent, docs, files, health, home, link, logos, missing};

/// Builds the router.
pub(crate) fn router(server: Arc<Server>, mcp_state: Arc<mcp::State>) -> Router {
    let with_pages = pages(Routes::new(server.clone()));
    let mut routes = authorization_server(mcp_endpoints(with_pages, mcp_state));
    let rows = operations();
    let base = server.config.public_path();
    let description = docs::description(description::text(&rows, &server.branding, base));
    for prefix in API_PREFIXES {
        routes = routes
            .page(&format!("{prefix}/openapi.json"), description.clone())
            .rows(prefix, &rows);
        for (path, handler) in not_offered::routes() {
            routes = routes.probe(&format!("{prefix}{path}"), handler);
        }
    }
    routes.finish(missing::answer)
}

fn pages(routes: Routes) -> Routes {
    let transfer = Operation {
        deadline: Deadline::OfItsOwn,
        ..Operation::default()
    };
    let file = get(files::get).put(files::put);
    let link_page = get(link::page::show).post(link::page::submit);
    routes
        .probe("/health/live", get(health::live))
        .probe("/health/ready", get(health::ready))
        .page("/", get(home::page))
        .operation("/files/{project}/{id}", file, transfer)
        .page("/oauth/clients/{id}", get(link::client_metadata::read))
        .page("/link/done", get(link::page::done))
        .page("/link/{token}", link_page)
        .page("/logos/{slug}", get(logos::read))
        .page("/docs", get(docs::page))
        .page("/docs/{asset}", get(docs::asset))
}

/// Adds the endpoints of MCP servers and of sessions.
fn mcp_endpoints(routes: Routes, state: Arc<mcp::State>) -> Routes {
    let tool_call = |permission| Operation {
        permission,
        deadline: Deadline::OfItsOwn,
        max_body: MaxBody::Execute,
        ignores_idempotency_key: true,
        ..Operation::default()
    };
    let endpoint = |handler: MethodRouter<Arc<Server>>| {
        handler
            .fallback(mcp::wrong_method)
            .layer(Extension(state.clone()))
    };
    let server = || endpoint(post(mcp::server).get(mcp::server).delete(mcp::server));
    let of_server = tool_call(mcp::SERVER_PERMISSION);
    let session = || endpoint(post(mcp::session).get(mcp::session).delete(mcp::session));
    let of_session = tool_call(mcp::SESSION_PERMISSION);
    routes
        // Clients that write an address anew may end its path with a slash.
        .open_to_scripts("/v3/mcp/{id}", server(), of_server)
        .open_to_scripts("/v3/mcp/{id}/", server(), of_server)
        .open_to_scripts("/v3/mcp/{id}/mcp", server(), of_server)
        .open_to_scripts("/v3/mcp/{id}/mcp/", server(), of_server)
        .open_to_scripts("/tool_router/{id}/mcp", session(), of_session)
        .open_to_scripts("/tool_router/{id}/mcp/", session(), of_session)
}

/// Adds the authorization server for the MCP endpoints.
fn authorization_server(routes: Routes) -> Routes {
    let public = Operation::default();
    let client = Operation {
        ignores_idempotency_key: true,
        ..Operation::default()
    };
    let resource_metadata = format!("{RESOURCE_METADATA_PATH}/{{*endpoint}}");
    let server_metadata = format!("{SERVER_METADATA_PATH}/{{*issuer}}");
    let issuer_metadata = format!("{ENDPOINTS_PATH}/{{endpoint}}{SERVER_METADATA_PATH}");
    let endpoint_page = format!("{ENDPOINTS_PATH}/{{endpoint}}{PAGE_SEGMENT}");
    let consent_page = || get(consent::show).post(consent::decide);
    routes
        .page(AUTHORIZE_PATH, consent_page())
        .page(&endpoint_page, consent_page())
        .open_to_scripts(TOKEN_PATH, post(token::issue), client)
        .open_to_scripts(REVOKE_PATH, post(token::revoke), client)
        .open_to_scripts(REGISTER_PATH, post(register::client), client)
        .open_to_scripts(SERVER_METADATA_PATH, get(metadata::server), public)
        .open_to_scripts(&server_metadata, get(metadata::server), public)
        .open_to_scripts(&issuer_metadata, get(metadata::issuer), public)
        .open_to_scripts(&resource_metadata, get(metadata::resource), public)
}

/// Returns every operation of the API, as `docs/openapi.json` describes them.
pub(crate) fn operations() -> Vec<Row> {
    let mut rows = api::table::rows();
    rows.extend(web::rows());
    rows
}
