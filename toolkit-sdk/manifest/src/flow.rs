//! How tokens come about: OAuth 2.0 as applications really do it, and what is like it.
//!
//! What is not said is as the standards say; each member here stands for something in which applications differ. Values are
//! templates over the scheme's fields and over what the flow knows: `client_id`, `client_secret`, `client_private_key` and
//! `client_key_id` (of the auth config), `code`, `redirect_uri`, `code_verifier`, `scope`, `access_token`, `refresh_token`,
//! `assertion`, and `now`, `now_ms`, `now_iso` and `random`. A parameter or header whose template lacks a value is left out.
//! Addresses hold only fields that are not secret, and end in a fixed domain.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What templates of a flow may name beside the fields of its scheme.
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

/// The flow of an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OAuth2 {
    /// Where the person agrees (RFC 6749, section 4.1.1). Empty for a mode without a browser.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub authorize_url: String,
    /// Where codes and refresh tokens become tokens. Empty where the application says it itself.
    #[serde(default)]
    pub token_url: String,
    /// What the application calls itself. Its metadata (RFC 8414, or OpenID Connect Discovery) say those addresses that are not
    /// said here, and callbacks have to name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Instead of `issuer`: the API, whose metadata (RFC 9728) name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Whether callbacks always say whose they are (RFC 9207); one that does not is refused then. Metadata may say so, too.
    #[serde(default, skip_serializing_if = "crate::is_false")]
    pub names_issuer: bool,
    /// Asked for in every connection, beside what the tools need.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Between scopes; absent: a space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope_separator: Option<String>,
    /// Further parameters of `authorize_url`, for example `access_type=offline`; templates over fields that are not secret.
    #[serde(default)]
    pub authorize_params: BTreeMap<String, String>,
    /// Parameters of `authorize_url` that go by another name, for example `client_id` by `client_key`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub authorize_rename: BTreeMap<String, String>,
    /// Whether the application takes a code challenge (RFC 7636, S256).
    #[serde(default = "yes")]
    pub pkce: bool,
    /// How the client shows who it is at `token_url`.
    #[serde(default)]
    pub client_auth: ClientAuth,
    /// What `token_url` is said to answer. Servers read both forms whatever this says.
    #[serde(default)]
    pub token_answer: TokenAnswer,
    /// How `token_url` is asked.
    #[serde(default, skip_serializing_if = "is_default")]
    pub token: Call,
    /// How it is asked for new tokens; absent: as `token` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<Call>,
    /// Seconds before its end from which on a token is renewed; absent: the server's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_margin: Option<u32>,
    /// Where in the answer things are.
    #[serde(default, skip_serializing_if = "is_default")]
    pub response: TokenResponse,
    /// What the person brings back.
    #[serde(default, skip_serializing_if = "is_default")]
    pub callback: Callback,
    /// A signed statement that templates call `assertion` (RFC 7523).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assertion: Option<Assertion>,
    /// Further requests, in turn, whenever tokens have come. One that keeps nothing answers tokens in place of those before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Further requests, in turn, once an account is connected: they fill fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_connect: Vec<Step>,
    /// Who is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// How tokens are given back (RFC 7009); absent: the application does not take them back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoke: Option<Call>,
    /// Where the platform registers a client of its own (RFC 7591); with mode `DCR_OAUTH` and only with it. Without an address the
    /// application says it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub register: Option<Call>,
}

/// How a client shows who it is (RFC 6749, section 2.3.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// `client_id` and `client_secret` among the parameters; a public client has no secret to send.
    #[default]
    Body,
    /// `authorization: Basic …` of id and secret.
    Basic,
    /// `authorization: Basic …` of the secret as user name, without a password.
    SecretAsUser,
    /// `client_id` and the assertion among the parameters (RFC 7523, section 2.2).
    PrivateKeyJwt,
    /// Not at all, or as `headers` and `params` say.
    None,
}

/// The form of a token answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenAnswer {
    /// JSON (RFC 6749, section 5.1).
    #[default]
    Json,
    /// `application/x-www-form-urlencoded`, unless `accept: application/json` is heeded.
    Form,
}

/// One request of a flow. To what the standards say (`grant_type`, `code`, `redirect_uri`, `code_verifier`, `refresh_token`,
/// `assertion`, `token`, `client_id`, `client_secret`) come `params`, which win.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Absent: `token_url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// POST when it is not said.
    #[serde(default, skip_serializing_if = "is_default")]
    pub method: CallMethod,
    /// How parameters are sent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub format: CallFormat,
    /// By name in lower case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Further parameters. A dot in the name makes a member of an object, in JSON alone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// Parameters of the standards that are not sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
    /// Parameters of the standards that go by another name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rename: BTreeMap<String, String>,
}

