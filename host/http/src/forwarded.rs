//! Address of the client behind the operator's proxies.
//!
//! A proxy appends the address of its peer to `X-Forwarded-For` or `Forwarded` (RFC 7239). Entries
//! to the left of that are claims of the client. Therefore the lists are read from the right, and
//! only as far as trusted proxies wrote them.

use std::{
    borrow::Cow,
    net::{IpAddr, SocketAddr},
};

use axum::http::{HeaderMap, HeaderName, header::FORWARDED};
use net::ipnet::IpNet;

use crate::error::HttpError;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Returns true if an address is that of a trusted proxy.
pub(crate) fn is_trusted(address: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|range| range.contains(&address))
}

/// Returns the address that a request counts for: the peer's, or the one that the trusted proxies
/// name.
///
/// # Errors
/// If a quote in `Forwarded` does not end, or if both headers are present and name different
/// addresses: one of them may be forged by the client.
pub(crate) fn client(
    peer: IpAddr,
    headers: &HeaderMap,
    trusted: &[IpNet],
) -> Result<IpAddr, HttpError> {
    if !is_trusted(peer, trusted) {
        return Ok(peer);
    }
    let plain = joined_values(headers, &X_FORWARDED_FOR)
        .map(|list| farthest(peer, list.rsplit(',').map(address), trusted));
    let standard = match joined_values(headers, &FORWARDED) {
        None => None,
        Some(list) => {
            let elements = split(&list, ',').ok_or(HttpError::ForwardedInvalid)?;
            Some(farthest(
                peer,
                elements.into_iter().rev().map(forwarded_for),
                trusted,
            ))
        }
    };
    match (plain, standard) {
        (Some(plain), Some(standard)) if plain != standard => Err(HttpError::ForwardedInvalid),
        (plain, standard) => Ok(plain.or(standard).unwrap_or(peer)),
    }
}

/// Returns the values of a header, joined by commas; `None` if the header is absent.
fn joined_values(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let values: Vec<_> = headers
        .get_all(name)
        .iter()
        .map(|value| value.to_str().unwrap_or_default())
        .collect();
    (!values.is_empty()).then(|| values.join(","))
}

/// Walks from the nearest address to the first other than a trusted proxy. An unreadable entry ends
/// the walk at the proxy that wrote it.
fn farthest(peer: IpAddr, hops: impl Iterator<Item = Option<IpAddr>>, trusted: &[IpNet]) -> IpAddr {
    let mut nearest = peer;
    for hop in hops {
        let Some(hop) = hop else { break };
        nearest = hop;
        if !is_trusted(hop, trusted) {
            break;
        }
    }
    nearest
}

/// Reads the `for` parameter of one element of `Forwarded`.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let pairs = split(element, ';')?;
    let mut named = pairs
        .into_iter()
        .filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = named.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    let value = value.trim();
    let quoted = value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'));
    address(&quoted.map_or(Cow::Borrowed(value), |value| value.replace('\\', "").into()))
}

/// Reads an address: bare, in brackets, or with a port.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    let address = bare
        .parse()
        .or_else(|_| text.parse::<SocketAddr>().map(|socket| socket.ip()));
    address.ok().map(|address| address.to_canonical())
}

/// Splits a string at a character outside of quotes; returns `None` if a quote does not end.
fn split(text: &str, at: char) -> Option<Vec<&str>> {
    let (mut parts, mut begin, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (index, character) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if quoted && character == '\\' {
            escaped = true;
        } else if character == '"' {
            quoted = !quoted;
        } else if character == at && !quoted {
            parts.push(&text[begin..index]);
            begin = index + 1;
        }
    }
    parts.push(&text[begin..]);
    (!quoted).then_some(parts)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn found(peer: &str, headers: &[(&'static str, &str)]) -> Result<String, HttpError> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let trusted = ["10.0.0.0/8", "2001:db8:1::/48"].map(|range| range.parse().unwrap());
        client(peer.parse().unwrap(), &map, &trusted).map(|address| address.to_string())
    }

    fn by_proxy(header: &'static str, value: &str) -> String {
        found("10.0.0.1", &[(header, value)]).unwrap()
    }

    #[test]
    fn only_trusted_proxies_name_the_client() {
        let forwarded = ("forwarded", "for=192.0.2.9");
        let headers = [("x-forwarded-for", "192.0.2.9"), forwarded];
        assert_eq!(found("192.0.2.1", &headers).unwrap(), "192.0.2.1");
        assert_eq!(found("10.0.0.1", &headers).unwrap(), "192.0.2.9");
        assert_eq!(found("10.0.0.1", &[]).unwrap(), "10.0.0.1");
    }

    #[test]
    fn the_last_untrusted_address_is_the_client() {
        for (value, client) in [
            ("192.0.2.7", "192.0.2.7"),
            ("1.1.1.1, 192.0.2.7", "192.0.2.7"),
            ("1.1.1.1,192.0.2.7 , 10.0.0.2,10.0.0.3", "192.0.2.7"),
            ("10.9.9.9, 10.0.0.2", "10.9.9.9"),
            ("unknown", "10.0.0.1"),
            ("192.0.2.7, unknown, 10.0.0.2", "10.0.0.2"),
            ("192.0.2.7:8080", "192.0.2.7"),
            ("2001:db8::7", "2001:db8::7"),
            ("[2001:db8::7]:80, 2001:db8:1::1", "2001:db8::7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("", "10.0.0.1"),
        ] {
            assert_eq!(by_proxy("x-forwarded-for", value), client, "{value}");
        }
        let lines = ["1.1.1.1", "192.0.2.7"].map(|line| ("x-forwarded-for", line));
        assert_eq!(found("10.0.0.1", &lines).unwrap(), "192.0.2.7");
    }

    #[test]
    fn forwarded_is_read_as_its_rfc_says() {
        for (value, client) in [
            ("for=192.0.2.60;proto=http;by=203.0.113.43", "192.0.2.60"),
            ("For=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17"),
            ("for=1.1.1.1, for=192.0.2.43, for=10.1.1.1", "192.0.2.43"),
            (
                "for=1.1.1.1;host=\"a,for=9.9.9.9\", proto=https ; FOR = 192.0.2.43",
                "192.0.2.43",
            ),
            ("for=\"a\\\",for=9.9.9.9\"", "10.0.0.1"),
            ("for=\"a,for=9.9.9.9\", for=192.0.2.43", "192.0.2.43"),
            ("for=_hidden", "10.0.0.1"),
            ("proto=https", "10.0.0.1"),
        ] {
            assert_eq!(by_proxy("forwarded", value), client, "{value}");
        }
    }

    #[test]
    fn contradicting_and_open_headers_are_refused() {
        let forwarded = ("forwarded", "for=192.0.2.8");
        for other in [("x-forwarded-for", "192.0.2.7"), ("forwarded", "for=\"")] {
            let refused = found("10.0.0.1", &[other, forwarded]);
            assert_eq!(refused, Err(HttpError::ForwardedInvalid));
        }
    }

    proptest! {
        #[test]
        fn client_text_never_overrides_the_proxy_entry(own in "[ -~]{0,40}") {
            let appended = format!("{own}, 192.0.2.7");
            prop_assert_eq!(found("10.0.0.1", &[("x-forwarded-for", &appended)]).unwrap(), "192.0.2.7");
            let appended = found("10.0.0.1", &[("forwarded", &format!("{own}, for=192.0.2.7"))]);
            prop_assert!(appended.clone().is_ok_and(|found| found == "192.0.2.7") || appended.is_err(), "{:?}", appended);
        }
    }
}
