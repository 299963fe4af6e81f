//! The protocols by which an account comes to its tokens.
//!
//! What differs between applications is data: the toolkit's manifest says it, and [`Flow`] carries it out. It asks through
//! `net` alone, follows no redirect, reads bounded answers, and sorts every failure into a [`Refusal`], because what follows
//! depends on it: only what the application itself has refused ends an account, an outage never does. It keeps nothing: state
//! and verifier, the values of an account and when to refresh are the caller's.
//!
//! Codes, tokens and client secrets go only to hosts that the manifest names, also when a part of the name comes from a
//! person or an application. They stand in no message: what an application says is shown without them.

mod answer;
mod assertion;
mod authorize;
mod discover;
mod oauth1;
mod register;
mod request;
mod variables;

use std::{fmt, time::Duration};

use manifest::{AuthMode, AuthScheme, Call, OAuth2, Pick, Step, TokenResponse};
use net::Url;
use serde_json::Value;
use store::Time;
use zeroize::Zeroizing;

use self::variables::Variables;
use super::{Values, scheme::text};
pub use authorize::challenge;
pub use discover::Issuers;
pub use register::metadata;

/// Under which the values of an account say who is connected.
pub const IDENTITY: &str = "displayName";

/// Tokens of one account, to be got, renewed or given back.
#[derive(Clone, Copy)]
pub struct Flow<'a> {
    /// The way out.
    pub net: &'a net::Client,
    /// Lifetimes count from here.
    pub now: Time,
    /// What the toolkit says about it.
    pub scheme: &'a AuthScheme,
    /// Who asks.
    pub client: &'a Client,
    /// What is known of the account: its fields, and with a refresh its tokens.
    pub values: &'a Values,
}

/// What an application knows the project by (RFC 6749, section 2). Does not print its secrets.
#[derive(Default)]
pub struct Client {
    /// Public. Empty where the application knows nobody but the account.
    pub id: String,
    /// None for a public client.
    pub secret: Option<Zeroizing<String>>,
    /// Signs assertions, as PEM (RFC 7523).
    pub private_key: Option<Zeroizing<String>>,
    /// By which the application knows that key.
    pub key_id: Option<String>,
}

/// What the person is sent away with.
#[derive(Clone, Copy)]
pub struct Away<'a> {
    /// Where to come back to.
    pub redirect_uri: &'a str,
    /// Comes back with the person.
    pub state: &'a str,
    /// What the challenge is made of (RFC 7636); left out where the application takes none.
    pub verifier: Option<&'a str>,
    /// Asked for beside the manifest's.
    pub scopes: &'a [String],
    /// Those in which the application is to act for the person, where it acts for itself in the others.
    pub user_scopes: &'a [String],
}

/// What the person came back with.
#[derive(Clone, Copy)]
pub struct Code<'a> {
    /// Single use.
    pub code: &'a str,
    /// As it was when the person was sent away (RFC 6749, section 4.1.3).
    pub redirect_uri: &'a str,
    /// What the challenge was made of (RFC 7636).
    pub verifier: Option<&'a str>,
    /// All parameters of the callback.
    pub callback: &'a [(String, String)],
}

/// What an application gave.
pub struct Tokens {
    /// To be laid over the account's values. Without a refresh token the old one goes on (RFC 6749, section 6).
    pub values: Values,
    /// When the access token ends; none when the application does not say.
    pub expires_at: Option<Time>,
    /// How long it lives from now.
    pub lifetime: Option<Duration>,
}

/// Why there are no tokens. The texts are for people and hold no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The application has said no. Asking again does not help.
    #[error("the application refused: {error}{}{description}", if description.is_empty() { "" } else { ": " })]
    Denied {
        /// Its code, for example `invalid_grant` (RFC 6749, section 5.2).
        error: String,
        /// Its words; may be empty.
        description: String,
    },
    /// It cannot answer now: no connection, too slow, overloaded, or an error of its own.
    #[error("the application cannot be asked now: {reason}")]
    Unavailable {
        /// What happened.
        reason: String,
        /// When it asks to be asked again.
        retry_after: Option<Duration>,
    },
    /// It answered something that is neither tokens nor a refusal.
    #[error("the application's answer cannot be read: {reason}")]
    Malformed {
        /// What is wrong with it.
        reason: String,
    },
    /// Nothing was sent, because something is missing or the manifest does not provide for it.
    #[error("the application was not asked: {reason}")]
    Unsent {
        /// What is missing.
        reason: String,
    },
}

type Result<T> = std::result::Result<T, Refusal>;

