//! How an account of an external application is connected, and where its credential goes in a request.

use serde::{Deserialize, Serialize};

use crate::{OAUTH1_VALUES, OAuth1, OAuth2, Sign};

/// What templates of a scheme with a flow call the token that it brings.
pub const ACCESS_TOKEN: &str = "access_token";

/// The kind of credential, by its name on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// The project itself agrees: OAuth 2.0 with client credentials (RFC 6749, section 4.4).
    S2sOauth2,
    /// As [`AuthMode::Oauth2`], by a client that the platform registers (RFC 7591).
    DcrOauth,
    /// As [`AuthMode::Oauth2`], by a client whose id is the address of its description.
    CimdOauth,
    /// A key file of Google's becomes tokens (RFC 7523).
    GoogleServiceAccount,
    /// The key of an application, installed somewhere, becomes tokens of the installation.
    ServiceAccount,
    /// User name and password become a token.
    BasicWithJwt,
    /// What the person fills in becomes a session.
    BillcomAuth,
    /// What the person fills in becomes a token.
    CalcomAuth,
    /// The person agrees in a browser and the platform signs each request: OAuth 1.0 (RFC 5849).
    Oauth1,
    /// What an identity provider says of the person becomes a token (RFC 7522).
    Saml,
    /// Nothing.
    #[default]
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

    /// Whether the person is sent to the application to agree.
    #[must_use]
    pub fn redirects(self) -> bool {
        matches!(self, Self::Oauth2 | Self::DcrOauth | Self::CimdOauth | Self::Oauth1)
    }

    /// Whether the application gives a token for what the person fills in or agrees to: such a scheme has a flow.
    #[must_use]
    pub fn has_flow(self) -> bool {
        !matches!(self, Self::ApiKey | Self::BearerToken | Self::Basic | Self::NoAuth)
    }
}

/// One way to connect an account.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// How each request is signed, beside what `request` puts into it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign: Option<Sign>,
    /// What connections show, to the application and to where its tokens come from (RFC 8705).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<ClientCertificate>,
    /// How a token comes about; with a mode that has a flow and only with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth2: Option<OAuth2>,
    /// How a token and its secret come about; with mode `OAUTH1` and only with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth1: Option<OAuth1>,
}

impl AuthScheme {
    /// Names of the secret values: the secret fields, and what a flow brings.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let filled_in = self.fields.iter().filter(|field| field.secret).map(|field| field.name.as_str());
        filled_in.chain(self.brought())
    }

    /// Names of the values that no field holds because a flow brings them. The key of an OAuth 1 client stands open in every
    /// request, but nobody needs to see it.
    pub fn brought(&self) -> impl Iterator<Item = &str> {
        let of_oauth1 = OAUTH1_VALUES.into_iter().filter(|_| self.oauth1.is_some());
        self.oauth2.is_some().then_some(ACCESS_TOKEN).into_iter().chain(of_oauth1)
    }
}

/// A certificate that connections show to whoever asks for one (RFC 8446, section 4.4.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientCertificate {
    /// Name of the field with the certificate, or a chain that begins with it, as PEM.
    pub certificate: String,
    /// Name of the secret field with its key, as PEM.
    pub key: String,
}

/// One field of the form that connects an account. Forms show fields in the order of their list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// What kind of text it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<FieldFormat>,
    /// The only values; empty for any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<String>,
    /// Stands before the value and is no part of it, for example `https://`; taken off when it is typed all the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// Stands behind it, for example `.example.com`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suffix: String,
    /// Not asked for: the flow fills it.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub hidden: bool,
}

/// What kind of text a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldFormat {
    /// A name such as `files.example.com`, without a scheme and a path.
    Hostname,
    /// An `https` address.
    Uri,
    /// 8-4-4-4-12 hexadecimal digits.
    Uuid,
    /// With an `@`.
    Email,
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
