//! Addresses of MCP endpoints: the user and the accounts in their query, and the endpoint that a URL
//! names.

use app::{
    Error,
    agents::{mcp_oauth::Resource, mcp_servers::Selection},
    core::{
        ids::{AccountId, SessionId},
        spelling::is_same,
        truncate,
    },
};
use http::{
    ApiResult, Branding, Query, Server, errors,
    members::present,
    query::{pairs, plain_name},
};
use manifest::did_you_mean;
use serde::Deserialize;
use url::Url;

/// Parameters of the address of an MCP server: the fields of [`Address`].
const SERVER_PARAMETERS: [&str; 4] = [
    "user_id",
    "connected_account_id",
    "connected_account_ids",
    "include_service_helper_actions",
];
/// Parameters without effect, by which assistants and their connections are told apart.
const HARMLESS_PARAMETERS: [&str; 2] = ["agent", "session_id"];

/// Checks the query of the address of a session.
///
/// # Errors
/// If a parameter could choose a user, accounts or tools, or is one that [`check_harmless`] refuses.
pub(super) fn check_session(query: Option<&str>) -> ApiResult<()> {
    let query = query.unwrap_or_default();
    match unknown_parameter(query, &[]) {
        None => check_harmless(query),
        Some(name) => Err(errors::invalid(format!(
            "{name}: the session determines its user, accounts and tools, not its address"
        ))
        .into()),
    }
}

/// Returns the start of the name of a parameter that is neither known nor harmless. One that is ignored
/// could be meant to restrict the tools, or to choose the user or the account.
fn unknown_parameter(query: &str, known: &[String]) -> Option<String> {
    url::form_urlencoded::parse(query.as_bytes()).find_map(|(name, _)| {
        let plain = plain_name(&name);
        let is_accepted = known.iter().any(|known| known == plain)
            || HARMLESS_PARAMETERS
                .iter()
                .any(|harmless| is_same(harmless, plain));
        (!is_accepted).then(|| truncate(plain))
    })
}

/// Checks the parameters without effect.
///
/// # Errors
/// If one is sent with several values, or any parameter contains NUL or bytes that are not UTF-8.
fn check_harmless(query: &str) -> ApiResult<()> {
    let pairs = pairs(query)?;
    for harmless in HARMLESS_PARAMETERS {
        let mut values = pairs
            .iter()
            .filter(|(name, value)| is_same(harmless, plain_name(name)) && !value.is_empty())
            .map(|(_, value)| value);
        let first = values.next();
        if values.any(|value| Some(value) != first) {
            let problem = format!("{harmless}: is sent with several values; send one");
            return Err(errors::invalid(problem).into());
        }
    }
    Ok(())
}

/// User and accounts of an address, and its choice of tools.
#[derive(Default, Deserialize)]
pub(super) struct Address {
    #[serde(default, deserialize_with = "present")]
    user_id: Option<String>,
    #[serde(default, deserialize_with = "present")]
    connected_account_id: Option<String>,
    #[serde(default)]
    connected_account_ids: Vec<String>,
    #[serde(default)]
    include_service_helper_actions: bool,
}

impl Address {
    /// Reads the query of an address.
    ///
    /// # Errors
    /// If a parameter is unknown, is sent with several values, does not fit, or contains NUL or bytes that
    /// are not UTF-8.
    pub(super) fn parse(query: Option<&str>, branding: &Branding) -> ApiResult<Self> {
        let Some(query) = query else {
            return Ok(Self::default());
        };
        let mut known = Vec::from(SERVER_PARAMETERS.map(|name| branding.rename(name).into_owned()));
        if let Some(name) = unknown_parameter(query, &known) {
            known.extend(HARMLESS_PARAMETERS.map(str::to_owned));
            let similar = did_you_mean(&name, &known);
            let taken = known.join(", ");
            return Err(errors::invalid(format!(
                "{name}: is unknown; the address of an MCP server takes {taken}{similar}"
            ))
            .into());
        }
        check_harmless(query)?;
        Ok(Query::<Self>::parse(query, branding)?.0)
    }