impl Flow<'_> {
    /// Where the person agrees.
    ///
    /// # Errors
    /// When a field that the address needs has no value, or leads to another host.
    pub fn authorize(&self, away: Away<'_>) -> Result<Url> {
        authorize::url(self, away)
    }

    /// The same in OAuth 1, where the application is asked first. Answers also what is to be laid over the account's values until
    /// the person is back.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn authorize_oauth1(&self, redirect_uri: &str, state: &str) -> Result<(Url, Values)> {
        oauth1::authorize(self, redirect_uri, state).await
    }

    /// Makes tokens of a code, and does what follows a new connection.
    ///
    /// # Errors
    /// See [`Refusal`]. The code is spent, whatever the answer.
    pub async fn exchange(&self, code: Code<'_>) -> Result<Tokens> {
        if let Some(about) = &self.scheme.oauth1 {
            return oauth1::exchange(self, about, code).await;
        }
        let about = self.oauth2()?;
        let kept = about.callback.keep.iter().filter_map(|(field, parameter)| {
            let (_, value) = code.callback.iter().find(|(name, _)| name == parameter)?;
            Some((field.clone(), value.clone()))
        });
        let kept = self.checked(kept.collect())?;
        let values = over(self.values, &kept);
        let flow = Flow { values: &values, ..*self };
        let mut standard = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code.code.to_owned()),
            ("redirect_uri", code.redirect_uri.to_owned()),
        ];
        standard.extend(code.verifier.filter(|_| about.pkce).map(|verifier| ("code_verifier", verifier.to_owned())));
        let mut tokens = flow.tokens(&about.token, &standard, &[]).await?;
        flow.connected(&mut tokens).await?;
        let own = std::mem::replace(&mut tokens.values, kept);
        tokens.values.extend(own);
        Ok(tokens)
    }

    /// Makes new tokens of the refresh token, or of what else the manifest says.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn refresh(&self) -> Result<Tokens> {
        let about = self.oauth2()?;
        let call = about.refresh.as_ref().unwrap_or(&about.token);
        let mut standard = vec![("grant_type", "refresh_token".to_owned())];
        match self.value("refresh_token") {
            Some(token) => standard.push(("refresh_token", token)),
            None if call.drop.iter().any(|name| name == "refresh_token") => {}
            None => return Err(Refusal::unsent("the account has no refresh token")),
        }
        self.tokens(call, &standard, &[]).await
    }

    /// Whether [`Flow::refresh`] can renew the tokens; otherwise [`Flow::obtain`] or the person has to.
    #[must_use]
    pub fn refreshes(&self) -> bool {
        let dropped = |about: &OAuth2| {
            about.refresh.as_ref().is_some_and(|call| call.drop.iter().any(|name| name == "refresh_token"))
        };
        self.scheme.oauth2.as_ref().is_some_and(|about| dropped(about) || self.value("refresh_token").is_some())
    }

    /// Gets tokens for what is known of the account and the client, in a mode without a browser: the first, and also the next.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn obtain(&self, scopes: &[String]) -> Result<Tokens> {
        let about = self.oauth2()?;
        let scope = joined(about, &about.scopes, scopes);
        let grant = match self.scheme.mode {
            AuthMode::S2sOauth2 => Some("client_credentials"),
            AuthMode::GoogleServiceAccount => Some("urn:ietf:params:oauth:grant-type:jwt-bearer"),
            AuthMode::Saml => Some("urn:ietf:params:oauth:grant-type:saml2-bearer"),
            _ => None,
        };
        let mut standard: Vec<_> = grant.map(|grant| ("grant_type", grant.to_owned())).into_iter().collect();
        let known = [("scope", scope)];
        if matches!(self.scheme.mode, AuthMode::S2sOauth2 | AuthMode::Saml) && !known[0].1.is_empty() {
            standard.extend(known.clone());
        }
        let mut tokens = self.tokens(&about.token, &standard, &known).await?;
        if self.value(manifest::ACCESS_TOKEN).is_none() {
            self.connected(&mut tokens).await?;
        }
        Ok(tokens)
    }

    /// Registers a client of the platform's own at the application (RFC 7591). What comes back makes a [`Client`].
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn register(&self, name: &str, redirect_uri: &str) -> Result<Values> {
        register::register(self, name, redirect_uri).await
    }

    /// Whether the application says that it does not know a client any more that was registered there (RFC 7592).
    pub async fn has_forgotten(&self, client: &Values) -> bool {
        register::is_gone(self, client).await
    }

    /// Gives the tokens back (RFC 7009).
    ///
    /// # Errors
    /// See [`Refusal`]; [`Refusal::Unsent`] where the application does not take them back.
    pub async fn revoke(&self) -> Result<()> {
        let Some(call) = &self.oauth2()?.revoke else {
            return Err(Refusal::unsent("the toolkit names no address that takes tokens back"));
        };
        let token = self.value("refresh_token").or_else(|| self.value(manifest::ACCESS_TOKEN));
        let token = token.ok_or_else(|| Refusal::unsent("the account has no token"))?;
        let variables = Variables::of(self, vec![("token", token)], &[])?;
        let response = request::send(&variables, call, true).await?;
        if response.status.is_success() {
            return Ok(());
        }
        answer::accepted(None, &response).map_err(|refusal| variables.hidden(refusal)).map(|_| ())
    }

    async fn tokens(
        &self,
        call: &Call,
        standard: &[(&'static str, String)],
        known: &[(&'static str, String)],
    ) -> Result<Tokens> {
        let about = self.oauth2()?;
        let variables = Variables::of(self, standard.to_vec(), known)?;
        let response = request::send(&variables, call, true).await?;
        let answer = answer::accepted(Some(&about.response), &response).map_err(|refusal| variables.hidden(refusal))?;
        let mut tokens = self.read(&answer)?;
        for step in &about.steps {
            let values = over(self.values, &tokens.values);
            let flow = Flow { values: &values, ..*self };
            if step.keep.is_empty() {
                let next = flow.read(&flow.ask(&step.request, Some(&about.response)).await?)?;
                tokens.values.extend(next.values);
                tokens = Tokens { values: tokens.values, ..next };
            } else {
                tokens.values.extend(flow.kept(step).await?);
            }
        }
        Ok(tokens)
    }

    /// The tokens in an answer, with what is kept of it.
    fn read(&self, answer: &Value) -> Result<Tokens> {
        let about = self.oauth2()?;
        let mut tokens = answer::tokens(self.now, about, answer)?;
        let within = manifest::at(answer, &about.response.root).unwrap_or(&Value::Null);
        let kept = about.response.keep.iter().filter_map(|(field, pick)| Some((field.clone(), pick.of(within)?)));
        tokens.values.extend(self.checked(kept.collect())?);
        if let Some(identity) = about.identity.as_ref().filter(|identity| identity.request.is_none()) {
            tokens.values.extend(named(within, &identity.path));
        }
        Ok(tokens)
    }

    /// What follows a new connection. Who is connected is for people: that it cannot be learnt stops nothing.
    async fn connected(&self, tokens: &mut Tokens) -> Result<()> {
        let about = self.oauth2()?;
        for step in &about.after_connect {
            let values = over(self.values, &tokens.values);
            tokens.values.extend(Flow { values: &values, ..*self }.kept(step).await?);
        }
        if let Some((identity, call)) = about.identity.as_ref().and_then(|it| Some((it, it.request.as_ref()?))) {
            let values = over(self.values, &tokens.values);
            match (Flow { values: &values, ..*self }).ask(call, None).await {
                Ok(answer) => tokens.values.extend(named(&answer, &identity.path)),
                Err(refusal) => tracing::info!(%refusal, "cannot learn who is connected"),
            }
        }
        self.has_hidden(&tokens.values)
    }

    /// Whether the application has filled what it has to fill.
    fn has_hidden(&self, values: &Values) -> Result<()> {
        let missing = |name: &str| !values.contains_key(name) && !self.values.contains_key(name);
        match self.scheme.fields.iter().find(|field| field.hidden && !field.optional && missing(&field.name)) {
            Some(field) => Err(Refusal::malformed(format!("it does not say the `{}` of the account", field.name))),
            None => Ok(()),
        }
    }

    /// The answer to a request to which nothing of the standards is added.
    async fn ask(&self, call: &Call, about: Option<&TokenResponse>) -> Result<Value> {
        let variables = Variables::of(self, Vec::new(), &[])?;
        let response = request::send(&variables, call, false).await?;
        answer::accepted(about, &response).map_err(|refusal| variables.hidden(refusal))
    }

    async fn kept(&self, step: &Step) -> Result<Values> {
        let answer = self.ask(&step.request, None).await?;
        let mut kept = Vec::new();
        for (field, pick) in &step.keep {
            match pick.of(&answer) {
                Some(value) => kept.push((field.clone(), value)),
                None if self.scheme.fields.iter().any(|own| own.name == *field && own.optional) => {}
                None => {
                    let reason = format!("`{}` of the answer is not there, or is not as expected", pick.path);
                    return Err(Refusal::malformed(reason));
                }
            }
        }
        self.checked(kept)
    }

    /// Values for fields, which are no less strict with an application than with a person.
    fn checked(&self, kept: Vec<(String, String)>) -> Result<Values> {
        let mut values = Values::new();
        for (name, value) in kept {
            if self.scheme.fields.iter().any(|field| field.name == name && !field.accepts(&value)) {
                return Err(Refusal::malformed(format!("what it says for `{name}` is not as the toolkit expects")));
            }
            values.insert(name, value.into());
        }
        Ok(values)
    }

    fn oauth2(&self) -> Result<&OAuth2> {
        self.scheme.oauth2.as_ref().ok_or_else(|| Refusal::unsent("the toolkit describes no flow for this scheme"))
    }

    /// Of the auth config, or else of the account.
    fn client_id(&self) -> Option<String> {
        Some(self.client.id.clone()).filter(|id| !id.is_empty()).or_else(|| self.value("client_id"))
    }

    fn value(&self, name: &str) -> Option<String> {
        self.values.get(name).and_then(text).filter(|value| !value.is_empty())
    }
}

impl Client {
    /// The client that the credentials of an auth config name; none without `client_id`, which OAuth 1 calls `consumer_key`.
    #[must_use]
    pub fn of(credentials: &Values) -> Option<Self> {
        let value = |name: &str| credentials.get(name).and_then(text).filter(|value| !value.is_empty());
        Some(Self {
            id: value("client_id").or_else(|| value("consumer_key"))?,
            secret: value("client_secret").or_else(|| value("consumer_secret")).map(Zeroizing::new),
            private_key: value("private_key").map(Zeroizing::new),
            key_id: value("key_id"),
        })
    }

    /// Refuses a private key that cannot make the signatures that the scheme makes with it. The text is for people, without the key.
    ///
    /// # Errors
    /// When there is a key, and it is none or of another kind.
    pub fn check_key(&self, scheme: &AuthScheme) -> std::result::Result<(), String> {
        let Some(key) = &self.private_key else { return Ok(()) };
        super::scheme::signs(scheme, &self.beside(Values::new()))?;
        let assertion = scheme.oauth2.as_ref().and_then(|flow| flow.assertion.as_ref());
        match assertion.filter(|assertion| assertion.key == "{client_private_key}") {
            Some(assertion) => assertion::check(assertion.algorithm, key),
            None => Ok(()),
        }
    }

    /// The values of an account with those of the client, under the names that OAuth 1 has for them.
    #[must_use]
    pub fn beside(&self, mut values: Values) -> Values {
        if !self.id.is_empty() {
            values.insert("consumer_key".to_owned(), self.id.clone().into());
        }
        if let Some(secret) = &self.secret {
            values.insert("consumer_secret".to_owned(), secret.to_string().into());
        }
        if let Some(key) = &self.private_key {
            values.insert("consumer_private_key".to_owned(), key.to_string().into());
        }
        values
    }
}

impl Refusal {
    /// Whether the account has to be connected again: the application refused the account's own grant, and not the client
    /// that asked (RFC 6749, section 5.2).
    #[must_use]
    pub fn ends_account(&self) -> bool {
        let client = ["invalid_client", "unauthorized_client", "unsupported_grant_type"];
        matches!(self, Self::Denied { error, .. } if !client.contains(&error.as_str()))
    }

    /// Whether the application does not know the client that asked.
    #[must_use]
    pub fn is_of_client(&self) -> bool {
        matches!(self, Self::Denied { error, .. } if error == "invalid_client")
    }

    /// What an application says may repeat what it was sent.
    fn without(self, mut secrets: Vec<String>) -> Self {
        let Self::Denied { error, description } = self else { return self };
        secrets.retain(|secret| !secret.is_empty());
        // One may begin with another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let clean = |text: String| secrets.iter().fold(text, |text, secret| text.replace(secret.as_str(), "[…]"));
        Self::Denied { error: clean(error), description: clean(description) }
    }

    fn unsent(reason: impl Into<String>) -> Self {
        Self::Unsent { reason: reason.into() }
    }

    fn malformed(reason: impl Into<String>) -> Self {
        Self::Malformed { reason: reason.into() }
    }
}

/// Scopes and others, each once, as the application separates them.
fn joined(about: &OAuth2, scopes: &[String], others: &[String]) -> String {
    let mut once: Vec<&str> = Vec::new();
    for scope in scopes.iter().chain(others).filter(|scope| !scope.is_empty()) {
        if !once.contains(&scope.as_str()) {
            once.push(scope);
        }
    }
    once.join(about.scope_separator.as_deref().unwrap_or(" "))
}

/// Values with others laid over them.
fn over(values: &Values, others: &Values) -> Values {
    values.iter().chain(others).map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn named(answer: &Value, path: &str) -> Option<(String, Value)> {
    let name = Pick { path: path.to_owned(), pattern: None }.of(answer)?;
    Some((IDENTITY.to_owned(), said(&name).into()))
}

/// As much of an application's words as a person needs, on one line.
fn said(text: &str) -> String {
    manifest::cleaned(&text.split_whitespace().collect::<Vec<_>>().join(" ")).chars().take(300).collect()
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("id", &self.id).finish_non_exhaustive()
    }
}

impl fmt::Debug for Code<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Code").finish_non_exhaustive()
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
