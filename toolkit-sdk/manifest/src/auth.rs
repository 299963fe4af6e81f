//! Auth schemes: connecting an account at a provider, and placing its credential in a request.

use serde::{Deserialize, Serialize};

use crate::{OAUTH1_VALUES, OAuth1, OAuth2, Sign};

/// Name of the access token in templates of a scheme with a flow.
pub const ACCESS_TOKEN: &str = "access_token";

/// The kind of credential, by its name on the wire.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AuthMode {
    /// One key that the user copies from the provider.
    ApiKey,
    /// A ready-made bearer token.
    BearerToken,
    /// User name and password (RFC 7617).
    Basic,
    /// OAuth 2.0 with an authorization code (RFC 6749): the user consents in a browser and the
    /// platform keeps the tokens.
    Oauth2,
    /// OAuth 2.0 with client credentials (RFC 6749, section 4.4): the project itself is authorized.
    S2sOauth2,
    /// As [`AuthMode::Oauth2`], with a client that the platform registers (RFC 7591).
    DcrOauth,
    /// As [`AuthMode::Oauth2`], with a client whose id is the address of its metadata document.
    CimdOauth,
    /// A Google service account: a key file is exchanged for tokens (RFC 7523).
    GoogleServiceAccount,
    /// A service account: the key of an app is exchanged for tokens of one of its installations.
    ServiceAccount,
    /// User name and password, exchanged for a token.
    BasicWithJwt,
    /// Bill.com's login: the values that the user fills in are exchanged for a session.
    BillcomAuth,
    /// Cal.com's login: the values that the user fills in are exchanged for a token.
    CalcomAuth,
    /// OAuth 1.0 (RFC 5849): the user consents in a browser and the platform signs each request.
    Oauth1,
    /// SAML: an identity provider's assertion about the user is exchanged for a token (RFC 7522).
    Saml,
    /// No credential.
    #[default]
    NoAuth,
}

impl AuthMode {
    /// Returns the name on the wire, for example `API_KEY`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ApiKey => "API_KEY",
            Self::BearerToken => "BEARER_TOKEN",
            Self::Basic => "BASIC",
            Self::Oauth2 => "OAUTH2",
            Self::S2sOauth2 => "S2S_OAUTH2",
            Self::DcrOauth => "DCR_OAUTH",
            Self::CimdOauth => "CIMD_OAUTH",
            Self::GoogleServiceAccount => "GOOGLE_SERVICE_ACCOUNT",
            Self::ServiceAccount => "SERVICE_ACCOUNT",
            Self::BasicWithJwt => "BASIC_WITH_JWT",
            Self::BillcomAuth => "BILLCOM_AUTH",
            Self::CalcomAuth => "CALCOM_AUTH",
            Self::Oauth1 => "OAUTH1",
            Self::Saml => "SAML",
            Self::NoAuth => "NO_AUTH",
        }
    }

    /// Returns true if the user is sent to the provider to consent.
    #[must_use]
    pub fn redirects(self) -> bool {
        matches!(
            self,
            Self::Oauth2 | Self::DcrOauth | Self::CimdOauth | Self::Oauth1
        )
    }

    /// Returns true if the provider issues a token for the user's input or consent. Such a scheme
    /// has a flow.
    #[must_use]
    pub fn has_flow(self) -> bool {
        !matches!(
            self,
            Self::ApiKey | Self::BearerToken | Self::Basic | Self::NoAuth
        )
    }
}

/// A scheme to connect an account.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthScheme {
    /// Mode. A toolkit has at most one scheme of each mode.
    pub mode: AuthMode,
    /// Display name, for example `API key`.
    pub name: String,
    /// Fields that the user fills in.
    #[serde(default)]
    pub fields: Vec<Field>,
    /// Places in each request that the credential is written to.
    #[serde(default)]
    pub request: Vec<Placement>,
    /// Base URL of the provider's API, a template over the fields, for example
    /// `https://{subdomain}.example.com`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// A request that succeeds only with a working credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Check>,
    /// Signature of each request, in addition to the placements of `request`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign: Option<Sign>,
    /// Client certificate for connections to the provider and to its token endpoint (RFC 8705).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<ClientCertificate>,
    /// OAuth 2.0 flow that obtains a token. Present if and only if the mode has such a flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth2: Option<OAuth2>,
    /// OAuth 1.0 flow that obtains a token and its secret. Present if and only if the mode is
    /// `OAUTH1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth1: Option<OAuth1>,
}

