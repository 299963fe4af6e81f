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
    static LIMIT: Duration;
}

/// Runs `request` with a connect timeout of `limit`.
pub(crate) async fn within<F: Future>(limit: Duration, request: F) -> F::Output {
    LIMIT.scope(limit, request).await
}

/// Layer that adds the timeout to the connector.
#[derive(Clone)]
pub(crate) struct Layer;

/// Connector with a timeout.
#[derive(Clone)]
pub(crate) struct Limited<S>(S);

/// Error for a connection that was not established in time.
#[derive(Debug)]
pub(crate) struct TooSlow;

impl<S> tower::Layer<S> for Layer {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Limited<S> {
        Limited(inner)
    }
}

impl<S, R> Service<R> for Limited<S>
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
        let limit = LIMIT
            .try_with(|limit| *limit)
            .unwrap_or(Duration::from_secs(5));
        let connecting = self.0.call(request);
        Box::pin(async move {
            match tokio::time::timeout(limit, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(TooSlow.into()),
            }
        })
    }
}

impl fmt::Display for TooSlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection did not stand in time")
    }
}

impl StdError for TooSlow {}
