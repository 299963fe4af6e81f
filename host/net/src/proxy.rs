//! Requests that leave through a proxy.
//!
//! A project may have to reach an application through a proxy of its own. Its address is judged as every other one, and again
//! whenever its name is looked up; a literal address that a request names is judged here, too. Names that requests go to are looked up
//! by the proxy, so what they lead to is its own affair: who may be asked for is the caller's rule. What a request carries goes
//! through a tunnel (RFC 9110, section 9.3.6), and the proxy sees none of it. What the proxy wants to see of its user it alone is sent.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use ipnet::IpNet;
use reqwest::header::HeaderValue;
use url::Url;

use crate::{Error, Identity, build, error::Place, guard};

/// Clients kept, each with its connections. Past it all are let go.
const KEPT: usize = 64;

/// A proxy, and what its user shows it. Does not print that.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Proxy {
    url: Url,
    authorization: Option<HeaderValue>,
}

/// The address is not that of a proxy, or what is shown to it cannot stand in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProxy {
    /// See [`Proxy::new`].
    #[error("a proxy is `http://host:port` or `https://host:port`, without user, path and query")]
    Address,
    /// See [`Proxy::new`].
    #[error("the proxy's key cannot stand in a header")]
    Authorization,
}

impl Proxy {
    /// A proxy at `http://host:port` or `https://host:port`, which is shown `authorization` (RFC 9110, section 11.7.2).
    ///
    /// # Errors
    /// See [`InvalidProxy`].
    pub fn new(address: &str, authorization: Option<&str>) -> Result<Self, InvalidProxy> {
        let url = Url::parse(address).map_err(|_| InvalidProxy::Address)?;
        let bare = matches!(url.scheme(), "http" | "https")
            && url.host_str().is_some_and(|host| !host.is_empty())
            && url.username().is_empty()
            && url.password().is_none()
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none();
        if !bare {
            return Err(InvalidProxy::Address);
        }
        let value = |text: &str| {
            let mut value = HeaderValue::from_str(text).map_err(|_| InvalidProxy::Authorization)?;
            value.set_sensitive(true);
            Ok(value)
        };
        Ok(Self { url, authorization: authorization.map(value).transpose()? })
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({})", self.url)
    }
}

/// A proxy, and the digest of the certificate that connections through it show.
type Way = (Arc<Proxy>, Option<[u8; 32]>);

/// A client for each way.
#[derive(Default)]
pub(crate) struct Clients(Mutex<HashMap<Way, reqwest::Client>>);

impl Clients {
    /// The client of a proxy; made when it is first asked for.
    pub(crate) fn of(
        &self,
        proxy: &Arc<Proxy>,
        identity: Option<&Identity>,
        user_agent: &str,
        allow: &[IpNet],
        resolver: guard::Resolver,
        place: &Place,
    ) -> Result<reqwest::Client, Error> {
        guard::check_url(&proxy.url, allow).map_err(|refused| place.denied_proxy(&refused))?;
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let way = (proxy.clone(), identity.map(|identity| identity.digest));
        if let Some(client) = clients.get(&way) {
            return Ok(client.clone());
        }
        let client = build(user_agent, resolver, identity, Some(proxy))?;
        if clients.len() >= KEPT {
            clients.clear();
        }
        clients.insert(way, client.clone());
        Ok(client)
    }
}

impl Proxy {
    pub(crate) fn to_reqwest(&self) -> reqwest::Result<reqwest::Proxy> {
        let proxy = reqwest::Proxy::all(self.url.clone())?;
        Ok(match &self.authorization {
            Some(value) => proxy.custom_http_auth(value.clone()),
            None => proxy,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_an_origin_and_does_not_print_its_key() {
        for address in ["http://proxy.example:3128", "https://proxy.example", "http://10.0.0.1:8080/"] {
            assert!(Proxy::new(address, None).is_ok(), "{address}");
        }
        for address in [
            "proxy.example:3128",
            "socks5://proxy.example",
            "http://",
            "http://user:pass@proxy.example",
            "http://proxy.example/path",
            "http://proxy.example?q",
        ] {
            assert_eq!(Proxy::new(address, None), Err(InvalidProxy::Address), "{address}");
        }
        assert_eq!(Proxy::new("http://proxy.example", Some("a\r\nb")), Err(InvalidProxy::Authorization));
        let shown = format!("{:?}", Proxy::new("http://proxy.example", Some("Bearer canary")));
        assert!(!shown.contains("canary"), "{shown}");
    }
}
