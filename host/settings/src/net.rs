//! `net.*`: outgoing requests, and the proxies in front of the server.

use std::net::IpAddr;

use anyhow::{Context, Result};
use net::ipnet::IpNet;

use super::{Config, problems::Problems, setting::settings, values::List};

settings! {
    /// Outgoing requests, and the proxies in front of the server.
    pub struct Net {
        /// Private address ranges that outgoing requests may reach, for providers and receivers of
        /// webhooks in your network. URLs of webhooks may be `http` for loopback addresses among them.
        #[setting(example = ["10.1.0.0/16"])] pub allow: List,
        /// `from=to` pairs of origins: sends requests for an origin to another one, for mirrors and
        /// tests.
        #[setting(example = ["https://api.example.com=http://127.0.0.1:9000"])] pub rewrite: List,
        /// Address ranges of the reverse proxies in front of this server. A request from one of
        /// them counts for the address that its `Forwarded` or `X-Forwarded-For` header names; from
        /// any other address these headers are ignored.
        #[setting(example = ["10.0.0.0/8"])] pub trusted_proxies: List,
    }
}

impl Config {
    /// Reads the ranges of the proxies whose forwarding headers are trusted.
    ///
    /// # Errors
    /// If a range cannot be read; the message contains it.
    pub fn trusted_proxies(&self) -> Result<Vec<IpNet>> {
        ranges("net.trusted_proxies", &self.net.trusted_proxies)
    }

    /// Returns the settings of outgoing requests.
    ///
    /// # Errors
    /// If a range or a pair of origins cannot be read; the message contains it.
    pub fn net(&self) -> Result<net::Settings> {
        Ok(net::Settings {
            rewrite: self.rewrites()?,
            allow: ranges("net.allow", &self.net.allow)?,
            user_agent: concat!("toolhost/", env!("CARGO_PKG_VERSION")).into(),
        })
    }

    /// Returns the settings of HTTP clients that may reach private addresses, for places that the
    /// operator names.
    ///
    /// # Errors
    /// As [`Config::net`].
    pub fn unrestricted_net(&self) -> Result<net::Settings> {
        let every_address = ["0.0.0.0/0", "::/0"].map(str::parse);
        Ok(net::Settings {
            allow: every_address.into_iter().collect::<Result<_, _>>()?,
            ..self.net()?
        })
    }

    fn rewrites(&self) -> Result<Vec<net::Rewrite>> {
        let rewrite = self.net.rewrite.iter().map(|pair| {
            let (from, to) = pair
                .split_once('=')
                .with_context(|| format!("`net.rewrite`: `{pair}` is not `from=to`"))?;
            let origin = |text: &str| {
                text.trim()
                    .parse()
                    .map_err(|cause| anyhow::anyhow!("`net.rewrite`: `{text}`: {cause}"))
            };
            Ok(net::Rewrite {
                from: origin(from)?,
                to: origin(to)?,
            })
        });
        rewrite.collect()
    }

    pub(super) fn check_net(&self, problems: &mut Problems) {
        problems.of("net.trusted_proxies", self.trusted_proxies());
        problems.of("net.allow", ranges("net.allow", &self.net.allow));
        problems.of("net.rewrite", self.rewrites());
    }
}

/// Reads a list of addresses and address ranges.
fn ranges(key: &str, list: &[String]) -> Result<Vec<IpNet>> {
    list.iter()
        .map(|text| {
            let address = text.parse::<IpAddr>().map(IpNet::from);
            address.or_else(|_| text.parse()).with_context(|| {
                format!("`{key}`: `{text}` is not an address range, such as `127.0.0.0/8`")
            })
        })
        .collect()
}
