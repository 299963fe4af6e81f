//! One request of a guest, from the rules to the response.

use std::{
    borrow::Cow,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use net::{
    HeaderMap, Method, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderName},
};
use tokio::{
    runtime::Handle,
    sync::{Mutex, Semaphore},
};

use super::{HttpResult, Payload, credential, error, exchange_timeout, rules, to_payload};
use crate::{
    Clock, Credential, Grant, Limits, MAX_SECRET_BYTES, MAX_SECRETS, Policy, Secret,
    SignatureStamp,
    schedule::{
        limiter::{NodeMemory, Reservation},
        scheduler::AbortOnDrop,
    },
    toolkit::{
        abi::v1::http::{Error, Request, Response},
        imports::{blob::Files, clock},
        redact::{self, Redactor},
    },
    trace::Trace,
};

/// Maximum number of redirects for one request.
const MAX_REDIRECTS: usize = 3;
/// Maximum size of a response that is searched for secrets on the caller's thread, in bytes.
const MAX_INLINE_SEARCH_BYTES: usize = 64 << 10;
/// Maximum total size of the secrets whose redactor is built on the caller's thread, in bytes.
const MAX_INLINE_SECRET_BYTES: usize = 2 << 10;
/// Error for the guest when a response is withheld.
const RESPONSE_WITHHELD: &str =
    "the response is withheld: searching it for secrets takes too many steps";
const NO_MEMORY: &str =
    "this server has no memory left to remove secrets from the response; try again later";
/// Maximum number of secrets of one call, including those of a refreshed credential and their
/// encoded forms.
const MAX_CALL_SECRETS: usize = 4 * MAX_SECRETS;
/// Maximum total size of these secrets, in bytes. In a URL a secret is up to three times as long.
const MAX_CALL_SECRET_BYTES: usize = 4 * MAX_SECRET_BYTES;

/// Outgoing requests of one call.
pub(crate) struct Outgoing {
    net: net::Client,
    policy: Arc<Policy>,
    pub(super) grant: Option<Arc<dyn Grant>>,
    pub(super) limits: Limits,
    trace: Arc<Trace>,
    /// Runtime of the caller.
    pub(super) caller_runtime: Handle,
    /// Runtime of the guest threads; `cpu_permits` limits the tenant's turns on it.
    threads: Handle,
    cpu_permits: Arc<Semaphore>,
    concurrency: Semaphore,
    requests: AtomicU32,
    /// Response bytes delivered to the guest's memory so far.
    response_bytes: AtomicU64,
    /// Every secret put into a request so far.
    secrets: Mutex<Vec<Secret>>,
    /// Memory of the redactor.
    redactor_memory: Reservation,
    /// Memory of responses on their way into the guest's memory.
    delivered: Reservation,
}

/// Complete response as the provider sent it.
struct Received {
    answer: net::Response,
    /// Signatures made for the request.
    signatures: Vec<Secret>,
    /// Memory of the body.
    memory: Arc<Reservation>,
}

/// Parts of the node and of the tenant's permit that the requests of a call use.
pub(crate) struct Node<'n> {
    pub(crate) net: &'n net::Client,
    pub(crate) memory: &'n Arc<NodeMemory>,
    pub(crate) threads: &'n Handle,
    pub(crate) cpu_permits: &'n Arc<Semaphore>,
}

/// Request that passed the rules.
struct Checked {
    method: Method,
    url: Url,
    headers: HeaderMap,
    payload: Payload,
    credential: Option<Arc<Credential>>,
    into_blob: bool,
    deadline: Instant,
    timeout: Duration,
}

