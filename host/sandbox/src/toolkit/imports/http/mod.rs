//! Requests to providers.
//!
//! A request passes these steps in order: the rules of the contract and the egress rules of the
//! call (`rules`), the guard against private networks (`net`), the credential (`credential`), the
//! limits on size, number and time (`outgoing`), and the redaction of the response (`redaction`, `body`).
//! `exchange` performs them in sequence. A refusal is a value, and nothing was sent.

mod body;
mod credential;
mod exchange;
mod outgoing;
mod payload;
mod proxy;
mod redaction;
mod rejection;
mod rpc;
mod rules;
mod webhook_secret;

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use wasmtime::Result;

use outgoing::Outgoing;
pub(crate) use outgoing::{LazyOutgoing, Node, OutgoingParts};
pub use payload::MAX_PARTS;
pub(crate) use proxy::send_proxy_request;

use crate::{
    cassette::{self, CassetteSession},
    contract::v1::{
        HttpResult,
        http::{Error, Host, Request},
    },
    files::Files,
    schedule::{host_work::HostWork, meter::Meter, scheduler::AbortOnDrop},
    toolkit::State,
};

impl Host for State {
    async fn send(&mut self, request: Request) -> Result<HttpResult> {
        self.count_host_call()?;
        self.outgoing.release_delivered();
        match self.session.clone() {
            None => Ok(self.start(request).await),
            Some(session) => Ok(self
                .record_or_replay(&session, vec![request])
                .await?
                .swap_remove(0)),
        }
    }

    async fn send_all(&mut self, requests: Vec<Request>) -> Result<Vec<HttpResult>> {
        self.count_host_call()?;
        self.outgoing.release_delivered();
        match self.session.clone() {
            None => Ok(self.send_concurrently(requests).await),
            Some(session) => self.record_or_replay(&session, requests).await,
        }
    }
}

impl State {
    /// Sends and records requests, or answers them from a cassette.
    async fn record_or_replay(
        &mut self,
        session: &CassetteSession,
        requests: Vec<Request>,
    ) -> Result<Vec<HttpResult>> {
        let recorded: Vec<_> = requests
            .iter()
            .map(|request| cassette::Request::new(request, &self.files))
            .collect();
        if session.is_replay() {
            return recorded
                .iter()
                .map(|request| session.recorded_response(request, &self.files))
                .collect();
        }
        let answers = self.send_concurrently(requests).await;
        session.keep(recorded, &answers, &self.files, self.trace.redactor());
        Ok(answers)
    }

    /// Sends several requests, some of them concurrently, and returns the responses in order.
    async fn send_concurrently(&mut self, requests: Vec<Request>) -> Vec<HttpResult> {
        let outgoing = self.outgoing.get(&self.trace).clone();
        let concurrency = outgoing.limits.concurrent_requests.max(1) as usize;
        let files = self.files.clone();
        let meter = self.meter.clone();
        let host_work = self.host_work.clone();
        let left = self.remaining_time();
        // Each request starts only when its turn comes, because a list may exceed the request limit
        // of the call by far.
        stream::iter(requests)
            .map(|request| {
                start(
                    outgoing.clone(),
                    files.clone(),
                    meter.clone(),
                    host_work.clone(),
                    left,
                    request,
                    false,
                )
            })
            .buffered(concurrency)
            .collect()
            .await
    }

    /// Sends one request, for which the guest waits.
    fn start(&self, request: Request) -> impl Future<Output = HttpResult> + Send + use<> {
        start(
            self.outgoing.get(&self.trace).clone(),
            self.files.clone(),
            self.meter.clone(),
            self.host_work.clone(),
            self.remaining_time(),
            request,
            true,
        )
    }
}

/// Sends one request independently of the guest's state. With `blocks_guest` the guest waits for nothing
/// else.
///
/// A guest that computes runs on the guest threads. Its requests stay on the caller's runtime,
/// where the shared connections live.
async fn start(
    outgoing: Arc<Outgoing>,
    files: Files,
    meter: Arc<Meter>,
    host_work: Arc<HostWork<HttpResult>>,
    left: Duration,
    request: Request,
    blocks_guest: bool,
) -> HttpResult {
    let exchange = Arc::clone(&outgoing).send(request, files, left);
    if !meter.is_long() {
        return host_work.run(exchange, blocks_guest).await;
    }
    let mut task = AbortOnDrop(outgoing.caller_runtime.spawn(exchange));
    match (&mut task.0).await {
        Ok(answered) => answered,
        // The panic is a bug of the host on either runtime; the runner of the guest reports it.
        Err(broken) if broken.is_panic() => std::panic::resume_unwind(broken.into_panic()),
        Err(_) => Err(error("protocol", "the request was interrupted")),
    }
}

fn error(kind: &str, message: impl Into<String>) -> Error {
    Error {
        kind: kind.to_owned(),
        message: message.into(),
    }
}

/// Returns the timeout of an exchange: the guest's timeout, capped by the host's limit and the
/// remaining time of the call.
fn exchange_timeout(requested_ms: u32, limit: Duration, left: Duration) -> Duration {
    let requested = if requested_ms == 0 {
        limit
    } else {
        Duration::from_millis(requested_ms.into())
    };
    requested.min(limit).min(left)
}
