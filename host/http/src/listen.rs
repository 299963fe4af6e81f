//! Accepts connections within limits, serves them by HTTP/1.1, and lets them finish when the server
//! stops.
//!
//! The listener of a framework has no limit on connections per address, on header size or on slow
//! headers. This module implements these limits on top of hyper.

mod paced;
mod requests;
mod unread;

use std::{
    convert::Infallible,
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use app::core::shares::TaskOwner;
use axum::Router;
use futures::FutureExt;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::timeout,
};

pub use self::unread::{DISCARD_TIMEOUT, MAX_DISCARDED_BYTES};
use self::{
    paced::Paced,
    requests::{CountedBody, RequestCounts},
    unread::{keep_remainder, settle},
};
use crate::{
    Server,
    answer::{Connection, answer},
    forwarded,
    limiter::counted_as,
};

/// Maximum bytes of the request line and the headers that are read. hyper answers a longer head with
/// a status alone.
const MAX_READ_HEAD_BYTES: usize = 24 << 10;
/// Pause before the next accept after the system refused one, for example because no file
/// descriptors are left.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `stop` is set, then waits at most `drain` for open connections to finish.
pub async fn serve(
    listener: TcpListener,
    server: Arc<Server>,
    router: Router,
    mut stop: watch::Receiver<bool>,
    drain: Duration,
) {
    let addresses = &server.connections_by_address;
    let mut connections = JoinSet::new();
    loop {
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
        // An idle listener holds no permit, because another one may need it.
        let permit = tokio::select! {
            permit = server.connections.clone().acquire_owned() => permit,
            () = stopped(&mut stop) => break,
        };
        // Its next request is most likely of the project of the last one.
        let task = Arc::new(TaskOwner::default());
        let connection = Arc::new(Connection {
            server: server.clone(),
            router: router.clone(),
            peer,
            task: task.clone(),
        });
        let served = serve_connection(stream, connection, stop.clone());
        let served = server.app.shares.clone().run(task, served);
        connections.spawn(async move {
            served.await;
            drop((permit, counted));
        });
    }
    drop(listener);
    finish(connections, &server, drain).await;
}

/// Waits for open connections and what they left running, and cuts those that do not finish in time.
async fn finish(mut connections: JoinSet<()>, server: &Server, drain: Duration) {
    let finished = timeout(drain, async {
        while connections.join_next().await.is_some() {}
        server.detached.finish().await;
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

async fn serve_connection(
    stream: TcpStream,
    connection: Arc<Connection>,
    stop: watch::Receiver<bool>,
) {
    // Responses are small and complete: waiting to fill a packet would only add latency.
    if let Err(cause) = stream.set_nodelay(true) {
        tracing::debug!(%cause, "cannot set TCP_NODELAY");
    }
    let peer = connection.peer;
    let counts = Arc::new(RequestCounts::default());
    let stream = Paced::new(stream, &connection.server, counts.clone());
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let open = counts.begin();
        let (request, remainder) = keep_remainder(request);
        let answered = answer(connection.clone(), request);
        answered
            .then(|response| settle(remainder, response))
            .map(|response| Ok::<_, Infallible>(response.map(|body| CountedBody::new(body, open))))
    });
    // The stream itself limits the time of a head: hyper would make a timer for each request.
    let served = http1::Builder::new()
        .header_read_timeout(None::<Duration>)
        .max_buf_size(MAX_READ_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut served = pin!(served);
    let ended = until_stopped(served.as_mut(), stop).await;
    let ended = match ended {
        Some(ended) => ended,
        None => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(cause) = ended {
        tracing::debug!(%peer, %cause, "a connection ended early");
    }
}

/// Waits for the end of a connection, or for the stop signal. Returns none for the latter.
///
/// All connections share the lock of the signal. Its future is polled once for each task that polls the
/// connection, and again when the signal has changed.
async fn until_stopped<F: Future>(
    mut served: Pin<&mut F>,
    mut stop: watch::Receiver<bool>,
) -> Option<F::Output> {
    let changes = stop.clone();
    let mut stopped = pin!(stopped(&mut stop));
    let mut waiting = None::<Waker>;
    poll_fn(|cx| {
        if let Poll::Ready(ended) = served.as_mut().poll(cx) {
            return Poll::Ready(Some(ended));
        }
        let is_waiting = waiting
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()));
        if is_waiting && matches!(changes.has_changed(), Ok(false)) {
            return Poll::Pending;
        }
        waiting = Some(cx.waker().clone());
        stopped.as_mut().poll(cx).map(|()| None)
    })
    .await
}

/// Waits for the stop signal, or until its sender is dropped.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A stop signal and a dropped sender have the same effect.
    let _ = stop.wait_for(|stop| *stop).await;
}