impl Outgoing {
    pub(crate) fn new(
        node: Node<'_>,
        policy: Arc<Policy>,
        grant: Option<Arc<dyn Grant>>,
        limits: Limits,
        trace: Arc<Trace>,
    ) -> Self {
        let Node {
            net,
            memory,
            threads,
            cpu_permits,
        } = node;
        let memory = memory.reserve();
        Self {
            net: net.with_proxy(grant.as_ref().and_then(|grant| grant.proxy())),
            policy,
            grant,
            limits,
            trace,
            caller_runtime: Handle::current(),
            threads: threads.clone(),
            cpu_permits: cpu_permits.clone(),
            concurrency: Semaphore::new(limits.concurrent_requests.max(1) as usize),
            requests: AtomicU32::new(0),
            response_bytes: AtomicU64::new(0),
            secrets: Mutex::default(),
            delivered: memory.empty(),
            redactor_memory: memory,
        }
    }

    /// Releases the memory of responses that the guest has received by now.
    pub(super) fn release_delivered(&self) {
        self.delivered.release();
    }

    /// Sends one request of the guest. `left` is the remaining time of the call.
    pub(super) async fn send(
        self: Arc<Self>,
        request: Request,
        files: Files,
        left: Duration,
    ) -> HttpResult {
        self.count()?;
        let into_blob = request.into_blob;
        let url = request.url.clone();
        let method = rules::method(&request.method)?;
        let checked = match self.check(method.clone(), request, &files, left).await {
            Ok(checked) => checked,
            Err(refused) => {
                let record = self.trace.request_started(method.as_str(), &url, 0);
                self.trace
                    .request_ended(record, Duration::ZERO, Err(&refused.message));
                return Err(refused);
            }
        };
        let _turn = self.concurrency.acquire().await;
        let first = self.exchange(&checked, checked.credential.as_deref()).await;
        let received = match (self.refreshed_credential(&first, &checked).await, first) {
            (Some(fresh), _) => self.exchange(&checked, Some(&*fresh)).await?,
            (None, first) => first?,
        };
        self.to_guest_response(received, into_blob, &files).await
    }

    /// Counts a request before any part of it runs.
    fn count(&self) -> Result<(), Error> {
        let limit = self.limits.requests;
        let counted = self
            .requests
            .fetch_update(Relaxed, Relaxed, |sent| (sent < limit).then_some(sent + 1));
        counted
            .map(drop)
            .map_err(|_| error("limit", format!("a call sends at most {limit} requests")))
    }

    async fn check(
        &self,
        method: Method,
        request: Request,
        files: &Files,
        left: Duration,
    ) -> Result<Checked, Error> {
        let url = rules::url(&request.url)?;
        rules::check_egress(&self.policy, &method, &url)?;
        let anonymous = match request.credential.as_str() {
            "" => false,
            "none" => true,
            other => {
                let other = crate::trace::one_line(crate::trace::cut(other, 80));
                return Err(error(
                    "credential",
                    format!(
                        "credential `{other}` does not exist; leave the name empty or write `none`"
                    ),
                ));
            }
        };
        // The credential is also loaded for an anonymous request, because the guest must not fill
        // its header and parameter names.
        let credential = match &self.grant {
            None => None,
            Some(grant) => match grant.credential().await {
                Ok(credential) => Some(credential),
                Err(_) if anonymous => None,
                Err(cause) => return Err(error("credential", cause.to_string())),
            },
        };
        let filled = credential
            .as_deref()
            .map(credential::header_names)
            .unwrap_or_default();
        let headers = rules::headers(&request.headers, &filled)?;
        if let Some(credential) = &credential {
            credential::check_query(credential, &url)?;
        }
        let timeout = exchange_timeout(request.timeout_ms, self.limits.exchange, left);
        Ok(Checked {
            payload: to_payload(request.body, files, &self.limits)?,
            credential: credential.filter(|_| !anonymous),
            into_blob: request.into_blob,
            deadline: Instant::now() + timeout,
            method,
            url,
            headers,
            timeout,
        })
    }

