//! Account of a call: the credential that is added to requests, and the fields that the toolkit may
//! read.
//!
//! The credential takes the same path as on a server: the sandbox asks a [`Grant`] for it after the
//! policy check, and the toolkit never sees it. The values come from the author's machine; cases
//! use generated values.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use manifest::{AuthMode, AuthScheme, Field, FieldProblem, Filled, Placement};
use sandbox::{Credential, Grant, GrantError, Secret, Signing};

/// Values of a scheme's fields, by name.
pub(crate) type Values = BTreeMap<String, String>;

/// Account of a call.
#[derive(Clone, Default)]
pub(crate) struct Account {
    pub(crate) grant: Option<Arc<dyn Grant>>,
    /// Fields that the toolkit may read.
    pub(crate) fields: Vec<(String, String)>,
    /// Parts that the sandbox adds to each request.
    pub(crate) placements: Vec<Placement>,
}

/// A credential that cannot be renewed.
struct StaticGrant(Arc<Credential>);

#[async_trait]
impl Grant for StaticGrant {
    async fn credential(&self) -> Result<Arc<Credential>, GrantError> {
        Ok(self.0.clone())
    }

    async fn refresh(&self, _: &Credential) -> Result<Option<Arc<Credential>>, GrantError> {
        Ok(None)
    }
}

impl Account {
    /// Builds the account that these values make under a scheme.
    pub(crate) fn new(scheme: &AuthScheme, values: &Values) -> Self {
        let value = |name: &str| values.get(name).cloned();
        let Filled {
            placements,
            secrets,
            sign,
        } = scheme.filled(value);
        let secrets = secrets.into_iter().map(Secret::from).collect();
        let sign = sign.map(|(how, values)| Signing::new(how, values));
        // An unreadable certificate is left out; the provider then rejects the connection.
        let certificate = scheme.filled_certificate(value);
        let identity = certificate
            .and_then(|(certificate, key)| net::Identity::from_pem(&certificate, &key).ok());
        let credential = Credential {
            placements: placements.clone(),
            secrets,
            sign,
            identity,
            ..Credential::default()
        };
        Self {
            grant: Some(Arc::new(StaticGrant(Arc::new(credential)))),
            fields: scheme.open_fields(value),
            placements,
        }
    }
}

/// Returns the values of a scheme with defaults, or one line for each value that is missing or
/// wrong. Values that otherwise come from the provider, such as tokens, are passed like fields.
pub(crate) fn complete(
    scheme: &AuthScheme,
    given: impl Fn(&str) -> Option<String>,
) -> Result<Values, Vec<String>> {
    let values = scheme.complete(&given);
    let from_flow = scheme.flow_values().map(|name| (name, given(name)));
    let (found, missing): (Vec<_>, Vec<_>) = from_flow.partition(|(_, value)| value.is_some());
    let missing: Vec<_> = missing
        .iter()
        .map(|(name, _)| format!("{name}: is required; on a server, the provider issues it"))
        .collect();
    match values {
        Ok(values) if missing.is_empty() => {
            let found = found
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?)));
            Ok(by_field_name(values).chain(found).collect())
        }
        values => {
            let problems = values.err().unwrap_or_default();
            Err(problems
                .iter()
                .map(FieldProblem::to_string)
                .chain(missing)
                .collect())
        }
    }
}

fn by_field_name(values: Vec<(&Field, String)>) -> impl Iterator<Item = (String, String)> {
    values
        .into_iter()
        .map(|(field, value)| (field.name.clone(), value))
}

/// Returns the schemes that need an account.
pub(crate) fn schemes(all: &[AuthScheme]) -> impl Iterator<Item = &AuthScheme> {
    all.iter().filter(|scheme| scheme.mode != AuthMode::NoAuth)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, secret: bool, optional: bool) -> Field {
        Field {
            optional,
            ..Field::new(name, "", secret)
        }
    }

    fn scheme() -> AuthScheme {
        AuthScheme {
            mode: AuthMode::ApiKey,
            name: "API key".to_owned(),
            fields: vec![
                field("api_key", true, false),
                field("site", false, false),
                field("team", false, true),
            ],
            request: vec![
                Placement::header("authorization", "Bearer {api_key}"),
                Placement::query("team", "{team}"),
            ],
            ..AuthScheme::default()
        }
    }

    #[test]
    fn all_missing_values_are_reported_at_once() {
        let mut scheme = scheme();
        let flow = serde_json::json!({ "authorize_url": "https://a.example/o", "token_url": "https://a.example/t" });
        scheme.oauth2 = Some(serde_json::from_value(flow).unwrap());
        let problems = complete(&scheme, |_| None).unwrap_err().join("\n");
        assert!(
            ["api_key: ", "site: ", "access_token: "]
                .iter()
                .all(|name| problems.contains(name)),
            "{problems}"
        );
        let values = complete(&scheme, |name| {
            (name != "team").then(|| format!("my-{name}"))
        })
        .unwrap();
        assert_eq!(values.len(), 3);
    }

    #[test]
    fn secrets_reach_requests_but_not_the_toolkit() {
        let values = Values::from([
            ("api_key".into(), "k-1".into()),
            ("site".into(), "north".into()),
        ]);
        let account = Account::new(&scheme(), &values);
        assert_eq!(account.fields, [("site".to_owned(), "north".to_owned())]);
        assert_eq!(
            account.placements,
            [Placement::header("authorization", "Bearer k-1")],
            "a placement over an empty optional field is left out"
        );
    }
}
