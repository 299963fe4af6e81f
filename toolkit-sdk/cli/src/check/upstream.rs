//! Providers of a case, played on loopback.
//!
//! Each origin that a case or the manifest names gets its own server. The sandbox reaches it
//! through a rewrite of the origin: the component addresses the real host, the policy sees the real
//! host, and no request to a declared host leaves the machine. Requests are matched in any order,
//! because a toolkit may send several concurrently. A request that matches no exchange consumes the
//! next one and gets its response, so that one difference is reported once and the rest of the case
//! still runs.

use std::{collections::BTreeSet, sync::Arc};

use anyhow::{Context as _, Result};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    response::Response,
};
use manifest::cases::{Exchange, ExpectedRequest, GivenResponse};
use net::{Origin, Rewrite};
use parking_lot::{Mutex, MutexGuard};
use tokio::{net::TcpListener, task::JoinSet};
use url::Url;

use super::compare::{self, CompareContext, ReceivedRequest};

/// Size in bytes that exceeds the maximum response size in guest memory by one.
const OVERSIZED_BODY_BYTES: usize = (10 << 20) + 1;

/// Error name of an exchange that never gets a response.
const TIMEOUT_ERROR: &str = "timeout";

/// Running servers. They stop when this value is dropped.
pub(super) struct Upstream {
    script: Arc<Mutex<Script>>,
    rewrites: Vec<Rewrite>,
    _servers: JoinSet<()>,
}

/// Expected exchanges, and the differences observed so far.
#[derive(Default)]
struct Script {
    /// Remaining exchanges with their indexes in the case.
    expected: Vec<(usize, Exchange)>,
    context: CompareContext,
    mismatches: Mismatches,
}

/// Observed requests that differ from the expected ones.
#[derive(Debug, Default)]
pub(super) struct Mismatches {
    /// Requests that differ from those of the exchanges at these indexes.
    pub(super) changed: Vec<(usize, ExpectedRequest)>,
    /// Indexes of the exchanges whose requests were not sent.
    pub(super) unsent: Vec<usize>,
    /// Requests after the last exchange, for which the case defines no response.
    pub(super) unanswered: Vec<String>,
}

/// Reaction to a request.
enum Reaction {
    Answer(GivenResponse),
    /// No response until the client gives up.
    Hang,
    /// The connection breaks.
    Break,
    /// A response above the maximum size.
    Flood,
    NotExpected,
}

#[derive(Clone)]
struct Server {
    origin: Arc<str>,
    script: Arc<Mutex<Script>>,
}

impl Upstream {
    /// Starts one server for each origin.
    pub(super) async fn start(origins: BTreeSet<String>) -> Result<Self> {
        let script = Arc::new(Mutex::new(Script::default()));
        let mut servers = JoinSet::new();
        let mut rewrites = Vec::new();
        for origin in origins {
            let from: Origin = origin.parse()?;
            let listener = TcpListener::bind(("127.0.0.1", 0))
                .await
                .context("cannot listen on loopback")?;
            rewrites.push(Rewrite {
                from,
                to: format!("http://{}", listener.local_addr()?).parse()?,
            });
            let server = Server {
                origin: origin.into(),
                script: script.clone(),
            };
            let router = Router::new().fallback(answer).with_state(server);
            servers.spawn(async move {
                // The server never ends by itself; an error shows as a request without a response.
                let _ = axum::serve(listener, router).await;
            });
        }
        Ok(Self {
            script,
            rewrites,
            _servers: servers,
        })
    }

    /// Returns the rewrites that lead the sandbox to the played origins.
    pub(super) fn rewrites(&self) -> Vec<Rewrite> {
        self.rewrites.clone()
    }

    /// Starts a case. Exchanges that the sandbox itself refuses are not expected to arrive.
    pub(super) fn begin(&self, exchanges: &[Exchange], context: CompareContext) {
        let expected = exchanges
            .iter()
            .cloned()
            .enumerate()
            .filter(|(_, exchange)| arrives(exchange))
            .collect();
        *lock(&self.script) = Script {
            expected,
            context,
            mismatches: Mismatches::default(),
        };
    }

    /// Ends a case.
    pub(super) fn end(&self) -> Mismatches {
        let Script {
            expected,
            mut mismatches,
            ..
        } = std::mem::take(&mut *lock(&self.script));
        mismatches.unsent = expected.into_iter().map(|(place, _)| place).collect();
        mismatches
    }
}

fn arrives(exchange: &Exchange) -> bool {
    !matches!(
        exchange.response.error.as_deref(),
        Some("denied" | "invalid_request" | "credential" | "limit")
    )
}

/// Returns true if the exchange never gets a response.
pub(super) fn hangs(exchange: &Exchange) -> bool {
    exchange.response.error.as_deref() == Some(TIMEOUT_ERROR)
}

fn lock(script: &Mutex<Script>) -> MutexGuard<'_, Script> {
    script.lock()
}

impl Script {
    fn reply(&mut self, received: &ReceivedRequest) -> Reaction {
        let fitting = self
            .expected
            .iter()
            .position(|(_, exchange)| compare::fits(&exchange.request, received, &self.context));
        if fitting.is_none() && self.expected.is_empty() {
            self.mismatches.unanswered.push(received.describe());
            return Reaction::NotExpected;
        }
        let (place, Exchange { request, response }) = self.expected.remove(fitting.unwrap_or(0));
        if fitting.is_none() {
            self.mismatches
                .changed
                .push((place, compare::observed(&request, received, &self.context)));
        }
        match response.error.as_deref() {
            None => Reaction::Answer(response),
            Some(TIMEOUT_ERROR) => Reaction::Hang,
            Some("too_large") => Reaction::Flood,
            Some(_) => Reaction::Break,
        }
    }
}

async fn answer(State(server): State<Server>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX)
        .await
        .unwrap_or_default();
    let target = head
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let Ok(url) = Url::parse(&format!("{}{target}", server.origin)) else {
        return plain(400, "not an address");
    };
    let headers = head
        .headers
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        })
        .collect();
    let received = ReceivedRequest {
        method: head.method.to_string(),
        url,
        headers,
        body: body.to_vec(),
    };
    let reply = lock(&server.script).reply(&received);
    match reply {
        Reaction::Answer(response) => respond(&response),
        Reaction::Hang => std::future::pending().await,
        Reaction::Flood => Response::new(vec![b' '; OVERSIZED_BODY_BYTES].into()),
        Reaction::Break => Response::new(broken()),
        Reaction::NotExpected => plain(500, "this request was not expected"),
    }
}

fn respond(given: &GivenResponse) -> Response {
    let (headers, body) = given.parts();
    let start = Response::builder().status(given.status);
    headers
        .into_iter()
        .fold(start, |builder, (name, value)| builder.header(name, value))
        .body(body.into())
        .unwrap_or_else(|_| plain(500, "the response of the case is not a valid HTTP response"))
}

/// Returns a body that fails immediately.
fn broken() -> Body {
    let failed = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    Body::from_stream(futures::stream::once(async { Err::<Bytes, _>(failed) }))
}

fn plain(status: u16, text: &'static str) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = axum::http::StatusCode::from_u16(status).unwrap_or_default();
    response
}
