//! The OAuth protocols with which an account obtains its tokens.
//!
//! The differences between providers are data in the toolkit's manifest, and [`Flow`] executes
//! them. It sends requests only through `net`, follows no redirects, reads responses of bounded
//! size, and converts each failure into a [`Refusal`]. The kind of the refusal decides what
//! follows: only a refusal by the provider itself ends an account, an outage never does. The module
//! stores nothing: the caller keeps the state, the verifier and the values of an account, and
//! decides when to refresh.
//!
//! Codes, tokens and client secrets are sent only to hosts that the manifest names, even if a part
//! of the host name comes from a user or a provider. They never appear in messages: texts from a
//! provider are shown without them.
//!
//! Written by hand: OAuth crates implement the standard, and most of this crate is the differences
//! of providers from it, which they cannot express.

mod answer;
mod assertion;
mod authorize;
mod discover;
mod oauth1;
mod register;
mod request;
pub mod scheme;
mod variables;

use std::{fmt, time::Duration};

use manifest::{AuthMode, AuthScheme, Call, OAuth2, Pick, Step, TokenResponse};
use net::{
    Url,
    text::{distortions, misreadings},
};
use serde_json::Value;
use zeroize::Zeroizing;

use self::{scheme::text, variables::Variables};
pub use authorize::{challenge, is_scope_parameter, requested_scopes};
pub use discover::MetadataCache;
pub use register::metadata;
pub use request::REGISTERED_AUTH;
pub use scheme::Values;

/// Name of the account value with the display name of the connected user.
pub const DISPLAY_NAME: &str = "displayName";
/// Maximum length of a message of a provider in characters.
const MAX_MESSAGE_CHARS: usize = 300;

/// Token requests for one account.
#[derive(Clone, Copy)]
pub struct Flow<'a> {
    /// HTTP client for requests to the provider.
    pub net: &'a net::Client,
    /// Current time in epoch milliseconds, from which lifetimes are counted.
    pub now_ms: i64,
    /// Auth scheme of the toolkit.
    pub scheme: &'a AuthScheme,
    /// OAuth client that sends the requests.
    pub client: &'a Client,
    /// Known values of the account: its fields, and for a refresh its tokens.
    pub values: &'a Values,
}

/// OAuth client of the project at a provider (RFC 6749, section 2). `Debug` does not print its
/// secrets.
#[derive(Default)]
pub struct Client {
    /// Public client id. Empty if the provider identifies only the account.
    pub id: String,
    /// Client secret, or `None` for a public client.
    pub secret: Option<Zeroizing<String>>,
    /// Key that signs assertions, as PEM (RFC 7523).
    pub private_key: Option<Zeroizing<String>>,
    /// Id of that key at the provider.
    pub key_id: Option<String>,
}

/// Parameters of an authorization request.
#[derive(Clone, Copy)]
pub struct AuthorizeParams<'a> {
    /// Address to which the provider redirects the user.
    pub redirect_uri: &'a str,
    /// State that the callback returns.
    pub state: &'a str,
    /// Code verifier from which the challenge is computed (RFC 7636); omitted if the provider does
    /// not support PKCE.
    pub verifier: Option<&'a str>,
    /// Scopes in addition to the manifest's.
    pub scopes: &'a [String],
    /// Scopes with which the provider acts for the user, if it acts for itself with the other
    /// scopes.
    pub user_scopes: &'a [String],
}

/// Parameters of a code exchange.
#[derive(Clone, Copy)]
pub struct ExchangeParams<'a> {
    /// Authorization code; can be used once.
    pub code: &'a str,
    /// Redirect URI of the authorization request (RFC 6749, section 4.1.3).
    pub redirect_uri: &'a str,
    /// Code verifier from which the challenge was computed (RFC 7636).
    pub verifier: Option<&'a str>,
    /// All parameters of the callback.
    pub callback: &'a [(String, String)],
}

/// Token response of a provider.
pub struct Tokens {
    /// Values to merge over the account's. Without a new refresh token the old one stays valid (RFC
    /// 6749, section 6).
    pub values: Values,
    /// Expiry of the access token in epoch milliseconds, or `None` if the provider does not state
    /// it.
    pub expires_at_ms: Option<i64>,
    /// Lifetime of the access token from now.
    pub lifetime: Option<Duration>,
}

