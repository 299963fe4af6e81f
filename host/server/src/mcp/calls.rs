//! Running calls of tools, so that a client can cancel one with another request.
//!
//! Clients of protocol versions before 2026-07-28 cancel a call with a notification that names its
//! request and is sent over the same connection. The server that receives it may not be the one that
//! runs the call, and passes it on to the others. Later clients close the stream of the response.

use std::collections::HashMap;

use parking_lot::Mutex;
use rmcp::model::ClientCapabilities;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;

use super::connecting::opens_urls;
use crate::Server;

/// Maximum bytes of a message that is read for its method.
const MAX_NOTIFICATION_BYTES: usize = 16 << 10;

/// The running calls of this server, by connection and request.
#[derive(Default)]
pub(crate) struct Calls(Mutex<HashMap<CallKey, oneshot::Sender<()>>>);

/// Id of a connection, and id of a request on it.
type CallKey = (String, String);

/// A running call. Dropping it ends the call.
pub(super) struct RunningCall<'a> {
    calls: &'a Calls,
    key: CallKey,
    /// Resolves when the client cancels the call.
    pub cancelled: oneshot::Receiver<()>,
}

impl Calls {
    /// Registers a call.
    pub(super) fn begin(&self, connection: &str, request: String) -> RunningCall<'_> {
        let key = (connection.to_owned(), request);
        let (cancel, cancelled) = oneshot::channel();
        self.0.lock().insert(key.clone(), cancel);
        RunningCall {
            calls: self,
            key,
            cancelled,
        }
    }

    /// Cancels a call of this server. Returns false if it is not running here.
    fn cancel(&self, key: &CallKey) -> bool {
        let cancel = self.0.lock().remove(key);
        // The call may have ended at this moment.
        cancel.is_some_and(|cancel| cancel.send(()).is_ok())
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
        self.calls.0.lock().remove(&self.key);
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
    use super::*;

    #[test]
    fn only_the_named_call_is_cancelled() {
        let calls = Calls::default();
        let mut one = calls.begin("a", "1".to_owned());
        let mut other = calls.begin("b", "1".to_owned());
        let notification =
            br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        let request = cancelled(notification).unwrap();
        assert!(calls.cancel(&("a".to_owned(), request)));
        assert!(one.cancelled.try_recv().is_ok());
        assert!(other.cancelled.try_recv().is_err());
        drop((one, other));
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
