//! OAuth flows: OAuth 2.0 with the variations of real providers, and similar ways to obtain tokens.
//!
//! Defaults follow the standards. Each field here describes a point in which providers differ.
//! Values are templates over the scheme's fields and over the values that the flow knows:
//! `client_id`, `client_secret`, `client_private_key` and `client_key_id` (of the auth config),
//! `code`, `redirect_uri`, `code_verifier`, `scope`, `access_token`, `refresh_token`, `assertion`,
//! and `now`, `now_ms`, `now_iso` and `random`. A parameter or header whose template lacks a value
//! is left out. Addresses contain only fields that are not secret, and end in a fixed domain.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Names that templates of a flow may use in addition to the fields of its scheme.
pub const FLOW_VALUES: [&str; 15] = [
    "client_id",
    "client_secret",
    "client_private_key",
    "client_key_id",
    "code",
    "redirect_uri",
    "code_verifier",
    "scope",
    "access_token",
    "refresh_token",
    "assertion",
    "now",
    "now_ms",
    "now_iso",
    "random",
];

/// The OAuth 2.0 flow of a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OAuth2 {
    /// Authorization endpoint, at which the user consents (RFC 6749, section 4.1.1). Empty for a
    /// mode without a browser.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub authorize_url: String,
    /// Token endpoint, for codes and refresh tokens. Empty if the provider's metadata gives it.
    #[serde(default)]
    pub token_url: String,
    /// Issuer identifier of the provider. Its metadata (RFC 8414 or OpenID Connect Discovery) gives
    /// the addresses that are empty here, and callbacks have to name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Address of the API, instead of `issuer`. Its metadata (RFC 9728) names the issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// True if every callback names the issuer (RFC 9207). A callback without it is then refused.
    /// Metadata may state the same.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub names_issuer: bool,
    /// Scopes that every connection requests, in addition to those of the tools.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Separator between scopes; a space when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope_separator: Option<String>,
    /// Further parameters of `authorize_url`, for example `access_type=offline`. Templates over
    /// fields that are not secret.
    #[serde(default)]
    pub authorize_params: BTreeMap<String, String>,
    /// Parameters of `authorize_url` that the provider names differently, for example `client_id`
    /// as `client_key`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub authorize_rename: BTreeMap<String, String>,
    /// True if the provider supports a code challenge (RFC 7636, S256).
    #[serde(default = "yes")]
    pub pkce: bool,
    /// Client authentication at `token_url`.
    #[serde(default)]
    pub client_auth: ClientAuth,
    /// Documented form of the responses of `token_url`. Servers read both forms regardless of this
    /// value.
    #[serde(default)]
    pub token_answer: TokenAnswer,
    /// Request to `token_url`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub token: Call,
    /// Request to refresh tokens; as `token` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<Call>,
    /// Time before a token's expiry at which it is refreshed, in seconds; the server's own value
    /// when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_margin: Option<u32>,
    /// Responses of the API that reject an expired token. Servers know status 401, and 400 and 403
    /// with the challenge of RFC 6750, without this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected_if: Vec<Rejection>,
    /// Paths of the values in the token response.
    #[serde(default, skip_serializing_if = "is_default")]
    pub response: TokenResponse,
    /// Parameters of the callback.
    #[serde(default, skip_serializing_if = "is_default")]
    pub callback: Callback,
    /// Signed assertion that templates name `assertion` (RFC 7523).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assertion: Option<Assertion>,
    /// Further requests, in order, each time tokens were obtained. The response of a step that
    /// keeps nothing replaces the tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Further requests, in order, after an account is connected. They fill fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_connect: Vec<Step>,
    /// Source of the connected user's display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Request to revoke tokens (RFC 7009); absent if the provider does not support revocation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoke: Option<Call>,
    /// Request with which the platform registers its own client (RFC 7591). Present if and only if
    /// the mode is `DCR_OAUTH`. Without an address, the provider's metadata gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub register: Option<Call>,
}

