//! Issuers: the installation, and one for each MCP endpoint.
//!
//! Many clients do not name their endpoint in an authorization request (RFC 8707), or name only the
//! server. The metadata of an endpoint leads to an issuer of its own, whose page knows the endpoint by its
//! address. An issuer has no query, so that the path and the query of the endpoint are one encoded
//! segment of its path. Every issuer has the same addresses for tokens and registration.

use app::{Error, agents::mcp_oauth::Resource};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use http::{Server, errors};

use super::{AUTHORIZE_PATH, ENDPOINTS_PATH, PAGE_SEGMENT};
use crate::address;

/// An issuer of tokens.
pub struct Issuer<'a> {
    base: &'a str,
    /// Encoded path and query of the endpoint, and the endpoint; `None` for the installation.
    endpoint: Option<(String, Resource)>,
}

impl<'a> Issuer<'a> {
    /// Returns the issuer of an MCP endpoint by its path and query.
    ///
    /// # Errors
    /// If there is no endpoint at the path.
    pub(crate) fn of_endpoint(server: &'a Server, path: &str) -> Result<Self, Error> {
        let base = server.app.base_url();
        let resource = address::resource(server, &format!("{base}{path}"))?;
        let endpoint = Some((BASE64.encode(path), resource));
        Ok(Self { base, endpoint })
    }

    /// Returns the issuer at a path of this server.
    ///
    /// # Errors
    /// If there is no issuer at the path.
    pub(crate) fn at(server: &'a Server, path: &str) -> Result<Self, Error> {
        if path.is_empty() || path == "/" {
            let base = server.app.base_url();
            return Ok(Self {
                base,
                endpoint: None,
            });
        }
        let segment = path.strip_prefix(ENDPOINTS_PATH);
        let segment = segment.and_then(|rest| rest.strip_prefix('/'));
        let endpoint = segment.and_then(|segment| BASE64.decode(segment).ok());
        let endpoint = endpoint.and_then(|bytes| String::from_utf8(bytes).ok());
        let endpoint = endpoint
            .ok_or_else(|| errors::mcp_target_invalid("it is not the issuer of an MCP endpoint"))?;
        Self::of_endpoint(server, &endpoint)
    }

    /// Returns the issuer whose page is at a path of this server.
    ///
    /// # Errors
    /// If there is no issuer at the path.
    pub fn of_page(server: &'a Server, path: &str) -> Result<Self, Error> {
        let own = path.strip_suffix(PAGE_SEGMENT).unwrap_or_default();
        Self::at(server, if path == AUTHORIZE_PATH { "" } else { own })
    }

    /// Returns the identifier of the issuer.
    pub fn url(&self) -> String {
        let base = self.base;
        match &self.endpoint {
            None => base.to_owned(),
            Some((segment, _)) => format!("{base}{ENDPOINTS_PATH}/{segment}"),
        }
    }

    /// Returns the address of the page on which a member consents.
    pub(crate) fn page(&self) -> String {
        match &self.endpoint {
            None => format!("{}{AUTHORIZE_PATH}", self.base),
            Some(_) => format!("{}{PAGE_SEGMENT}", self.url()),
        }
    }

    /// Returns the endpoint of an authorization request that names one, or none.
    ///
    /// # Errors
    /// If the request names another endpoint than that of the issuer, or neither names one.
    pub fn target(&self, named: Option<Resource>) -> Result<Resource, Error> {
        let own = self.endpoint.as_ref().map(|(_, resource)| resource);
        match (own, named) {
            (Some(own), Some(named)) if *own != named => Err(errors::mcp_target_invalid(
                "the page gives access to another one",
            )),
            (Some(own), _) => Ok(own.clone()),
            (None, Some(named)) => Ok(named),
            (None, None) => Err(errors::mcp_authorization_invalid(
                "resource does not name an MCP endpoint",
            )),
        }
    }
}