    /// Sends a checked request once, with or without a credential.
    async fn exchange(
        &self,
        checked: &Checked,
        credential: Option<&Credential>,
    ) -> Result<Received, Error> {
        let mut url = checked.url.clone();
        let mut headers = checked.headers.clone();
        let mut payload = Cow::Borrowed(&checked.payload);
        let mut names = Vec::new();
        if let Some(credential) = credential {
            self.add_secrets(credential).await?;
            credential::apply(credential, &mut url, &mut headers)?;
            payload = credential::merge(&credential.body, &headers, &checked.payload)?;
            let names_of = credential::header_names(credential);
            names = names_of
                .iter()
                .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
                .collect();
        }
        let largest = self.response_limit(checked.into_blob)?;
        let memory = Arc::new(self.redactor_memory.empty());
        let limits = net::Limits {
            connect: self.limits.connect.min(checked.timeout),
            first_byte: self.limits.first_byte.min(checked.timeout),
            total: checked.deadline.saturating_duration_since(Instant::now()),
            response_bytes: largest,
            ..net::Limits::default()
        };
        let record = self.trace.request_started(
            checked.method.as_str(),
            checked.url.as_str(),
            payload.size(),
        );
        let started = Instant::now();
        if matches!(*payload, Payload::Multipart(_)) {
            headers.remove(CONTENT_TYPE);
        }
        let identity = credential.and_then(|credential| credential.identity.clone());
        let mut request = net::Request {
            method: checked.method.clone(),
            url,
            headers,
            body: payload.body()?,
            limits,
        };
        let mut signatures = match sign(credential, &mut request) {
            Ok(signatures) => signatures,
            Err(unsigned) => {
                self.trace
                    .request_ended(record, Duration::ZERO, Err(&unsigned.message));
                return Err(unsigned);
            }
        };
        let follow = |next: &mut net::Request| {
            let again = if next.url.origin() == checked.url.origin() {
                sign(credential, next)
            } else {
                Ok(Vec::new())
            };
            let follows = self.may_follow(checked, &next.method, &next.url) && again.is_ok();
            signatures.extend(again.unwrap_or_default());
            follows
        };
        let net = self
            .net
            .with_identity(identity)
            .with_memory_budget(memory.clone());
        let sent = net
            .send_following(request, MAX_REDIRECTS, &names, follow)
            .await;
        match sent {
            Ok(answer) => {
                let received = answer.body.len() as u64;
                self.trace.request_ended(
                    record,
                    started.elapsed(),
                    Ok((answer.status.as_u16(), received)),
                );
                rules::check_redirect(&self.policy, &answer)
                    .map_err(|refused| self.redacted(refused))?;
                self.count_response(checked.into_blob, received)
                    .map(|()| Received {
                        answer,
                        signatures,
                        memory,
                    })
            }
            Err(failed) => {
                let message = self.trace.redactor().redact_text(&failed.message);
                self.trace
                    .request_ended(record, started.elapsed(), Err(&message));
                Err(error(kind(failed.kind), message))
            }
        }
    }

    fn redacted(&self, refused: Error) -> Error {
        Error {
            message: self.trace.redactor().redact_text(&refused.message),
            ..refused
        }
    }

    /// Returns the maximum size of the next response, in bytes.
    fn response_limit(&self, into_blob: bool) -> Result<u64, Error> {
        if into_blob {
            return Ok(self.limits.file);
        }
        match self
            .limits
            .responses
            .saturating_sub(self.response_bytes.load(Relaxed))
        {
            0 => Err(self.responses_too_large()),
            left => Ok(left.min(self.limits.response_body)),
        }
    }

    /// Counts a received response. Concurrent responses may together exceed the limit.
    fn count_response(&self, into_blob: bool, bytes: u64) -> Result<(), Error> {
        let limit = self.limits.responses;
        let fits = |response_bytes: u64| {
            response_bytes
                .checked_add(bytes)
                .filter(|sum| *sum <= limit)
        };
        if into_blob
            || self
                .response_bytes
                .fetch_update(Relaxed, Relaxed, fits)
                .is_ok()
        {
            Ok(())
        } else {
            Err(self.responses_too_large())
        }
    }

