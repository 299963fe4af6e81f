//! Origins that the operator redirects to others, for mirrors and for tests.

use std::{fmt, str::FromStr};

use url::Url;

/// Scheme, host and port, for example `https://api.example.com`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

/// Rewrite of requests from one origin to another; path and query stay. The operator vouches for
/// the target, so loopback and `http` are allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    /// Origin in the request.
    pub from: Origin,
    /// Origin that receives the request.
    pub to: Origin,
}

/// Error for a string which is not an origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an origin; write scheme, host and port without a path, for example https://api.example.com"
)]
pub struct InvalidOrigin(String);

impl Origin {
    /// Returns the origin of a URL, or `None` if it has no host or no known port.
    #[must_use]
    pub fn from_url(url: &Url) -> Option<Self> {
        Some(Self {
            scheme: url.scheme().to_owned(),
            host: url.host_str()?.to_owned(),
            port: url.port_or_known_default()?,
        })
    }

    /// Returns true if this is the origin of a URL.
    fn is_of(&self, url: &Url) -> bool {
        url.scheme() == self.scheme
            && url.host_str() == Some(self.host.as_str())
            && url.port_or_known_default() == Some(self.port)
    }
}

impl FromStr for Origin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let invalid = || InvalidOrigin(text.to_owned());
        let url = Url::parse(text).map_err(|_| invalid())?;
        if is_bare_origin(&url) {
            Self::from_url(&url).ok_or_else(invalid)
        } else {
            Err(invalid())
        }
    }
}

/// Returns true if a URL has only scheme, host and port, and its scheme is that of HTTP.
pub(crate) fn is_bare_origin(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none()
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default_port = if self.scheme == "https" { 443 } else { 80 };
        write!(f, "{}://{}", self.scheme, self.host)?;
        if self.port == default_port {
            Ok(())
        } else {
            write!(f, ":{}", self.port)
        }
    }
}

/// Returns the URL to use instead of `url` if a rewrite matches its origin.
pub(crate) fn apply(rewrites: &[Rewrite], url: &Url) -> Option<Url> {
    if !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    let to = &rewrites.iter().find(|rewrite| rewrite.from.is_of(url))?.to;
    let mut target = url.clone();
    target.set_scheme(&to.scheme).ok()?;
    target.set_host(Some(&to.host)).ok()?;
    target.set_port(Some(to.port)).ok()?;
    Some(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewrite(from: &str, to: &str) -> Rewrite {
        Rewrite {
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
        }
    }

    #[test]
    fn only_the_named_origin_is_sent_elsewhere() {
        let rewrites = [rewrite("https://api.example.com", "http://127.0.0.1:4010")];
        let apply = |url: &str| apply(&rewrites, &Url::parse(url).unwrap()).map(String::from);
        assert_eq!(
            apply("https://api.example.com/a/b?c=d").unwrap(),
            "http://127.0.0.1:4010/a/b?c=d"
        );
        assert_eq!(
            apply("https://API.example.com:443/").unwrap(),
            "http://127.0.0.1:4010/"
        );
        assert_eq!(apply("http://api.example.com/"), None);
        assert_eq!(apply("https://api.example.com:8443/"), None);
        assert_eq!(apply("https://x.api.example.com/"), None);
        assert_eq!(apply("https://u@api.example.com/"), None);
    }

    #[test]
    fn origins_round_trip_without_default_port() {
        for text in [
            "https://api.example.com",
            "http://127.0.0.1:4010",
            "http://[::1]:80",
            "http://localhost",
        ] {
            let origin: Origin = text.parse().unwrap();
            assert_eq!(origin.to_string().parse::<Origin>().unwrap(), origin);
        }
        for text in [
            "api.example.com",
            "ftp://a.example",
            "https://a.example/path",
            "https://u@a.example",
            "https://a.example?q",
        ] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
    }
}
