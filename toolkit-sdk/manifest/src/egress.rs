//! Egress rules: the hosts that a toolkit may reach.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One host, or all names below one, optionally limited to some methods and paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressRule {
    /// `api.example.com`, or `*.example.com` for every name below it (not the name itself). At
    /// least two labels, ASCII after IDNA, never an IP address.
    pub host: String,
    /// Port; absent means 443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Methods in upper case; empty means every method, or GET and HEAD for a read-only tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// Prefix that the path must have; absent means any path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
}

/// Formats the rule as `toolkit!` takes it: `[METHODS ]HOST[:PORT][/PATH]`.
impl fmt::Display for EgressRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.methods.is_empty() {
            write!(f, "{} ", self.methods.join(","))?;
        }
        f.write_str(&self.host)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        f.write_str(self.path_prefix.as_deref().unwrap_or_default())
    }
}
