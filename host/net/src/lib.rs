//! Client for outgoing requests to addresses that a tenant can influence.
//!
//! Guest requests, requests to authorization servers and webhook deliveries go through [`Client`].
//!
//! Guarantee: no connection is opened to an address outside the public Internet unless the operator
//! allowed it. A name is looked up once, and the connection goes to the checked address. No proxy
//! is used and no redirect is followed unless the caller requests it. A response is limited in time
//! and in decompressed size.
//!
//! The guarantee rests on four modules: [`guard`] checks names and addresses, `lookup` finds the
//! addresses of names, `connect` limits the connection, `body` reads the response. It does not rest
//! on the caller or on the environment; proxy variables are not read. With a `proxy` that a caller
//! names, the address of the proxy is checked.
//!
//! Connections are kept alive and shared by all callers. Credentials travel in requests, never in
//! connections (no NTLM), so a shared connection carries no identity. Connections with a client
//! certificate are not shared (`identity`).

mod body;
mod challenges;
mod connect;
mod credential_header;
mod error;
pub mod guard;
mod identity;
mod lookup;
mod proxy;
mod redirect;
mod retry_after;
mod rewrite;
mod streamed;
pub mod text;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use ipnet::IpNet;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HeaderValue};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout, timeout_at},
};

use crate::{error::ErrorContext, identity::ClientCache, lookup::Lookups};

pub use body::{BodyReader, MAX_LARGE_READS, MemoryBudget};
pub use challenges::challenges;
pub use credential_header::credential_header;
pub use error::{Error, ErrorKind};
pub use identity::Identity;
pub use ipnet;
pub use lookup::{LOOKUP_SHARES, LOOKUP_TIMEOUT, WAITING_LOOKUP_SHARES};
pub use proxy::{InvalidProxy, Proxy};
pub use reqwest::{
    Method, StatusCode, header,
    header::HeaderMap,
    multipart::{Form, Part},
};
pub use retry_after::{MAX_RETRY_AFTER, retry_after};
pub use rewrite::{InvalidOrigin, Origin, Rewrite};
pub use streamed::StreamedResponse;
pub use url::Url;

/// Maximum size of a response's headers, names and values together, in bytes.
const MAX_HEADER_BYTES: usize = 64 << 10;
/// Maximum number of idle connections per host.
const MAX_IDLE_CONNECTIONS_PER_HOST: usize = 64;
/// Time after which an idle connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Operator settings for outgoing traffic.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Origins that are redirected to others. They apply last, so every policy sees the original
    /// URL.
    pub rewrite: Vec<Rewrite>,
    /// Private ranges that may be reached.
    pub allow: Vec<IpNet>,
    /// Value of `user-agent` for requests without one.
    pub user_agent: String,
}

/// Guarded HTTP client. Cloning is cheap and shares the connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
    /// Client certificate of its connections.
    identity: Option<Identity>,
    proxy: Option<Arc<Proxy>>,
    /// Tenant for which names are looked up.
    tenant: Option<Arc<str>>,
    /// Memory budget for all responses together, or `None` for no limit.
    memory: Option<Arc<dyn MemoryBudget>>,
    /// Reader of responses while they arrive.
    reader: Option<Arc<dyn BodyReader>>,
}

struct Inner {
    /// Clients without a certificate, shared by all callers.
    shared: Clients,
    /// Clients with one certificate each, by its digest.
    by_identity: ClientCache<[u8; 32], Clients>,
    user_agent: String,
    rewrites: Vec<Rewrite>,
    allow: Arc<[IpNet]>,
    lookups: Arc<Lookups>,
    /// Clients with one proxy each, and with the certificate that has this digest.
    by_proxy: ClientCache<(Arc<Proxy>, Option<[u8; 32]>), reqwest::Client>,
    /// Turns of large response bodies.
    large_reads: Semaphore,
}

/// HTTP clients with separate connections.
struct Clients {
    /// Client that resolves names through the guard.
    guarded: reqwest::Client,
    /// Client for the targets of rewrites, which the operator configured; created only if rewrites
    /// exist.
    unguarded: Option<reqwest::Client>,
}

/// One request.
#[derive(Debug)]
pub struct Request {
    /// Method of the request.
    pub method: Method,
    /// Absolute `https` or `http` URL.
    pub url: Url,
    /// Headers, sent unchanged except that `accept-encoding` is replaced.
    pub headers: HeaderMap,
    /// Body of the request.
    pub body: Body,
    /// Limits of the exchange.
    pub limits: Limits,
}

