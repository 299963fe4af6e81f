//! Responses that are streams of server-sent events.

use std::{convert::Infallible, time::Duration};

use axum::{
    http::{HeaderName, HeaderValue},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures::Stream;

/// Interval of comments that keep an idle connection open.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Header with `no` that makes nginx, and proxies like it, pass each event on immediately.
static BUFFERING_HEADER: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Answers with a stream of events, which no proxy holds back.
pub fn event_stream(
    events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
) -> Response {
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE_INTERVAL);
    let mut response = Sse::new(events).keep_alive(keep_alive).into_response();
    let headers = response.headers_mut();
    headers.insert(BUFFERING_HEADER.clone(), HeaderValue::from_static("no"));
    response
}