/// A method of client authentication (RFC 6749, section 2.3.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// `client_id` and `client_secret` as parameters. A public client sends no secret.
    #[default]
    Body,
    /// `authorization: Basic …` with id and secret.
    Basic,
    /// `authorization: Basic …` with the secret as user name, without a password.
    SecretAsUser,
    /// `client_id` and the assertion as parameters (RFC 7523, section 2.2).
    PrivateKeyJwt,
    /// No client authentication, except for what `headers` and `params` give.
    None,
}

/// The form of a token response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenAnswer {
    /// JSON (RFC 6749, section 5.1).
    #[default]
    Json,
    /// `application/x-www-form-urlencoded`, unless the provider honors `accept: application/json`.
    Form,
}

/// One request of a flow. `params` are added to the standard parameters (`grant_type`, `code`,
/// `redirect_uri`, `code_verifier`, `refresh_token`, `assertion`, `token`, `client_id`,
/// `client_secret`) and take precedence over them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Address; `token_url` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Method; POST when absent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub method: CallMethod,
    /// Encoding of the parameters.
    #[serde(default, skip_serializing_if = "is_default")]
    pub format: CallFormat,
    /// Headers, by name in lower case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Further parameters. In JSON only, a dot in the name makes a property of an object.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// Standard parameters that are not sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
    /// Standard parameters that the provider names differently.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rename: BTreeMap<String, String>,
}

/// The method of a request of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum CallMethod {
    /// POST, with parameters as `format` gives.
    #[default]
    Post,
    /// GET, with parameters in the query.
    Get,
}

/// The encoding of parameters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallFormat {
    /// `application/x-www-form-urlencoded`.
    #[default]
    Form,
    /// `application/json`.
    Json,
    /// Query of the address.
    Query,
}

/// Paths of the values in a token response. A path is names separated by dots, with numbers for
/// positions in a list. The empty path is the whole response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenResponse {
    /// Path of the part that contains all other values, for example `data`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub root: String,
    /// Path of that part in responses without an access token at `root`, for example `authed_user`
    /// if a provider issues a token of the user instead of one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_root: Option<String>,
    /// Condition that holds for responses with tokens. Other responses are refusals regardless of
    /// their status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok_if: Option<Condition>,
    /// Path of the access token; `access_token` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_token: Option<String>,
    /// Path of the refresh token; `refresh_token` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// Expiry of the access token. When absent, `expires_in`, or else the expiry in the token if it
    /// is a JWT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry: Option<Expiry>,
    /// Fields that the response fills, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keep: BTreeMap<String, Pick>,
}

/// A condition that holds when the text at a path equals a given text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Path in the whole response, not below `root`.
    pub path: String,
    /// Expected text, for example `true`.
    pub equals: String,
}

/// A response that rejects an expired token, for example status 200 with `token_expired` as
/// `error`. The token is then refreshed, and the request sent again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rejection {
    /// Status of the response.
    pub status: u16,
    /// Path of a string in its body, which is JSON.
    pub path: String,
    /// Values of the text.
    pub one_of: Vec<String>,
}

/// The expiry of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expiry {
    /// Path of the value.
    #[serde(default = "expires_in")]
    pub path: String,
    /// Meaning of the value.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kind: ExpiryKind,
    /// Lifetime of a token when the response does not give one, in seconds. When absent, such a
    /// token never expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<u32>,
}

/// The meaning of an expiry value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpiryKind {
    /// Seconds from now, or the unit that follows the number (`20m`, `12h`, `7d`).
    #[default]
    In,
    /// Milliseconds from now.
    InMs,
    /// Point in time: seconds or milliseconds since 1970, told apart by size, or ISO 8601.
    At,
}

/// A part of a response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pick {
    /// Path of the value.
    pub path: String,
    /// Regular expression that must match the whole text. Its first group is the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// The parameters of a callback, in the query of the redirect URI.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Callback {
    /// Name of the parameter with the code; `code` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_param: Option<String>,
    /// Fields that parameters fill, as field to parameter. They are filled before the code is
    /// exchanged.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keep: BTreeMap<String, String>,
}

