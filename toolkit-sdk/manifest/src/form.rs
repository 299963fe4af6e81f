//! Forms that connect an account: checking the user's input against a scheme, and filling a request
//! with it.
//!
//! Servers and the `toolkit` command both use this module. Values come from a lookup function,
//! because each program stores them in its own way.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use regex::Regex;

use crate::{
    AuthScheme, Field, FieldFormat, Placement, Sign,
    template::{Template, fill},
};

/// A missing or invalid field. It prints as one line that does not contain the value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldProblem<'a> {
    /// The field.
    pub field: &'a Field,
    /// True if no value was given. False if the field does not accept the value.
    pub missing: bool,
}

/// The filled templates of a scheme.
#[derive(Clone, PartialEq, Eq)]
pub struct Filled {
    /// Filled placements. A placement that needs an optional field without a value is left out.
    pub placements: Vec<Placement>,
    /// Every value that must not be seen, also in the form in which a request carries it.
    pub secrets: Vec<String>,
    /// Signature of each request, with the values that it uses, by name.
    pub sign: Option<(Sign, Vec<(String, String)>)>,
}

impl AuthScheme {
    /// Returns a value for each field that has one, including defaults. An empty or blank value counts
    /// as missing. Names that are not fields are ignored: the caller decides about them.
    ///
    /// # Errors
    /// Every missing field, and every field that does not accept its value.
    pub fn complete(
        &self,
        given: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<(&Field, String)>, Vec<FieldProblem<'_>>> {
        let mut values = Vec::new();
        let mut problems = Vec::new();
        for field in &self.fields {
            let value = given(&field.name)
                .map(|value| field.bare(value))
                .filter(|value| !value.trim().is_empty());
            match value.or_else(|| field.default.clone()) {
                Some(value) if field.accepts(&value) => values.push((field, value)),
                Some(_) => problems.push(FieldProblem {
                    field,
                    missing: false,
                }),
                None if field.optional || field.hidden => {}
                None => problems.push(FieldProblem {
                    field,
                    missing: true,
                }),
            }
        }
        if problems.is_empty() {
            Ok(values)
        } else {
            Err(problems)
        }
    }

    /// Fills the templates of the scheme.
    #[must_use]
    pub fn filled(&self, value: impl Fn(&str) -> Option<String>) -> Filled {
        let placements: Vec<_> = self
            .request
            .iter()
            .filter_map(|placement| placement.filled(&value))
            .collect();
        let own = self.secrets().filter_map(&value);
        // A provider may echo the header as it was sent. Therefore the encoded form of a secret is
        // secret too.
        let encoded = placements.iter().filter_map(|placement| match placement {
            Placement::Basic { username, password } => {
                Some(BASE64.encode(format!("{username}:{password}")))
            }
            _ => None,
        });
        let secrets = own
            .chain(encoded)
            .filter(|secret| !secret.is_empty())
            .collect();
        let sign = self.sign.clone().map(|sign| {
            let templates = sign.templates();
            let parsed = templates
                .iter()
                .filter_map(|(_, template)| Template::parse(template).ok());
            let mut names: Vec<_> = parsed.flat_map(|template| template.fields()).collect();
            names.sort_unstable();
            names.dedup();
            let values = names
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), value(name)?)))
                .collect();
            (sign, values)
        });
        Filled {
            placements,
            secrets,
            sign,
        }
    }

    /// Returns the names of values with a line break or another control character that a request would have
    /// to contain as it is. A template that encodes its value can contain any.
    #[must_use]
    pub fn unsendable(&self, value: impl Fn(&str) -> Option<String>) -> Vec<&str> {
        let templates = self.request.iter().flat_map(Placement::templates);
        let mut names: Vec<_> = templates
            .filter(|template| fill(template, &value).is_some_and(|text| has_control(&text)))
            .filter_map(|template| Template::parse(template).ok())
            .flat_map(|template| template.fields())
            .filter(|name| value(name).is_some_and(|text| has_control(&text)))
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns the client certificate and its key, or `None` if the scheme does not use a
    /// certificate or lacks a value for it.
    #[must_use]
    pub fn filled_certificate(
        &self,
        value: impl Fn(&str) -> Option<String>,
    ) -> Option<(String, String)> {
        let about = self.client_certificate.as_ref()?;
        Some((value(&about.certificate)?, value(&about.key)?))
    }

    /// Returns the base URL of the provider's API, or `None` if the scheme does not define one or
    /// lacks a value for it.
    #[must_use]
    pub fn filled_base_url(&self, value: impl Fn(&str) -> Option<String>) -> Option<String> {
        fill(self.base_url.as_deref()?, &value)
    }

    /// Returns the values that a toolkit may read: those of declared fields that are not secret.
    #[must_use]
    pub fn open_fields(&self, value: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
        let open = self.fields.iter().filter(|field| !field.secret);
        open.filter_map(|field| Some((field.name.clone(), value(&field.name)?)))
            .collect()
    }
}

