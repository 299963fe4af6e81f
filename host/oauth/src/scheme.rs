//! The values of an account under the fields of its auth scheme, as requests to a provider need
//! them: the credential, the TLS client identity and the signing key.

use manifest::{AuthScheme, Filled};
use net::Identity;
use sandbox::{Credential, Secret, Signing};
use serde_json::{Map, Value};

/// Values of a scheme's fields, by field name. Unknown names are kept, because the API contract
/// allows them.
pub type Values = Map<String, Value>;

/// Fills in the templates of a scheme.
#[must_use]
pub fn credential(scheme: &AuthScheme, values: &Values) -> Credential {
    let Filled {
        placements,
        secrets,
        sign,
    } = scheme.filled(|name| values.get(name).and_then(text));
    let secrets = secrets.into_iter().map(Secret::from).collect();
    let sign = sign.map(|(how, values)| Signing::new(how, values));
    // The identity was checked when the values were stored.
    let identity = identity(scheme, values).ok().flatten();
    let flow = scheme.oauth2.as_ref();
    Credential {
        placements,
        secrets,
        sign,
        identity,
        rejections: flow.map_or_else(Vec::new, |flow| flow.rejected_if.clone()),
        ..Credential::default()
    }
}

/// Returns the TLS client identity of the scheme's connections, if it has one.
///
/// # Errors
/// Returns the problem of the certificate or key, with the name of its field.
pub fn identity(scheme: &AuthScheme, values: &Values) -> Result<Option<Identity>, String> {
    let filled = scheme.filled_certificate(|name| values.get(name).and_then(text));
    let read = filled
        .map(|(certificate, key)| Identity::from_pem(&certificate, &key))
        .transpose();
    read.map_err(|failure| certificate_problem(scheme, &failure.message))
}

/// Formats a certificate problem as a line about its field.
#[must_use]
pub fn certificate_problem(scheme: &AuthScheme, problem: &str) -> String {
    let field = scheme
        .client_certificate
        .as_ref()
        .map_or("", |certificate| certificate.certificate.as_str());
    format!("{field}: {problem}")
}

/// Returns a scalar value as text.
#[must_use]
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
