//! What a scheme asks of an account, and what it makes of the answers.
//!
//! A scheme declares fields and templates over them. Here the fields are checked, the templates filled, and the values
//! shown again with their secrets masked.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use manifest::{AuthMode, AuthScheme, Placement};
use regex::Regex;
use sandbox::{Credential, Secret};
use serde_json::{Map, Value};

/// What a person filled in, by field. Unknown names are kept: the contract allows them.
pub type Values = Map<String, Value>;

/// Names under which clients send the one secret of a key scheme, whatever the toolkit calls it.
const KEY_NAMES: [&str; 5] = ["generic_api_key", "api_key", "bearer_token", "basic_encoded", "token"];
/// Fields of connections that are shown as they are, declared or not.
const OPEN_NAMES: [&str; 21] = [
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
];

/// Checks what was filled in against the fields of a scheme, adds defaults, and gives each secret the toolkit's name.
///
/// # Errors
/// One line per field that is missing or wrong.
pub(super) fn complete(scheme: &AuthScheme, mut given: Values) -> Result<Values, Vec<String>> {
    given.remove("status");
    if matches!(scheme.mode, AuthMode::ApiKey | AuthMode::BearerToken) {
        adopt_key(scheme, &mut given);
    }
    let mut problems = Vec::new();
    for field in &scheme.fields {
        let filled = given.get(&field.name).and_then(text).filter(|value| !value.is_empty());
        match filled.or_else(|| field.default.clone()) {
            Some(value) => {
                if !matches(field.pattern.as_deref(), &value) {
                    problems.push(format!("{}: does not have the form the toolkit asks for", field.name));
                }
                given.insert(field.name.clone(), Value::String(value));
            }
            None if field.optional => {}
            None => problems.push(format!("{}: is required ({})", field.name, field.title)),
        }
    }
    if problems.is_empty() { Ok(given) } else { Err(problems) }
}

/// Moves a key sent under a general name to the one secret field that lacks a value.
fn adopt_key(scheme: &AuthScheme, given: &mut Values) {
    let mut lacking = scheme.fields.iter().filter(|field| field.secret && !given.contains_key(&field.name));
    let (Some(field), None) = (lacking.next(), lacking.next()) else { return };
    let declared = |name: &str| scheme.fields.iter().any(|field| field.name == name);
    if let Some(name) = KEY_NAMES.into_iter().find(|name| !declared(name) && given.contains_key(*name))
        && let Some(value) = given.remove(name)
    {
        given.insert(field.name.clone(), value);
    }
}

fn matches(pattern: Option<&str>, value: &str) -> bool {
    let Some(pattern) = pattern else { return true };
    // A pattern that is none cannot be met; `toolkit check` refuses it before.
    Regex::new(&format!("^(?:{pattern})$")).is_ok_and(|pattern| pattern.is_match(value))
}

/// Fills the templates of a scheme.
pub(super) fn credential(scheme: &AuthScheme, values: &Values) -> Credential {
    let placements = scheme.request.iter().filter_map(|placement| place(placement, values)).collect::<Vec<_>>();
    let own = scheme.secrets().filter_map(|name| text(values.get(name)?));
    // An application may echo the header as it was sent, so what the encoding makes of a secret is a secret too.
    let encoded = placements.iter().filter_map(|placement| match placement {
        Placement::Basic { username, password } => Some(BASE64.encode(format!("{username}:{password}"))),
        _ => None,
    });
    let secrets = own.chain(encoded).filter(|secret| !secret.is_empty()).map(Secret::from).collect();
    Credential { placements, secrets }
}

/// A placement with its templates filled; none when it needs an optional field that was left empty.
fn place(placement: &Placement, values: &Values) -> Option<Placement> {
    Some(match placement {
        Placement::Header { name, value } => Placement::Header { name: name.clone(), value: fill(value, values)? },
        Placement::Query { name, value } => Placement::Query { name: name.clone(), value: fill(value, values)? },
        Placement::Path { marker, value } => Placement::Path { marker: marker.clone(), value: fill(value, values)? },
        Placement::Basic { username, password } => {
            Placement::Basic { username: fill(username, values)?, password: fill(password, values).unwrap_or_default() }
        }
    })
}