    fn responses_too_large(&self) -> Error {
        let limit = self.limits.responses;
        error(
            "limit",
            format!(
                "the responses of a call have at most {limit} bytes together; receive large ones as files"
            ),
        )
    }

    /// Returns true if a redirect may be followed. It must satisfy the egress rules, and neither
    /// its URL nor its body may carry a secret to another origin.
    fn may_follow(&self, checked: &Checked, method: &Method, url: &Url) -> bool {
        let same = url.origin() == checked.url.origin();
        let carries = || {
            let in_body = checked
                .credential
                .as_ref()
                .is_some_and(|credential| !credential.body.is_empty());
            in_body
                || self
                    .trace
                    .redactor()
                    .may_contain_secret(url.as_str().as_bytes())
        };
        rules::is_permitted(&self.policy, method, url) && (same || !carries())
    }

    /// Returns a fresh credential if the provider rejected the sent one and another is available.
    async fn refreshed_credential(
        &self,
        first: &Result<Received, Error>,
        checked: &Checked,
    ) -> Option<Arc<Credential>> {
        let (Ok(Received { answer, .. }), Some(grant), Some(rejected)) =
            (first, &self.grant, &checked.credential)
        else {
            return None;
        };
        if answer.status != StatusCode::UNAUTHORIZED || self.count().is_err() {
            return None;
        }
        grant.refresh(rejected).await.ok().flatten()
    }

    /// Adds the values of this credential to the redactor, which removes them from everything from
    /// now on.
    async fn add_secrets(&self, credential: &Credential) -> Result<(), Error> {
        // The lock is held until the redactor includes the secrets, so a concurrent request with
        // the same credential waits, too.
        let mut known = self.secrets.lock().await;
        let before = known.len();
        for secret in credential::secrets(credential) {
            if !known.contains(&secret) {
                known.push(secret);
            }
        }
        if known.len() == before {
            return Ok(());
        }
        let bytes: usize = known.iter().map(|secret| secret.expose().len()).sum();
        let redactor = if known.len() > MAX_CALL_SECRETS || bytes > MAX_CALL_SECRET_BYTES {
            Err("its secrets are too many or too long to be removed from responses")
        } else if bytes <= MAX_INLINE_SECRET_BYTES {
            Ok(Redactor::new(known.iter()))
        } else {
            let all = known.clone();
            let prepared = tokio::task::spawn_blocking(move || Redactor::new(&all)).await;
            prepared.map_err(|_| "the removal of its secrets could not be prepared")
        };
        let redactor = redactor.and_then(|redactor| {
            self.redactor_memory.release();
            let fits = self.redactor_memory.grow(redactor.memory());
            fits.then_some(redactor)
                .ok_or("this server has no memory left to remove its secrets from responses")
        });
        match redactor {
            Ok(redactor) => {
                self.trace.redact_with(Arc::new(redactor));
                Ok(())
            }
            Err(why) => {
                // The request is not sent and the secrets are forgotten, so the next request tries
                // again.
                known.truncate(before);
                Err(error(
                    "credential",
                    format!("the account's credential cannot be used: {why}"),
                ))
            }
        }
    }

