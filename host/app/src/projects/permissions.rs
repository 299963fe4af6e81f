//! Permissions of a key inside its project.
//!
//! A key without permissions may do everything. A key with permissions may do only what they name,
//! so that an area added later is closed to it.

use std::{collections::BTreeMap, net::IpAddr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// Maximum number of addresses and ranges of one key.
pub const MAX_RANGES: usize = 50;

/// An area of the API that keys may be restricted to.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Area {
    /// The auth configs.
    AuthConfigs,
    /// The connected accounts.
    ConnectedAccounts,
    /// The tools of the catalog.
    Tools,
    /// The execution of tools, and files for them.
    ToolExecution,
    /// Proxy requests to providers with an account's credential.
    ProxyExecute,
    /// The toolkits of the catalog.
    Toolkits,
    /// Trigger types and trigger instances.
    Triggers,
    /// Outgoing webhooks and their endpoints.
    Webhooks,
    /// Logs and usage.
    Observability,
    /// Tool router sessions.
    #[serde(alias = "session_management")]
    Sessions,
    /// The execution of tools inside a session, and no other part of the session.
    SessionToolExecution,
    /// MCP servers.
    #[serde(alias = "legacy_mcp")]
    McpServers,
}

/// The access to an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// No access.
    None,
    /// Read access.
    Read,
    /// Changes and executions.
    Write,
    /// Read access, changes and executions.
    ReadWrite,
}

impl Access {
    fn includes(self, other: Self) -> bool {
        self == Self::ReadWrite || self == other
    }
}

/// Areas with the access to each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Permissions(BTreeMap<Area, Access>);

impl Permissions {
    /// Returns read access to every area.
    #[must_use]
    pub fn reading() -> Self {
        let all = Area::VARIANTS.iter();
        all.map(|area| (*area, Access::Read)).collect()
    }

    /// Returns true if this access is granted for at least one of the areas.
    #[must_use]
    pub fn allow(&self, areas: &[Area], access: Access) -> bool {
        let mut granted = areas.iter().filter_map(|area| self.0.get(area));
        granted.any(|own| own.includes(access))
    }

    /// Iterates over the areas in order.
    pub fn iter(&self) -> impl Iterator<Item = (Area, Access)> {
        self.0.iter().map(|(area, access)| (*area, *access))
    }
}

impl FromIterator<(Area, Access)> for Permissions {
    /// Collects pairs. If an area occurs twice, the last one counts.
    fn from_iter<I: IntoIterator<Item = (Area, Access)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

/// The restrictions of a key. The default restricts nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyRestrictions {
    /// The permissions, or `None` for all.
    pub scopes: Option<Permissions>,
    /// The addresses from which the key may be used. If empty, every address is allowed.
    pub addresses: Ranges,
}

/// Addresses and ranges of addresses, at most fifty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Ranges(Vec<IpNet>);

impl KeyRestrictions {
    /// Returns true if a request may come from this address.
    #[must_use]
    pub fn admit(&self, from: IpAddr) -> bool {
        let Ranges(ranges) = &self.addresses;
        let from = from.to_canonical();
        ranges.is_empty() || ranges.iter().any(|range| range.contains(&from))
    }
}

impl Ranges {
    /// Reads the addresses and networks of a field of a request. Fails with one line for each
    /// element that is not an address or a network, or one for too many of them.
    pub fn parse(field: &str, given: &[String]) -> Result<Self, Vec<String>> {
        if given.len() > MAX_RANGES {
            return Err(vec![format!("{field}: at most {MAX_RANGES} addresses")]);
        }
        let mut ranges = Vec::new();
        let mut problems = Vec::new();
        for (index, text) in given.iter().enumerate() {
            let address = text.trim().parse::<IpAddr>().map(IpNet::from);
            match address.or_else(|_| text.trim().parse()) {
                Ok(range) => ranges.push(range),
                Err(_) => {
                    problems.push(format!("{field}[{index}]: is not an IP address or network"))
                }
            }
        }
        match &problems[..] {
            [] => Ok(Self(ranges)),
            _ => Err(problems),
        }
    }
}

impl TryFrom<Vec<String>> for Ranges {
    type Error = String;

    fn try_from(given: Vec<String>) -> Result<Self, String> {
        Self::parse("addresses", &given).map_err(|problems| problems.join(", "))
    }
}

impl From<Ranges> for Vec<String> {
    fn from(Ranges(ranges): Ranges) -> Self {
        ranges.iter().map(ToString::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_permissions_grant_only_named_access() {
        let pairs = [
            (Area::Tools, Access::Read),
            (Area::Triggers, Access::ReadWrite),
        ];
        let scopes: Permissions = pairs.into_iter().collect();
        for (areas, reads, writes) in [
            (&[Area::Tools][..], true, false),
            (&[], false, false),
            (&[Area::Triggers], true, true),
            (&[Area::Webhooks], false, false),
            // One of several is enough.
            (&[Area::Webhooks, Area::Triggers], true, true),
        ] {
            assert_eq!(scopes.allow(areas, Access::Read), reads, "{areas:?}");
            assert_eq!(scopes.allow(areas, Access::Write), writes, "{areas:?}");
        }
        assert!(!Permissions::reading().allow(Area::VARIANTS, Access::Write));
    }

    #[test]
    fn a_key_is_admitted_from_its_ranges_only() {
        let ranges = |given: &[&str]| {
            Ranges::try_from(given.iter().map(|&s| s.to_owned()).collect::<Vec<_>>())
        };
        let rights = KeyRestrictions {
            addresses: ranges(&["10.0.0.0/8", "2001:db8::1"]).unwrap(),
            ..KeyRestrictions::default()
        };
        for (from, admitted) in [
            ("10.9.8.7", true),
            ("::ffff:10.9.8.7", true),
            ("11.0.0.1", false),
            ("2001:db8::1", true),
        ] {
            assert_eq!(rights.admit(from.parse().unwrap()), admitted, "{from}");
        }
        assert!(KeyRestrictions::default().admit("11.0.0.1".parse().unwrap()));
        assert!(ranges(&["somewhere"]).is_err() && ranges(&["10.0.0.0/33"]).is_err());
    }

    #[test]
    fn ranges_of_a_key_are_limited() {
        let most = vec!["10.0.0.1".to_owned(); MAX_RANGES];
        assert!(Ranges::parse("allowed_ips", &most).is_ok());
        let more = vec!["10.0.0.1".to_owned(); MAX_RANGES + 1];
        assert!(Ranges::parse("allowed_ips", &more).is_err());
    }
}
