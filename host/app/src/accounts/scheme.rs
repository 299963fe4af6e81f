//! Field values of an auth scheme, and the credential built from them.
//!
//! `manifest` validates the form itself. This module does the rest on the server: it accepts a key
//! under the names that clients use for it, and it masks secrets in the values that responses show.

use manifest::{AuthMode, AuthScheme, FieldProblem};
use oauth::Values;
pub(super) use oauth::scheme::{certificate_problem, credential, identity, text};
use sandbox::{MAX_SECRET_BYTES, MAX_SECRETS, Secret};
use serde_json::Value;
use url::Url;

use crate::core::{MIN_SHOWN_SECRET_CHARS, spelling::sent_instead};

/// Names under which clients send the single secret of a key scheme, independent of the toolkit's
/// own name for it.
const GENERIC_KEY_NAMES: [&str; 5] = [
    "generic_api_key",
    "api_key",
    "bearer_token",
    "basic_encoded",
    "token",
];
/// Problem of a required field with an empty value.
pub(super) const EMPTY_PROBLEM: &str = "must not be empty";
/// Name of the value with which a token is refreshed.
const REFRESH_TOKEN_VALUE: &str = "refresh_token";
/// Names of values that are never masked, even if the scheme does not declare them.
const PUBLIC_NAMES: [&str; 27] = [
    "COMPANYDOMAIN",
    "account_id",
    "account_url",
    "api_url",
    "base_url",
    "borneo_dashboard_url",
    "dc",
    "domain",
    "extension",
    "form_api_base_url",
    "instanceEndpoint",
    "instanceName",
    "region",
    "server_location",
    "shop",
    "site_name",
    "subdomain",
    "version",
    "your-domain",
    "your_server",
    "displayName",
    "token_type",
    "scope",
    "expires_in",
    oauth::REGISTERED_AUTH,
    "redirectUrl",
    "authUri",
];

/// Validates the given values against the fields of a scheme, adds defaults, and gives each secret
/// the name that the toolkit uses. Fails with one line for each missing or wrong field.
pub(super) fn complete(scheme: &AuthScheme, mut given: Values) -> Result<Values, Vec<String>> {
    given = normalize_names(scheme, given);
    check_values(scheme, &given)?;
    let values = scheme
        .complete(|name| given.get(name).and_then(text))
        .map_err(|problems| {
            let lines = problems.iter().map(|problem| field_line(problem, &given));
            lines.collect::<Vec<_>>()
        })?;
    for (field, value) in values {
        given.insert(field.name.clone(), Value::String(value));
    }
    let client_identity = identity(scheme, &given).map_err(|problem| vec![problem])?;
    client_identity
        .map_or(Ok(()), |identity| identity.check())
        .map_err(|failure| vec![certificate_problem(scheme, &failure.message)])?;
    check_secret_sizes(&credential(scheme, &given).secrets)
        .map_err(|why| vec![format!("the secret fields: {why}")])?;
    Ok(given)
}

/// Returns the line of a problem. A missing field may be empty, or may have been sent under a similar
/// name.
fn field_line(problem: &FieldProblem<'_>, given: &Values) -> String {
    let name = &problem.field.name;
    if !problem.missing {
        return problem.to_string();
    }
    if given.contains_key(name) {
        return format!("{name}: {EMPTY_PROBLEM}");
    }
    let question = sent_instead(name, given.keys().map(String::as_str));
    format!("{problem}{question}")
}