/// Body of a request.
#[derive(Debug, Default)]
pub enum Body {
    /// No body.
    #[default]
    Empty,
    /// Bytes that are sent unchanged; the caller sets `content-type`.
    Bytes(Bytes),
    /// `multipart/form-data`; the client sets boundary and `content-type`. It cannot be sent again
    /// after a redirect.
    Multipart(Form),
}

impl Body {
    fn is_empty(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Multipart(_) => false,
        }
    }
}

/// Limits of one exchange.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Timeout for the connection, including name lookup and TLS.
    pub connect: Duration,
    /// Timeout from the start to the response headers.
    pub first_byte: Duration,
    /// Timeout for the whole exchange.
    pub total: Duration,
    /// Maximum size of the response body after decompression, in bytes.
    pub response_bytes: u64,
    /// True if a larger response body is cut off at this size. Otherwise it is an error.
    pub cuts_response: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(15),
            total: Duration::from_secs(30),
            response_bytes: 10 << 20,
            cuts_response: false,
        }
    }
}

impl Limits {
    /// Returns the limits of an exchange whose whole response is read within a time.
    #[must_use]
    pub fn within(total: Duration, response_bytes: u64) -> Self {
        Self {
            first_byte: total,
            total,
            response_bytes,
            ..Self::default()
        }
    }
}

/// Complete response.
#[derive(Debug)]
pub struct Response {
    /// HTTP status. An error status is a response, not an [`Error`].
    pub status: StatusCode,
    /// Headers, without `content-encoding` and `content-length` if the body was decompressed.
    pub headers: HeaderMap,
    /// Decompressed body.
    pub body: Bytes,
    /// URL that responded, before any rewrite.
    pub url: Url,
}

