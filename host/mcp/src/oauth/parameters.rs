//! Parameters of OAuth requests, each of which may be sent once (RFC 6749, section 3.1).

use std::collections::HashMap;

use app::Error;
use http::{ApiResult, errors, query::pairs};

use super::ENDPOINT_SCOPE;

/// Parameters of a request, by name.
pub struct Parameters(HashMap<String, String>);

impl Parameters {
    /// Reads a query, or a body of the media type `application/x-www-form-urlencoded`.
    ///
    /// # Errors
    /// If a parameter is repeated, or contains NUL or bytes that are not UTF-8.
    pub fn parse(text: &str) -> ApiResult<Self> {
        let mut parameters = HashMap::new();
        for (name, value) in pairs(text)? {
            if parameters.contains_key(&name) {
                let problem = format!("{} is sent twice", name.escape_debug());
                return Err(errors::mcp_authorization_invalid(problem).into());
            }
            // A parameter without a value counts as absent.
            if !value.is_empty() {
                parameters.insert(name, value);
            }
        }
        Ok(Self(parameters))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns a parameter that the request needs.
    pub fn required(&self, name: &str) -> Result<&str, Error> {
        self.get(name)
            .ok_or_else(|| errors::mcp_authorization_invalid(format!("{name}: is required")))
    }

    /// Checks that the request names no scope but the one that the server grants (RFC 6749, section
    /// 3.3).
    ///
    /// # Errors
    /// If it names another one.
    pub fn check_scope(&self) -> Result<(), Error> {
        let mut scopes = self.get("scope").unwrap_or_default().split(' ');
        if scopes.any(|scope| !scope.is_empty() && scope != ENDPOINT_SCOPE) {
            return Err(errors::mcp_scope_invalid());
        }
        Ok(())
    }
}