/// Reason why a provider issued no tokens. The texts are meant for users and contain no secrets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The provider has refused. A retry does not help.
    #[error("the provider refused: {error}{}{description}", if description.is_empty() { "" } else { ": " })]
    Denied {
        /// Error code, for example `invalid_grant` (RFC 6749, section 5.2).
        error: String,
        /// Description from the provider; may be empty.
        description: String,
    },
    /// The provider is unavailable: no connection, a timeout, overload, or an internal error.
    #[error("the provider is unavailable: {reason}")]
    Unavailable {
        /// Cause of the failure.
        reason: String,
        /// Delay that the provider asks for before a retry.
        retry_after: Option<Duration>,
        /// True if the provider may have issued tokens in a response that was lost.
        may_have_issued: bool,
    },
    /// The response contains neither tokens nor a refusal.
    #[error("the response of the provider is invalid: {reason}")]
    Malformed {
        /// Defect of the response.
        reason: String,
        /// True if the provider may have issued tokens in a response that cannot be read.
        may_have_issued: bool,
    },
    /// Nothing was sent, because a value is missing or the manifest does not support the request.
    #[error("no request was sent to the provider: {reason}")]
    Unsent {
        /// Missing value or unsupported request.
        reason: String,
    },
}

type Result<T> = std::result::Result<T, Refusal>;

