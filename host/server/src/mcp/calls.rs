//! Running calls of tools, so that a client can cancel one with another request.
//!
//! Clients of protocol versions before 2026-07-28 cancel a call with a notification that names its
//! request and is sent over the same connection. The server that receives it may not be the one that
//! runs the call, and passes it on to the others. Later clients close the stream of the response.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use rmcp::model::ClientCapabilities;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Notify;

use super::connecting::opens_urls;
use crate::Server;

/// Maximum bytes of a message that is read for its method.
const MAX_NOTIFICATION_BYTES: usize = 16 << 10;

/// The running calls of this server, by connection and request.
#[derive(Default)]
pub(crate) struct Calls(Mutex<HashMap<CallKey, Arc<Notify>>>);

/// Id of a connection, and id of a request on it.
type CallKey = (String, String);

/// A running call. Dropping it ends the call.
pub(super) struct RunningCall<'a> {
    calls: &'a Calls,
    key: Option<CallKey>,
    /// Notified when the client cancels the call.
    pub cancelled: Arc<Notify>,
}

impl Calls {
    /// Registers a call. A client without a connection cancels it only by disconnecting.
    pub(super) fn begin(&self, connection: Option<&str>, request: String) -> RunningCall<'_> {
        let cancelled = Arc::new(Notify::new());
        let key = connection.map(|connection| (connection.to_owned(), request));
        if let Some(key) = &key {
            self.0.lock().insert(key.clone(), cancelled.clone());
        }
        RunningCall {
            calls: self,
            key,
            cancelled,
        }
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

/// Cancels a call of this server or another one.
pub(super) async fn cancel(server: &Server, connection: &str, request: String) {
    let key = (connection.to_owned(), request);
    if server.mcp_calls.cancel(&key) {
        return;
    }
    let message = serde_json::json!(key).to_string();
    if let Err(cause) = server.app.send_message(&message).await {
        tracing::warn!(%cause, "the cancellation of a call is not passed on to other servers");
    }
}

/// Cancels the calls whose cancellations other servers pass on. Never returns.
pub(crate) async fn watch_cancellations(server: &Server) {
    loop {
        let message = server.app.message().await;
        if let Ok(key) = serde_json::from_str::<CallKey>(&message) {
            server.mcp_calls.cancel(&key);
        }
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        let mut calls = self.calls.0.lock();
        // A later call may have the same key.
        if let Some(key) = &self.key
            && calls
                .get(key)
                .is_some_and(|own| Arc::ptr_eq(own, &self.cancelled))
        {
            calls.remove(key);
        }
    }
}

#[derive(Deserialize)]
struct Message {
    method: String,
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

/// A connection that a client opens.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OpenedConnection {
    /// True if the client opens addresses for its user.
    pub opens_urls: bool,
}

fn message(bytes: &[u8]) -> Option<Message> {
    if bytes.len() > MAX_NOTIFICATION_BYTES {
        return None;
    }
    serde_json::from_slice(bytes).ok()
}

/// Returns the id of the request that a notification cancels, as JSON text.
pub(super) fn cancelled(bytes: &[u8]) -> Option<String> {
    let message = message(bytes)?;
    let id = message.params.request_id?;
    (message.method == "notifications/cancelled").then(|| id.to_string())
}

/// Returns the connection that a message opens.
pub(super) fn opened_connection(bytes: &[u8]) -> Option<OpenedConnection> {
    let message = message(bytes).filter(|message| message.method == "initialize")?;
    Some(OpenedConnection {
        opens_urls: opens_urls(&message.params.capabilities),
    })
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn only_the_named_call_is_cancelled() {
        let calls = Calls::default();
        let one = calls.begin(Some("a"), "1".to_owned());
        let other = calls.begin(Some("b"), "1".to_owned());
        let [first, second] = ["1", "1"].map(|id| calls.begin(None, id.to_owned()));
        let notification =
            br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        let request = cancelled(notification).unwrap();
        assert!(calls.cancel(&("a".to_owned(), request)));
        one.cancelled.notified().await;
        for running in [&other, &first, &second] {
            assert!(running.cancelled.notified().now_or_never().is_none());
        }
        drop((one, other, first, second));
        assert!(calls.0.lock().is_empty());
    }

    #[test]
    fn other_messages_cancel_nothing() {
        assert_eq!(
            cancelled(br#"{"method":"ping","params":{"requestId":1}}"#),
            None
        );
        assert_eq!(cancelled(br#"{"method":"notifications/cancelled"}"#), None);
        assert_eq!(cancelled(b"[]"), None);
    }

    #[test]
    fn connection_knows_if_its_client_opens_urls() {
        let opened = |capabilities: &str| {
            let params = format!(r#"{{"capabilities":{capabilities}}}"#);
            let message = format!(r#"{{"method":"initialize","params":{params}}}"#);
            opened_connection(message.as_bytes()).map(|opened| opened.opens_urls)
        };
        assert_eq!(opened("{}"), Some(false));
        assert_eq!(opened(r#"{"elicitation":{}}"#), Some(false));
        assert_eq!(opened(r#"{"elicitation":{"url":{}}}"#), Some(true));
        assert_eq!(opened_connection(br#"{"method":"ping"}"#), None);
    }
}
