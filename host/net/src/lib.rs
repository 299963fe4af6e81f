//! The only way out to the network.
//!
//! Everything this service sends (what guests ask for, authorization servers, webhook deliveries) goes through
//! [`Client`]. It guarantees that no connection is opened to an address outside the public Internet unless the operator
//! listed it, that a name is looked up once and the address that was checked is the one connected to, that no proxy is used
//! and no redirect followed unasked, and that an answer is bounded in time and in decompressed size.
//!
//! The guarantee rests on four places: [`guard`] judges names and addresses, `lookup` finds the addresses of names, `connect` bounds
//! the connection, `body` reads the answer. It does not rest on the caller, nor on the environment: proxy variables are not read. Through a `proxy` that
//! a caller names it is the proxy's address that is checked.
//!
//! Connections are kept alive and shared by all callers. Credentials travel in requests, never in connections (no NTLM), so a
//! shared connection carries nobody's identity; those with a client certificate are shared by nobody (`identity`).

mod body;
mod connect;
mod error;
pub mod guard;
mod identity;
mod lookup;
mod proxy;
mod redirect;
mod rewrite;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use ipnet::IpNet;
use reqwest::header::{ACCEPT_ENCODING, HeaderValue};

use crate::lookup::Lookups;

pub use body::Room;
pub use error::{Error, ErrorKind};
pub use identity::Identity;
pub use ipnet;
pub use lookup::{DOMAIN_PART, LOOKUP_TIMEOUT, MAX_LOOKUPS, MAX_WAITING_LOOKUPS};
pub use proxy::{InvalidProxy, Proxy};
pub use reqwest::{
    Method, StatusCode, header,
    header::HeaderMap,
    multipart::{Form, Part},
};
pub use rewrite::{InvalidOrigin, Origin, Rewrite};
pub use url::Url;

/// Largest header block of an answer, names and values together, in bytes.
const HEADER_BYTES: usize = 64 << 10;
/// Connections kept open without work, for each host.
const IDLE_PER_HOST: usize = 64;
/// How long a connection without work is kept.
const IDLE: Duration = Duration::from_secs(60);

/// What the operator decides about outgoing traffic.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Origins that are sent elsewhere. Applied last: every policy sees the original URL.
    pub rewrite: Vec<Rewrite>,
    /// Private ranges that may be reached all the same.
    pub allow: Vec<IpNet>,
    /// Sent as `user-agent` when the request names none.
    pub user_agent: String,
}

/// A guarded HTTP client. Cloning is cheap and shares the connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
    /// What its connections show to whoever asks for a client certificate.
    identity: Option<Identity>,
    proxy: Option<Arc<Proxy>>,
    /// Where the memory for answers comes from; absent for no bound on all of them together.
    room: Option<Arc<dyn Room>>,
}

struct Inner {
    /// Of nobody in particular.
    shared: Clients,
    /// Of one client certificate each.
    owned: identity::Kept<Clients>,
    user_agent: String,
    rewrites: Vec<Rewrite>,
    allow: Arc<[IpNet]>,
    lookups: Arc<Lookups>,
    proxied: proxy::Clients,
}

/// Clients with connections of their own.
struct Clients {
    /// Resolves names through the guard.
    guarded: reqwest::Client,
    /// For the targets of rewrites, which the operator vouches for; made only when there are any.
    vouched: Option<reqwest::Client>,
}

/// One request.
#[derive(Debug)]
pub struct Request {
    /// Any method.
    pub method: Method,
    /// Absolute, `https` or `http`.
    pub url: Url,
    /// Sent as they are; `accept-encoding` is replaced.
    pub headers: HeaderMap,
    /// What to send.
    pub body: Body,
    /// Bounds of the exchange.
    pub limits: Limits,
}

/// The body of a request.
#[derive(Debug)]
pub enum Body {
    /// None.
    Empty,
    /// Sent as it is; `content-type` is the caller's.
    Bytes(Bytes),
    /// `multipart/form-data`; boundary and `content-type` are written here. Cannot be sent again after a redirect.
    Multipart(Form),
}

/// Bounds of one exchange.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// From the start until the connection stands, name look-up and TLS included.
    pub connect: Duration,
    /// From the start until the answer's headers are there.
    pub first_byte: Duration,
    /// The whole exchange.
    pub total: Duration,
    /// Size of the answer's body after decompression, in bytes.
    pub response_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(15),
            total: Duration::from_secs(30),
            response_bytes: 10 << 20,
        }
    }
}

/// A complete answer.
#[derive(Debug)]
pub struct Response {
    /// Any status: an error status is an answer, not an [`Error`].
    pub status: StatusCode,
    /// Without `content-encoding` and `content-length` when the body was decompressed.
    pub headers: HeaderMap,
    /// Decompressed.
    pub body: Bytes,
    /// The URL that answered, before any rewrite.
    pub url: Url,
}

