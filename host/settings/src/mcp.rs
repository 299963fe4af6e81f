//! `mcp.*`: addresses at which assistants reach MCP servers.

use super::{setting::settings, values::List};

settings! {
    /// Addresses at which assistants reach MCP servers.
    pub struct Mcp {
        /// Host names under which assistants reach MCP servers, in addition to that of
        /// `public_url`, `localhost` and IP addresses. A request for another host is refused,
        /// because a web page may have sent it (DNS rebinding); so is a request of a web page on
        /// another host that has neither a key nor an access token.
        #[setting(example = ["tools.internal"])] pub allowed_hosts: List,
    }
}
