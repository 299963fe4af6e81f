//! Bodies for the responses to heads that hyper rejects.
//!
//! hyper itself answers a head that is not HTTP/1.1 or is too long, before any code of this server
//! runs and without a body. Such a response is replaced on its way to the client. It is recognized
//! by the state of the connection: hyper writes nothing else while no request is open.

use std::{
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use futures::FutureExt;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};

use crate::{
    Server,
    http::{answer, error::HttpError},
};

/// Header of hyper's response that the replacement has another value for.
const REPLACED_LINE: &str = "content-length: 0\r\n";

/// Numbers of requests of a connection that were begun and answered.
#[derive(Debug, Default)]
pub(super) struct RequestCounts {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// A request that is being answered, until it is dropped.
pub(super) struct OpenRequest(Arc<RequestCounts>);

impl RequestCounts {
    pub(super) fn begin(self: &Arc<Self>) -> OpenRequest {
        self.begun.fetch_add(1, Ordering::Relaxed);
        OpenRequest(Arc::clone(self))
    }

    /// Returns the number of requests so far if each of them is answered.
    pub(super) fn settled(&self) -> Option<u64> {
        let begun = self.begun.load(Ordering::Relaxed);
        (begun == self.ended.load(Ordering::Relaxed)).then_some(begun)
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// Body of a response, which ends its request.
pub(super) struct CountedBody {
    body: Body,
    _open: OpenRequest,
}

impl CountedBody {
    pub(super) fn new(body: Body, open: OpenRequest) -> Self {
        Self { body, _open: open }
    }
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Returns the response that replaces one of hyper.
pub(super) fn replacement(server: &Arc<Server>, peer: IpAddr, written: &[u8]) -> Option<Bytes> {
    let head = std::str::from_utf8(written).ok()?;
    let error = match head.split(' ').nth(1)? {
        "431" => HttpError::LongHead,
        "400" => HttpError::BadHead,
        _ => return None,
    };
    let head = head.strip_suffix("\r\n")?.replace(REPLACED_LINE, "");
    let (parts, body) = answer::refuse(server, peer, error).into_parts();
    let body = body.collect().now_or_never()?.ok()?.to_bytes();
    let mut response = head.into_bytes();
    for (name, value) in &parts.headers {
        response.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    response.extend(format!("content-length: {}\r\n\r\n", body.len()).into_bytes());
    response.extend(body);
    Some(response.into())
}