impl Client {
    /// Makes a client.
    ///
    /// # Errors
    /// When TLS cannot be set up, for example because the system has no certificate store.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let Settings { rewrite: rewrites, allow, user_agent } = settings;
        let allow: Arc<[IpNet]> = allow.into();
        let lookups = Lookups::new();
        let shared = Clients::new(&user_agent, &allow, &lookups, !rewrites.is_empty(), None)?;
        let proxied = proxy::Clients::default();
        let inner = Inner { shared, owned: identity::Kept::new(), user_agent, rewrites, allow, lookups, proxied };
        Ok(Self { inner: Arc::new(inner), identity: None, proxy: None, room: None })
    }

    /// The same client with connections that show a certificate, which no other identity shares; without one, with those that
    /// show none.
    #[must_use]
    pub fn showing(&self, identity: Option<Identity>) -> Self {
        Self { identity, ..self.clone() }
    }

    /// The same client, whose requests leave through a proxy, but for those that the operator sends elsewhere.
    #[must_use]
    pub fn through(&self, proxy: Option<Arc<Proxy>>) -> Self {
        Self { proxy, ..self.clone() }
    }

    /// The same client, which takes the memory for the bodies of its answers from `room` while it receives them.
    #[must_use]
    pub fn within(&self, room: Arc<dyn Room>) -> Self {
        Self { room: Some(room), ..self.clone() }
    }

    /// The rewrites in force, for the start-up message.
    #[must_use]
    pub fn rewrites(&self) -> &[Rewrite] {
        &self.inner.rewrites
    }

    /// Sends one request and reads the whole answer. Redirects are answers.
    ///
    /// # Errors
    /// See [`ErrorKind`]. For [`ErrorKind::Denied`] and [`ErrorKind::InvalidRequest`] nothing was sent.
    pub async fn send(&self, request: Request) -> Result<Response, Error> {
        let place = error::Place::of(&request.method, &request.url);
        let total = request.limits.total;
        match tokio::time::timeout(total, self.exchange(request, &place)).await {
            Ok(answer) => answer,
            Err(_) => Err(place.timeout("the whole exchange", total)),
        }
    }

    async fn exchange(&self, request: Request, place: &error::Place) -> Result<Response, Error> {
        let started = Instant::now();
        let inner = &self.inner;
        let owned = match &self.identity {
            None => None,
            Some(identity) => Some(inner.owned.get(identity.digest, || {
                let Inner { user_agent, allow, lookups, rewrites, .. } = &**inner;
                Clients::new(user_agent, allow, lookups, !rewrites.is_empty(), Some(identity))
            })?),
        };
        let clients = owned.as_deref().unwrap_or(&inner.shared);
        let (client, target) = self.route(clients, &request.url, place)?;
        let mut headers = request.headers;
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let mut builder = client.request(request.method.clone(), target).headers(headers);
        builder = match request.body {
            Body::Empty => builder,
            Body::Bytes(bytes) => builder.body(bytes),
            Body::Multipart(form) => builder.multipart(form),
        };
        let limits = request.limits;
        let head = connect::within(limits.connect, builder.send());
        let answer = match tokio::time::timeout(limits.first_byte, head).await {
            Ok(answer) => answer.map_err(|cause| place.failed(&cause, limits.connect))?,
            Err(_) => return Err(place.timeout("the first byte of the answer", limits.first_byte)),
        };
        if header_bytes(answer.headers()) > HEADER_BYTES {
            return Err(place.too_large("header block", HEADER_BYTES as u64));
        }
        let (status, mut headers) = (answer.status(), answer.headers().clone());
        let left = limits.total.saturating_sub(started.elapsed());
        let body = body::read(answer, &mut headers, limits.response_bytes, self.room.as_deref());
        let body = match tokio::time::timeout(left, body).await {
            Ok(body) => body.map_err(|failure| place.unreadable(&failure, limits))?,
            Err(_) => return Err(place.timeout("the whole exchange", limits.total)),
        };
        Ok(Response { status, headers, body, url: request.url })
    }

    /// Where a URL really goes: through the guard, there perhaps through a proxy, or to the target of a rewrite.
    fn route(&self, clients: &Clients, url: &Url, place: &error::Place) -> Result<(reqwest::Client, Url), Error> {
        let Inner { rewrites, allow, user_agent, lookups, proxied, .. } = &*self.inner;
        if let (Some(vouched), Some(target)) = (&clients.vouched, rewrite::apply(rewrites, url)) {
            return Ok((vouched.clone(), target));
        }
        guard::check_url(url, allow).map_err(|refused| place.denied(&refused))?;
        let client = match &self.proxy {
            Some(proxy) => {
                let resolver = guard::Resolver::new(allow.clone(), lookups.clone());
                proxied.of(proxy, self.identity.as_ref(), user_agent, allow, resolver, place)?
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
        let guarded = build(user_agent, guard::Resolver::new(allow.clone(), lookups.clone()), identity, None)?;
        let vouched = || build(user_agent, guard::Resolver::vouched(lookups.clone()), identity, None);
        Ok(Self { guarded, vouched: if rewrites { Some(vouched()?) } else { None } })
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that makes clients")]
fn build(
    user_agent: &str,
    resolver: guard::Resolver,
    identity: Option<&Identity>,
    proxy: Option<&Proxy>,
) -> Result<reqwest::Client, Error> {
    let failed = |cause: reqwest::Error| Error {
        kind: ErrorKind::Tls,
        message: format!("cannot set up outgoing TLS: {}", error::innermost(&cause)),
    };
    let mut builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .no_gzip()
        .tcp_nodelay(true)
        .pool_max_idle_per_host(IDLE_PER_HOST)
        .pool_idle_timeout(IDLE)
        .http2_max_header_list_size(HEADER_BYTES as u32)
        .dns_resolver(resolver)
        .connector_layer(connect::Layer);
    if !user_agent.is_empty() {
        builder = builder.user_agent(user_agent);
    }
    if let Some(identity) = identity {
        builder = builder.identity(identity.own());
    }
    if let Some(proxy) = proxy {
        builder = builder.proxy(proxy.to_reqwest().map_err(failed)?);
    }
    builder.build().map_err(failed)
}

fn header_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}