    /// Converts a response for the guest: without secrets and cookies, with its body in memory or
    /// in a file. A signature is valid for one request, so it is redacted only from the response to
    /// that request.
    async fn to_guest_response(
        &self,
        received: Received,
        into_blob: bool,
        files: &Files,
    ) -> HttpResult {
        let Received {
            answer,
            signatures,
            memory,
        } = received;
        let redactor = match self.trace.redactor() {
            call if signatures.is_empty() => call,
            call => Arc::new(Redactor::new(&signatures).with_others(call)),
        };
        let body = self.redact_body(&redactor, answer.body, &memory).await?;
        let headers = answer.headers.iter().filter_map(|(name, value)| {
            let hidden = matches!(name.as_str(), "set-cookie" | "set-cookie2")
                || redactor.name_may_contain_secret(name.as_str());
            let value = || redactor.redact_text(&String::from_utf8_lossy(value.as_bytes()));
            (!hidden).then(|| (name.as_str().to_owned(), value()))
        });
        let mut response = Response {
            status: answer.status.as_u16(),
            headers: headers.collect(),
            body: Vec::new(),
            blob: None,
        };
        if into_blob {
            let media_type = answer
                .headers
                .get(CONTENT_TYPE)
                .and_then(|value| value.to_str().ok());
            let media_type = media_type.map_or_else(
                || "application/octet-stream".to_owned(),
                |text| redactor.redact_text(text),
            );
            let name = answer
                .url
                .path_segments()
                .and_then(|mut segments| segments.next_back())
                .unwrap_or_default();
            let name = redactor.redact_text(name);
            let id = files
                .keep(&name, &media_type, body, &memory)
                .map_err(|full| error("limit", full.message))?;
            response.blob = Some(id);
        } else {
            response.body = body.into();
            self.delivered.take_over(&memory);
        }
        Ok(response)
    }
}

impl Outgoing {
    /// Redacts a body. A large body is searched on the guest threads, in turns with the guests, so
    /// that it does not block other calls. The search ends with the request.
    async fn redact_body(
        &self,
        redactor: &Arc<Redactor>,
        body: Bytes,
        memory: &Arc<Reservation>,
    ) -> Result<Bytes, Error> {
        let result = if body.len() < MAX_INLINE_SEARCH_BYTES {
            redactor
                .find(&body)
                .map_err(|_| RESPONSE_WITHHELD)
                .and_then(|ranges| without_secrets(body, &ranges, memory))
        } else {
            let redactor = redactor.clone();
            let memory = memory.clone();
            let cpu_permits = self.cpu_permits.clone();
            let search = async move {
                let ranges = redactor
                    .find_in_turns(&body, &cpu_permits)
                    .await
                    .map_err(|_| RESPONSE_WITHHELD)?;
                without_secrets(body, &ranges, &memory)
            };
            let mut task = AbortOnDrop(self.threads.spawn(search));
            (&mut task.0)
                .await
                .unwrap_or(Err("the response could not be searched for secrets"))
        };
        result.map_err(|why| {
            error(
                if why == NO_MEMORY {
                    "limit"
                } else {
                    "protocol"
                },
                why,
            )
        })
    }
}

/// Signs a request if its credential requires a signature.
fn sign(credential: Option<&Credential>, request: &mut net::Request) -> Result<Vec<Secret>, Error> {
    let Some(sign) = credential.and_then(|credential| credential.sign.as_ref()) else {
        return Ok(Vec::new());
    };
    // Providers check a signature against their own clocks, independently of the time that a guest
    // is told.
    let ms = clock::now(&Clock::System).as_millis() as i64;
    let made = SignatureStamp::random(ms).and_then(|stamp| sign.sign(request, &[], &stamp));
    made.map_err(|unsigned| error("credential", unsigned.to_string()))
}

/// Returns a body without the given places, in memory reserved from `memory`.
fn without_secrets(
    body: Bytes,
    ranges: &[Range<usize>],
    memory: &Reservation,
) -> Result<Bytes, &'static str> {
    if ranges.is_empty() {
        return Ok(body);
    }
    let fits = memory.grow((body.len() + ranges.len() * redact::REDACTED_TEXT.len()) as u64);
    fits.then(|| redact::replace_ranges(&body, ranges).into_owned().into())
        .ok_or(NO_MEMORY)
}

fn kind(kind: net::ErrorKind) -> &'static str {
    match kind {
        net::ErrorKind::Denied => "denied",
        net::ErrorKind::InvalidRequest => "invalid_request",
        net::ErrorKind::Dns => "dns",
        net::ErrorKind::Connect => "connect",
        net::ErrorKind::Tls => "tls",
        net::ErrorKind::Timeout => "timeout",
        net::ErrorKind::TooLarge => "too_large",
        net::ErrorKind::NoMemory => "limit",
        net::ErrorKind::Protocol => "protocol",
    }
}
