//! Running calls of tools, so that a client can cancel one with another request.
//!
//! Clients of protocol versions before 2026-07-28 cancel a call with a notification that names its
//! request and is sent over the same connection. The server that receives it may not be the one that
//! runs the call, and passes it on to the others. Later clients close the stream of the response.
//!
//! A client chooses the ids of its connection and its requests, and may choose those of another
//! one. A notification therefore finds only calls that started at the same address with the same
//! credential.

use std::{borrow::Cow, collections::HashMap, future, sync::Arc};

use app::App;
use axum::extract::Request;
use http::ProjectKey;
use parking_lot::Mutex;
use rmcp::model::ClientCapabilities;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;

use super::{CONNECTION_ID, connecting::opens_urls};

/// Maximum bytes of a message to read for its method.
const MAX_NOTIFICATION_BYTES: usize = 16 << 10;

/// The running calls of this server, by connection and request.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<HashMap<CallKey, Arc<Notify>>>>);

/// A connection, and the id of a request on it.
type CallKey = (Connection, String);

/// A client's connection: the id that the client sends, and what else its requests have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Connection {
    pub(super) id: String,
    /// Path and query of the endpoint.
    address: String,
    /// Id of the key, or of the consent behind the access token.
    credential: Option<String>,
}

impl Connection {
    /// Returns the connection of a request, if it names one.
    pub(super) fn of(request: &Request, key: Option<&ProjectKey>) -> Option<Self> {
        let id = request.headers().get(&CONNECTION_ID)?.to_str().ok()?;
        let credential = key.map(|key| key.consent.as_ref().unwrap_or(&key.holder.key_id).clone());
        Some(Self {
            id: id.to_owned(),
            address: request.uri().to_string(),
            credential,
        })
    }
}

/// A running call. Dropping it ends the call.
pub(super) struct RunningCall {
    calls: Calls,
    key: CallKey,
    /// Notified when the client cancels the call.
    cancelled: Arc<Notify>,
}

impl Calls {
    /// Registers a call. Returns `None` for a client without a connection, which cancels its calls
    /// only by disconnecting.
    pub(super) fn begin(
        &self,
        connection: Option<&Connection>,
        request: impl FnOnce() -> String,
    ) -> Option<RunningCall> {
        let key = (connection?.clone(), request());
        let cancelled = Arc::new(Notify::new());
        self.0.lock().insert(key.clone(), cancelled.clone());
        Some(RunningCall {
            calls: self.clone(),
            key,
            cancelled,
        })
    }

    /// Cancels a call of this server. Returns false if it is not running here.
    fn cancel(&self, key: &CallKey) -> bool {
        let cancelled = self.0.lock().remove(key);
        if let Some(cancelled) = &cancelled {
            cancelled.notify_one();
        }
        cancelled.is_some()
    }
}

/// Waits until the client cancels a call. Never returns if the call is not registered.
pub(super) async fn cancellation(running: Option<&RunningCall>) {
    match running {
        Some(running) => running.cancelled.notified().await,
        None => future::pending().await,
    }
}

/// Cancels a call of this server or another one.
pub(super) async fn cancel(app: &App, calls: &Calls, connection: &Connection, request: String) {
    let key = (connection.clone(), request);
    if calls.cancel(&key) {
        return;
    }
    let message = serde_json::json!(key).to_string();
    if let Err(cause) = app.send_message(&message).await {
        tracing::warn!(%cause, "the cancellation of a call is not passed on to other servers");
    }
}

/// Cancels the calls whose cancellations other servers pass on. Never returns.
pub(super) async fn watch_cancellations(app: &App, calls: &Calls) {
    loop {
        let message = app.message().await;
        if let Ok(key) = serde_json::from_str::<CallKey>(&message) {
            calls.cancel(&key);
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let mut calls = self.calls.0.lock();
        // A later call may have the same key.
        if calls
            .get(&self.key)
            .is_some_and(|own| Arc::ptr_eq(own, &self.cancelled))
        {
            calls.remove(&self.key);
        }
    }
}

#[derive(Deserialize)]
struct Notice<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(default)]
    params: Params,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    request_id: Option<Value>,
    #[serde(default)]
    capabilities: ClientCapabilities,
}

/// A message about a connection or its calls.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ConnectionMessage {
    /// The client cancels the request with this id, as JSON text.
    Cancel(String),
    /// The client opens a connection.
    Open {
        /// True if the client opens addresses for its user.
        opens_urls: bool,
    },
    /// The client subscribes to changes of the list of tools.
    Listen,
}

impl ConnectionMessage {
    /// Reads a message. Returns `None` if it is about something else.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > MAX_NOTIFICATION_BYTES {
            return None;
        }
        let Notice { method, params } = serde_json::from_slice(bytes).ok()?;
        match &*method {
            "notifications/cancelled" => Some(Self::Cancel(params.request_id?.to_string())),
            "initialize" => Some(Self::Open {
                opens_urls: opens_urls(&params.capabilities),
            }),
            "subscriptions/listen" => Some(Self::Listen),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn only_the_named_call_is_cancelled() {
        let calls = Calls::default();
        let connection = |id: &str, address: &str, credential: &str| Connection {
            id: id.to_owned(),
            address: address.to_owned(),
            credential: Some(credential.to_owned()),
        };
        let named = connection("a", "/mcp/one", "key");
        let begin = |connection: Option<&Connection>| calls.begin(connection, || "1".to_owned());
        let one = begin(Some(&named));
        let others = [
            begin(Some(&connection("b", "/mcp/one", "key"))),
            begin(Some(&connection("a", "/mcp/two", "key"))),
            begin(Some(&connection("a", "/mcp/one", "other"))),
            begin(None),
            begin(None),
        ];
        let notification =
            br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        let Some(ConnectionMessage::Cancel(request)) = ConnectionMessage::read(notification) else {
            panic!("it cancels a call")
        };
        assert!(calls.cancel(&(named, request)));
        cancellation(one.as_ref()).await;
        for running in &others {
            assert!(cancellation(running.as_ref()).now_or_never().is_none());
        }
        drop((one, others));
        assert!(calls.0.lock().is_empty());
    }

    #[test]
    fn other_messages_cancel_nothing() {
        for message in [
            r#"{"method":"ping","params":{"requestId":1}}"#,
            r#"{"method":"notifications/cancelled"}"#,
            "[]",
        ] {
            assert_eq!(
                ConnectionMessage::read(message.as_bytes()),
                None,
                "{message}"
            );
        }
    }

    #[test]
    fn connection_knows_if_its_client_opens_urls() {
        for (capabilities, opens_urls) in [
            ("{}", false),
            (r#"{"elicitation":{}}"#, false),
            (r#"{"elicitation":{"url":{}}}"#, true),
        ] {
            let params = format!(r#"{{"capabilities":{capabilities}}}"#);
            let message = format!(r#"{{"method":"initialize","params":{params}}}"#);
            let opened = ConnectionMessage::read(message.as_bytes());
            assert_eq!(opened, Some(ConnectionMessage::Open { opens_urls }));
        }
    }
}
