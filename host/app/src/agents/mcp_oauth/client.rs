//! Assistants as OAuth clients. A client registers itself (RFC 7591), and nothing is stored: its
//! client id holds its name and its redirect URIs, signed.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use serde::{Deserialize, Serialize};
use url::Url;

use super::signed::{sign, verify};
use crate::{
    App, Result,
    agents::errors,
    core::{ids, is_loopback, visible::is_plain_line},
};

const CLIENT_ID_PREFIX: &str = "mcpi_";
/// Random characters of a client id, by which clients with the same content differ.
const RANDOM_CHARS: usize = 12;
/// Maximum characters of the name of a client.
pub const MAX_CLIENT_NAME_CHARS: usize = 100;
/// Maximum size of all redirect URIs of a client together, so that its id fits into a request line.
pub const MAX_REDIRECT_URIS_BYTES: usize = 2 << 10;
/// Schemes that a browser handles by itself. All others belong to programs (RFC 8252, section 7.1).
const BROWSER_SCHEMES: [&str; 12] = [
    "about",
    "blob",
    "chrome",
    "data",
    "file",
    "filesystem",
    "ftp",
    "javascript",
    "vbscript",
    "view-source",
    "ws",
    "wss",
];

/// A registered client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// Name that the client gave itself. It proves nothing.
    #[serde(rename = "n")]
    pub name: Option<String>,
    /// Addresses to which the browser may be redirected with an authorization code.
    #[serde(rename = "r")]
    pub redirect_uris: Vec<String>,
}

/// Registers a client and returns its client id. Fails if the name is too long or contains control
/// characters, line breaks or hidden characters, or if a redirect URI is missing, too long or of a
/// forbidden kind.
pub fn register(app: &App, client: &Client) -> Result<String> {
    check(client)?;
    let content = BASE64.encode(serde_json::to_vec(client).map_err(errors::internal)?);
    let unique = ids::random_text(RANDOM_CHARS);
    Ok(sign(app, &format!("{CLIENT_ID_PREFIX}{unique}.{content}")))
}

fn check(client: &Client) -> Result<()> {
    let is_name_valid = client
        .name
        .as_deref()
        .is_none_or(|name| name.chars().count() <= MAX_CLIENT_NAME_CHARS && is_plain_line(name));
    if !is_name_valid {
        return Err(errors::mcp_client_invalid(format!(
            "client_name: must be at most {MAX_CLIENT_NAME_CHARS} characters without control characters, invisible ones and those that change the direction of text"
        )));
    }
    if client.redirect_uris.is_empty() {
        return Err(errors::mcp_redirect_uri_invalid("at least one is required"));
    }
    let size: usize = client.redirect_uris.iter().map(String::len).sum();
    if size > MAX_REDIRECT_URIS_BYTES {
        let problem = format!("together they must be at most {MAX_REDIRECT_URIS_BYTES} bytes");
        return Err(errors::mcp_redirect_uri_invalid(problem));
    }
    if !client.redirect_uris.iter().all(|uri| is_permitted(uri)) {
        return Err(errors::mcp_redirect_uri_invalid(
            "one is neither https, http on this machine, nor the address of a program",
        ));
    }
    Ok(())
}

/// Returns the client with a client id. Fails if this installation did not issue the client id.
pub fn registered(app: &App, client_id: &str) -> Result<Client> {
    let mut client: Client = verify(app, client_id)
        .and_then(|text| text.strip_prefix(CLIENT_ID_PREFIX))
        .and_then(|text| text.split_once('.'))
        .and_then(|(_, content)| BASE64.decode(content).ok())
        .and_then(|content| serde_json::from_slice(&content).ok())
        .ok_or_else(errors::mcp_client_unknown)?;
    // An earlier version registered clients with such names, and a person is asked to trust them.
    client.name = client.name.filter(|name| is_plain_line(name));
    Ok(client)
}

impl Client {
    /// Returns true if the client registered a redirect URI. The port of an address on this machine
    /// is free, because a program cannot know which one it gets (RFC 8252, section 7.3).
    #[must_use]
    pub fn has_redirect_uri(&self, uri: &str) -> bool {
        let free = loopback_without_port(uri);
        self.redirect_uris.iter().any(|registered| {
            registered == uri || (free.is_some() && loopback_without_port(registered) == free)
        })
    }
}

fn is_permitted(uri: &str) -> bool {
    let Ok(url) = Url::parse(uri) else {
        return false;
    };
    let is_plain = url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none()
        && uri.is_ascii();
    is_plain
        && match url.scheme() {
            "https" => true,
            "http" => is_loopback(&url),
            scheme => !url.cannot_be_a_base() && !BROWSER_SCHEMES.contains(&scheme),
        }
}

/// Returns an http address on this machine without its port, or `None` for any other address.
fn loopback_without_port(uri: &str) -> Option<String> {
    let mut url = Url::parse(uri).ok()?;
    if url.scheme() != "http" || !is_loopback(&url) || !is_permitted(uri) {
        return None;
    }
    url.set_port(None).ok()?;
    Some(url.into())
}

#[cfg(test)]
mod tests;
