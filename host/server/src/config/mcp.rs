//! `mcp.*`: addresses at which assistants reach MCP servers.

use serde::{Deserialize, Serialize};

use super::{setting::settings, values::List};

settings! {
    /// Addresses at which assistants reach MCP servers.
    pub(crate) struct Mcp {
        /// Host names under which assistants reach MCP servers, in addition to that of
        /// `public_url`, `localhost` and IP addresses. A request for another host is refused,
        /// because a web page may have sent it (DNS rebinding); so is a request of a web page on
        /// another host that has neither a key nor an access token.
        #[setting(example = ["tools.internal"])] pub allowed_hosts: List,
        /// Clients whose lists of tools have the schemas of results: `by_version`, those whose version of
        /// the protocol knows them (since 2025-06-18), `always` or `never`.
        pub output_schemas: OutputSchemas = OutputSchemas::ByVersion,
    }
}

/// `mcp.output_schemas`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutputSchemas {
    /// Clients whose version knows them.
    ByVersion,
    /// All clients.
    Always,
    /// No client.
    Never,
}
