//! Decides which addresses may be reached.
//!
//! Problem: a host name under an attacker's control can resolve to any address, for example to this
//! machine or to a cloud's metadata service. It can resolve to another address a moment later.
//!
//! Guarantee: no connection goes to an address that was not checked.
//!
//! The guarantee rests on three facts. A name is looked up once, here, and the connector gets
//! exactly the checked addresses. If any address of a name is not public, all are refused, because
//! a mixed answer is an attack or a mistake. IP literals never reach a resolver: [`check_url`]
//! checks them before anything is sent. The `url` crate, the only parser in use, turns odd
//! spellings (`0x7f.1`, `2130706433`, `127.1`) into addresses.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::{connect, lookup::Lookups};

/// Special-purpose IPv4 ranges (RFC 6890 and its registry), multicast and the reserved block.
const DENIED_V4: [Ipv4Net; 16] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 0, 2, 0], 24),
    v4([192, 31, 196, 0], 24),
    v4([192, 88, 99, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 4),
    v4([240, 0, 0, 0], 4),
];

/// IPv6 global unicast range. Everything outside it (loopback, link-local, unique local, multicast,
/// …) is refused.
const GLOBAL_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// Special-purpose ranges inside global unicast: protocol assignments with Teredo and ORCHID,
/// documentation, 6to4, direct delegation AS112. Tunnels (Teredo, 6to4) are refused for every
/// embedded address, because no public service uses them any more.
const DENIED_V6: [Ipv6Net; 5] = [
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    v6([0x2001, 0x0db8, 0, 0, 0, 0, 0, 0], 32),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
    v6([0x2620, 0x004f, 0x8000, 0, 0, 0, 0, 0], 48),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

/// IPv6 ranges that embed an IPv4 address: mapped addresses and NAT64's well-known prefix. The
/// embedded address is checked.
const EMBEDS_V4: [Ipv6Net; 2] = [
    v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96),
    v6([0x0064, 0xff9b, 0, 0, 0, 0, 0, 0], 96),
];

const fn v4(octets: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(
        Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]),
        prefix,
    )
}

const fn v6(s: [u16; 8], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(
        Ipv6Addr::new(s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]),
        prefix,
    )
}

const NOT_PUBLIC: &str = "the address is not public; the operator can allow private ranges with the setting `net.allow`, for example `127.0.0.0/8`";

/// Reason that a URL or address may not be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The scheme is neither `http` nor `https`.
    #[error("the scheme `{0}` is not http or https")]
    Scheme(String),
    /// The URL lacks a host, or its host is empty or ends in a dot.
    #[error("the URL has no host, or a host that ends in a dot")]
    Host,
    /// The URL names a user or a password.
    #[error("the URL contains a user name or password")]
    UserInfo,
    /// The URL's host is a non-public address.
    #[error("{NOT_PUBLIC}")]
    Literal(IpAddr),
    /// The name has a non-public address.
    #[error("{NOT_PUBLIC}")]
    Resolved(IpAddr),
}

/// Returns true if an address may be reached: it is public or the operator allowed it.
#[must_use]
pub fn is_permitted(address: IpAddr, allow: &[IpNet]) -> bool {
    let address = embedded_v4(address);
    is_public(address) || allow.iter().any(|net| net.contains(&address))
}

/// Returns the embedded IPv4 address of an IPv6 address, or the address itself.
fn embedded_v4(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) if EMBEDS_V4.iter().any(|net| net.contains(&v6)) => {
            let [.., a, b, c, d] = v6.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        other => other,
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !DENIED_V4.iter().any(|net| net.contains(&v4)),
        IpAddr::V6(v6) => GLOBAL_V6.contains(&v6) && !DENIED_V6.iter().any(|net| net.contains(&v6)),
    }
}

/// Checks a URL before any name is looked up.
///
/// # Errors
/// Returns a [`Refused`] if the URL may not be reached.
pub fn check_url(url: &Url, allow: &[IpNet]) -> Result<(), Refused> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Refused::Scheme(url.scheme().to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refused::UserInfo);
    }
    let literal = match url.host() {
        None => return Err(Refused::Host),
        Some(Host::Domain(name)) if name.is_empty() || name.ends_with('.') => {
            return Err(Refused::Host);
        }
        Some(Host::Domain(_)) => return Ok(()),
        Some(Host::Ipv4(address)) => IpAddr::V4(address),
        Some(Host::Ipv6(address)) => IpAddr::V6(address),
    };
    if is_permitted(literal, allow) {
        Ok(())
    } else {
        Err(Refused::Literal(literal))
    }
}

/// Resolver that refuses names with a forbidden address. The HTTP client returns the reason as the
/// source of its error.
#[derive(Clone)]
pub(crate) struct Resolver {
    allow: Arc<[IpNet]>,
    lookups: Arc<Lookups>,
}

impl Resolver {
    /// Creates a resolver that also permits the operator's own ranges.
    pub(crate) fn new(allow: Arc<[IpNet]>, lookups: Arc<Lookups>) -> Self {
        Self { allow, lookups }
    }