impl Field {
    /// Returns true if the field accepts this value.
    #[must_use]
    pub fn accepts(&self, value: &str) -> bool {
        let format = self.format.map(FieldFormat::pattern);
        (self.one_of.is_empty() || self.one_of.iter().any(|one| one == value))
            && format
                .into_iter()
                .chain(self.pattern.as_deref())
                .all(|pattern| {
                    // An invalid pattern matches nothing. `Manifest::problems` refuses it earlier.
                    Regex::new(&format!("^(?:{pattern})$"))
                        .is_ok_and(|pattern| pattern.is_match(value))
                })
    }

    /// Removes prefix and suffix from the value, which users often paste along with it.
    fn bare(&self, value: String) -> String {
        let value = value.strip_prefix(&*self.prefix).unwrap_or(&value);
        value
            .strip_suffix(&*self.suffix)
            .unwrap_or(value)
            .to_owned()
    }
}

impl FieldFormat {
    fn pattern(self) -> &'static str {
        match self {
            Self::Hostname => r"(?i)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]",
            Self::Uri => r"https://[!-~]+",
            Self::Uuid => r"(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
            Self::Email => r"[^\s@]+@[^\s@]+\.[^\s@]+",
        }
    }

    /// Describes the format in words.
    fn describe(self) -> &'static str {
        match self {
            Self::Hostname => "a host name such as files.example.com",
            Self::Uri => "an address that begins with https://",
            Self::Uuid => "a UUID",
            Self::Email => "an e-mail address",
        }
    }
}

/// Returns true for a value that no credential has on purpose. Headers could contain a tab, and in UTF-8
/// also the controls outside of ASCII (RFC 9110, section 5.5).
fn has_control(text: &str) -> bool {
    text.chars().any(char::is_control)
}

impl Placement {
    /// Returns the templates of the values.
    pub(crate) fn templates(&self) -> Vec<&str> {
        match self {
            Self::Header { value, .. } | Self::Query { value, .. } | Self::Path { value, .. } => {
                vec![value]
            }
            Self::Basic { username, password } => vec![username, password],
        }
    }

    fn filled(&self, value: &impl Fn(&str) -> Option<String>) -> Option<Self> {
        let fill = |template: &str| fill(template, value);
        Some(match self {
            Self::Header { name, value } => Self::header(name, fill(value)?),
            Self::Query { name, value } => Self::query(name, fill(value)?),
            Self::Path { marker, value } => Self::Path {
                marker: marker.clone(),
                value: fill(value)?,
            },
            Self::Basic { username, password } => {
                Self::basic(fill(username)?, fill(password).unwrap_or_default())
            }
        })
    }
}