impl Client {
    /// Creates a client.
    ///
    /// # Errors
    /// Returns an error if TLS cannot be set up, for example because the system lacks a certificate
    /// store.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        Self::with_lookups(settings, Lookups::new())
    }

    fn with_lookups(settings: Settings, lookups: Arc<Lookups>) -> Result<Self, Error> {
        let Settings {
            rewrite: rewrites,
            allow,
            user_agent,
        } = settings;
        let allow: Arc<[IpNet]> = allow.into();
        let shared = Clients::new(&user_agent, &allow, &lookups, !rewrites.is_empty(), None)?;
        let inner = Inner {
            shared,
            by_identity: ClientCache::new(),
            user_agent,
            rewrites,
            allow,
            lookups,
            by_proxy: ClientCache::new(),
            large_reads: Semaphore::new(MAX_LARGE_READS),
        };
        Ok(Self {
            inner: Arc::new(inner),
            identity: None,
            proxy: None,
            tenant: None,
            memory: None,
            reader: None,
        })
    }

    /// Returns this client with connections that use a client certificate and are not shared with
    /// other identities. With `None` the connections use no certificate.
    #[must_use]
    pub fn with_identity(mut self, identity: Option<Identity>) -> Self {
        self.identity = identity;
        self
    }

    /// Returns this client with a proxy for all requests except those to rewritten origins.
    #[must_use]
    pub fn with_proxy(mut self, proxy: Option<Arc<Proxy>>) -> Self {
        self.proxy = proxy;
        self
    }

    /// Returns this client for the requests of a tenant. Their lookups of names use the tenant's
    /// share, so a host that a tenant can choose is reached only through such a client.
    #[must_use]
    pub fn for_tenant(mut self, tenant: Arc<str>) -> Self {
        self.tenant = Some(tenant);
        self
    }

    /// Returns this client with the memory budget `memory` for the response bodies that it
    /// receives.
    #[must_use]
    pub fn with_memory_budget(mut self, memory: Arc<dyn MemoryBudget>) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Returns this client with a reader of the response bodies that it receives, which may leave a
    /// body before its end.
    #[must_use]
    pub fn with_body_reader(mut self, reader: Option<Arc<dyn BodyReader>>) -> Self {
        self.reader = reader;
        self
    }

    /// Returns the active rewrites, for the start-up message.
    #[must_use]
    pub fn rewrites(&self) -> &[Rewrite] {
        &self.inner.rewrites
    }

    /// Sends one request and reads the whole response. A redirect is returned as a response.
    ///
    /// # Errors
    /// Returns an [`Error`] whose kind is one of [`ErrorKind`]. For [`ErrorKind::Denied`] and
    /// [`ErrorKind::InvalidRequest`] nothing was sent.
    pub async fn send(&self, mut request: Request) -> Result<Response, Error> {
        let body = std::mem::take(&mut request.body);
        self.send_with_body(&request, body).await
    }

    /// Sends a request with another body than its own, as [`Client::send`].
    async fn send_with_body(&self, request: &Request, body: Body) -> Result<Response, Error> {
        let context = ErrorContext::new(&request.method, &request.url);
        let limits = request.limits;
        let exceeded = || context.timeout("the whole exchange", limits.total);
        let deadline = Instant::now() + limits.total;
        let gzip = HeaderValue::from_static("gzip");
        let sending = self.head(request, body, gzip, &context);
        // One timer at a time: until the headers have arrived, the earlier one.
        let head = if limits.first_byte <= limits.total {
            within_first_byte(sending, limits, &context).await
        } else {
            timeout_at(deadline, sending)
                .await
                .map_err(|_| exceeded())?
        };
        let mut response = head?;
        let status = response.status();
        let mut headers = std::mem::take(response.headers_mut());
        let watch = body::Watch {
            large_reads: &self.inner.large_reads,
            memory: self.memory.as_deref(),
            reader: self.reader.as_deref(),
        };
        let reading = body::read(response, &mut headers, limits, watch);
        let read = timeout_at(deadline, reading)
            .await
            .map_err(|_| exceeded())?;
        Ok(Response {
            status,
            body: read.map_err(|failure| context.unreadable(&failure, limits))?,
            headers,
            url: request.url.clone(),
        })
    }

    /// Sends one request and returns the response when its headers have arrived. Of the limits, those
    /// of the connection and of the first byte apply. The body is read piece by piece, and fails if
    /// no piece arrives for `idle_timeout`.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn open(
        &self,
        mut request: Request,
        idle_timeout: Duration,
    ) -> Result<StreamedResponse, Error> {
        let body = std::mem::take(&mut request.body);
        let context = ErrorContext::new(&request.method, &request.url);
        let identity = HeaderValue::from_static("identity");
        let sending = self.head(&request, body, identity, &context);
        let response = within_first_byte(sending, request.limits, &context).await?;
        let Request { method, url, .. } = request;
        Ok(StreamedResponse::new(response, idle_timeout, method, url))
    }

    /// Checks whether a URL may be reached now. Sends no request. A name without an address, or
    /// whose name server does not answer, passes.
    ///
    /// # Errors
    /// Returns the reason if the guard refuses the URL.
    pub async fn check(&self, url: &Url) -> Result<(), guard::Refused> {
        let inner = &self.inner;
        if rewrite::apply(&inner.rewrites, url).is_some() {
            return Ok(());
        }
        guard::check_url(url, &inner.allow)?;
        let Some(url::Host::Domain(name)) = url.host() else {
            return Ok(());
        };
        match inner.lookups.find(name, self.tenant.clone()).await {
            Ok(addresses) => guard::check_addresses(addresses, &inner.allow).map(drop),
            Err(_) => Ok(()),
        }
    }

    /// Sends a request and returns the response when its headers have arrived, without a timeout.
    async fn head(
        &self,
        request: &Request,
        body: Body,
        accept_encoding: HeaderValue,
        context: &ErrorContext<'_>,
    ) -> Result<reqwest::Response, Error> {
        let inner = &self.inner;
        let owned = match &self.identity {
            None => None,
            Some(identity) => Some(inner.by_identity.get(identity.digest, || {
                let Inner {
                    user_agent,
                    allow,
                    lookups,
                    rewrites,
                    ..
                } = &**inner;
                Clients::new(
                    user_agent,
                    allow,
                    lookups,
                    !rewrites.is_empty(),
                    Some(identity),
                )
            })?),
        };
        let clients = owned.as_deref().unwrap_or(&inner.shared);
        let (client, target) = self.route(clients, &request.url, context)?;
        let mut headers = request.headers.clone();
        headers.insert(ACCEPT_ENCODING, accept_encoding);
        if body.is_empty() && gives_meaning_to_bodies(&request.method) {
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let mut outgoing = reqwest::Request::new(request.method.clone(), target);
        *outgoing.headers_mut() = headers;
        let empty = reqwest::RequestBuilder::from_parts(client, outgoing);
        let builder = match body {
            Body::Empty => empty,
            Body::Bytes(bytes) => empty.body(bytes),
            Body::Multipart(form) => empty.multipart(form),
        };
        let connect_timeout = request.limits.connect;
        let settings = connect::ConnectSettings {
            timeout: connect_timeout,
            tenant: self.tenant.clone(),
        };
        let response = connect::with_connect_settings(settings, builder.send())
            .await
            .map_err(|cause| context.failed(&cause, connect_timeout))?;
        if header_bytes(response.headers()) > MAX_HEADER_BYTES {
            return Err(context.too_large("header block", MAX_HEADER_BYTES as u64));
        }
        Ok(response)
    }

    /// Selects the client and the final URL of a request: through the guard, possibly with a proxy,
    /// or to the target of a rewrite.
    fn route(
        &self,
        clients: &Clients,
        url: &Url,
        context: &ErrorContext<'_>,
    ) -> Result<(reqwest::Client, Url), Error> {
        let Inner {
            rewrites,
            allow,
            user_agent,
            lookups,
            by_proxy,
            ..
        } = &*self.inner;
        if let (Some(unguarded), Some(target)) = (&clients.unguarded, rewrite::apply(rewrites, url))
        {
            return Ok((unguarded.clone(), target));
        }
        guard::check_url(url, allow).map_err(|refused| context.denied(&refused))?;
        let client = match &self.proxy {
            Some(proxy) => {
                guard::check_url(&proxy.url, allow)
                    .map_err(|refused| context.denied_proxy(&refused))?;
                let identity = self.identity.as_ref();
                let key = (proxy.clone(), identity.map(|identity| identity.digest));
                let client = by_proxy.get(key, || {
                    let resolver = guard::Resolver::new(allow.clone(), lookups.clone());
                    build(user_agent, resolver, identity, Some(proxy))
                })?;
                (*client).clone()
            }
            None => clients.guarded.clone(),
        };
        Ok((client, url.clone()))
    }
}