/// The method of a request of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum CallMethod {
    /// With parameters as `format` says.
    #[default]
    Post,
    /// With parameters in the query.
    Get,
}

/// How parameters are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallFormat {
    /// `application/x-www-form-urlencoded`.
    #[default]
    Form,
    /// `application/json`.
    Json,
    /// In the query of the address.
    Query,
}

/// Where in an answer things are. Paths are names with dots between them, numbers for places in a list; the empty path is
/// the whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenResponse {
    /// The part that everything else lies in, for example `data`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub root: String,
    /// Holds for answers that are tokens; others are refusals whatever their status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok_if: Option<Condition>,
    /// Path of the access token; absent: `access_token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_token: Option<String>,
    /// Path of the refresh token; absent: `refresh_token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
    /// When the access token ends; absent: `expires_in`, else what the token says if it is a JWT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry: Option<Expiry>,
    /// Fields that the answer fills, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keep: BTreeMap<String, Pick>,
}

/// Holds when the text at a path is this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// In the whole answer, not below `root`.
    pub path: String,
    /// For example `true`.
    pub equals: String,
}

/// When a token ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expiry {
    /// Where it stands.
    #[serde(default = "expires_in")]
    pub path: String,
    /// What is meant.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kind: ExpiryKind,
    /// Seconds that a token lives when the answer does not say; absent: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<u32>,
}

/// What is meant by the end of a token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpiryKind {
    /// Seconds from now; with a unit behind the number (`20m`, `12h`, `7d`) that.
    #[default]
    In,
    /// Milliseconds from now.
    InMs,
    /// A moment: seconds or milliseconds since 1970, told apart by size, or ISO 8601.
    At,
}

/// A part of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pick {
    /// Where it stands.
    pub path: String,
    /// Regular expression that the whole text matches; its first group is what is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// What the person brings back in the query of the redirect URI.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Callback {
    /// The parameter with the code; absent: `code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_param: Option<String>,
    /// Fields that parameters fill: field to parameter. They are filled before the code is exchanged.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keep: BTreeMap<String, String>,
}

/// A JWT that is made for one request (RFC 7523, section 3). `iat`, `exp` and `jti` are added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assertion {
    /// How it is signed.
    pub algorithm: Algorithm,
    /// Template of the key: PEM, or the shared secret of [`Algorithm::Hs256`].
    pub key: String,
    /// Template of the header's `kid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// Templates; a claim that lacks a value is left out.
    pub claims: BTreeMap<String, String>,
    /// Seconds from `iat` to `exp`; applications allow 600 to 3600.
    #[serde(default = "five_minutes")]
    pub lifetime: u32,
}

/// How a JWT is signed (RFC 7518, section 3.1).
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

/// A further request, and what of its answer is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Nothing of the standards is added to it.
    pub request: Call,
    /// Fields that the answer fills, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keep: BTreeMap<String, Pick>,
}

/// Where it stands who is connected, for people: a name or an address of mail.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Absent: the token answer says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Call>,
    /// Where in the answer.
    pub path: String,
}

/// The flow of OAuth 1.0 (RFC 5849, section 2). The scheme's `sign` signs its requests, too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OAuth1 {
    /// Gives temporary credentials (section 2.1).
    pub request_url: String,
    /// Where the person agrees (section 2.2).
    pub authorize_url: String,
    /// Where temporary credentials and the person's word become the account's own (section 2.3).
    pub token_url: String,
    /// Further parameters of the request at `request_url`; templates over fields that are not secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub request_params: BTreeMap<String, String>,
    /// Further parameters of `authorize_url`; templates over fields that are not secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub authorize_params: BTreeMap<String, String>,
    /// Fields that the answer of `token_url` fills, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keep: BTreeMap<String, Pick>,
    /// Where in that answer it stands who is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}

impl OAuth2 {
    /// A flow as the standards say it.
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

    /// Whether the application's metadata say the addresses that are missing here.
    #[must_use]
    pub fn is_discovered(&self) -> bool {
        self.issuer.is_some() || self.resource.is_some()
    }

    /// The parameter of the redirect URI that holds the code.
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
