//! Handles the parts common to every request in one function instead of stacked layers: request id,
//! client address, malformed heads, panics and headers of the response.

use std::{net::IpAddr, panic::AssertUnwindSafe, sync::Arc, time::Instant};

use app::core::{
    request_id::RequestId,
    shares::TaskOwner,
    trace::{SpanContext, SpanKind, Work},
};
use axum::{
    Router,
    body::{Body, HttpBody},
    http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version, header},
    response::IntoResponse,
};
use futures::FutureExt;
use http_body_util::BodyExt;
use tower::Service;

use crate::{
    ApiError, CURRENT_REQUEST, HttpError, Server,
    context::RequestContext,
    error::MethodRefused,
    forwarded,
    limiter::RATE_WINDOW,
    request_counts::{RouteCounts, counted_method},
};

const WINDOW_TEXT: &str = "600s";
const _: () = assert!(RATE_WINDOW.as_secs() == 600);
/// Maximum bytes of the request line.
pub const MAX_REQUEST_LINE_BYTES: usize = 8 << 10;
/// Maximum bytes of all headers together.
pub const MAX_HEADER_BYTES: usize = 16 << 10;
/// Maximum number of headers. It is that of hyper, which holds so many without an allocation.
pub const MAX_HEADERS: usize = 100;
const TRACEPARENT_HEADER: HeaderName = HeaderName::from_static("traceparent");
const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");
const RATE_LIMIT_HEADER: HeaderName = HeaderName::from_static("x-ratelimit");
const REMAINING_HEADER: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const WINDOW_HEADER: HeaderName = HeaderName::from_static("x-ratelimit-window-size");

/// State that the requests of a connection share.
pub(super) struct Connection {
    /// The server that answers them.
    pub server: Arc<Server>,
    /// Router of the listener.
    pub router: Router,
    /// Address that they come from.
    pub peer: IpAddr,
    /// Project of the connection's task.
    pub task: Arc<TaskOwner>,
}

/// Answers one request of a connection.
// The future is moved several times, so it contains the request only once.
pub(super) fn answer(
    connection: Arc<Connection>,
    request: Request<Body>,
) -> impl Future<Output = Response<Body>> {
    let server = &connection.server;
    let peer = connection.peer;
    let request_id = given_id(&request).unwrap_or_else(|| server.app.sequence.request());
    let span = server.app.tracer.begin(|| traceparent(&request));
    let request_id = RequestId::new(request_id, span.map(|span| span.context));
    let client = forwarded::client(peer, request.headers(), &server.trusted_proxies);
    let branding = (!server.branding.is_default()).then(|| server.branding.clone());
    let context = Arc::new(RequestContext {
        span,
        task: Some(connection.task.clone()),
        ..RequestContext::new(request_id, *client.as_ref().unwrap_or(&peer), branding)
    });
    CURRENT_REQUEST.scope(context, respond(connection, client.err(), request))
}

/// Answers a request whose context is set, or refuses its head.
async fn respond(
    connection: Arc<Connection>,
    invalid_forwarding: Option<HttpError>,
    request: Request<Body>,
) -> Response<Body> {
    let server = &connection.server;
    let mut report = Report {
        server,
        method: request.method().clone(),
        started: Instant::now(),
        status: None,
    };
    let refused = invalid_forwarding
        .or_else(|| too_long(&request))
        .or_else(|| bad_host(&request));
    let mut response = match refused {
        Some(error) => ApiError::Http(error).into_response(),
        None => {
            let routed = connection.router.clone().call(request);
            match AssertUnwindSafe(routed).catch_unwind().await {
                Ok(Ok(response)) => with_named_methods(response),
                Err(_) => ApiError::Http(HttpError::Panic).into_response(),
            }
        }
    };
    finish(server, &mut response);
    report.status = Some(response.status());
    response
}

/// Returns a response of the router, or the envelope with the methods of the path if it refuses the method.
fn with_named_methods(mut response: Response<Body>) -> Response<Body> {
    let Some(MethodRefused(longer)) = response.extensions_mut().remove() else {
        return response;
    };
    let allowed = response.headers_mut().remove(header::ALLOW);
    let methods = allowed.as_ref().and_then(|value| value.to_str().ok());
    let methods = methods.unwrap_or_default().replace(',', ", ");
    let error = HttpError::WrongMethod { methods, longer };
    let mut refused = ApiError::Http(error).into_response();
    let allowed = allowed.map(|value| (header::ALLOW, value));
    refused.headers_mut().extend(allowed);
    refused
}

/// Counts and logs a request when it is dropped, also if the client disconnects before the response.
/// The log has the path of the route, because the path of a request may contain a token.
struct Report<'a> {
    server: &'a Server,
    method: Method,
    started: Instant,
    /// Status of the response; `None` until it is made.
    status: Option<StatusCode>,
}

impl Drop for Report<'_> {
    fn drop(&mut self) {
        let Self { method, status, .. } = &*self;
        let duration = self.started.elapsed();
        // The context of an ending thread is gone.
        let _ = CURRENT_REQUEST.try_with(|context| {
            let route = context.route.get().map(|route| &**route);
            self.server.requests.count(route, method, *status, duration);
            tracing::info!(
                target: "toolhost::request",
                method = method.as_str(),
                route = route.map(RouteCounts::path),
                status = status.map(|status| status.as_u16()),
                duration_ms = duration.as_micros() as f64 / 1_000.0,
                project = context.owner.get().map(|owner| &**owner),
                request_id = &*context.request_id,
                trace_id = context.span.map(|span| display(span.context.trace)),
                "request"
            );
            if let Some(span) = context.span {
                self.server
                    .app
                    .tracer
                    .end(span, self.started, duration, || {
                        request_work(method, *status, context)
                    });
            }
        });
    }
}

