//! One request of a guest, from the rules to the response.

use std::{
    borrow::Cow,
    convert::Infallible,
    future, mem,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::BoxFuture;
use net::{
    HeaderMap, Method, Url,
    header::{CONTENT_TYPE, HeaderName, HeaderValue, IF_RANGE, RANGE},
};
use serde_json::Value;

use super::{
    HttpResult, credential, error, exchange_timeout,
    outgoing::Outgoing,
    payload::{Payload, merge, to_payload},
    rejection::is_rejection,
    rpc::ResponseStream,
    rules, webhook_secret,
};
use crate::{
    Clock, Credential, RequestSpan, Secret, SignatureStamp,
    contract::v1::http::{Body, Error, Request},
    files::Files,
    schedule::limiter::BodyMemory,
    toolkit::imports::clock,
};

/// Maximum number of redirects for one request.
const MAX_REDIRECTS: usize = 3;
/// Header that names the trace and the span of a request (W3C Trace Context).
const TRACEPARENT_HEADER: HeaderName = HeaderName::from_static("traceparent");

/// Complete response as the provider sent it.
pub(super) struct Received {
    pub(super) answer: net::Response,
    /// Signatures made for the request.
    pub(super) signatures: Vec<Secret>,
    /// Memory of the body.
    pub(super) memory: Arc<BodyMemory>,
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
    /// Sends one request of the guest. `left` is the remaining time of the call.
    pub(super) fn send(
        self: Arc<Self>,
        request: Request,
        files: Files,
        left: Duration,
    ) -> BoxFuture<'static, HttpResult> {
        Box::pin(async move { self.send_checked(request, &files, left).await })
    }

    async fn send_checked(
        &self,
        mut request: Request,
        files: &Files,
        left: Duration,
    ) -> HttpResult {
        self.count()?;
        let into_blob = request.into_blob;
        let method = rules::method(&request.method)?;
        let checked = match self.check(method.clone(), &mut request, files, left).await {
            Ok(checked) => checked,
            Err(refused) => {
                let record = self.trace.request_started(method.as_str(), &request.url, 0);
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
        self.to_guest_response(received, into_blob, files).await
    }

    /// Checks a request and takes its headers and its body.
    async fn check(
        &self,
        method: Method,
        request: &mut Request,
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
        let headers = rules::headers(mem::take(&mut request.headers), &filled)?;
        if let Some(credential) = &credential {
            credential::check_query(credential, &url)?;
        }
        let timeout = exchange_timeout(request.timeout_ms, self.limits.exchange, left);
        let body = mem::replace(&mut request.body, Body::Empty);
        Ok(Checked {
            payload: to_payload(body, files, &self.limits)?,
            credential: credential.filter(|_| !anonymous),
            into_blob: request.into_blob,
            deadline: Instant::now() + timeout,
            method,
            url,
            headers,
            timeout,
        })
    }

    /// Sends a checked request once, with or without a credential. Replies to the requests in the event
    /// stream of a response.
    async fn exchange(
        &self,
        checked: &Checked,
        credential: Option<&Credential>,
    ) -> Result<Received, Error> {
        let stream = ResponseStream::of(&checked.headers, &checked.payload);
        let Some((stream, mut replies)) = stream.filter(|_| !checked.into_blob) else {
            return self.exchange_once(checked, credential, None).await;
        };
        let replying = async {
            while let Some(reply) = replies.recv().await {
                Box::pin(self.reply(checked, credential, &reply)).await;
            }
            future::pending::<Infallible>().await
        };
        tokio::select! {
            received = self.exchange_once(checked, credential, Some(stream)) => received,
            never = replying => match never {},
        }
    }

    /// Sends a reply to a request of a server, to where the guest's request went.
    async fn reply(&self, checked: &Checked, credential: Option<&Credential>, reply: &Value) {
        if self.count().is_err() {
            return;
        }
        let reply = Checked {
            payload: Payload::Bytes(reply.to_string().into()),
            method: checked.method.clone(),
            url: checked.url.clone(),
            headers: checked.headers.clone(),
            credential: None,
            into_blob: false,
            ..*checked
        };
        // A server that refuses the reply decides itself whether it continues.
        let _ = self.exchange_once(&reply, credential, None).await;
    }

    async fn exchange_once(
        &self,
        checked: &Checked,
        credential: Option<&Credential>,
        stream: Option<Arc<ResponseStream>>,
    ) -> Result<Received, Error> {
        let mut url = checked.url.clone();
        let mut headers = checked.headers.clone();
        let payload = &checked.payload;
        let (payload, names) = match credential {
            Some(credential) => {
                let added = self.add_credential(credential, &mut url, &mut headers, payload);
                added.await?
            }
            None => (Cow::Borrowed(payload), Vec::new()),
        };
        let limits = self.net_limits(checked)?;
        let memory = Arc::new(BodyMemory(self.redactor_memory.empty()));
        let record = self.trace.request_started(
            checked.method.as_str(),
            checked.url.as_str(),
            payload.size(),
        );
        let started = Instant::now();
        self.add_span(record, started, &checked.url, &mut headers);
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
        let mut signatures = sign(credential, &mut request).inspect_err(|unsigned| {
            let end = Err(&*unsigned.message);
            self.trace.request_ended(record, Duration::ZERO, end);
        })?;
        let net = self
            .net
            .clone()
            .with_identity(identity)
            .with_memory_budget(memory.clone())
            .with_body_reader(stream.map(|stream| stream as _));
        let sent = net
            .send_following(request, MAX_REDIRECTS, &names, |next: &mut net::Request| {
                let again = if next.url.origin() == checked.url.origin() {
                    sign(credential, next)
                } else {
                    Ok(Vec::new())
                };
                let follows = self.may_follow(checked, &next.method, &next.url) && again.is_ok();
                signatures.extend(again.unwrap_or_default());
                follows
            })
            .await;
        let answer = self.end_request(checked, record, started.elapsed(), sent)?;
        Ok(Received {
            answer,
            signatures,
            memory,
        })
    }

    /// Returns the limits of a request that is sent now.
    fn net_limits(&self, checked: &Checked) -> Result<net::Limits, Error> {
        Ok(net::Limits {
            connect: self.limits.connect.min(checked.timeout),
            first_byte: self.limits.first_byte.min(checked.timeout),
            total: checked.deadline.saturating_duration_since(Instant::now()),
            response_bytes: self.response_limit(checked.into_blob)?,
            ..net::Limits::default()
        })
    }

    /// Adds a credential to a request. Returns the payload, and the names of the headers that contain the
    /// credential.
    async fn add_credential<'p>(
        &self,
        credential: &Credential,
        url: &mut Url,
        headers: &mut HeaderMap,
        payload: &'p Payload,
    ) -> Result<(Cow<'p, Payload>, Vec<HeaderName>), Error> {
        self.add_secrets(credential).await?;
        // A part of a response may have a part of a secret, or an encoding that cannot be undone. A
        // provider may ignore these headers, too (RFC 9110, section 14.2).
        headers.remove(RANGE);
        headers.remove(IF_RANGE);
        credential::apply(credential, url, headers)?;
        let mut payload = merge(&credential.body, headers, payload)?;
        if let Some(secret) = &self.policy.webhook_secret {
            payload = webhook_secret::insert(secret, payload);
        }
        let names = credential::header_names(credential)
            .iter()
            .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
            .collect();
        Ok((payload, names))
    }

    /// Records the end of a request. Checks and counts its response.
    fn end_request(
        &self,
        checked: &Checked,
        record: usize,
        elapsed: Duration,
        sent: Result<net::Response, net::Error>,
    ) -> Result<net::Response, Error> {
        let answer = sent.map_err(|failed| {
            let message = self.trace.redactor().redact_text(&failed.message);
            self.trace.request_ended(record, elapsed, Err(&message));
            error(kind(failed.kind), message)
        })?;
        let received = answer.body.len() as u64;
        let end = Ok((answer.status.as_u16(), received));
        self.trace.request_ended(record, elapsed, end);
        rules::check_redirect(&self.policy, &answer).map_err(|refused| self.redacted(refused))?;
        self.count_response(checked.into_blob, received)?;
        Ok(answer)
    }

    /// Records the span of a traced request, and adds its `traceparent` if providers get it. It
    /// replaces a header of the guest, and is a part of the signature.
    fn add_span(&self, record: usize, started: Instant, url: &Url, headers: &mut HeaderMap) {
        let Some(run_trace) = self.run_trace else {
            return;
        };
        let span = run_trace.request(record);
        let host = rules::permitted_host(&self.policy, url).unwrap_or_default();
        self.trace.request_traced(
            record,
            RequestSpan {
                id: span.span,
                started,
                host: host.to_owned(),
            },
        );
        if run_trace.propagates
            && let Ok(traceparent) = HeaderValue::try_from(span.to_string())
        {
            headers.insert(TRACEPARENT_HEADER, traceparent);
        }
    }

    fn redacted(&self, refused: Error) -> Error {
        Error {
            message: self.trace.redactor().redact_text(&refused.message),
            ..refused
        }
    }

    /// Returns true if a redirect may be followed. It must satisfy the egress rules, and neither
    /// its URL nor its body may carry a secret to another origin.
    fn may_follow(&self, checked: &Checked, method: &Method, url: &Url) -> bool {
        if !rules::is_permitted(&self.policy, method, url) {
            return false;
        }
        if url.origin() == checked.url.origin() {
            return true;
        }
        let is_in_body = checked
            .credential
            .as_ref()
            .is_some_and(|credential| !credential.body.is_empty());
        !is_in_body
            && self.policy.webhook_secret.is_none()
            && !self
                .trace
                .redactor()
                .may_contain_secret(url.as_str().as_bytes())
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
        if !is_rejection(answer, &rejected.rejections) || self.count().is_err() {
            return None;
        }
        grant.refresh(rejected).await.ok().flatten()
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