/// Rejects values that are not strings, which may lack digits that the user has typed, and values
/// that cannot be sent. The flow of a scheme fills its hidden fields with any values. The names are
/// those of the toolkit. Fails with one line for each wrong value.
pub(super) fn check_values(scheme: &AuthScheme, given: &Values) -> Result<(), Vec<String>> {
    let filled_in = scheme.fields.iter().filter(|field| !field.hidden);
    let names = filled_in
        .map(|field| &*field.name)
        .chain(scheme.flow_values())
        .chain([REFRESH_TOKEN_VALUE]);
    let mut problems = non_strings(names, given);
    let unsendable = scheme.unsendable(|name| given.get(name).and_then(text));
    problems.extend(unsendable.iter().map(|name| {
        format!(
            "{name}: contains a line break or another control character, which a request cannot contain; remove it"
        )
    }));
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// Returns one line for each of these values that is present and not a string.
pub(super) fn non_strings<'n>(
    names: impl IntoIterator<Item = &'n str>,
    values: &Values,
) -> Vec<String> {
    let problems = names.into_iter().filter_map(|name| {
        let kind = match values.get(name)? {
            Value::Null | Value::String(_) => return None,
            Value::Number(_) => "a number",
            Value::Bool(_) => "a boolean",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        Some(format!("{name}: must be a string, not {kind}"))
    });
    problems.collect()
}

/// Rejects more secrets than a response is searched for.
pub(super) fn check_secret_sizes(secrets: &[Secret]) -> Result<(), String> {
    let bytes: usize = secrets.iter().map(|secret| secret.expose().len()).sum();
    if secrets.len() > MAX_SECRETS || bytes > MAX_SECRET_BYTES {
        return Err(format!(
            "at most {MAX_SECRETS} secrets with {MAX_SECRET_BYTES} bytes in total"
        ));
    }
    Ok(())
}

/// Gives a key the name that the toolkit uses and drops the status.
pub(super) fn normalize_names(scheme: &AuthScheme, mut given: Values) -> Values {
    given.remove("status");
    if matches!(scheme.mode, AuthMode::ApiKey | AuthMode::BearerToken) {
        adopt_key(scheme, &mut given);
    }
    given
}

/// Gives a key sent under a general name to the only secret field that lacks a value. The only secret
/// of a scheme also keeps the general name, so that it reads back as it was set.
fn adopt_key(scheme: &AuthScheme, given: &mut Values) {
    let sent_name = GENERIC_KEY_NAMES.into_iter().find(|name| {
        let is_declared = scheme.fields.iter().any(|field| field.name == *name);
        !is_declared && given.contains_key(*name)
    });
    let Some(name) = sent_name else {
        return;
    };
    let secrets: Vec<_> = scheme.fields.iter().filter(|field| field.secret).collect();
    if let [field] = secrets[..] {
        let (from, to) = if given.contains_key(&field.name) {
            (&*field.name, name)
        } else {
            (name, &*field.name)
        };
        let value = given.get(from).cloned().unwrap_or_default();
        given.insert(to.to_owned(), value);
        return;
    }
    let mut lacking = secrets
        .iter()
        .filter(|field| !given.contains_key(&field.name));
    if let (Some(field), None) = (lacking.next(), lacking.next())
        && let Some(value) = given.remove(name)
    {
        given.insert(field.name.clone(), value);
    }
}

/// Returns the base URL of the provider's API, if the scheme has one and its fields are filled. The
/// credential is sent to this URL, so field values must not lead outside the hosts that the scheme
/// names.
pub(super) fn base_url(scheme: &AuthScheme, values: &Values) -> Option<String> {
    let filled = scheme.filled_base_url(|name| values.get(name).and_then(text))?;
    let template = scheme.base_url.as_deref()?;
    let url = Url::parse(&filled).ok()?;
    let inside = url.scheme() == "https"
        && manifest::template_matches_host(template, url.domain()?, url.port().unwrap_or(443));
    inside.then_some(filled)
}

/// Returns the fields that a toolkit may read: declared and not secret.
pub(super) fn open_fields(scheme: &AuthScheme, values: &Values) -> Vec<(String, String)> {
    scheme.open_fields(|name| values.get(name).and_then(text))
}

/// Masks values for responses. Only values known to be public are shown whole; others show at most
/// their first four characters.
pub(super) fn mask_values(scheme: Option<&AuthScheme>, values: &Values) -> Values {
    let shown = values
        .iter()
        .map(|(name, value)| match is_public(scheme, name) {
            true => (name.clone(), value.clone()),
            false => (name.clone(), mask(value)),
        });
    shown.collect()
}

fn is_public(scheme: Option<&AuthScheme>, name: &str) -> bool {
    let field = scheme.and_then(|scheme| scheme.fields.iter().find(|field| field.name == name));
    field.map_or_else(|| PUBLIC_NAMES.contains(&name), |field| !field.secret)
}

/// Masks all strings inside a value.
#[must_use]
pub fn mask(value: &Value) -> Value {
    match value {
        Value::String(text) if text.chars().count() < MIN_SHOWN_SECRET_CHARS => "REDACTED".into(),
        Value::String(text) => format!("{}...", text.chars().take(4).collect::<String>()).into(),
        Value::Array(items) => items.iter().map(mask).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), mask(value)))
            .collect(),
        Value::Number(_) => "REDACTED".into(),
        Value::Null | Value::Bool(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests;