/// A JWT for one request (RFC 7523, section 3). `iat`, `exp` and `jti` are added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assertion {
    /// Signature algorithm.
    pub algorithm: Algorithm,
    /// Template of the key: PEM, or the shared secret of [`Algorithm::Hs256`].
    pub key: String,
    /// Template of the header's `kid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// Templates of the claims. A claim whose template lacks a value is left out.
    pub claims: BTreeMap<String, String>,
    /// Seconds from `iat` to `exp`. Providers allow 600 to 3600.
    #[serde(default = "five_minutes")]
    pub lifetime: u32,
}

/// The signature algorithm of a JWT (RFC 7518, section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    /// RSA PKCS#1 with SHA-256.
    #[serde(rename = "RS256")]
    Rs256,
    /// RSA PSS with SHA-256.
    #[serde(rename = "PS256")]
    Ps256,
    /// ECDSA P-256 with SHA-256.
    #[serde(rename = "ES256")]
    Es256,
    /// HMAC with SHA-256.
    #[serde(rename = "HS256")]
    Hs256,
}

/// A further request, and the parts of its response to keep.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Request. No standard parameters are added to it.
    pub request: Call,
    /// Fields that the response fills, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keep: BTreeMap<String, Pick>,
}

/// Source of the connected user's display name: a name or an e-mail address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Request that returns it; when absent, the token response contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Call>,
    /// Path in the response.
    pub path: String,
}

/// The flow of OAuth 1.0 (RFC 5849, section 2). The scheme's `sign` also signs its requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OAuth1 {
    /// Endpoint for temporary credentials (section 2.1).
    pub request_url: String,
    /// Authorization endpoint, at which the user consents (section 2.2).
    pub authorize_url: String,
    /// Endpoint that exchanges temporary credentials and the user's verifier for token credentials
    /// (section 2.3).
    pub token_url: String,
    /// Further parameters of the request to `request_url`. Templates over fields that are not
    /// secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub request_params: BTreeMap<String, String>,
    /// Further parameters of `authorize_url`. Templates over fields that are not secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub authorize_params: BTreeMap<String, String>,
    /// Fields that the response of `token_url` fills, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keep: BTreeMap<String, Pick>,
    /// Path of the connected user's display name in that response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}

impl OAuth2 {
    /// Creates a flow with the defaults of the standards.
    #[must_use]
    pub fn new(authorize_url: impl Into<String>, token_url: impl Into<String>) -> Self {
        Self {
            authorize_url: authorize_url.into(),
            token_url: token_url.into(),
            issuer: None,
            resource: None,
            names_issuer: false,
            scopes: Vec::new(),
            scope_separator: None,
            authorize_params: BTreeMap::new(),
            authorize_rename: BTreeMap::new(),
            pkce: true,
            client_auth: ClientAuth::default(),
            token_answer: TokenAnswer::default(),
            token: Call::default(),
            refresh: None,
            refresh_margin: None,
            rejected_if: Vec::new(),
            response: TokenResponse::default(),
            callback: Callback::default(),
            assertion: None,
            steps: Vec::new(),
            after_connect: Vec::new(),
            identity: None,
            revoke: None,
            register: None,
        }
    }

    /// Returns true if the provider's metadata gives the addresses that are empty here.
    #[must_use]
    pub fn is_discovered(&self) -> bool {
        self.issuer.is_some() || self.resource.is_some()
    }

    /// Returns the name of the redirect URI's parameter with the code.
    #[must_use]
    pub fn code_param(&self) -> &str {
        self.callback.code_param.as_deref().unwrap_or("code")
    }
}

fn yes() -> bool {
    true
}

fn expires_in() -> String {
    "expires_in".to_owned()
}

fn five_minutes() -> u32 {
    300
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
