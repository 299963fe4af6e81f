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

use tower::Service;

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

/// Connector with the settings of its request.
#[derive(Clone)]
pub(crate) struct SettingsConnector<S>(S);

/// Error for a connection that was not established in time.
#[derive(Debug, thiserror::Error)]
#[error("the connection was not established in time")]
pub(crate) struct ConnectTimeout;

impl<S> tower::Layer<S> for ConnectSettingsLayer {
    type Service = SettingsConnector<S>;

    fn layer(&self, inner: S) -> SettingsConnector<S> {
        SettingsConnector(inner)
    }
}

impl<S, R> Service<R> for SettingsConnector<S>
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
        let default_settings = ConnectSettings {
            timeout: Duration::from_secs(5),
            tenant: None,
        };
        let settings = CONNECT_SETTINGS
            .try_with(ConnectSettings::clone)
            .unwrap_or(default_settings);
        let timeout = settings.timeout;
        let connecting = CONNECT_SETTINGS.scope(settings, self.0.call(request));
        Box::pin(async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(ConnectTimeout.into()),
            }
        })
    }
}
