//! How an account of an external application is connected, and where its credential goes in a request.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What templates of a scheme of mode [`AuthMode::Oauth2`] call the token that the flow brings.
pub const ACCESS_TOKEN: &str = "access_token";

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
    /// The person agrees in a browser and the platform keeps the tokens: OAuth 2.0 with an authorization code (RFC 6749).
    Oauth2,
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
            Self::Oauth2 => "OAUTH2",
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
    /// How a token comes about; with mode [`AuthMode::Oauth2`] and only with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth2: Option<OAuth2>,
}

impl AuthScheme {
    /// Names of the secret values: the secret fields, and the token that a flow brings.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let filled_in = self.fields.iter().filter(|field| field.secret).map(|field| field.name.as_str());
        filled_in.chain((self.mode == AuthMode::Oauth2).then_some(ACCESS_TOKEN))
    }
}

/// The authorization-code flow of an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OAuth2 {
    /// Where the person agrees; a template over the fields that are not secret.
    pub authorize_url: String,
    /// Where codes and refresh tokens become tokens; a template like `authorize_url`.
    pub token_url: String,
    /// Asked for in every connection, beside what the tools need.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Between scopes; absent: a space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope_separator: Option<String>,
    /// Further parameters of `authorize_url`, for example `access_type=offline`.
    #[serde(default)]
    pub authorize_params: BTreeMap<String, String>,
    /// Whether the application takes a code challenge (RFC 7636, S256).
    #[serde(default = "yes")]
    pub pkce: bool,
    /// How the client shows its secret at `token_url`.
    #[serde(default)]
    pub client_auth: ClientAuth,
    /// What `token_url` answers.
    #[serde(default)]
    pub token_answer: TokenAnswer,
}

/// How a client shows its secret (RFC 6749, section 2.3.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// `client_id` and `client_secret` in the form.
    #[default]
    Body,
    /// `authorization: Basic …`.
    Basic,
}

/// The form of a token answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenAnswer {
    /// JSON (RFC 6749, section 5.1).
    #[default]
    Json,
    /// `application/x-www-form-urlencoded`, unless `accept: application/json` is heeded: its `content-type` decides.
    Form,
}

fn yes() -> bool {
    true
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
