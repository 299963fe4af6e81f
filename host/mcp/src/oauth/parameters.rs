//! Parameters of OAuth requests, each of which may be sent once (RFC 6749, section 3.1).

use std::collections::HashMap;

use app::{Error, core::shown_slug};
use http::{ApiError, ApiResult, errors, query::pairs};

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
        let pairs = pairs(text).map_err(|cause| match cause {
            ApiError::App(error) => {
                errors::mcp_authorization_invalid(error.problems().join("; ")).into()
            }
            other => other,
        })?;
        for (name, value) in pairs {
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

    /// Returns parameters that the request needs.
    ///
    /// # Errors
    /// If one is missing; names every one that is.
    pub fn required<const N: usize>(&self, names: [&str; N]) -> Result<[&str; N], Error> {
        let missing: Vec<_> = names
            .iter()
            .filter(|name| self.get(name).is_none())
            .map(|name| format!("{name}: is required"))
            .collect();
        if !missing.is_empty() {
            return Err(errors::mcp_authorization_invalid(missing.join("; ")));
        }
        Ok(names.map(|name| self.get(name).unwrap_or_default()))
    }

    /// Checks that the request names no scope but the one that the server grants (RFC 6749, section
    /// 3.3).
    ///
    /// # Errors
    /// If it names another one.
    pub fn check_scope(&self) -> Result<(), Error> {
        let mut scopes = self.get("scope").unwrap_or_default().split(' ');
        match scopes.find(|scope| !scope.is_empty() && *scope != ENDPOINT_SCOPE) {
            Some(other) => Err(errors::mcp_scope_invalid(shown_slug(other))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_parameter_is_named() {
        let parameters = Parameters::parse("a=1&b=&scope=mcp+admin").unwrap();
        assert_eq!(parameters.required(["a"]).unwrap(), ["1"]);
        let refused = parameters.required(["a", "b", "c"]).unwrap_err();
        let message = refused.to_string();
        assert!(
            message.ends_with(": b: is required; c: is required"),
            "{message}"
        );
        let refused = parameters.check_scope().unwrap_err();
        assert!(refused.to_string().contains("`admin`"), "{refused}");
    }

    #[test]
    fn parameter_in_another_charset_is_named() {
        let Err(ApiError::App(refused)) = Parameters::parse("grant_type=%ff") else {
            panic!("the parameter is accepted");
        };
        assert!(refused.is(&errors::MCP_AUTHORIZATION_INVALID), "{refused}");
        assert!(refused.to_string().contains("grant_type: "), "{refused}");
    }
}
