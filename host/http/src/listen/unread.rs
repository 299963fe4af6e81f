//! Bodies of requests that are answered before they are read, for example without a valid key.
//!
//! Problem: hyper reads on after such a body only if all of it has arrived when the response is made.
//! Otherwise it closes the connection without an announcement, and the next request of the client fails.
//!
//! A short rest of a body is therefore read before the response is sent. If it is longer, or does not
//! arrive in time, the response announces that the connection ends.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, HttpBody},
    http::{HeaderMap, HeaderValue, Request, Response, Version, header},
};
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming, SizeHint};
use parking_lot::Mutex;
use tokio::time::timeout;

/// Maximum bytes of a body that are read only to keep the connection.
pub const MAX_DISCARDED_BYTES: usize = 64 << 10;
/// Time in which the rest of a body has to arrive.
pub const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

/// The body of a request, after it was dropped before its end.
type Unread = Arc<Mutex<Option<Incoming>>>;

/// Remainder of the body of a request on a connection that its client wants to keep.
pub(super) struct Remainder {
    unread: Unread,
    /// True if the client sends the body only after the server has asked for it.
    is_withheld: bool,
}

/// Body of a request, which is kept if it is dropped before its end.
struct KeptBody {
    /// `None` after the end.
    body: Option<Incoming>,
    unread: Unread,
}

/// Returns the request with a body whose remainder is kept, and the remainder: `None` if the body is empty,
/// or if the connection ends after the request anyway.
pub(super) fn keep_remainder(request: Request<Incoming>) -> (Request<Body>, Option<Remainder>) {
    let is_last = request.version() != Version::HTTP_11 || asks_to_close(request.headers());
    if is_last || request.body().is_end_stream() {
        return (request.map(Body::new), None);
    }
    let unread = Unread::default();
    let remainder = Remainder {
        unread: unread.clone(),
        is_withheld: request.headers().contains_key(header::EXPECT),
    };
    let kept = request.map(|body| {
        let body = Some(body);
        Body::new(KeptBody { body, unread })
    });
    (kept, Some(remainder))
}

/// Returns true if a client closes its connection after a request.
fn asks_to_close(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONNECTION)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"))
}

/// Reads what the answer has left of the body of its request, or announces in the response that the
/// connection ends.
pub(super) async fn settle<B>(
    remainder: Option<Remainder>,
    mut response: Response<B>,
) -> Response<B> {
    let Some(remainder) = remainder else {
        return response;
    };
    let unread = Arc::into_inner(remainder.unread).and_then(Mutex::into_inner);
    if let Some(body) = unread
        && (remainder.is_withheld || !Box::pin(discard(body)).await)
    {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    response
}

/// Reads a body to its end. Returns false if it is too long, too slow or broken.
async fn discard(mut body: Incoming) -> bool {
    if body.size_hint().lower() > MAX_DISCARDED_BYTES as u64 {
        return false;
    }
    let reading = async {
        let mut discarded = 0;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                return false;
            };
            discarded += frame.data_ref().map_or(0, Bytes::len);
            if discarded > MAX_DISCARDED_BYTES {
                return false;
            }
        }
        true
    };
    timeout(DISCARD_TIMEOUT, reading).await.unwrap_or(false)
}

impl HttpBody for KeptBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let frame = Pin::new(body).poll_frame(cx);
        if matches!(frame, Poll::Ready(None)) {
            self.body = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref();
        body.map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for KeptBody {
    fn drop(&mut self) {
        if !self.is_end_stream() {
            *self.unread.lock() = self.body.take();
        }
    }
}
