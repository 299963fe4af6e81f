//! Credentials that come with a request instead of from a stored account.

use manifest::{AuthMode, Placement};
use sandbox::{Credential, MAX_SECRETS, Secret};
use serde_json::Value;

use super::{Granted, Source, Values, auth_configs, granted::static_grant, scheme};
use crate::{
    Result,
    accounts::errors,
    catalog::{Release, ResolvedTool},
};

/// Headers that frame or route the message. A custom credential cannot set them.
const FORBIDDEN_HEADERS: [&str; 9] = [
    "host",
    "connection",
    "content-length",
    "content-type",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "expect",
];

/// Minimum length in bytes of a custom parameter that counts as a secret. A parameter may be `v=2`,
/// and a shorter limit would remove every 2 from the response.
const MIN_SECRET_BYTES: usize = 6;

/// Field from which toolkits read the base URL of a custom credential.
const BASE_URL_FIELD: &str = "base_url";

/// Credential that comes with the request instead of from a stored account.
#[derive(Debug)]
pub enum CustomCredential {
    /// Parts to add to each outgoing request unchanged.
    Parameters {
        /// Headers and query parameters.
        parameters: Vec<CustomParameter>,
        /// Fields to add to each JSON object or form body.
        body: Values,
        /// Base URL, passed to the toolkit as its field `base_url`. Refused if the toolkit lacks it.
        base_url: Option<String>,
        /// Secrets in the parameters and the body.
        secrets: Vec<Secret>,
    },
    /// Values of all fields of a scheme.
    Connection {
        /// Name of the scheme.
        scheme: String,
        /// Slug of the toolkit.
        toolkit: String,
        /// Values of the fields.
        values: Values,
    },
}

/// Part to add to an outgoing request.
#[derive(Debug, Clone)]
pub enum CustomParameter {
    /// Header name and value.
    Header(String, String),
    /// Query parameter name and value.
    Query(String, String),
}

impl CustomCredential {
    /// Creates a credential of parts to add to requests. Of too many secrets few are copied, on the
    /// thread that has parsed them. Fails if it contains more secrets than a response is searched
    /// for.
    pub fn from_parts(
        parameters: Vec<CustomParameter>,
        body: Values,
        base_url: Option<String>,
    ) -> Result<Self> {
        let mut texts: Vec<_> = parameters.iter().flat_map(secret_parts).collect();
        texts.retain(|text| text.len() >= MIN_SECRET_BYTES);
        for value in body.values() {
            add_secrets_in(value, &mut texts);
        }
        let secrets: Vec<_> = texts.into_iter().map(Secret::from).collect();
        scheme::check_secret_sizes(&secrets)
            .map_err(|why| errors::invalid(format!("custom_auth_params: {why}")))?;
        Ok(Self::Parameters {
            parameters,
            body,
            base_url,
            secrets,
        })
    }
}

/// Grants a credential that the request itself has. Fails if it is of another toolkit or invalid.
pub(super) fn custom_grant(found: &ResolvedTool, custom: CustomCredential) -> Result<Granted> {
    match custom {
        CustomCredential::Connection {
            scheme,
            toolkit,
            values,
        } => {
            if !toolkit.eq_ignore_ascii_case(&found.release.slug) {
                let text = format!(
                    "custom_connection_data.toolkitSlug: the tool belongs to {}",
                    found.release.slug
                );
                return Err(errors::invalid(text));
            }
            let (mode, values) = validate_values(&found.release, &scheme, values)?;
            static_grant(&found.release, mode, &values)
        }
        CustomCredential::Parameters {
            parameters,
            body,
            base_url,
            secrets,
        } => {
            let placements = parameters.iter().enumerate();
            let placements = placements
                .map(|(index, parameter)| placement(index, parameter))
                .collect::<Result<_>>()?;
            let base_url = base_url.map(|url| base_url_field(&found.release, url));
            let fields = base_url.transpose()?.into_iter().collect();
            Ok(Granted::new(
                Credential {
                    placements,
                    body,
                    secrets,
                    ..Credential::default()
                },
                fields,
                Source::CustomAuth,
            ))
        }
    }
}

/// Returns the base URL as the field that the toolkit reads it from. Without such a field the tool
/// would send the credential to its usual address.
fn base_url_field(release: &Release, url: String) -> Result<(String, String)> {
    let mut fields = release.auth.iter().flat_map(|scheme| &scheme.fields);
    if fields.any(|field| field.name == BASE_URL_FIELD && !field.secret) {
        return Ok((BASE_URL_FIELD.to_owned(), url));
    }
    Err(errors::invalid(format!(
        "custom_auth_params.base_url: toolkit {} has no field `{BASE_URL_FIELD}`, so its address cannot be chosen",
        release.slug
    )))
}

