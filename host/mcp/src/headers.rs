//! Methods and headers that do not fit an MCP endpoint, which `rmcp` would refuse in plain text.

use axum::{
    http::{HeaderMap, HeaderValue, Method, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use http::body::is_charset_accepted;
use net::text::media_type;

use super::{
    accepted::{Accepted, is_json},
    messages::{Refusal, id_of},
};

/// Methods of an endpoint.
pub(super) const ENDPOINT_METHODS: &str = "GET, POST, DELETE";
/// Methods of an endpoint that offers no stream.
const METHODS_WITHOUT_STREAM: &str = "POST, DELETE";
/// Explanation for a request with another method.
const METHOD_REFUSED: &str = "the endpoint does not take this method: send messages with POST";
/// Explanation for a request to the address of an endpoint that no MCP client sent.
const STREAM_REFUSED: &str = "this address is an MCP endpoint: add it to an MCP client, as a server with the transport streamable HTTP; a client that opens a stream sends `accept: text/event-stream`";

/// Refuses a `GET` of a client that does not read streams, such as a browser, which would wait for the
/// end of one.
pub(super) fn refuse_stream(headers: &HeaderMap) -> Option<Response> {
    if Accepted::of(headers).streams {
        return None;
    }
    let mut accepted = headers.get_all(header::ACCEPT).iter();
    let reads_pages = accepted.any(|value| {
        value
            .to_str()
            .is_ok_and(|value| value.contains("text/html"))
    });
    let status = StatusCode::NOT_ACCEPTABLE;
    Some(if reads_pages {
        (status, STREAM_REFUSED).into_response()
    } else {
        Refusal::new(status, None, STREAM_REFUSED).into_response()
    })
}

/// Refuses a request whose method or headers do not fit a message.
pub(super) fn refuse(head: &Parts, body: &[u8]) -> Option<Response> {
    match head.method {
        Method::POST => {}
        // The version of the protocol has no streams.
        Method::GET => return Some(refuse_method(METHODS_WITHOUT_STREAM)),
        _ => return Some(refuse_method(ENDPOINT_METHODS)),
    }
    let (status, problem) = problem(&head.headers)?;
    Some(Refusal::new(status, id_of(body), problem).into_response())
}

/// Refuses a request whose method is not one of those that the endpoint takes.
pub(super) fn refuse_method(methods: &'static str) -> Response {
    let status = StatusCode::METHOD_NOT_ALLOWED;
    let mut response = Refusal::new(status, None, METHOD_REFUSED).into_response();
    let methods = HeaderValue::from_static(methods);
    response.headers_mut().insert(header::ALLOW, methods);
    response
}

fn problem(headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
    if !Accepted::of(headers).json {
        return Some((
            StatusCode::NOT_ACCEPTABLE,
            "responses are JSON: send `accept: application/json, text/event-stream`",
        ));
    }
    let problem = if !is_json(headers) {
        "the body is not JSON by its content type: send `content-type: application/json`"
    } else if !is_charset_accepted(media_type(headers)) {
        "the charset of the body is not accepted: send UTF-8; UTF-16, Latin-1 and Shift_JIS are read, too"
    } else {
        return None;
    };
    Some((StatusCode::UNSUPPORTED_MEDIA_TYPE, problem))
}
