//! Event streams of servers that speak JSON-RPC (Model Context Protocol, streamable HTTP).
//!
//! Problem: a guest gets whole responses. A server may keep its stream open after the response to
//! the guest's request, or wait for a reply to a `ping` in the stream before it continues.
//!
//! Guarantee: a stream ends for the guest with the event that has the response. Requests of the server
//! in the stream get their replies, sent as the guest's request was.

use std::sync::Arc;

use manifest::rpc::{self, EventReader};
use net::{BodyReader, HeaderMap, header::ACCEPT};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use super::payload::Payload;

/// Media type of a stream of server-sent events.
const EVENT_STREAM: &str = "text/event-stream";
/// Maximum number of replies that wait to be sent. A server that sends more requests gets no reply to
/// some of them.
const MAX_WAITING_REPLIES: usize = 8;

/// Reader of the response to a request of JSON-RPC.
#[derive(Debug)]
pub(super) struct ResponseStream {
    /// Id of the request.
    id: Value,
    events: Mutex<EventReader>,
    replies: mpsc::Sender<Value>,
}

/// A request of JSON-RPC 2.0.
#[derive(Deserialize)]
struct Request {
    id: Value,
    #[serde(rename = "method")]
    _method: String,
}

impl ResponseStream {
    /// Returns the reader of the response to a request, and the replies that it finds due; `None`
    /// unless it is a request of JSON-RPC that accepts an event stream.
    pub(super) fn of(
        headers: &HeaderMap,
        payload: &Payload,
    ) -> Option<(Arc<Self>, mpsc::Receiver<Value>)> {
        let Payload::Bytes(body) = payload else {
            return None;
        };
        let accepts = headers.get(ACCEPT)?.to_str().ok()?;
        if !accepts.to_ascii_lowercase().contains(EVENT_STREAM) {
            return None;
        }
        let request: Request = serde_json::from_slice(body).ok()?;
        let (replies, due) = mpsc::channel(MAX_WAITING_REPLIES);
        let stream = Self {
            id: request.id,
            events: Mutex::default(),
            replies,
        };
        Some((Arc::new(stream), due))
    }
}

impl BodyReader for ResponseStream {
    fn is_enough(&self, body: &[u8]) -> bool {
        let messages = self.events.lock().read(body);
        for reply in messages.iter().filter_map(rpc::reply) {
            let _ = self.replies.try_send(reply);
        }
        messages
            .iter()
            .any(|message| rpc::is_response(message, &self.id))
    }
}
