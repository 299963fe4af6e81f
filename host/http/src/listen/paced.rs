//! Connections that end when their client reads responses or sends heads too slowly.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use settings::PACE_WINDOW;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep},
};

use super::requests::RequestCounts;
use crate::Server;

/// Connection that ends when its client reads a response too slowly: fewer than `pace` bytes in
/// [`PACE_WINDOW`], or not everything within `longest`. The time counts from the client's first
/// stall until everything is written. It also ends when the next request, or the whole head of one,
/// does not arrive within `idle`.
pub(super) struct Paced {
    counts: Arc<RequestCounts>,
    /// Number of requests when everything was last written; none if one of them was still being
    /// answered.
    settled: Option<u64>,
    stream: TcpStream,
    pace: usize,
    longest: Duration,
    idle: Duration,
    /// Bytes written since the window began.
    written: usize,
    stall: Option<Stall>,
    head: Option<HeadWait>,
}

/// Stall of a client that makes the server wait.
struct Stall {
    since: Instant,
    window: Pin<Box<Sleep>>,
}

/// Wait for the head of a request. The connection has one timer for all of them, which is moved only
/// when it fires.
struct HeadWait {
    /// Number of requests before this one.
    requests: Option<u64>,
    since: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Paced {
    /// Wraps a new connection.
    pub(super) fn new(stream: TcpStream, server: &Server, counts: Arc<RequestCounts>) -> Self {
        Self {
            pace: server.config.limits.pace(),
            longest: server.config.files.transfer(),
            idle: server.config.limits.idle(),
            counts,
            settled: Some(0),
            stream,
            written: 0,
            stall: None,
            head: None,
        }
    }

    /// Returns true if no request came since everything was written.
    fn is_settled(&self) -> bool {
        self.settled.is_some() && self.settled == self.counts.settled()
    }

    /// Waits for the head of the next request. Parts of a head do not extend the wait.
    fn wait_for_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let idle = self.idle;
        let requests = self.settled;
        let head = self.head.get_or_insert_with(|| HeadWait {
            requests,
            since: Instant::now(),
            timer: Box::pin(sleep(idle)),
        });
        if head.requests != requests {
            head.requests = requests;
            head.since = Instant::now();
        }
        while head.timer.as_mut().poll(cx).is_ready() {
            if head.since.elapsed() >= idle {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            head.timer.as_mut().reset(head.since + idle);
        }
        Poll::Pending
    }

    /// Fails a write that the client has stalled for too long.
    fn judge(
        &mut self,
        cx: &mut Context<'_>,
        outcome: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = outcome {
            self.written += bytes;
        }
        if outcome.is_ready() {
            return outcome;
        }
        let stall = self.stall.get_or_insert_with(|| {
            self.written = 0;
            Stall {
                since: Instant::now(),
                window: Box::pin(sleep(PACE_WINDOW)),
            }
        });
        while stall.window.as_mut().poll(cx).is_ready() {
            if self.written < self.pace || stall.since.elapsed() >= self.longest {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.written = 0;
            stall.window.as_mut().reset(Instant::now() + PACE_WINDOW);
        }
        Poll::Pending
    }
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if read.is_pending() && self.is_settled() {
            return self.wait_for_head(cx);
        }
        read
    }
}

impl AsyncWrite for Paced {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.judge(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Resets the stall; hyper flushes when everything is written. After a response, the wait for the
    /// next head begins here: hyper does not read again until more bytes arrive.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stall = None;
        let settled = self.counts.settled();
        if settled != self.settled {
            self.settled = settled;
            if settled.is_some()
                && let Poll::Ready(Err(cause)) = self.wait_for_head(cx)
            {
                return Poll::Ready(Err(cause));
            }
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
