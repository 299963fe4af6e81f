//! What a person filled in to connect an account, against what a scheme asks, and what a request gets out of it.
//!
//! Servers and the author's command read forms here alike. Values come from a look-up, because each side keeps them in its own
//! way.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use regex::Regex;

use crate::{AuthScheme, Field, Placement};

/// A field that is missing or wrong. Prints as one line that does not repeat the value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldProblem<'a> {
    /// The field.
    pub field: &'a Field,
    /// Whether there is no value; otherwise it does not match the pattern.
    pub missing: bool,
}

/// What filled templates come to.
#[derive(Clone, PartialEq, Eq)]
pub struct Filled {
    /// Where the credential goes. A placement that needs an optional field without a value is left out.
    pub placements: Vec<Placement>,
    /// Every value that must not be seen, also in the form in which a request carries it.
    pub secrets: Vec<String>,
}

impl AuthScheme {
    /// A value for each field that has one, with defaults. An empty value is none. Nothing is said about names that are no
    /// fields: what to do with those is the caller's affair.
    ///
    /// # Errors
    /// Every field that is missing or does not match its pattern.
    pub fn complete(
        &self,
        given: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<(&Field, String)>, Vec<FieldProblem<'_>>> {
        let mut values = Vec::new();
        let mut problems = Vec::new();
        for field in &self.fields {
            match given(&field.name).filter(|value| !value.is_empty()).or_else(|| field.default.clone()) {
                Some(value) if field.accepts(&value) => values.push((field, value)),
                Some(_) => problems.push(FieldProblem { field, missing: false }),
                None if field.optional => {}
                None => problems.push(FieldProblem { field, missing: true }),
            }
        }
        if problems.is_empty() { Ok(values) } else { Err(problems) }
    }

    /// Fills the templates of the scheme.
    #[must_use]
    pub fn filled(&self, value: impl Fn(&str) -> Option<String>) -> Filled {
        let placements: Vec<_> = self.request.iter().filter_map(|placement| placement.filled(&value)).collect();
        let own = self.secrets().filter_map(&value);
        // An application may echo the header as it was sent, so what the encoding makes of a secret is a secret too.
        let encoded = placements.iter().filter_map(|placement| match placement {
            Placement::Basic { username, password } => Some(BASE64.encode(format!("{username}:{password}"))),
            _ => None,
        });
        let secrets = own.chain(encoded).filter(|secret| !secret.is_empty()).collect();
        Filled { placements, secrets }
    }

    /// The base URL of the application's API; none when the scheme has none or lacks a value for it.
    #[must_use]
    pub fn filled_base_url(&self, value: impl Fn(&str) -> Option<String>) -> Option<String> {
        fill(self.base_url.as_deref()?, &value)
    }

    /// The values that a toolkit may read: those of declared fields that are not secret.
    #[must_use]
    pub fn open_fields(&self, value: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
        let open = self.fields.iter().filter(|field| !field.secret);
        open.filter_map(|field| Some((field.name.clone(), value(&field.name)?))).collect()
    }
}

impl Field {
    fn accepts(&self, value: &str) -> bool {
        let Some(pattern) = &self.pattern else { return true };
        // A pattern that is none cannot be met; `Manifest::problems` refuses it before.
        Regex::new(&format!("^(?:{pattern})$")).is_ok_and(|pattern| pattern.is_match(value))
    }
}

impl Placement {
    fn filled(&self, value: &impl Fn(&str) -> Option<String>) -> Option<Self> {
        let fill = |template: &str| fill(template, value);
        Some(match self {
            Self::Header { name, value } => Self::Header { name: name.clone(), value: fill(value)? },
            Self::Query { name, value } => Self::Query { name: name.clone(), value: fill(value)? },
            Self::Path { marker, value } => Self::Path { marker: marker.clone(), value: fill(value)? },
            Self::Basic { username, password } => {
                Self::Basic { username: fill(username)?, password: fill(password).unwrap_or_default() }
            }
        })
    }
}

/// Puts values in the place of `{field}`; none when one is missing.
#[must_use]
pub fn fill(template: &str, value: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut filled = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        filled.push_str(before);
        filled.push_str(&value(name)?);
        rest = after;
    }
    filled.push_str(rest);
    Some(filled)
}

impl fmt::Display for FieldProblem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Field { name, title, pattern, .. } = self.field;
        match pattern {
            _ if self.missing => write!(f, "{name}: is required ({title})"),
            Some(pattern) => write!(f, "{name}: does not have the form the toolkit asks for, {pattern}"),
            None => write!(f, "{name}: cannot be taken"),
        }
    }
}

impl fmt::Debug for Filled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filled").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AuthMode;

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

    fn of<'a>(values: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| values.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn every_missing_or_malformed_field_has_its_line_and_no_value_in_it() {
        let scheme = scheme();
        let problems = scheme.complete(of(&[("region", "mars"), ("key", "")])).unwrap_err();
        let lines: Vec<_> = problems.iter().map(FieldProblem::to_string).collect();
        assert_eq!(lines, ["key: is required (KEY)", "region: does not have the form the toolkit asks for, eu|us"]);
    }

    #[test]
    fn a_default_stands_in_for_what_was_left_empty_and_the_optional_may_be_missing() {
        let mut scheme = scheme();
        scheme.fields[1].default = Some("us".into());
        let values = scheme.complete(of(&[("key", "k"), ("region", ""), ("other", "o")])).unwrap();
        let values: Vec<_> = values.iter().map(|(field, value)| (field.name.as_str(), value.as_str())).collect();
        assert_eq!(values, [("key", "k"), ("region", "us")]);
    }

    #[test]
    fn placements_are_filled_and_those_without_their_optional_field_left_out() {
        let scheme = scheme();
        let given = [("key", "k1"), ("region", "eu")];
        let filled = scheme.filled(of(&given));
        let expected = [
            Placement::Header { name: "authorization".into(), value: "Bearer k1".into() },
            Placement::Basic { username: "k1".into(), password: String::new() },
        ];
        assert_eq!(filled.placements, expected);
        assert_eq!(filled.secrets, ["k1", "azE6"]);
        assert_eq!(scheme.open_fields(of(&given)), [("region".to_owned(), "eu".to_owned())]);
        assert!(!format!("{filled:?}").contains("k1"), "it does not print");
    }

    #[test]
    fn a_template_is_filled_or_not_used() {
        let given = of(&[("a", "1"), ("n", "2")]);
        assert_eq!(fill("x{a}y{n}", &given).as_deref(), Some("x1y2"));
        assert_eq!(fill("{a}{b}", &given), None);
        assert_eq!(fill("{a", &given), None);
        assert_eq!(fill("plain", &given).as_deref(), Some("plain"));
    }
}
