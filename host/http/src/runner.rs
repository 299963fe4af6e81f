//! Performs requests by the rules of their operations: each gets a concurrency permit, a deadline,
//! and at most one execution per `Idempotency-Key`.

use std::{convert::Infallible, sync::Arc};

use app::Error;
use axum::{
    extract::{Request, State},
    handler::Handler,
    http::{HeaderValue, header},
    middleware::Next,
    response::{IntoResponse, Response},
    routing::Route,
};
use futures::{FutureExt, future::BoxFuture};
use tokio::time::{Instant, timeout_at};
use tower::Service;

use crate::{
    ApiError, CURRENT_REQUEST, Server, cors, errors, idempotency,
    operation::{Deadline, Operation},
    path::API_PREFIXES,
    permits,
    query::{KnownParameters, unknown_slugs},
    request_counts::RouteCounts,
    unknown::Warnings,
};

/// Date since which replaced operations are deprecated, as a Unix time: 21 November 2026.
const DEPRECATED_SINCE: &str = "@1795219200";
/// Date until which replaced operations are served at least.
const SUNSET_DATE: &str = "Sun, 21 Nov 2027 00:00:00 GMT";

/// Handler of a route. Its future is all that a call allocates.
pub(crate) type RouteHandler =
    Arc<dyn Fn(Request, Arc<Server>) -> BoxFuture<'static, Response> + Send + Sync>;

/// Makes the handler of a route from a function.
pub(crate) fn handler<Arguments: 'static, H>(function: H) -> RouteHandler
where
    H: Handler<Arguments, Arc<Server>, Future = BoxFuture<'static, Response>>,
{
    Arc::new(move |request: Request, server: Arc<Server>| function.clone().call(request, server))
}

/// Makes the handler of a route from a route of axum.
pub(crate) fn route_handler(route: Route) -> RouteHandler {
    Arc::new(move |request: Request, _: Arc<Server>| {
        let answered = Service::call(&mut route.clone(), request);
        answered.map(|Ok(response)| response).boxed()
    })
}

/// Handler of a route with the rules of its operation.
pub(crate) struct OperationRunner {
    /// The server that answers the requests.
    pub server: Arc<Server>,
    /// Rules of the operation.
    pub operation: Operation,
    /// Counts of the route.
    pub counts: Arc<RouteCounts>,
    /// Parameters that the query of a request may have; `None` for pages and for operations that providers
    /// call, which have parameters of their own.
    pub parameters: Option<KnownParameters>,
    /// Handler of matched requests.
    pub handler: RouteHandler,
}

impl OperationRunner {
    /// Answers a request by the handler.
    fn handle(&self, request: Request) -> BoxFuture<'static, Response> {
        (self.handler)(request, self.server.clone())
    }

    /// Returns the warnings about the query of a request.
    ///
    /// # Errors
    /// If a parameter is refused.
    fn check_query(&self, request: &Request) -> Result<Warnings, Error> {
        match (&self.parameters, request.uri().query()) {
            (Some(parameters), Some(query)) => parameters.check(query),
            _ => Ok(Warnings::default()),
        }
    }

    /// Performs a matched request by the rules of its operation.
    pub(crate) async fn perform(self: Arc<Self>, request: Request) -> Result<Response, Infallible> {
        let is_open = self.operation.open_to_scripts;
        let is_of_script = is_open && request.headers().contains_key(header::ORIGIN);
        let mut response = self.answer(request).await;
        if is_of_script {
            cors::make_readable(&mut response);
        }
        Ok(response)
    }

    async fn answer(self: &Arc<Self>, request: Request) -> Response {
        let server = &self.server;
        let operation = self.operation;
        CURRENT_REQUEST.with(|context| {
            context.operation.get_or_init(|| operation);
            context.server.get_or_init(|| server.clone());
            context.route.get_or_init(|| self.counts.clone());
        });
        // The path of the row, because a path may contain a link token.
        let path = self.counts.path();
        tracing::debug!(method = %request.method(), path, "a request");
        let ignored = match self.check_query(&request) {
            Ok(warnings) => warnings,
            Err(refused) => return ApiError::App(refused).into_response(),
        };
        let checked = self.parameters.as_ref().and(request.uri().query());
        let query = checked.map(str::to_owned);
        if let Err(busy) = permits::acquire(&server.limiter).await {
            return ApiError::App(busy).into_response();
        }
        let timeout = server.config.limits.deadline();
        let deadline = (operation.deadline == Deadline::General).then(|| Instant::now() + timeout);
        let answer = self.answer_once(request, deadline);
        let mut response = match deadline {
            None => answer.await,
            Some(deadline) => timeout_at(deadline, answer).await.unwrap_or_else(|_| {
                ApiError::App(errors::deadline(timeout.as_secs())).into_response()
            }),
        };
        CURRENT_REQUEST.with(|context| {
            let mut warnings = context.warnings.lock();
            if response.status().is_success() {
                warnings.extend(ignored);
                if let Some(query) = &query {
                    warnings.extend(unknown_slugs(query, &server.app.catalog.snapshot()));
                }
            }
            warnings.write(&mut response);
        });
        if let Some(successor) = operation.successor {
            let base = server.config.public_path();
            deprecate(
                &mut response,
                &format!("{base}{}{successor}", API_PREFIXES[1]),
            );
        }
        response
    }

    /// Answers a request once for its `Idempotency-Key`.
    fn answer_once(&self, request: Request, deadline: Option<Instant>) -> BoxFuture<'_, Response> {
        if idempotency::applies_to(&request) && !self.operation.ignores_idempotency_key {
            let answer = idempotency::answer(&self.server, request, deadline, |it| self.handle(it));
            return answer.boxed();
        }
        self.handle(request)
    }
}

/// Performs a matched request to which no rules apply.
pub(crate) async fn perform_always(
    State(route): State<Arc<RouteCounts>>,
    request: Request,
    next: Next,
) -> Response {
    CURRENT_REQUEST.with(|context| {
        context.route.get_or_init(|| route);
    });
    next.run(request).await
}

/// Adds the deprecation, the sunset date and the replacement (RFC 9745, RFC 8594, RFC 5829).
fn deprecate(response: &mut Response, replacement: &str) {
    let headers = response.headers_mut();
    headers.insert("deprecation", HeaderValue::from_static(DEPRECATED_SINCE));
    headers.insert("sunset", HeaderValue::from_static(SUNSET_DATE));
    let link = format!("<{replacement}>; rel=\"successor-version\"");
    let link = HeaderValue::try_from(link).ok();
    headers.extend(link.map(|link| (header::LINK, link)));
}
