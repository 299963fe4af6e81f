//! The router: the operations of the API under both prefixes, and the pages.

use std::sync::Arc;

use axum::{
    Router,
    middleware::from_fn_with_state,
    routing::{MethodRouter, Route, get, on_service, post},
};
use tower::{layer::layer_fn, service_fn};
use utoipa_axum::PathItemExt;

use crate::{
    Server,
    api::{
        compat::not_offered,
        description,
        table::{API_PREFIXES, Row, rows},
    },
    http::{
        cors, error,
        operation::{Deadline, MaxBody, Operation, OperationRunner, perform_always, route_handler},
    },
    mcp,
    web::{
        docs, files, health, home, link, logos,
        mcp_oauth::{
            AUTHORIZE_PATH, ENDPOINTS_PATH, PAGE_SEGMENT, REGISTER_PATH, RESOURCE_METADATA_PATH,
            REVOKE_PATH, SERVER_METADATA_PATH, TOKEN_PATH, authorize, metadata, register, token,
        },
        missing,
    },
};

/// Routes whose requests are counted and logged by their paths.
pub(crate) struct Routes {
    router: Router<Arc<Server>>,
    server: Arc<Server>,
}

impl Routes {
    /// Creates an empty set of routes.
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Self {
            router: Router::new(),
            server,
        }
    }

    /// Adds a row of the table below a prefix. Its service calls the function of the row, without the
    /// clones and futures of a handler of axum and a layer around it.
    fn row(self, prefix: &str, row: &Row) -> Self {
        let path = format!("{prefix}{}", row.path);
        let runner = Arc::new(OperationRunner {
            server: self.server.clone(),
            operation: row.operation,
            counts: self.server.requests.add_route(&path),
            handler: row.handler.clone(),
        });
        let performed = service_fn(move |request| runner.clone().perform(request));
        let method = row.description.method.to_method_filter();
        self.route(&path, on_service(method, performed))
    }

    /// Adds a route whose requests are performed by the rules of an operation.
    fn operation(
        self,
        path: &str,
        handler: MethodRouter<Arc<Server>>,
        operation: Operation,
    ) -> Self {
        let server = self.server.clone();
        let counts = server.requests.add_route(path);
        let layer = layer_fn(move |route: Route| {
            let runner = Arc::new(OperationRunner {
                server: server.clone(),
                operation,
                counts: counts.clone(),
                handler: route_handler(route),
            });
            service_fn(move |request| runner.clone().perform(request))
        });
        self.route(path, handler.route_layer(layer))
    }

    /// Adds a route like [`operation`](Self::operation) that scripts of web pages may use.
    fn open_to_scripts(
        self,
        path: &str,
        handler: MethodRouter<Arc<Server>>,
        operation: Operation,
    ) -> Self {
        let open = Operation {
            open_to_scripts: true,
            ..operation
        };
        self.operation(path, handler.options(cors::preflight), open)
    }

    /// Adds a route whose requests are answered even when the server is at its concurrency limit.
    pub(crate) fn probe(self, path: &str, handler: MethodRouter<Arc<Server>>) -> Self {
        let route = self.server.requests.add_route(path);
        let handler = handler.route_layer(from_fn_with_state(route, perform_always));
        self.route(path, handler)
    }

    /// Adds a page.
    fn page(self, path: &str, handler: MethodRouter<Arc<Server>>) -> Self {
        self.operation(path, handler, Operation::default())
    }

    fn route(self, path: &str, handler: MethodRouter<Arc<Server>>) -> Self {
        Self {
            router: self.router.route(path, handler),
            ..self
        }
    }

    /// Returns the router, which answers all other requests with an error.
    pub(crate) fn finish(self) -> Router {
        self.router
            .fallback(missing::answer)
            .method_not_allowed_fallback(error::wrong_method)
            .with_state(self.server)
    }
}

/// Builds the router.
pub(crate) fn router(server: Arc<Server>) -> Router {
    let public = Operation::default();
    let client = Operation {
        ignores_idempotency_key: true,
        ..Operation::default()
    };
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
    let mcp_server = || post(mcp::server).get(mcp::server).delete(mcp::server);
    let of_server = tool_call(mcp::SERVER_PERMISSION);
    let mcp_session = || post(mcp::session).get(mcp::session).delete(mcp::session);
    let of_session = tool_call(mcp::SESSION_PERMISSION);
    let resource_metadata = format!("{RESOURCE_METADATA_PATH}/{{*endpoint}}");
    let server_metadata = format!("{SERVER_METADATA_PATH}/{{*issuer}}");
    let issuer_metadata = format!("{ENDPOINTS_PATH}/{{endpoint}}{SERVER_METADATA_PATH}");
    let endpoint_page = format!("{ENDPOINTS_PATH}/{{endpoint}}{PAGE_SEGMENT}");
    let file = get(files::get).put(files::put);
    let link_page = get(link::page::show).post(link::page::submit);
    let consent = || get(authorize::show).post(authorize::decide);
    let mut routes = Routes::new(server.clone())
        .probe("/health/live", get(health::live))
        .probe("/health/ready", get(health::ready))
        .page("/", get(home::page))
        .operation("/files/{project}/{id}", file, transfer)
        .page("/oauth/clients/{id}", get(link::client_metadata::read))
        .page("/link/done", get(link::page::done))
        .page("/link/{token}", link_page)
        // Clients that write an address anew may end its path with a slash.
        .open_to_scripts("/v3/mcp/{id}", mcp_server(), of_server)
        .open_to_scripts("/v3/mcp/{id}/", mcp_server(), of_server)
        .open_to_scripts("/v3/mcp/{id}/mcp", mcp_server(), of_server)
        .open_to_scripts("/v3/mcp/{id}/mcp/", mcp_server(), of_server)
        .open_to_scripts("/tool_router/{id}/mcp", mcp_session(), of_session)
        .open_to_scripts("/tool_router/{id}/mcp/", mcp_session(), of_session)
        .page(AUTHORIZE_PATH, consent())
        .page(&endpoint_page, consent())
        .open_to_scripts(TOKEN_PATH, post(token::issue), client)
        .open_to_scripts(REVOKE_PATH, post(token::revoke), client)
        .open_to_scripts(REGISTER_PATH, post(register::client), client)
        .open_to_scripts(SERVER_METADATA_PATH, get(metadata::server), public)
        .open_to_scripts(&server_metadata, get(metadata::server), public)
        .open_to_scripts(&issuer_metadata, get(metadata::issuer), public)
        .open_to_scripts(&resource_metadata, get(metadata::resource), public)
        .page("/logos/{slug}", get(logos::read))
        .page("/docs", get(docs::page))
        .page("/docs/{asset}", get(docs::asset));
    let rows = rows();
    let base = server.config.public_path();
    let description = docs::description(description::text(&rows, &server.branding, base));
    for prefix in API_PREFIXES {
        routes = routes.page(&format!("{prefix}/openapi.json"), description.clone());
        for row in &rows {
            routes = routes.row(prefix, row);
        }
        for (path, handler) in not_offered::routes() {
            routes = routes.probe(&format!("{prefix}{path}"), handler);
        }
    }
    routes.finish()
}
