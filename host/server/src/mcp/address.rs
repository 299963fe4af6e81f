//! Addresses of MCP endpoints: the user and the accounts in their query, and the endpoint that a URL
//! names.

use app::{
    Error,
    agents::{mcp_oauth::Resource, mcp_servers::Selection},
    core::ids::{AccountId, SessionId},
};
use serde::Deserialize;

use crate::{
    Server,
    http::{ApiResult, Query, errors},
};

/// User and accounts of an address.
#[derive(Deserialize)]
pub(crate) struct Address {
    user_id: Option<String>,
    connected_account_id: Option<String>,
    #[serde(default)]
    connected_account_ids: Vec<String>,
}

impl Address {
    /// Returns the user and the accounts.
    ///
    /// # Errors
    /// If an id of an account is malformed.
    pub(super) fn selection(self) -> ApiResult<Selection> {
        let accounts = self.connected_account_id.into_iter();
        let accounts = accounts.chain(self.connected_account_ids);
        let accounts = accounts.map(|id| AccountId::parse(id.trim()));
        Ok(Selection {
            user_id: self.user_id,
            accounts: accounts.collect::<Result<_, _>>()?,
        })
    }
}

/// Returns the MCP endpoint of this server that a URL names.
///
/// # Errors
/// If the URL names none.
pub(crate) fn resource(server: &Server, url: &str) -> Result<Resource, Error> {
    let named = named_resource(server, url);
    named.ok_or_else(|| errors::mcp_target_invalid("it is not an MCP endpoint of this server"))
}

fn named_resource(server: &Server, url: &str) -> Option<Resource> {
    let own = url.strip_prefix(server.app.base_url())?;
    let (path, query) = own.split_once('?').unwrap_or((own, ""));
    let segments: Vec<_> = path.split('/').collect();
    match segments[..] {
        ["", "v3", "mcp", id] | ["", "v3", "mcp", id, "mcp"] => {
            let address = Query::<Address>::parse(query, &server.branding).ok()?.0;
            Some(Resource::server(id.to_owned(), address.selection().ok()?))
        }
        ["", "tool_router", id, "mcp"] => SessionId::parse(id).ok().map(Resource::Session),
        _ => None,
    }
}