/// Puts values in the place of `{field}`; none when one is missing.
pub(super) fn fill(template: &str, values: &Values) -> Option<String> {
    let mut out = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        out.push_str(before);
        out.push_str(&text(values.get(name)?)?);
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

/// The fields a toolkit may read: declared, and not secret.
pub(super) fn open_fields(scheme: &AuthScheme, values: &Values) -> Vec<(String, String)> {
    let open = scheme.fields.iter().filter(|field| !field.secret);
    open.filter_map(|field| Some((field.name.clone(), text(values.get(&field.name)?)?))).collect()
}

/// Values as answers show them: what is not known to be open shows its first four characters.
pub(super) fn masked(scheme: Option<&AuthScheme>, values: &Values) -> Values {
    let open = |name: &str| {
        let declared = scheme.and_then(|scheme| scheme.fields.iter().find(|field| field.name == name));
        declared.map_or_else(|| OPEN_NAMES.contains(&name), |field| !field.secret)
    };
    values.iter().map(|(name, value)| (name.clone(), if open(name) { value.clone() } else { mask(value) })).collect()
}

/// Masks every text inside a value.
#[must_use]
pub fn mask(value: &Value) -> Value {
    match value {
        Value::String(text) if text.chars().count() < 4 => "REDACTED".into(),
        Value::String(text) => format!("{}...", text.chars().take(4).collect::<String>()).into(),
        Value::Array(items) => items.iter().map(mask).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), mask(value))).collect(),
        Value::Number(_) => "REDACTED".into(),
        Value::Null | Value::Bool(_) => value.clone(),
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use manifest::Field;
    use serde_json::json;

    use super::*;

    fn field(name: &str, secret: bool, optional: bool) -> Field {
        let pattern = (name == "region").then(|| "eu|us".to_owned());
        let title = name.to_uppercase();
        Field { name: name.into(), title, description: String::new(), secret, optional, default: None, pattern }
    }

    fn scheme() -> AuthScheme {
        AuthScheme {
            mode: AuthMode::ApiKey,
            name: "API key".into(),
            fields: vec![field("key", true, false), field("region", false, false), field("team", true, true)],
            request: vec![
                Placement::Header { name: "authorization".into(), value: "Bearer {key}".into() },
                Placement::Header { name: "x-team".into(), value: "{team}".into() },
                Placement::Basic { username: "{key}".into(), password: "{team}".into() },
            ],
            base_url: None,
            verify: None,
            oauth2: None,
        }
    }

    fn values(json: Value) -> Values {
        json.as_object().unwrap().clone()
    }

    #[test]
    fn masking_shows_four_characters_of_a_secret_and_all_of_an_open_field() {
        let given = json!({"key": "sk_live_123", "region": "eu", "team": "abc", "extra": {"deep": "secretvalue"},
            "subdomain": "acme", "count": 5});
        assert_eq!(
            Value::Object(masked(Some(&scheme()), &values(given))),
            json!({"key": "sk_l...", "region": "eu", "team": "REDACTED", "extra": {"deep": "secr..."},
                "subdomain": "acme", "count": "REDACTED"})
        );
    }

    #[test]
    fn masking_counts_characters_not_bytes() {
        assert_eq!(mask(&json!("éééé")), json!("éééé..."));
        assert_eq!(mask(&json!("ééé")), json!("REDACTED"));
        assert_eq!(mask(&json!("")), json!("REDACTED"));
    }

    #[test]
    fn a_missing_or_malformed_field_has_its_line() {
        let problems = complete(&scheme(), values(json!({"region": "mars"}))).unwrap_err();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("key: is required") && problems[1].starts_with("region: "));
    }

    #[test]
    fn a_key_under_a_general_name_becomes_the_toolkits_own() {
        let complete =
            complete(&scheme(), values(json!({"generic_api_key": "k", "region": "eu", "team": "t"}))).unwrap();
        assert_eq!(Value::Object(complete), json!({"region": "eu", "team": "t", "key": "k"}));
    }

    #[test]
    fn placements_are_filled_and_those_without_their_optional_field_left_out() {
        let given = values(json!({"key": "k1", "region": "eu"}));
        let credential = credential(&scheme(), &given);
        assert_eq!(
            credential.placements,
            [
                Placement::Header { name: "authorization".into(), value: "Bearer k1".into() },
                Placement::Basic { username: "k1".into(), password: String::new() },
            ]
        );
        let secrets: Vec<_> = credential.secrets.iter().map(Secret::expose).collect();
        assert_eq!(secrets, ["k1", "azE6"]);
        assert_eq!(open_fields(&scheme(), &given), [("region".to_owned(), "eu".to_owned())]);
    }

    #[test]
    fn a_template_is_filled_or_not_used() {
        let given = values(json!({"a": "1", "n": 2}));
        assert_eq!(fill("x{a}y{n}", &given).as_deref(), Some("x1y2"));
        assert_eq!(fill("{a}{b}", &given), None);
        assert_eq!(fill("{a", &given), None);
        assert_eq!(fill("plain", &given).as_deref(), Some("plain"));
    }
}
