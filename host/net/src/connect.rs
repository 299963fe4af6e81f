//! Settings of a request for the connection that it opens: its timeout, and the tenant for which
//! names are looked up.
//!
//! The HTTP client supports one connect timeout for all requests, and tells its resolver only a
//! name. The settings of the request that first needs a connection reach the connector through a
//! task-local value, because the client calls the connector while that request polls it. The
//! connector keeps them for the connection, which the client may move to another task.

use std::{
    error::Error as StdError,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tower::{Service, ServiceExt};

type BoxError = Box<dyn StdError + Send + Sync>;

tokio::task_local! {
    static CONNECT_SETTINGS: ConnectSettings;
}

/// Settings of a request for the connection that it opens.
#[derive(Clone)]
pub(crate) struct ConnectSettings {
    pub(crate) timeout: Duration,
    pub(crate) tenant: Option<Arc<str>>,
}

/// Runs `request` with settings for its connection.
pub(crate) async fn with_connect_settings<F: Future>(
    settings: ConnectSettings,
    request: F,
) -> F::Output {
    CONNECT_SETTINGS.scope(settings, request).await
}

/// Returns the tenant of the request for which a connection is being opened.
pub(crate) fn current_tenant() -> Option<Arc<str>> {
    let tenant = CONNECT_SETTINGS.try_with(|settings| settings.tenant.clone());
    tenant.ok().flatten()
}

/// Layer that adds the settings to the connector.
#[derive(Clone)]
pub(crate) struct ConnectSettingsLayer;

/// Connector with the settings of its request. The HTTP client clones it several times for each request, also
/// for one that uses an open connection, so the clones share the inner connector.
#[derive(Clone)]
pub(crate) struct SettingsConnector<S>(Arc<S>);

/// Error for a connection that was not established in time.
#[derive(Debug, thiserror::Error)]
#[error("the connection was not established in time")]
pub(crate) struct ConnectTimeout;

impl<S> tower::Layer<S> for ConnectSettingsLayer {
    type Service = SettingsConnector<S>;

    fn layer(&self, inner: S) -> SettingsConnector<S> {
        SettingsConnector(Arc::new(inner))
    }
}

impl<S, R> Service<R> for SettingsConnector<S>
where
    R: Send + 'static,
    S: Service<R, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // The inner connector is waited for in the call.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: R) -> Self::Future {
        let default_settings = ConnectSettings {
            timeout: Duration::from_secs(5),
            tenant: None,
        };
        let settings = CONNECT_SETTINGS
            .try_with(ConnectSettings::clone)
            .unwrap_or(default_settings);
        let timeout = settings.timeout;
        let inner = S::clone(&self.0);
        let connecting = CONNECT_SETTINGS.scope(settings, inner.oneshot(request));
        Box::pin(async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(ConnectTimeout.into()),
            }
        })
    }
}
