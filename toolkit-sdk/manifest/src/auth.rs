//! How an account of an external application is connected, and where its credential goes in a request.

use serde::{Deserialize, Serialize};

/// The kind of credential, by its name on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AuthMode {
    /// One key that the person copies from the application.
    ApiKey,
    /// A ready bearer token.
    BearerToken,
    /// User name and password (RFC 7617).
    Basic,
    /// Nothing.
    NoAuth,
}

impl AuthMode {
    /// The name on the wire, for example `API_KEY`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ApiKey => "API_KEY",
            Self::BearerToken => "BEARER_TOKEN",
            Self::Basic => "BASIC",
            Self::NoAuth => "NO_AUTH",
        }
    }
}

/// One way to connect an account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthScheme {
    /// At most one scheme of each mode.
    pub mode: AuthMode,
    /// For people, for example `API key`.
    pub name: String,
    /// What the person fills in.
    #[serde(default)]
    pub fields: Vec<Field>,
    /// Where the credential goes in each request.
    #[serde(default)]
    pub request: Vec<Placement>,
    /// Base URL of the application's API, a template over the fields, for example `https://{subdomain}.example.com`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// A request that succeeds only with a working credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Check>,
}

/// One field of the form that connects an account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Lower case, `[a-z][a-z0-9_]*`; the name in templates and in the account's `state.val`.
    pub name: String,
    /// The label.
    pub title: String,
    /// Where to find the value.
    #[serde(default)]
    pub description: String,
    /// Secret fields are sealed at rest, masked in answers and never given to the guest.
    #[serde(default)]
    pub secret: bool,
    /// Whether the account works without it.
    #[serde(default)]
    pub optional: bool,
    /// Taken when the person leaves it empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Regular expression the whole value must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// Where a credential goes. Values are templates: `{field}` stands for the value of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "in", rename_all = "snake_case", deny_unknown_fields)]
pub enum Placement {
    /// A header, for example `authorization: Bearer {api_key}`.
    Header {
        /// Lower case.
        name: String,
        /// Template.
        value: String,
    },
    /// A query parameter.
    Query {
        /// As the application spells it.
        name: String,
        /// Template.
        value: String,
    },
    /// `authorization: Basic …` (RFC 7617).
    Basic {
        /// Template.
        username: String,
        /// Template, often empty.
        password: String,
    },
    /// A part of the path: `marker`, which the toolkit writes in its URLs, is replaced by the value.
    Path {
        /// For example `~credential~`.
        marker: String,
        /// Template.
        value: String,
    },
}

/// A request that tells whether a credential works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// GET or POST.
    pub method: String,
    /// Absolute URL or a path below `base_url`; a template.
    pub url: String,
}
