//! Routes whose requests pass what every request passes.

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    handler::Handler,
    http::{StatusCode, Uri},
    middleware::from_fn_with_state,
    response::{IntoResponse, Redirect, Response},
    routing::{MethodRouter, Route, get, on_service},
};
use tower::{layer::layer_fn, service_fn};
use utoipa::openapi::HttpMethod;
use utoipa_axum::PathItemExt;

use crate::{
    Server, cors,
    error::MethodRefused,
    operation::Operation,
    query::{KnownParameters, ParameterNames, parameter_names},
    row::Row,
    runner::{OperationRunner, perform_always, route_handler},
    similar_route::longer_route,
};

/// Routes whose requests are counted and logged by their paths.
pub struct Routes {
    router: Router<Arc<Server>>,
    server: Arc<Server>,
}

impl Routes {
    /// Creates an empty set of routes.
    pub fn new(server: Arc<Server>) -> Self {
        Self {
            router: Router::new(),
            server,
        }
    }

    /// Adds the rows of the table below a prefix.
    pub fn rows(self, prefix: &str, rows: &[Row]) -> Self {
        let described = rows
            .iter()
            .filter(|row| !row.is_called_by_providers())
            .map(|row| &row.description.operation);
        let of_any = parameter_names(described, &self.server.branding);
        rows.iter()
            .fold(self, |routes, row| routes.row(prefix, row, &of_any))
    }

    /// Adds a row. Its service calls the function of the row, without the clones and futures of a handler
    /// of axum and a layer around it.
    fn row(self, prefix: &str, row: &Row, of_any: &ParameterNames) -> Self {
        let path = format!("{prefix}{}", row.path);
        let described = std::iter::once(&row.description.operation);
        let parameters = KnownParameters {
            refuses_others: row.description.method == HttpMethod::Delete,
            own: parameter_names(described, &self.server.branding),
            of_any: of_any.clone(),
        };
        let runner = Arc::new(OperationRunner {
            server: self.server.clone(),
            operation: row.operation,
            counts: self.server.requests.add_route(&path),
            parameters: (!row.is_called_by_providers()).then_some(parameters),
            handler: row.handler.clone(),
        });
        let performed = service_fn(move |request| runner.clone().perform(request));
        let method = row.description.method.to_method_filter();
        self.route(&path, on_service(method, performed))
    }

    /// Adds a route whose requests are performed by the rules of an operation.
    pub fn operation(
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
                parameters: None,
                handler: route_handler(route),
            });
            service_fn(move |request| runner.clone().perform(request))
        });
        self.route(path, handler.route_layer(layer))
    }

    /// Adds a route like [`operation`](Self::operation) that scripts of web pages may use.
    pub fn open_to_scripts(
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
    pub fn probe(self, path: &str, handler: MethodRouter<Arc<Server>>) -> Self {
        let route = self.server.requests.add_route(path);
        let handler = handler.route_layer(from_fn_with_state(route, perform_always));
        self.route(path, handler)
    }

    /// Adds a page. Its address with a final slash leads to it.
    pub fn page(self, path: &str, handler: MethodRouter<Arc<Server>>) -> Self {
        let routes = self.operation(path, handler, Operation::default());
        if path.ends_with('/') {
            return routes;
        }
        let with_slash = format!("{path}/");
        routes.operation(&with_slash, get(without_slash), Operation::default())
    }

    fn route(self, path: &str, handler: MethodRouter<Arc<Server>>) -> Self {
        Self {
            router: self.router.route(path, handler),
            ..self
        }
    }

    /// Returns the router, which answers requests for unknown paths by a handler.
    pub fn finish<Arguments: 'static>(
        self,
        missing: impl Handler<Arguments, Arc<Server>>,
    ) -> Router {
        self.router
            .fallback(missing)
            .method_not_allowed_fallback(wrong_method)
            .with_state(self.server)
    }
}

/// Answers requests whose method the path does not accept. The router adds the methods that it accepts,
/// which the envelope names.
async fn wrong_method(State(server): State<Arc<Server>>, uri: Uri) -> Response {
    let mut response = StatusCode::METHOD_NOT_ALLOWED.into_response();
    let refused = MethodRefused(longer_route(&server, uri.path()));
    response.extensions_mut().insert(refused);
    response
}

/// Redirects to the same address without its final slash. The target is relative, because a proxy may
/// serve this server below a path.
async fn without_slash(uri: Uri) -> Redirect {
    let path = uri.path().trim_end_matches('/');
    let segment = path.rsplit('/').next().unwrap_or_default();
    let query = uri.query().map(|query| format!("?{query}"));
    Redirect::permanent(&format!("../{segment}{}", query.unwrap_or_default()))
}
