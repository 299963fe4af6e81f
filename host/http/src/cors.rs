//! Leave for scripts of web pages to use an address (Fetch standard, section 3.3).
//!
//! Addresses that give it read no cookies, so that a page gets nothing without a key or a token.

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

/// Methods of the addresses.
const SCRIPT_METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
/// Headers of responses that a script may read.
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static(
    "WWW-Authenticate, Mcp-Session-Id, Mcp-Protocol-Version, Retry-After, X-Request-Id",
);
/// Seconds for which a browser keeps the answer to a preflight. Chromium keeps it no longer.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// Answers the request with which a browser asks what a script may send: any header.
pub(crate) async fn preflight(headers: HeaderMap) -> Response {
    let requested = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS);
    let allowed = requested.map(|names| (header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone()));
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.extend(allowed);
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, SCRIPT_METHODS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    let varying = HeaderValue::from_static("Access-Control-Request-Headers");
    headers.insert(header::VARY, varying);
    response
}

/// Lets scripts of any page read a response.
pub(crate) fn make_readable(response: &mut Response) {
    let headers = response.headers_mut();
    let anywhere = HeaderValue::from_static("*");
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, anywhere);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
}
