//! Numbers of requests of a connection, which tell whether it waits for the next one.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

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