/// Validates the field values that came with a request.
pub(super) fn validate_values(
    release: &Release,
    scheme: &str,
    values: Values,
) -> Result<(AuthMode, Values)> {
    let mode = auth_configs::offered_scheme(release, "custom_connection_data.authScheme", scheme)?;
    let values = match release.scheme(mode) {
        Some(scheme) => scheme::complete(scheme, values).map_err(errors::account_fields)?,
        None => values,
    };
    Ok((mode, values))
}

/// Adds the strings inside a value that count as secrets, at any depth, until they are too many.
fn add_secrets_in<'v>(value: &'v Value, secrets: &mut Vec<&'v str>) {
    if secrets.len() > MAX_SECRETS {
        return;
    }
    match value {
        Value::String(text) if text.len() >= MIN_SECRET_BYTES => secrets.push(text),
        Value::Array(items) => items.iter().for_each(|item| add_secrets_in(item, secrets)),
        Value::Object(members) => members
            .values()
            .for_each(|member| add_secrets_in(member, secrets)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the value, and the part after the scheme name in a value such as `Bearer abc`.
fn secret_parts(parameter: &CustomParameter) -> impl Iterator<Item = &str> {
    let (CustomParameter::Header(_, value) | CustomParameter::Query(_, value)) = parameter;
    std::iter::once(value.as_str()).chain(value.split_once(' ').map(|(_, rest)| rest))
}

/// Returns true for a byte that the name of a header may contain (RFC 9110, section 5.6.2).
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns the part that a parameter adds to requests. `index` is its position in the list of the request.
fn placement(index: usize, parameter: &CustomParameter) -> Result<Placement> {
    match parameter {
        CustomParameter::Query(name, value) => Ok(Placement::Query {
            name: name.clone(),
            value: value.clone(),
        }),
        CustomParameter::Header(name, value) => {
            let name = name.to_ascii_lowercase();
            let (field, problem) = if name.is_empty()
                || !name.bytes().all(is_token_byte)
                || FORBIDDEN_HEADERS.contains(&name.as_str())
            {
                let name = crate::core::truncate(&name);
                ("name", format!("header `{name}` cannot be set"))
            } else if let Some(problem) = header_value_problem(value) {
                ("value", problem.to_owned())
            } else {
                return Ok(Placement::Header {
                    name,
                    value: value.clone(),
                });
            };
            Err(errors::invalid(format!(
                "custom_auth_params.parameters[{index}].{field}: {problem}"
            )))
        }
    }
}

/// Returns the reason why a header cannot have a value.
fn header_value_problem(value: &str) -> Option<&'static str> {
    if value.chars().any(char::is_control) {
        Some(
            "contains a line break or another control character, which a header cannot contain; remove it",
        )
    } else if !value.is_ascii() {
        Some("contains a character that is not ASCII, which a header cannot contain; remove it")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_secrets_are_found_at_any_depth() {
        let value =
            serde_json::json!({ "a": "key-one", "b": [{ "c": "key-two" }, 3, null, "short"] });
        let mut secrets = Vec::new();
        add_secrets_in(&value, &mut secrets);
        assert_eq!(secrets, ["key-one", "key-two"]);
    }

    #[test]
    fn many_custom_secrets_are_not_collected() {
        let value = Value::from(vec!["secret"; 300_000]);
        let mut secrets = Vec::new();
        add_secrets_in(&value, &mut secrets);
        assert_eq!(secrets.len(), MAX_SECRETS + 1);
    }

    #[test]
    fn custom_headers_cannot_frame_or_route_requests() {
        let header = |name: &str, value: &str| {
            placement(0, &CustomParameter::Header(name.into(), value.into()))
        };
        assert_eq!(
            header("X-Key", "v").unwrap(),
            Placement::Header {
                name: "x-key".into(),
                value: "v".into()
            }
        );
        for (name, value, problem) in [
            (
                "Host",
                "a",
                "parameters[0].name: header `host` cannot be set",
            ),
            ("content-length", "0", "cannot be set"),
            ("", "a", "cannot be set"),
            ("a b", "a", "cannot be set"),
            (
                "x",
                "a\r\nhost: b",
                "parameters[0].value: contains a line break",
            ),
            ("x", "a\tb", "control character"),
            ("x", "é", "not ASCII"),
        ] {
            let refused = header(name, value).unwrap_err().to_string();
            assert!(refused.contains(problem), "{name}: {refused}");
        }
    }
}
