//! Handles the parts common to every request in one function instead of stacked layers: request id,
//! concurrency permit, deadline, panic and headers.

use std::{net::IpAddr, panic::AssertUnwindSafe, sync::Arc};

use app::Error;
use axum::{
    Router,
    body::Body,
    http::{HeaderName, HeaderValue, Request, Response, Version, header},
    response::IntoResponse,
};
use futures::FutureExt;
use tokio::time::{Instant, timeout_at};
use tower::Service;

use crate::{
    Server,
    admission::RATE_WINDOW,
    forwarded, idempotency, places,
    respond::{EXCHANGE, Exchange, Failure, Wire},
};

const WINDOW_TEXT: &str = "600s";
const _: () = assert!(RATE_WINDOW.as_secs() == 600);
/// Maximum bytes of the request line, and of all headers together.
pub(crate) const LINE: usize = 8 << 10;
pub(crate) const HEADERS: usize = 16 << 10;
/// Characters of a host and its port, besides letters and digits (RFC 3986, section 3.2.2).
const HOST: &[u8] = b"-._~%!$&'()*+,;=:[]";
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const RATE: HeaderName = HeaderName::from_static("x-ratelimit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const WINDOW: HeaderName = HeaderName::from_static("x-ratelimit-window-size");

/// Returns a path as it is logged. Link tokens, which open a page, are left out.
fn shown(path: &str) -> &str {
    if path.starts_with("/link/") {
        "/link/…"
    } else {
        path
    }
}

/// Answers one request that came from the given address.
pub(crate) async fn answer(
    server: Arc<Server>,
    mut router: Router,
    peer: IpAddr,
    request: Request<Body>,
) -> Response<Body> {
    let request_id = given_id(&request).unwrap_or_else(|| server.app.sequence.request());
    let client = forwarded::client(peer, request.headers(), &server.trusted_proxies);
    let exchange = Exchange::new(request_id, client.unwrap_or(peer));
    let inner = async {
        tracing::debug!(method = %request.method(), path = shown(request.uri().path()), "a request");
        let refused = client
            .err()
            .or_else(|| too_long(&request))
            .or_else(|| bad_host(&request));
        let mut response = match refused {
            Some(wire) => Failure::Wire(wire).into_response(),
            None => {
                let done = AssertUnwindSafe(guarded(&server, &mut router, request))
                    .catch_unwind()
                    .await;
                done.unwrap_or_else(|_| Failure::Wire(Wire::Panic).into_response())
            }
        };
        finish(&server, &mut response);
        response
    };
    EXCHANGE.scope(exchange, inner).await
}

async fn guarded(
    server: &Arc<Server>,
    router: &mut Router,
    request: Request<Body>,
) -> Response<Body> {
    // Health probes are answered even when the server is at its concurrency limit.
    if !request.uri().path().starts_with("/health/")
        && let Err(busy) = places::enter(&server.admission).await
    {
        return Failure::App(busy).into_response();
    }
    let within = server.config.limits.deadline();
    let deadline = has_deadline(&request).then(|| Instant::now() + within);
    let answer = async {
        if idempotency::is_meant(&request) {
            return Ok(Box::pin(idempotency::answer(server, router, request, deadline)).await);
        }
        router.call(request).await
    };
    let answered = match deadline {
        Some(deadline) => timeout_at(deadline, answer).await,
        None => Ok(answer.await),
    };
    match answered {
        Ok(Ok(response)) => response,
        Err(_) => Failure::App(Error::Deadline(within)).into_response(),
    }
}

/// Returns the refusal for a request line or headers beyond their limits. If both are exceeded
/// together, hyper answers by itself.
fn too_long(request: &Request<Body>) -> Option<Wire> {
    let target = request
        .uri()
        .path_and_query()
        .map_or(0, |target| target.as_str().len());
    if request.method().as_str().len() + target + "  HTTP/1.1".len() > LINE {
        return Some(Wire::LongLine);
    }
    let headers: usize = request
        .headers()
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    (headers > HEADERS).then_some(Wire::LongHeaders)
}

/// Refuses a request without exactly one `Host` header that can name a host (RFC 9112, section
/// 3.2). HTTP/1.0 does not require the header.
fn bad_host(request: &Request<Body>) -> Option<Wire> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let is_good = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host
            .as_bytes()
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || HOST.contains(byte)),
        (None, _) => request.version() == Version::HTTP_10,
        (Some(_), Some(_)) => false,
    };
    (!is_good).then_some(Wire::BadHost)
}

/// Returns true if the general deadline applies. Executions, publications and file transfers have
/// limits of their own.
fn has_deadline(request: &Request<Body>) -> bool {
    let path = request.uri().path();
    !(path.contains("/tools/execute/")
        || path.contains("/versions/")
        || path.starts_with("/files/"))
}

/// Returns the client's own request id if it is safe in a header and in the log.
fn given_id(request: &Request<Body>) -> Option<String> {
    let text = request.headers().get(REQUEST_ID)?.to_str().ok()?;
    let plain = (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
    plain.then(|| text.to_owned())
}

fn finish(server: &Server, response: &mut Response<Body>) {
    let (id, allowance) = EXCHANGE.with(|exchange| {
        (
            HeaderValue::from_str(&exchange.request_id).ok(),
            exchange.allowance.get(),
        )
    });
    let allowance = allowance.unwrap_or(server.admission.allowance);
    let headers = response.headers_mut();
    headers.extend(id.map(|id| (REQUEST_ID, id)));
    headers.insert(RATE, HeaderValue::from(allowance.limit));
    headers.insert(REMAINING, HeaderValue::from(allowance.left));
    headers.insert(WINDOW, HeaderValue::from_static(WINDOW_TEXT));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
}