/// Describes the answer to a request. It names the path of the route instead of that of the
/// request, as in the log.
fn request_work(method: &Method, status: Option<StatusCode>, context: &RequestContext) -> Work {
    let method = counted_method(method);
    let mut attributes = vec![
        ("http.request.method", method.into()),
        ("toolhost.request_id", (&*context.request_id).into()),
    ];
    let route = context.route.get().map(|route| route.path());
    attributes.extend(route.map(|route| ("http.route", route.into())));
    let owner = context.owner.get().map(|owner| &**owner);
    attributes.extend(owner.map(|owner| ("toolhost.project", owner.into())));
    let code = status.map(|status| status.as_u16());
    attributes.extend(code.map(|code| ("http.response.status_code", code.into())));
    Work {
        name: route.map_or_else(|| method.to_owned(), |route| format!("{method} {route}")),
        kind: SpanKind::Server,
        attributes,
        failed: status.is_some_and(|status| status.is_server_error()),
    }
}

/// Returns the caller's span that a request names (W3C Trace Context).
fn traceparent(request: &Request<Body>) -> Option<SpanContext> {
    let mut given = request.headers().get_all(TRACEPARENT_HEADER).iter();
    let first = given.next()?.to_str().ok()?;
    given.next().is_none().then(|| SpanContext::parse(first))?
}

/// Hands the permits of the request over to an unfinished body. They are released when the body
/// ends.
fn keep_permits(response: &mut Response<Body>) {
    if response.body().size_hint().exact().is_none() {
        let permits = CURRENT_REQUEST.with(|context| context.permits.take());
        let body = std::mem::take(response.body_mut()).map_frame(move |frame| {
            let _held = &permits;
            frame
        });
        *response.body_mut() = Body::new(body);
    }
}

/// Returns the refusal for a request line or headers beyond their limits. Far beyond them, hyper
/// answers the head with a status alone.
fn too_long(request: &Request<Body>) -> Option<HttpError> {
    let target = request
        .uri()
        .path_and_query()
        .map_or(0, |target| target.as_str().len());
    if request.method().as_str().len() + target + "  HTTP/1.1".len() > MAX_REQUEST_LINE_BYTES {
        return Some(HttpError::LongLine);
    }
    let headers: usize = request
        .headers()
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    (headers > MAX_HEADER_BYTES).then_some(HttpError::LongHeaders)
}

/// Refuses a request without exactly one `Host` header that can name a host (RFC 9112, section
/// 3.2). HTTP/1.0 does not require the header.
fn bad_host(request: &Request<Body>) -> Option<HttpError> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let is_good = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.as_bytes().iter().copied().all(is_of_host),
        (None, _) => request.version() == Version::HTTP_10,
        (Some(_), Some(_)) => false,
    };
    (!is_good).then_some(HttpError::BadHost)
}

/// Returns true for a character of a host and its port (RFC 3986, section 3.2.2).
const fn is_of_host(byte: u8) -> bool {
    matches!(
        byte,
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9'
            | b'-' | b'.' | b'_' | b'~' | b'%' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')'
            | b'*' | b'+' | b',' | b';' | b'=' | b':' | b'[' | b']'
    )
}

/// Returns the client's own request id if it is safe in a header and in the log.
fn given_id(request: &Request<Body>) -> Option<Arc<str>> {
    let text = request.headers().get(REQUEST_ID_HEADER)?.to_str().ok()?;
    let plain = (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    plain.then(|| text.into())
}

fn finish(server: &Server, response: &mut Response<Body>) {
    let (id, allowance) = CURRENT_REQUEST.with(|context| {
        (
            HeaderValue::from_str(&context.request_id).ok(),
            *context.allowance.lock(),
        )
    });
    let allowance = allowance.unwrap_or(server.limiter.rates.allowance);
    keep_permits(response);
    let headers = response.headers_mut();
    if let Some(id) = id {
        headers.insert(REQUEST_ID_HEADER, id);
    }
    // 0 means no limit.
    if allowance.limit > 0 {
        headers.insert(RATE_LIMIT_HEADER, HeaderValue::from(allowance.limit));
        headers.insert(REMAINING_HEADER, HeaderValue::from(allowance.left));
        headers.insert(WINDOW_HEADER, HeaderValue::from_static(WINDOW_TEXT));
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use app::core::tasks::Tasks;
    use bytes::Bytes;
    use futures::stream;
    use settings::{Limits, Sandbox};

    use super::*;
    use crate::{handover, limiter::RequestLimiter, permits};

    #[tokio::test]
    async fn open_body_of_a_task_keeps_the_permits() {
        let limits = Limits {
            in_flight: 1,
            ..Limits::default()
        };
        let limiter = RequestLimiter::new(&limits, &Sandbox::default());
        for (body, is_open) in [
            (Body::from("whole"), false),
            (
                Body::from_stream(stream::pending::<Result<Bytes, Infallible>>()),
                true,
            ),
        ] {
            let context = RequestContext::new("req_x".into(), [127, 0, 0, 1].into(), None);
            let tasks = Tasks::default();
            let answered = async {
                permits::acquire(&limiter).await.unwrap();
                let answer = async move { Response::new(body) };
                let mut response = handover::answer_in_task(&tasks, answer).await;
                keep_permits(&mut response);
                response
            };
            let response = CURRENT_REQUEST.scope(Arc::new(context), answered).await;
            assert_eq!(limiter.acquire().await.is_err(), is_open);
            drop(response);
            assert!(limiter.acquire().await.is_ok());
        }
    }
}