impl AuthScheme {
    /// Returns the names of the secret values: the secret fields and the values that a flow
    /// obtains.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let filled_in = self
            .fields
            .iter()
            .filter(|field| field.secret)
            .map(|field| field.name.as_str());
        filled_in.chain(self.flow_values())
    }

    /// Returns the names of the values that a flow obtains and no field holds. They include the key
    /// of an OAuth 1 client: every request carries it openly, but users do not need to see it.
    pub fn flow_values(&self) -> impl Iterator<Item = &str> {
        let of_oauth1 = OAUTH1_VALUES.into_iter().filter(|_| self.oauth1.is_some());
        self.oauth2
            .is_some()
            .then_some(ACCESS_TOKEN)
            .into_iter()
            .chain(of_oauth1)
    }
}

/// A client certificate, sent to servers that request one (RFC 8446, section 4.4.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientCertificate {
    /// Name of the field with the certificate as PEM, or with a chain that starts with it.
    pub certificate: String,
    /// Name of the secret field with the certificate's key, as PEM.
    pub key: String,
}

/// One field of the form that connects an account. Forms show fields in the order of their list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Name in lower case, `[a-z][a-z0-9_]*`, used in templates and in the account's `state.val`.
    pub name: String,
    /// Label of the field.
    pub title: String,
    /// Help text that says where to find the value.
    #[serde(default)]
    pub description: String,
    /// True for a secret. Secret fields are sealed at rest, masked in responses and never given to
    /// the guest.
    #[serde(default)]
    pub secret: bool,
    /// True if the account works without a value.
    #[serde(default)]
    pub optional: bool,
    /// Value used when the user leaves the field empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Regular expression that the whole value must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Format of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<FieldFormat>,
    /// Allowed values. Empty allows any value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<String>,
    /// Text shown before the value and not part of it, for example `https://`. If the user types it
    /// anyway, it is removed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// Text shown after the value and not part of it, for example `.example.com`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suffix: String,
    /// True if the form does not show the field because the flow fills it.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub hidden: bool,
}

impl Field {
    /// Returns a field that must be filled in.
    pub fn new(name: impl Into<String>, title: impl Into<String>, secret: bool) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            secret,
            ..Self::default()
        }
    }
}

/// The format of a field's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldFormat {
    /// A host name such as `files.example.com`, without scheme and path.
    Hostname,
    /// An `https` address.
    Uri,
    /// A UUID: 8-4-4-4-12 hexadecimal digits.
    Uuid,
    /// An e-mail address.
    Email,
}

/// A location in a request that a credential is written to. Values are templates: `{field}` is
/// replaced by the value of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "in", rename_all = "snake_case", deny_unknown_fields)]
pub enum Placement {
    /// A header, for example `authorization: Bearer {api_key}`.
    Header {
        /// Name in lower case.
        name: String,
        /// Template of the value.
        value: String,
    },
    /// A query parameter.
    Query {
        /// Name as the provider spells it.
        name: String,
        /// Template of the value.
        value: String,
    },
    /// `authorization: Basic …` (RFC 7617).
    Basic {
        /// Template of the user name.
        username: String,
        /// Template of the password, often empty.
        password: String,
    },
    /// A part of the path. The toolkit writes `marker` in its URLs, and the value replaces it.
    Path {
        /// Text to replace, for example `~credential~`.
        marker: String,
        /// Template of the value.
        value: String,
    },
}

impl Placement {
    /// Writes a template into a header.
    pub fn header(name: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (name.into(), value.into());
        Self::Header { name, value }
    }

    /// Writes a template into a query parameter.
    pub fn query(name: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (name.into(), value.into());
        Self::Query { name, value }
    }

    /// Writes two templates as user name and password of basic auth.
    pub fn basic(username: impl Into<String>, password: impl Into<String>) -> Self {
        let (username, password) = (username.into(), password.into());
        Self::Basic { username, password }
    }
}

/// A request that succeeds only with a valid credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Method, GET or POST.
    pub method: String,
    /// Absolute URL or a path below `base_url`. A template.
    pub url: String,
}
