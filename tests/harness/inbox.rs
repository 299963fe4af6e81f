//! An endpoint of an application that receives webhooks.
//!
//! It verifies signatures with its own implementation of Standard Webhooks, whose key is the text of
//! the secret.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use futures::stream;
use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use serde_json::Value;
use sha2::Sha256;

use crate::{host::Setup, loopback};

/// Origin under which servers under test reach an inbox.
pub const INBOX_ORIGIN: &str = "https://hooks.example.com";

/// A running endpoint. It ends with the process.
#[derive(Debug, Clone)]
pub struct Inbox {
    /// `http://127.0.0.1:port`
    pub origin: String,
    received: Arc<Mutex<Received>>,
    open: Arc<Mutex<Open>>,
}

/// Messages in the order of their arrival.
#[derive(Debug, Default)]
struct Received {
    messages: Vec<Message>,
    by_id: HashMap<String, usize>,
    accepted: HashSet<String>,
}

/// Messages that were not answered yet, and the most of them at a time.
#[derive(Debug, Default)]
struct Open {
    by_path: BTreeMap<String, usize>,
    most: usize,
    most_of_path: usize,
}

/// A received message.
#[derive(Debug, Clone)]
pub struct Message {
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
    /// Number of messages before it with the same id.
    pub repetition: usize,
    /// Status of the response. `None` if there was no response.
    pub answered: Option<u16>,
}

/// Response to a message.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A status, with a short body.
    Status(u16),
    /// A status and one header.
    With(u16, &'static str, String),
    /// A status and a body of this many bytes.
    Large(u16, usize),
    /// Status 200 with this body.
    Body(Vec<u8>),
    /// Status 200 after this many milliseconds.
    Slow(u64),
    /// The connection is closed before the response is complete.
    Broken,
    /// Status 200 and a body that never ends.
    Dripping,
    /// No response.
    Hanging,
}

#[derive(Clone)]
struct Shared {
    received: Arc<Mutex<Received>>,
    open: Arc<Mutex<Open>>,
    script: Arc<dyn Fn(&Message) -> Reply + Send + Sync>,
}

impl Inbox {
    /// Starts an endpoint that accepts everything.
    pub fn start() -> Self {
        Self::with(|_| Reply::Status(200))
    }

    /// Starts an endpoint that answers each message as a function says.
    pub fn with(script: impl Fn(&Message) -> Reply + Send + Sync + 'static) -> Self {
        let received = Arc::<Mutex<Received>>::default();
        let open = Arc::<Mutex<Open>>::default();
        let state = Shared {
            received: Arc::clone(&received),
            open: Arc::clone(&open),
            script: Arc::new(script),
        };
        let router = Router::new()
            .fallback(answer)
            .layer(DefaultBodyLimit::disable())
            .with_state(state);
        Self {
            origin: loopback::serve(router),
            received,
            open,
        }
    }

    /// Returns settings of a server that reaches the endpoint at [`INBOX_ORIGIN`] and retries quickly.
    pub fn setup(&self) -> Setup {
        Setup::new()
            .with("net.rewrite", format!("{INBOX_ORIGIN}={}", self.origin))
            .with(
                "webhooks.retry_delays_s",
                "0.1,0.1,0.1,0.1,0.2,0.2,0.2,0.2,0.2",
            )
    }

    /// Returns the most messages that were open at a time, of all paths and of one path.
    pub fn most_at_a_time(&self) -> (usize, usize) {
        let open = self.open.lock();
        (open.most, open.most_of_path)
    }

    /// Returns all messages, oldest first.
    pub fn received(&self) -> Vec<Message> {
        let received = self.received.lock();
        received.messages.clone()
    }

    /// Returns the number of messages that were accepted, each counted once.
    pub fn accepted(&self) -> u64 {
        let received = self.received.lock();
        received.accepted.len() as u64
    }

    /// Returns the messages to a path, oldest first.
    pub fn received_at(&self, path: &str) -> Vec<Message> {
        let mut all = self.received();
        all.retain(|message| message.path == path);
        all
    }
}

impl Message {
    /// Returns the value of a header; empty if it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Returns the id of the message.
    pub fn id(&self) -> &str {
        self.header("webhook-id")
    }

    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a message is JSON")
    }

    /// Returns true if the endpoint acknowledged the message.
    pub fn is_accepted(&self) -> bool {
        self.answered.is_some_and(|status| status / 100 == 2)
    }

    /// Returns true if one of the signatures is made with this secret over exactly these bytes.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
            .expect("this hash takes keys of every length");
        mac.update(format!("{}.{}.", self.id(), self.header("webhook-timestamp")).as_bytes());
        mac.update(&self.body);
        let expected = format!("v1,{}", BASE64.encode(mac.finalize().into_bytes()));
        let mut signatures = self.header("webhook-signature").split(' ');
        signatures.any(|signature| signature == expected)
    }
}

impl Open {
    fn begin(&mut self, path: &str) {
        let of_path = self.by_path.entry(path.to_owned()).or_default();
        *of_path += 1;
        self.most_of_path = self.most_of_path.max(*of_path);
        self.most = self.most.max(self.by_path.values().sum());
    }

    fn end(&mut self, path: &str) {
        if let Some(open) = self.by_path.get_mut(path) {
            *open -= 1;
        }
    }
}

async fn answer(
    State(shared): State<Shared>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let headers = headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.to_string(), value)
    });
    let mut message = Message {
        path: uri.path().to_owned(),
        headers: headers.collect(),
        body: body.to_vec(),
        repetition: 0,
        answered: None,
    };
    let open = |change: fn(&mut Open, &str)| {
        change(&mut shared.open.lock(), uri.path());
    };
    open(Open::begin);
    let reply = {
        let mut received = shared.received.lock();
        let count = received.by_id.entry(message.id().to_owned()).or_default();
        message.repetition = *count;
        *count += 1;
        let reply = (shared.script)(&message);
        message.answered = match &reply {
            Reply::Status(status) | Reply::With(status, ..) | Reply::Large(status, _) => {
                Some(*status)
            }
            Reply::Slow(_) | Reply::Body(_) => Some(200),
            Reply::Broken | Reply::Dripping | Reply::Hanging => None,
        };
        if message.is_accepted() {
            received.accepted.insert(message.id().to_owned());
        }
        received.messages.push(message);
        reply
    };
    if let Reply::Slow(milliseconds) = reply {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }
    if !matches!(reply, Reply::Hanging) {
        open(Open::end);
    }
    let status = |status| StatusCode::from_u16(status).expect("the script has a valid status");
    match reply {
        Reply::Status(code) => (status(code), "noted").into_response(),
        Reply::With(code, name, value) => (status(code), [(name, value)], "noted").into_response(),
        Reply::Large(code, bytes) => (status(code), "x".repeat(bytes)).into_response(),
        Reply::Body(body) => body.into_response(),
        Reply::Slow(_) => StatusCode::OK.into_response(),
        Reply::Broken => {
            let cut = std::io::Error::other("the connection is cut");
            Body::from_stream(stream::iter([Err::<Bytes, _>(cut)])).into_response()
        }
        Reply::Dripping => {
            let drops = stream::unfold((), |()| async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                let drop = Ok::<_, std::convert::Infallible>(Bytes::from_static(b"."));
                Some((drop, ()))
            });
            Body::from_stream(drops).into_response()
        }
        Reply::Hanging => std::future::pending().await,
    }
}
