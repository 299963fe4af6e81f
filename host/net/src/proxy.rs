//! Sends requests through a proxy.
//!
//! Problem: a project may have to reach a provider through its own proxy.
//!
//! Guarantee: the address of the proxy passes the guard as every other one, and again whenever its
//! name is looked up. A literal address in a request is checked here, too. The proxy resolves the
//! host names of requests, so their addresses are not checked; the rules of the caller decide which
//! hosts are allowed. An HTTPS request goes through a tunnel (RFC 9110, section 9.3.6), so the
//! proxy cannot read it. The proxy's own credential is sent to the proxy only.

use std::fmt;

use reqwest::header::HeaderValue;
use url::Url;

use crate::{credential_header, rewrite::is_bare_origin};

/// Proxy and its credential. The credential is hidden in `Debug` output.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Proxy {
    pub(crate) url: Url,
    authorization: Option<HeaderValue>,
}

/// Error for an invalid proxy address or a credential that cannot be a header value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProxy {
    /// The address is not that of a proxy. See [`Proxy::new`].
    #[error(
        "the proxy address is invalid; write `http://host:port` or `https://host:port`, without user, path and query"
    )]
    Address,
    /// The credential cannot be a header value. See [`Proxy::new`].
    #[error("the proxy's key contains characters that a header value cannot have")]
    Authorization,
}

impl Proxy {
    /// Creates a proxy at `http://host:port` or `https://host:port`. `authorization` is the value
    /// of its `proxy-authorization` header (RFC 9110, section 11.7.2).
    ///
    /// # Errors
    /// Returns an [`InvalidProxy`] if one of them is invalid.
    pub fn new(address: &str, authorization: Option<&str>) -> Result<Self, InvalidProxy> {
        let url = Url::parse(address).map_err(|_| InvalidProxy::Address)?;
        if !is_bare_origin(&url) {
            return Err(InvalidProxy::Address);
        }
        Ok(Self {
            url,
            authorization: authorization
                .map(|value| credential_header(value).ok_or(InvalidProxy::Authorization))
                .transpose()?,
        })
    }

    pub(crate) fn to_reqwest(&self) -> reqwest::Result<reqwest::Proxy> {
        let proxy = reqwest::Proxy::all(self.url.clone())?;
        Ok(match &self.authorization {
            Some(value) => proxy.custom_http_auth(value.clone()),
            None => proxy,
        })
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({})", self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_is_bare_origin_and_hides_key() {
        let named = |authorization| Proxy::new("http://proxy.example:3128", authorization);
        assert!(named(None).is_ok());
        for address in ["socks5://proxy.example", "http://", "http://a:b@c.example"] {
            let refused = Proxy::new(address, None);
            assert_eq!(refused, Err(InvalidProxy::Address), "{address}");
        }
        let refused = named(Some("a\r\nb"));
        assert_eq!(refused, Err(InvalidProxy::Authorization));
        let shown = format!("{:?}", named(Some("Bearer canary")));
        assert!(!shown.contains("canary"), "{shown}");
    }
}
