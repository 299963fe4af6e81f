//! The account that a call runs with: what goes into requests, and what the toolkit may know.
//!
//! The credential takes the same way as on a server: the sandbox asks a [`Grant`] for it after policy has said yes, and the
//! toolkit never sees it. The values come from the author's machine, or are made up for cases.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use manifest::{ACCESS_TOKEN, AuthMode, AuthScheme, Placement};
use sandbox::{Credential, Grant, GrantError, Secret};

/// Values of the fields of a scheme, by name.
pub(crate) type Values = BTreeMap<String, String>;

/// What a call knows of an account.
#[derive(Clone, Default)]
pub(crate) struct Account {
    pub(crate) grant: Option<Arc<dyn Grant>>,
    /// Non-secret fields, for the toolkit.
    pub(crate) fields: Vec<(String, String)>,
    /// What the sandbox adds to each request.
    pub(crate) placements: Vec<Placement>,
}

/// A credential that is ready and cannot be renewed.
struct Ready(Arc<Credential>);

#[async_trait]
impl Grant for Ready {
    async fn credential(&self) -> Result<Arc<Credential>, GrantError> {
        Ok(self.0.clone())
    }

    async fn renew(&self, _: &Credential) -> Result<Option<Arc<Credential>>, GrantError> {
        Ok(None)
    }
}

impl Account {
    /// The account that these values make under a scheme. A placement that needs an empty optional field is left out.
    pub(crate) fn of(scheme: &AuthScheme, values: &Values) -> Self {
        let placements: Vec<_> = scheme.request.iter().filter_map(|placement| place(placement, values)).collect();
        let secrets = scheme.secrets().filter_map(|name| values.get(name)).filter(|value| !value.is_empty());
        let secrets = secrets.map(|value| Secret::from(value.as_str())).collect();
        let open = scheme.fields.iter().filter(|field| !field.secret);
        let fields = open.filter_map(|field| Some((field.name.clone(), values.get(&field.name)?.clone()))).collect();
        let credential = Credential { placements: placements.clone(), secrets };
        Self { grant: Some(Arc::new(Ready(Arc::new(credential)))), fields, placements }
    }
}

/// The values of a scheme out of what is given, with defaults; or the required ones that are missing. A token, which otherwise
/// a flow brings, is given like a field.
pub(crate) fn complete(scheme: &AuthScheme, given: impl Fn(&str) -> Option<String>) -> Result<Values, Vec<&str>> {
    let mut values = Values::new();
    let mut missing = Vec::new();
    for field in &scheme.fields {
        match given(&field.name).filter(|value| !value.is_empty()).or_else(|| field.default.clone()) {
            Some(value) => {
                values.insert(field.name.clone(), value);
            }
            None if field.optional => {}
            None => missing.push(field.name.as_str()),
        }
    }
    if scheme.oauth2.is_some() {
        match given(ACCESS_TOKEN) {
            Some(token) => drop(values.insert(ACCESS_TOKEN.to_owned(), token)),
            None => missing.push(ACCESS_TOKEN),
        }
    }
    if missing.is_empty() { Ok(values) } else { Err(missing) }
}

/// The schemes that need an account.
pub(crate) fn schemes(all: &[AuthScheme]) -> impl Iterator<Item = &AuthScheme> {
    all.iter().filter(|scheme| scheme.mode != AuthMode::NoAuth)
}

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
fn fill(template: &str, values: &Values) -> Option<String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        filled.push_str(before);
        filled.push_str(values.get(name)?);
        rest = after;
    }
    filled.push_str(rest);
    Some(filled)
}

#[cfg(test)]
mod tests {
    use manifest::Field;

    use super::*;

    fn field(name: &str, secret: bool, optional: bool) -> Field {
        let (title, description) = (String::new(), String::new());
        Field { name: name.to_owned(), title, description, secret, optional, default: None, pattern: None }
    }

    fn scheme() -> AuthScheme {
        AuthScheme {
            mode: AuthMode::ApiKey,
            name: "API key".to_owned(),
            fields: vec![field("api_key", true, false), field("site", false, false), field("team", false, true)],
            request: vec![
                Placement::Header { name: "authorization".to_owned(), value: "Bearer {api_key}".to_owned() },
                Placement::Query { name: "team".to_owned(), value: "{team}".to_owned() },
            ],
            base_url: None,
            verify: None,
            oauth2: None,
        }
    }

    #[test]
    fn missing_fields_are_all_named_and_optional_ones_are_not() {
        let scheme = scheme();
        assert_eq!(complete(&scheme, |_| None).unwrap_err(), ["api_key", "site"]);
        let values = complete(&scheme, |name| (name != "team").then(|| format!("my-{name}"))).unwrap();
        assert_eq!(values.len(), 2);
    }

    #[test]
    fn a_secret_goes_into_requests_and_never_to_the_toolkit() {
        let values = Values::from([("api_key".into(), "k-1".into()), ("site".into(), "north".into())]);
        let account = Account::of(&scheme(), &values);
        assert_eq!(account.fields, [("site".to_owned(), "north".to_owned())]);
        let header = Placement::Header { name: "authorization".to_owned(), value: "Bearer k-1".to_owned() };
        assert_eq!(account.placements, [header], "a placement over an empty optional field is left out");
    }
}
