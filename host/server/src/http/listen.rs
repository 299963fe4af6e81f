//! Accepts connections within limits, serves them by HTTP/1.1, and lets them finish when the server
//! stops.
//!
//! The listener of a framework has no limit on connections per address, on header size or on slow
//! headers. This module implements these limits on top of hyper.

use std::{
    io::{self, IoSlice},
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use app::core::{keyed_limit::KeyedLimit, shares::TaskOwner};
use axum::{Router, body::Body};
use bytes::Bytes;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{Instant, Sleep, sleep, timeout},
};

use crate::{
    Server,
    config::PACE_WINDOW,
    http::{
        answer, forwarded,
        limiter::counted_as,
        rejected_head::{self, CountedBody, RequestCounts},
    },
};

/// Maximum bytes of the request line and the headers that are read. hyper rejects a longer head.
const MAX_READ_HEAD_BYTES: usize = 24 << 10;
/// Pause before the next accept after the system refused one, for example because no file
/// descriptors are left.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop` is set, then waits at most `drain` for open connections to finish.
pub(crate) async fn serve(
    listener: TcpListener,
    server: Arc<Server>,
    router: Router,
    mut stop: watch::Receiver<bool>,
    drain: Duration,
) {
    let limits = &server.config.limits;
    let places = Arc::new(Semaphore::new(limits.connections));
    let addresses = KeyedLimit::new(limits.connections_per_address);
    let mut connections = JoinSet::new();
    loop {
        let permit = tokio::select! {
            permit = places.clone().acquire_owned() => permit,
            () = stopped(&mut stop) => break,
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stop) => break,
        };
        while connections.try_join_next().is_some() {}
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(cause) => {
                tracing::warn!(%cause, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
                continue;
            }
        };
        // A socket that listens on IPv6 reports IPv4 clients as IPv4-mapped addresses.
        let peer = peer.ip().to_canonical();
        // All clients of a proxy share its address, so proxies are not counted.
        let counted = if forwarded::is_trusted(peer, &server.trusted_proxies) {
            None
        } else {
            // The connection is closed at once if its address has too many.
            let Some(counted) = addresses.try_acquire(&counted_as(peer)) else {
                continue;
            };
            Some(counted)
        };
        // Its next request is most likely of the project of the last one.
        let owner = Arc::new(TaskOwner::default());
        let connection = connection(
            stream,
            peer,
            server.clone(),
            router.clone(),
            owner.clone(),
            stop.clone(),
        );
        let connection = server.app.shares.clone().run(owner, connection);
        connections.spawn(async move {
            connection.await;
            drop((permit, counted));
        });
    }
    drop(listener);
    let finished = timeout(drain, async {
        while connections.join_next().await.is_some() {}
        let mut detached = server.detached.take();
        while detached.join_next().await.is_some() {}
    })
    .await;
    if finished.is_err() {
        tracing::warn!(
            connections = connections.len(),
            "connections are cut: they did not finish in time"
        );
        connections.shutdown().await;
    }
}

async fn connection(
    stream: TcpStream,
    peer: IpAddr,
    server: Arc<Server>,
    router: Router,
    owner: Arc<TaskOwner>,
    mut stop: watch::Receiver<bool>,
) {
    // Responses are small and complete: waiting to fill a packet would only add latency.
    if let Err(cause) = stream.set_nodelay(true) {
        tracing::debug!(%cause, "cannot set TCP_NODELAY");
    }
    let idle = server.config.limits.idle();
    let counts = Arc::new(RequestCounts::default());
    let stream = Paced {
        server: server.clone(),
        peer,
        counts: counts.clone(),
        settled: Some(0),
        replacement: None,
        stream,
        pace: server.config.limits.pace(),
        longest: server.config.files.transfer(),
        written: 0,
        stall: None,
    };
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let server = server.clone();
        let owner = owner.clone();
        let open = counts.begin();
        let answer = answer::answer(server, router.clone(), peer, owner, request.map(Body::new));
        async move {
            let response = answer.await.map(|body| CountedBody::new(body, open));
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        .max_buf_size(MAX_READ_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = async {
        tokio::select! {
            ended = connection.as_mut() => ended,
            () = stopped(&mut stop) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    };
    if let Err(cause) = ended.await {
        tracing::debug!(%peer, %cause, "a connection ended early");
    }
}

/// Connection that ends when its client reads a response too slowly: fewer than `pace` bytes in
/// [`PACE_WINDOW`], or not everything within `longest`. The time counts from the client's first
/// stall until everything is written. A response of hyper to a head that it rejects is replaced.
struct Paced {
    server: Arc<Server>,
    peer: IpAddr,
    counts: Arc<RequestCounts>,
    /// Number of requests when everything was last written; none if one of them was still being
    /// answered.
    settled: Option<u64>,
    /// Rest of the response that is written in place of hyper's.
    replacement: Option<Bytes>,
    stream: TcpStream,
    pace: usize,
    longest: Duration,
    /// Bytes written since the window began.
    written: usize,
    stall: Option<Stall>,
}

/// Stall of a client that makes the server wait.
struct Stall {
    since: Instant,
    window: Pin<Box<Sleep>>,
}

impl Paced {
    /// Returns true if no request came since everything was written.
    fn is_settled(&self) -> bool {
        self.settled.is_some() && self.settled == self.counts.settled()
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
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Paced {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // While no request is open, hyper writes only responses to heads that it rejects.
        if self.replacement.is_none() && self.is_settled() {
            self.replacement = rejected_head::replacement(&self.server, self.peer, bytes);
        }
        while let Some(rest) = self.replacement.clone() {
            if rest.is_empty() {
                return Poll::Ready(Ok(bytes.len()));
            }
            let outcome = Pin::new(&mut self.stream).poll_write(cx, &rest);
            match self.judge(cx, outcome) {
                Poll::Ready(Ok(written)) if written > 0 => {
                    self.replacement = Some(rest.slice(written..));
                }
                ended => return ended,
            }
        }
        let outcome = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [whole] = parts {
            return self.poll_write(cx, whole);
        }
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.judge(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Resets the stall; hyper flushes when everything is written.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stall = None;
        self.settled = self.counts.settled();
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Waits for the stop signal, or until its sender is dropped.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A stop signal and a dropped sender have the same effect.
    let _ = stop.wait_for(|stop| *stop).await;
}