    /// Creates a resolver that permits every address, for names that the operator configured.
    pub(crate) fn unguarded(lookups: Arc<Lookups>) -> Self {
        let everywhere = [Ipv4Net::default().into(), Ipv6Net::default().into()];
        Self {
            allow: everywhere.into(),
            lookups,
        }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { allow, lookups } = self.clone();
        let tenant = connect::current_tenant();
        Box::pin(async move {
            let resolved = lookups.find(name.as_str(), tenant).await?;
            let addresses = check_addresses(resolved, &allow)?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Returns all addresses, or a refusal if one of them is forbidden.
pub(crate) fn check_addresses(
    addresses: Vec<SocketAddr>,
    allow: &[IpNet],
) -> Result<Vec<SocketAddr>, Refused> {
    match addresses
        .iter()
        .find(|address| !is_permitted(address.ip(), allow))
    {
        Some(bad) => Err(Refused::Resolved(bad.ip())),
        None => Ok(addresses),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused(text: &str) -> bool {
        !is_permitted(text.parse().unwrap(), &[])
    }

    #[test]
    fn special_purpose_addresses_are_refused() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "100::1",
            "2001:db8::1",
            "3fff::1",
            "2001::1",
            "2001:10::1",
            "2002:7f00:1::",
            "2002:0808:0808::",
            "64:ff9b:1::1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "5f00::1",
        ] {
            assert!(refused(text), "{text} was permitted");
        }
    }

    #[test]
    fn public_addresses_are_permitted() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "193.0.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2001:4860::1",
        ] {
            assert!(!refused(text), "{text} was refused");
        }
    }

    #[test]
    fn odd_address_spellings_are_checked_as_addresses() {
        for host in [
            "0x7f.1",
            "2130706433",
            "127.1",
            "0177.0.0.1",
            "0x7f000001",
            "127.0.0.1.",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[64:ff9b::7f00:1]",
            "[::1]",
            "１２７.0.0.1",
            "127。0。0。1",
            "0",
            "[fe80::1]",
        ] {
            let url = Url::parse(&format!("https://{host}/")).unwrap();
            assert!(
                matches!(check_url(&url, &[]), Err(Refused::Literal(_))),
                "{host} was permitted"
            );
        }
    }

    #[test]
    fn urls_that_hide_their_host_are_refused() {
        for (url, expected) in [
            ("https://user@example.com/", Refused::UserInfo),
            ("https://user:secret@example.com/", Refused::UserInfo),
            ("https://example.com./", Refused::Host),
            ("ftp://example.com/", Refused::Scheme("ftp".to_owned())),
            ("file:///etc/passwd", Refused::Scheme("file".to_owned())),
        ] {
            assert_eq!(
                check_url(&Url::parse(url).unwrap(), &[]),
                Err(expected),
                "{url}"
            );
        }
        // Browsers and the `url` crate treat a backslash as a slash, so the host ends at it.
        assert_eq!(
            Url::parse("https://example.com\\@evil.example/")
                .unwrap()
                .host_str(),
            Some("example.com")
        );
        assert!(Url::parse("https://[fe80::1%25eth0]/").is_err());
    }

    #[test]
    fn only_the_operators_range_is_permitted() {
        let allow = ["10.1.0.0/16".parse().unwrap()];
        assert!(is_permitted("10.1.2.3".parse().unwrap(), &allow));
        assert!(is_permitted("::ffff:10.1.2.3".parse().unwrap(), &allow));
        assert!(!is_permitted("10.2.0.1".parse().unwrap(), &allow));
    }

    #[test]
    fn a_mixed_answer_is_refused_as_a_whole() {
        let both = vec!["8.8.8.8:0".parse().unwrap(), "127.0.0.1:0".parse().unwrap()];
        assert!(matches!(
            check_addresses(both, &[]),
            Err(Refused::Resolved(_))
        ));
    }

    proptest! {
        #[test]
        fn embedded_ipv4_is_judged_like_plain_ipv4(bits in any::<u32>()) {
            let plain = Ipv4Addr::from(bits);
            let mapped = IpAddr::V6(plain.to_ipv6_mapped());
            let nat64 = IpAddr::V6(Ipv6Addr::from((0x0064_ff9b_u128 << 96) | u128::from(bits)));
            let expected = is_permitted(IpAddr::V4(plain), &[]);
            prop_assert_eq!(is_permitted(mapped, &[]), expected);
            prop_assert_eq!(is_permitted(nat64, &[]), expected);
            for url in [format!("https://{bits}/"), format!("https://{bits:#x}/"), format!("https://{bits:#o}/").replace("0o", "0")] {
                prop_assert_eq!(check_url(&Url::parse(&url).unwrap(), &[]).is_ok(), expected, "{}", url);
            }
        }

        #[test]
        fn nothing_the_standard_library_calls_local_is_permitted(bits in any::<u32>(), six in any::<u128>()) {
            let four = Ipv4Addr::from(bits);
            let local = four.is_loopback() || four.is_private() || four.is_link_local() || four.is_multicast()
                || four.is_broadcast() || four.is_documentation() || four.is_unspecified();
            prop_assert!(!(local && is_permitted(IpAddr::V4(four), &[])));
            let six = Ipv6Addr::from(six);
            let local = six.is_loopback() || six.is_unspecified() || six.is_multicast() || six.is_unique_local()
                || six.is_unicast_link_local();
            prop_assert!(!(local && is_permitted(IpAddr::V6(six), &[])));
        }

        #[test]
        fn parsed_hosts_are_domains_or_checked_addresses(text in "[a-z0-9.:%@\\[\\]x/\\\\-]{1,30}") {
            if let Ok(url) = Url::parse(&format!("https://{text}"))
                && check_url(&url, &[]).is_ok()
            {
                match url.host().unwrap() {
                    Host::Domain(name) => prop_assert!(name.parse::<IpAddr>().is_err()),
                    Host::Ipv4(address) => prop_assert!(is_permitted(IpAddr::V4(address), &[])),
                    Host::Ipv6(address) => prop_assert!(is_permitted(IpAddr::V6(address), &[])),
                }
            }
        }
    }
}