impl Flow<'_> {
    /// Returns the authorization address.
    ///
    /// # Errors
    /// Fails if a field that the address needs is missing, or leads to another host.
    pub fn authorize(&self, params: AuthorizeParams<'_>) -> Result<Url> {
        authorize::authorization_url(self, params)
    }

    /// Requests temporary credentials and returns the OAuth 1 authorization address, with values to
    /// merge over the account's until the callback.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn authorize_oauth1(&self, redirect_uri: &str, state: &str) -> Result<(Url, Values)> {
        oauth1::authorize(self, redirect_uri, state).await
    }

    /// Exchanges an authorization code for tokens and executes the manifest's steps for a new
    /// connection.
    ///
    /// # Errors
    /// See [`Refusal`]. The code is spent, whatever the outcome.
    pub async fn exchange(&self, code: ExchangeParams<'_>) -> Result<Tokens> {
        if let Some(oauth1) = &self.scheme.oauth1 {
            return oauth1::exchange(self, oauth1, code).await;
        }
        let oauth2 = self.oauth2()?;
        let kept = oauth2
            .callback
            .keep
            .iter()
            .filter_map(|(field, parameter)| {
                let (_, value) = code.callback.iter().find(|(name, _)| name == parameter)?;
                Some((field.clone(), value.clone()))
            });
        let field_values = self.check_field_values(kept.collect())?;
        let values = merged(self.values, &field_values);
        let flow = self.with_values(&values);
        let mut standard = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code.code.to_owned()),
            ("redirect_uri", code.redirect_uri.to_owned()),
        ];
        standard.extend(
            code.verifier
                .filter(|_| oauth2.pkce)
                .map(|verifier| ("code_verifier", verifier.to_owned())),
        );
        let mut tokens = flow.tokens(&oauth2.token, &standard, &[]).await?;
        flow.run_connect_steps(&mut tokens).await?;
        let token_values = std::mem::replace(&mut tokens.values, field_values);
        tokens.values.extend(token_values);
        Ok(tokens)
    }

    /// Refreshes the tokens with the refresh token, or as the manifest declares.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn refresh(&self) -> Result<Tokens> {
        let oauth2 = self.oauth2()?;
        let call = oauth2.refresh.as_ref().unwrap_or(&oauth2.token);
        let mut standard = vec![("grant_type", "refresh_token".to_owned())];
        match self.value("refresh_token") {
            Some(token) => standard.push(("refresh_token", token)),
            None if call.drop.iter().any(|name| name == "refresh_token") => {}
            None => return Err(Refusal::unsent("the account has no refresh token")),
        }
        self.tokens(call, &standard, &[]).await
    }

    /// Returns true if [`Flow::refresh`] can renew the tokens. Otherwise [`Flow::obtain`] or the
    /// user must provide new ones.
    #[must_use]
    pub fn can_refresh(&self) -> bool {
        let Some(oauth2) = &self.scheme.oauth2 else {
            return false;
        };
        let mut dropped = oauth2.refresh.iter().flat_map(|call| &call.drop);
        dropped.any(|name| name == "refresh_token") || self.value("refresh_token").is_some()
    }

    fn is_secret(&self, name: &str) -> bool {
        self.scheme.secrets().any(|secret| secret == name)
    }

    /// Obtains tokens from the values of the account and the client, in a mode without a browser.
    /// This applies to the first tokens and to later ones.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn obtain(&self, scopes: &[String]) -> Result<Tokens> {
        let oauth2 = self.oauth2()?;
        let scope = join_scopes(oauth2, &oauth2.scopes, scopes);
        let grant = match self.scheme.mode {
            AuthMode::S2sOauth2 => Some("client_credentials"),
            AuthMode::GoogleServiceAccount => Some("urn:ietf:params:oauth:grant-type:jwt-bearer"),
            AuthMode::Saml => Some("urn:ietf:params:oauth:grant-type:saml2-bearer"),
            _ => None,
        };
        let mut standard = Vec::from_iter(grant.map(|grant| ("grant_type", grant.to_owned())));
        let extra = [("scope", scope)];
        if matches!(self.scheme.mode, AuthMode::S2sOauth2 | AuthMode::Saml)
            && !extra[0].1.is_empty()
        {
            standard.extend(extra.clone());
        }
        let mut tokens = self.tokens(&oauth2.token, &standard, &extra).await?;
        if self.value(manifest::ACCESS_TOKEN).is_none() {
            self.run_connect_steps(&mut tokens).await?;
        }
        Ok(tokens)
    }

    /// Registers a dynamic client at the provider (RFC 7591). The returned values make a
    /// [`Client`].
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn register(&self, name: &str, redirect_uri: &str) -> Result<Values> {
        register::register(self, name, redirect_uri).await
    }

    /// Returns true if the provider no longer knows a registered client (RFC 7592).
    pub async fn has_deleted_client(&self, client: &Values) -> bool {
        register::is_deleted(self, client).await
    }

    /// Revokes the tokens (RFC 7009).
    ///
    /// # Errors
    /// See [`Refusal`]. Fails with [`Refusal::Unsent`] if the provider lacks a revocation endpoint.
    pub async fn revoke(&self) -> Result<()> {
        let Some(call) = &self.oauth2()?.revoke else {
            return Err(Refusal::unsent(
                "the toolkit declares no revocation endpoint",
            ));
        };
        let token = self
            .value("refresh_token")
            .or_else(|| self.value(manifest::ACCESS_TOKEN))
            .ok_or_else(|| Refusal::unsent("the account has no token"))?;
        let variables = Variables::new(self, vec![("token", token)], &[])?;
        let response = request::send(&variables, call, true).await?;
        if response.status.is_success() {
            return Ok(());
        }
        answer::accept(self.now_ms, None, &response)
            .map_err(|refusal| variables.redact(refusal))
            .map(|_| ())
    }

    async fn tokens(
        &self,
        call: &Call,
        standard: &[(&'static str, String)],
        extra: &[(&'static str, String)],
    ) -> Result<Tokens> {
        let oauth2 = self.oauth2()?;
        let variables = Variables::new(self, standard.to_vec(), extra)?;
        let response = request::send(&variables, call, true).await?;
        let answer = answer::accept(self.now_ms, Some(&oauth2.response), &response)
            .map_err(|refusal| variables.redact(refusal))?;
        let mut tokens = self.read_tokens(&answer).map_err(Refusal::after_success)?;
        for step in &oauth2.steps {
            let values = merged(self.values, &tokens.values);
            let flow = self.with_values(&values);
            if step.keep.is_empty() {
                let answer = flow.send_step(&step.request, Some(&oauth2.response));
                let mut next = flow.read_tokens(&answer.await?)?;
                tokens.values.extend(std::mem::take(&mut next.values));
                next.values = tokens.values;
                tokens = next;
            } else {
                tokens.values.extend(flow.run_step(step).await?);
            }
        }
        Ok(tokens)
    }

    /// Reads the tokens from a response, and the account values that the manifest takes from it.
    fn read_tokens(&self, answer: &Value) -> Result<Tokens> {
        let oauth2 = self.oauth2()?;
        let mut tokens = answer::parse_tokens(self.now_ms, oauth2, answer)?;
        let within = answer::root(&oauth2.response, answer);
        let field_values = oauth2
            .response
            .keep
            .iter()
            .filter_map(|(field, pick)| Some((field.clone(), pick.of(within)?)));
        tokens
            .values
            .extend(self.check_field_values(field_values.collect())?);
        if let Some(identity) = oauth2
            .identity
            .as_ref()
            .filter(|identity| identity.request.is_none())
        {
            tokens.values.extend(display_name(within, &identity.path));
        }
        Ok(tokens)
    }

    /// Returns the flow with other values of the account.
    fn with_values<'v>(&'v self, values: &'v Values) -> Flow<'v> {
        Flow { values, ..*self }
    }

    /// Executes the manifest's steps for a new connection. The display name is optional: a failure
    /// to obtain it is only logged.
    async fn run_connect_steps(&self, tokens: &mut Tokens) -> Result<()> {
        let oauth2 = self.oauth2()?;
        for step in &oauth2.after_connect {
            let values = merged(self.values, &tokens.values);
            let kept = self.with_values(&values).run_step(step).await?;
            tokens.values.extend(kept);
        }
        if let Some(identity) = &oauth2.identity
            && let Some(call) = &identity.request
        {
            let values = merged(self.values, &tokens.values);
            match self.with_values(&values).send_step(call, None).await {
                Ok(answer) => tokens.values.extend(display_name(&answer, &identity.path)),
                Err(refusal) => {
                    tracing::info!(%refusal, "the display name of the connected user cannot be read")
                }
            }
        }
        self.check_hidden_fields(&tokens.values)
    }

    /// Checks that the provider has supplied all required hidden fields.
    fn check_hidden_fields(&self, values: &Values) -> Result<()> {
        let mut required = self
            .scheme
            .fields
            .iter()
            .filter(|field| field.hidden && !field.optional);
        let missing = required.find(|field| {
            let name: &str = &field.name;
            !values.contains_key(name) && !self.values.contains_key(name)
        });
        match missing {
            Some(field) => Err(Refusal::malformed(format!(
                "it contains no value for the field `{}`",
                field.name
            ))),
            None => Ok(()),
        }
    }

    /// Sends a request without any standard parameters and returns its response.
    async fn send_step(
        &self,
        call: &Call,
        token_response: Option<&TokenResponse>,
    ) -> Result<Value> {
        let variables = Variables::new(self, Vec::new(), &[])?;
        let response = request::send(&variables, call, false).await?;
        answer::accept(self.now_ms, token_response, &response)
            .map_err(|refusal| variables.redact(refusal))
    }

    async fn run_step(&self, step: &Step) -> Result<Values> {
        let answer = self.send_step(&step.request, None).await?;
        let mut field_values = Vec::new();
        for (field, pick) in &step.keep {
            match pick.of(&answer) {
                Some(value) => field_values.push((field.clone(), value)),
                None if self
                    .scheme
                    .fields
                    .iter()
                    .any(|own| own.name == *field && own.optional) => {}
                None => {
                    let reason = format!("`{}` is missing or has an unexpected form", pick.path);
                    return Err(Refusal::malformed(reason));
                }
            }
        }
        self.check_field_values(field_values)
    }

    /// Validates values that a provider supplies for fields as strictly as those of a user.
    fn check_field_values(&self, field_values: Vec<(String, String)>) -> Result<Values> {
        let mut values = Values::new();
        for (name, value) in field_values {
            if self
                .scheme
                .fields
                .iter()
                .any(|field| field.name == name && !field.accepts(&value))
            {
                return Err(Refusal::malformed(format!(
                    "the value of `{name}` does not match the toolkit's field"
                )));
            }
            values.insert(name, value.into());
        }
        Ok(values)
    }

    fn oauth2(&self) -> Result<&OAuth2> {
        self.scheme
            .oauth2
            .as_ref()
            .ok_or_else(|| Refusal::unsent("the toolkit declares no OAuth flow for this scheme"))
    }

    /// Returns the client id of the auth config, or else of the account.
    fn client_id(&self) -> Option<String> {
        Some(self.client.id.clone())
            .filter(|id| !id.is_empty())
            .or_else(|| self.value("client_id"))
    }

    fn value(&self, name: &str) -> Option<String> {
        self.values
            .get(name)
            .and_then(text)
            .filter(|value| !value.is_empty())
    }
}

impl Client {
    /// Reads the client from the credentials of an auth config. Returns `None` without a
    /// `client_id`, which OAuth 1 calls `consumer_key`.
    #[must_use]
    pub fn from_credentials(credentials: &Values) -> Option<Self> {
        let id = credential(credentials, "client_id");
        let secret = credential(credentials, "client_secret");
        Some(Self {
            id: id.or_else(|| credential(credentials, "consumer_key"))?,
            secret: secret
                .or_else(|| credential(credentials, "consumer_secret"))
                .map(Zeroizing::new),
            private_key: credential(credentials, "private_key").map(Zeroizing::new),
            key_id: credential(credentials, "key_id"),
        })
    }

    /// Rejects a private key that cannot create the signatures of the scheme. The text is meant for
    /// users and does not contain the key.
    ///
    /// # Errors
    /// Fails if a key is given and it is invalid or of the wrong kind.
    pub fn check_key(&self, scheme: &AuthScheme) -> std::result::Result<(), String> {
        let Some(key) = &self.private_key else {
            return Ok(());
        };
        let assertion = scheme
            .oauth2
            .as_ref()
            .and_then(|flow| flow.assertion.as_ref());
        match assertion.filter(|assertion| assertion.key == "{client_private_key}") {
            Some(assertion) => assertion::check_key(assertion.algorithm, key),
            None => Ok(()),
        }
    }

    /// Merges the client's values into the values of an account, under the names that OAuth 1 uses.
    #[must_use]
    pub fn merge_into(&self, mut values: Values) -> Values {
        if !self.id.is_empty() {
            values.insert("consumer_key".to_owned(), self.id.clone().into());
        }
        if let Some(secret) = &self.secret {
            values.insert("consumer_secret".to_owned(), secret.to_string().into());
        }
        values
    }
}

impl Refusal {
    /// Returns true if the account must be connected again: the provider refused the account's own
    /// grant, not the client (RFC 6749, section 5.2).
    #[must_use]
    pub fn ends_account(&self) -> bool {
        let client = [
            "invalid_client",
            "unauthorized_client",
            "unsupported_grant_type",
        ];
        matches!(self, Self::Denied { error, .. } if !client.contains(&error.as_str()))
    }

    /// Returns true if the provider may have issued tokens that this server did not get. If it
    /// rotates refresh tokens, the old one may be spent.
    #[must_use]
    pub fn may_have_issued(&self) -> bool {
        match self {
            Self::Unavailable {
                may_have_issued, ..
            }
            | Self::Malformed {
                may_have_issued, ..
            } => *may_have_issued,
            Self::Denied { .. } | Self::Unsent { .. } => false,
        }
    }

    /// Returns true if the provider does not know the client.
    #[must_use]
    pub fn is_invalid_client(&self) -> bool {
        matches!(self, Self::Denied { error, .. } if error == "invalid_client")
    }

    /// Removes secrets from texts of a provider, which may repeat what it was sent.
    fn redact(self, mut secrets: Vec<String>) -> Self {
        let Self::Denied { error, description } = self else {
            return self;
        };
        secrets.retain(|secret| !secret.is_empty());
        let misread: Vec<_> = secrets
            .iter()
            .flat_map(|secret| [misreadings(secret), distortions(secret)].concat())
            .collect();
        secrets.extend(misread);
        // Longer secrets come first, because one secret may be a prefix of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let [error, description] = [error, description].map(|text| {
            secrets
                .iter()
                .fold(text, |text, secret| text.replace(secret.as_str(), "[…]"))
        });
        Self::Denied { error, description }
    }

    fn unsent(reason: impl Into<String>) -> Self {
        Self::Unsent {
            reason: reason.into(),
        }
    }

    fn malformed(reason: impl Into<String>) -> Self {
        Self::Malformed {
            reason: reason.into(),
            may_have_issued: false,
        }
    }

    /// Marks a failure after a response that the provider sent with a success status.
    fn after_success(self) -> Self {
        match self {
            Self::Malformed { reason, .. } => Self::Malformed {
                reason,
                may_have_issued: true,
            },
            other => other,
        }
    }
}

/// Joins scopes without duplicates, with the provider's separator.
fn join_scopes(oauth2: &OAuth2, scopes: &[String], others: &[String]) -> String {
    let mut once: Vec<&str> = Vec::new();
    for scope in scopes
        .iter()
        .chain(others)
        .filter(|scope| !scope.is_empty())
    {
        if !once.contains(&scope.as_str()) {
            once.push(scope);
        }
    }
    once.join(oauth2.scope_separator.as_deref().unwrap_or(" "))
}

/// Returns 32 random characters, for values that a provider accepts once.
fn nonce() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// Returns the epoch milliseconds a time after others.
fn after(ms: i64, by: Duration) -> i64 {
    ms.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX))
}

/// Merges other values over values.
fn merged(values: &Values, others: &Values) -> Values {
    values
        .iter()
        .chain(others)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn display_name(answer: &Value, path: &str) -> Option<(String, Value)> {
    let name = Pick {
        path: path.to_owned(),
        pattern: None,
    }
    .of(answer)?;
    Some((DISPLAY_NAME.to_owned(), truncate(&name).into()))
}

/// Returns a value of an auth config as a string, unless it is empty.
fn credential(credentials: &Values, name: &str) -> Option<String> {
    let value = credentials.get(name).and_then(text);
    value.filter(|value| !value.is_empty())
}

/// Shortens a message of a provider to one line.
#[must_use]
pub fn truncate(text: &str) -> String {
    manifest::cleaned(&text.split_whitespace().collect::<Vec<_>>().join(" "))
        .chars()
        .take(MAX_MESSAGE_CHARS)
        .collect()
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ExchangeParams<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").finish_non_exhaustive()
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("expires_at_ms", &self.expires_at_ms)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