impl Clients {
    fn new(
        user_agent: &str,
        allow: &Arc<[IpNet]>,
        lookups: &Arc<Lookups>,
        rewrites: bool,
        identity: Option<&Identity>,
    ) -> Result<Self, Error> {
        let guarded = build(
            user_agent,
            guard::Resolver::new(allow.clone(), lookups.clone()),
            identity,
            None,
        )?;
        let unguarded = if rewrites {
            let resolver = guard::Resolver::unguarded(lookups.clone());
            Some(build(user_agent, resolver, identity, None)?)
        } else {
            None
        };
        Ok(Self { guarded, unguarded })
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one context that makes clients"
)]
fn build(
    user_agent: &str,
    resolver: guard::Resolver,
    identity: Option<&Identity>,
    proxy: Option<&Proxy>,
) -> Result<reqwest::Client, Error> {
    let mut builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        // With a number of retries, each request would be copied, also if none is retried.
        .retry(reqwest::retry::never().max_retries_per_request(0))
        .no_gzip()
        .tcp_nodelay(true)
        .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS_PER_HOST)
        .pool_idle_timeout(IDLE_TIMEOUT)
        // With HTTP/2, requests of all tenants would share one connection to a host, and those of one
        // tenant could take all of its streams.
        .http1_only()
        .dns_resolver(resolver)
        .connector_layer(connect::ConnectSettingsLayer);
    if !user_agent.is_empty() {
        builder = builder.user_agent(user_agent);
    }
    if let Some(identity) = identity {
        builder = builder.identity(identity.own());
    }
    if let Some(proxy) = proxy {
        builder = builder.proxy(proxy.to_reqwest().map_err(tls_error)?);
    }
    builder.build().map_err(tls_error)
}

fn tls_error(cause: reqwest::Error) -> Error {
    Error {
        kind: ErrorKind::Tls,
        message: format!("cannot set up outgoing TLS: {}", error::innermost(&cause)),
    }
}

/// Waits for the headers of a response, at most for their timeout.
async fn within_first_byte(
    sending: impl Future<Output = Result<reqwest::Response, Error>>,
    limits: Limits,
    context: &ErrorContext<'_>,
) -> Result<reqwest::Response, Error> {
    let limit = limits.first_byte;
    match timeout(limit, sending).await {
        Ok(response) => response,
        Err(_) => Err(context.timeout("the first byte of the response", limit)),
    }
}

/// Returns true if a request without a body says so by its length (RFC 9110, section 8.6). Many front ends
/// answer 411 otherwise.
fn gives_meaning_to_bodies(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

fn header_bytes(headers: &HeaderMap) -> usize {
    headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum()
}
