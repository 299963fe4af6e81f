//! Running calls of tools, so that a client can cancel one with another request.
//!
//! Clients of protocol versions before 2026-07-28 cancel a call with a notification that names its
//! request and is sent over the same connection. Later ones close the stream of the response.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;

/// Maximum bytes of a message that is read for the method of its notification.
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

    /// Cancels a call, if it is running.
    pub(super) fn cancel(&self, connection: &str, request: &str) {
        let key = (connection.to_owned(), request.to_owned());
        if let Some(cancel) = self.0.lock().remove(&key) {
            // The call may have ended at this moment.
            let _ = cancel.send(());
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

/// Returns true if a message begins a connection.
pub(super) fn is_initialize(bytes: &[u8]) -> bool {
    message(bytes).is_some_and(|message| message.method == "initialize")
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
        calls.cancel("a", &cancelled(notification).unwrap());
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
        assert!(is_initialize(br#"{"method":"initialize","params":{}}"#));
    }
}
