//! Per-request connect timeout.
//!
//! The HTTP client supports one connect timeout for all requests. The timeout of the request that
//! first needs a connection reaches the connector through a task-local value, because the client
//! calls the connector while that request polls it.

use std::{
    error::Error as StdError,
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tower::Service;

type BoxError = Box<dyn StdError + Send + Sync>;

tokio::task_local! {
    static CONNECT_TIMEOUT: Duration;
}

/// Runs `request` with a connect timeout of `timeout`.
pub(crate) async fn with_connect_timeout<F: Future>(timeout: Duration, request: F) -> F::Output {
    CONNECT_TIMEOUT.scope(timeout, request).await
}

/// Layer that adds the timeout to the connector.
#[derive(Clone)]
pub(crate) struct ConnectTimeoutLayer;

/// Connector with a timeout.
#[derive(Clone)]
pub(crate) struct TimeoutConnector<S>(S);

/// Error for a connection that was not established in time.
#[derive(Debug)]
pub(crate) struct ConnectTimeout;

impl<S> tower::Layer<S> for ConnectTimeoutLayer {
    type Service = TimeoutConnector<S>;

    fn layer(&self, inner: S) -> TimeoutConnector<S> {
        TimeoutConnector(inner)
    }
}

impl<S, R> Service<R> for TimeoutConnector<S>
where
    S: Service<R, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let timeout = CONNECT_TIMEOUT
            .try_with(|timeout| *timeout)
            .unwrap_or(Duration::from_secs(5));
        let connecting = self.0.call(request);
        Box::pin(async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(ConnectTimeout.into()),
            }
        })
    }
}

impl fmt::Display for ConnectTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection was not established in time")
    }
}

impl StdError for ConnectTimeout {}