    /// Returns the user, the accounts and the choice of tools.
    ///
    /// # Errors
    /// If an id of an account is malformed.
    pub(super) fn selection(self) -> ApiResult<Selection> {
        let single = self
            .connected_account_id
            .map(|id| ("connected_account_id", id));
        let several = self
            .connected_account_ids
            .into_iter()
            .map(|id| ("connected_account_ids", id));
        let accounts = single.into_iter().chain(several).map(|(parameter, id)| {
            AccountId::parse(id.trim()).map_err(|error| error.at(parameter))
        });
        Ok(Selection {
            user_id: self.user_id,
            accounts: errors::collect_all(accounts)?,
            with_helper_tools: self.include_service_helper_actions,
        })
    }
}

/// Returns the MCP endpoint of this server that a URL names.
///
/// # Errors
/// If the URL does not name one.
pub(crate) fn resource(server: &Server, url: &str) -> Result<Resource, Error> {
    let named = named_resource(server, url);
    named.ok_or_else(|| errors::mcp_target_invalid("it is not an MCP endpoint of this server"))
}

/// Returns the MCP endpoint that a client names by a URL, or `None` if the URL is that of the
/// server.
///
/// # Errors
/// If the URL names neither.
pub fn target(server: &Server, url: &str) -> Result<Option<Resource>, Error> {
    if is_server(server.app.base_url(), url) {
        return Ok(None);
    }
    resource(server, url).map(Some)
}

/// Returns true if a URL is the base address, or its origin.
fn is_server(base: &str, url: &str) -> bool {
    let (Ok(base), Ok(url)) = (Url::parse(base), Url::parse(url)) else {
        return false;
    };
    let is_bare = url.query().is_none() && url.fragment().is_none();
    let path = url.path().trim_end_matches('/');
    base.origin() == url.origin()
        && is_bare
        && (path.is_empty() || path == base.path().trim_end_matches('/'))
}

fn named_resource(server: &Server, url: &str) -> Option<Resource> {
    let own = url.strip_prefix(server.app.base_url())?;
    let (path, query) = own.split_once('?').unwrap_or((own, ""));
    // Clients that write a URL anew may end its path with a slash.
    let path = path.strip_suffix('/').unwrap_or(path);
    let segments: Vec<_> = path.split('/').collect();
    match segments[..] {
        ["", "v3", "mcp", id] | ["", "v3", "mcp", id, "mcp"] => {
            let address = Address::parse(Some(query), &server.branding).ok()?;
            Some(Resource::server(id.to_owned(), address.selection().ok()?))
        }
        ["", "tool_router", id, "mcp"] => SessionId::parse(id).ok().map(Resource::Session),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::{ApiError, branding::DEFAULT_BRAND};

    use super::*;

    #[test]
    fn malformed_ids_name_their_parameter() {
        let query = "connected_account_id=x&connected_account_ids=ca_AAAAAAAAAAAA,y";
        let address = Address::parse(Some(query), &Branding::new(DEFAULT_BRAND));
        let Ok(Err(ApiError::App(refused))) = address.map(Address::selection) else {
            panic!("the ids are malformed");
        };
        let reason = "the text is not the id of a connected account";
        for (problem, parameter) in refused
            .problems()
            .iter()
            .zip(["connected_account_id", "connected_account_ids"])
        {
            let start = format!("{parameter}: {reason}");
            assert!(problem.starts_with(&start), "{problem}");
        }
        assert_eq!(refused.problems().len(), 2);
    }

    #[test]
    fn base_address_and_origin_name_the_server() {
        let base = "https://host.example/tools";
        for url in [
            "https://host.example",
            "https://host.example/",
            "https://HOST.example:443/tools",
            "https://host.example/tools/",
        ] {
            assert!(is_server(base, url), "{url}");
        }
        for url in [
            "https://other.example",
            "http://host.example",
            "https://host.example/other",
            "https://host.example/tools?user_id=amy",
            "host.example",
        ] {
            assert!(!is_server(base, url), "{url}");
        }
    }
}