impl fmt::Display for FieldProblem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Field {
            name,
            title,
            pattern,
            format,
            one_of,
            ..
        } = self.field;
        match (pattern, format) {
            _ if self.missing => write!(f, "{name}: is required ({title})"),
            _ if !one_of.is_empty() => write!(f, "{name}: is not one of {}", one_of.join(", ")),
            (Some(pattern), _) => write!(f, "{name}: does not match the pattern {pattern}"),
            (None, Some(format)) => write!(f, "{name}: is not {}", format.describe()),
            (None, None) => write!(f, "{name}: is not valid"),
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
        Field {
            optional,
            pattern,
            ..Field::new(name, name.to_uppercase(), secret)
        }
    }

    fn scheme() -> AuthScheme {
        AuthScheme {
            mode: AuthMode::ApiKey,
            name: "API key".into(),
            fields: vec![
                field("key", true, false),
                field("region", false, false),
                field("team", true, true),
            ],
            request: vec![
                Placement::header("authorization", "Bearer {key}"),
                Placement::header("x-team", "{team}"),
                Placement::basic("{key}", "{team}"),
            ],
            ..AuthScheme::default()
        }
    }

    fn lookup<'a>(values: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| {
            values
                .iter()
                .find(|(own, _)| *own == name)
                .map(|(_, value)| (*value).to_owned())
        }
    }

    #[test]
    fn field_problems_are_listed_without_values() {
        let scheme = scheme();
        let problems = scheme
            .complete(lookup(&[("region", "mars"), ("key", " ")]))
            .unwrap_err();
        let lines: Vec<_> = problems.iter().map(FieldProblem::to_string).collect();
        assert_eq!(
            lines,
            [
                "key: is required (KEY)",
                "region: does not match the pattern eu|us"
            ]
        );
    }

    #[test]
    fn defaults_fill_empty_fields() {
        let mut scheme = scheme();
        scheme.fields[1].default = Some("us".into());
        let values = scheme
            .complete(lookup(&[("key", "k"), ("region", ""), ("other", "o")]))
            .unwrap();
        let values: Vec<_> = values
            .iter()
            .map(|(field, value)| (field.name.as_str(), value.as_str()))
            .collect();
        assert_eq!(values, [("key", "k"), ("region", "us")]);
    }

    #[test]
    fn placements_without_optional_value_are_omitted() {
        let scheme = scheme();
        let given = [("key", "k1"), ("region", "eu")];
        let filled = scheme.filled(lookup(&given));
        let expected = [
            Placement::header("authorization", "Bearer k1"),
            Placement::basic("k1", ""),
        ];
        assert_eq!(filled.placements, expected);
        assert_eq!(filled.secrets, ["k1", "azE6"]);
        assert_eq!(
            scheme.open_fields(lookup(&given)),
            [("region".to_owned(), "eu".to_owned())]
        );
        assert!(!format!("{filled:?}").contains("k1"), "it does not print");
    }

    #[test]
    fn values_that_no_request_can_contain_are_named() {
        let mut scheme = scheme();
        let region = Placement::header("x-region", "{base64({region})}");
        scheme.request.push(region);
        let unsendable = |given: &[(&str, &str)]| scheme.unsendable(lookup(given)).join(",");
        assert_eq!(unsendable(&[("key", "k\n"), ("team", "\r")]), "key,team");
        assert_eq!(
            unsendable(&[("key", "k\t"), ("team", "\u{85}")]),
            "key,team"
        );
        assert_eq!(unsendable(&[("key", "k ä"), ("region", "e\nu")]), "");
    }

    #[test]
    fn affixes_are_stripped_and_formats_checked() {
        let mut scheme = scheme();
        scheme.fields = vec![Field {
            prefix: "https://".into(),
            suffix: ".example.com".into(),
            ..field("site", false, false)
        }];
        let values = scheme
            .complete(lookup(&[("site", "https://north.example.com")]))
            .unwrap();
        assert_eq!(values[0].1, "north");
        let lines = |change: &dyn Fn(&mut Field), given: &str| {
            let mut scheme = scheme.clone();
            change(&mut scheme.fields[0]);
            let problems = scheme
                .complete(lookup(&[("site", given)]))
                .err()
                .unwrap_or_default();
            problems
                .iter()
                .map(FieldProblem::to_string)
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(
            lines(
                &|field| field.one_of = vec!["eu".into(), "us".into()],
                "mars"
            ),
            "site: is not one of eu, us"
        );
        assert_eq!(
            lines(&|field| field.hidden = true, ""),
            "",
            "the flow fills it"
        );
        for (format, good, bad) in [
            (
                FieldFormat::Hostname,
                "files.example.org",
                "https://files.example.org",
            ),
            (FieldFormat::Uri, "https://a.example/x", "http://a.example"),
            (
                FieldFormat::Uuid,
                "67e55044-10b1-426f-9247-bb680e5fe0c8",
                "67e55044",
            ),
            (FieldFormat::Email, "amy@example.com", "amy"),
        ] {
            let with = |field: &mut Field| {
                *field = Field {
                    name: "site".into(),
                    format: Some(format),
                    ..Field::default()
                }
            };
            assert_eq!(
                (lines(&with, good), lines(&with, bad).contains("is not a")),
                (String::new(), true),
                "{good} {bad}"
            );
        }
    }
}
