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
mod authorize;
mod request;

use std::{fmt, time::Duration};

use manifest::{AuthScheme, OAuth2};
use net::Url;
use serde_json::Value;
use store::Time;
use zeroize::Zeroizing;

use super::{Values, scheme::text};
pub use authorize::challenge;

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

/// What an application knows the project by (RFC 6749, section 2). Does not print its secret.
pub struct Client {
    /// Public.
    pub id: String,
    /// None for a public client.
    pub secret: Option<Zeroizing<String>>,
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
    /// Where the person agrees. `verifier` is left out where the application takes no challenge; `scopes` are asked for beside
    /// the manifest's.
    ///
    /// # Errors
    /// When a field that the address needs has no value, or leads to another host.
    pub fn authorize(&self, redirect_uri: &str, state: &str, verifier: Option<&str>, scopes: &[String]) -> Result<Url> {
        authorize::url(self, redirect_uri, state, verifier, scopes)
    }

    /// Makes tokens of a code.
    ///
    /// # Errors
    /// See [`Refusal`]. The code is spent, whatever the answer.
    pub async fn exchange(&self, code: Code<'_>) -> Result<Tokens> {
        let mut parameters =
            vec![("grant_type", "authorization_code"), ("code", code.code), ("redirect_uri", code.redirect_uri)];
        if self.oauth2()?.pkce {
            parameters.extend(code.verifier.map(|verifier| ("code_verifier", verifier)));
        }
        self.tokens(&parameters).await
    }

    /// Makes new tokens of the refresh token.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn refresh(&self) -> Result<Tokens> {
        let token = self.value("refresh_token").ok_or_else(|| Refusal::unsent("the account has no refresh token"))?;
        self.tokens(&[("grant_type", "refresh_token"), ("refresh_token", &token)]).await
    }

    async fn tokens(&self, parameters: &[(&str, &str)]) -> Result<Tokens> {
        let response = request::send(self, &self.oauth2()?.token_url, parameters).await?;
        answer::tokens(self.now, &response).map_err(|refusal| self.without_secrets(refusal, parameters))
    }

    fn oauth2(&self) -> Result<&OAuth2> {
        self.scheme.oauth2.as_ref().ok_or_else(|| Refusal::unsent("the toolkit describes no flow for this scheme"))
    }

    fn value(&self, name: &str) -> Option<String> {
        self.values.get(name).and_then(text)
    }

    /// What an application says may repeat what it was sent.
    fn without_secrets(&self, refusal: Refusal, parameters: &[(&str, &str)]) -> Refusal {
        let Refusal::Denied { error, description } = refusal else { return refusal };
        let sent = parameters.iter().filter(|(name, _)| *name != "grant_type").map(|(_, value)| (*value).to_owned());
        let own = self.scheme.secrets().filter_map(|name| self.value(name));
        let secrets: Vec<_> =
            sent.chain(own).chain(self.client.secret.as_ref().map(|secret| secret.to_string())).collect();
        let clean = |text: String| {
            let hidden = secrets.iter().filter(|secret| !secret.is_empty());
            hidden.fold(text, |text, secret| text.replace(secret.as_str(), "[…]"))
        };
        Refusal::Denied { error: clean(error), description: clean(description) }
    }
}

impl Client {
    /// The client that the credentials of an auth config name; none without `client_id`.
    #[must_use]
    pub fn of(credentials: &Values) -> Option<Self> {
        let value = |name: &str| credentials.get(name).and_then(text).filter(|value| !value.is_empty());
        Some(Self { id: value("client_id")?, secret: value("client_secret").map(Zeroizing::new) })
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

    fn unsent(reason: impl Into<String>) -> Self {
        Self::Unsent { reason: reason.into() }
    }

    fn malformed(reason: impl Into<String>) -> Self {
        Self::Malformed { reason: reason.into() }
    }
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

/// As much of an application's words as a person needs, on one line.
fn said(text: &str) -> String {
    manifest::cleaned(&text.split_whitespace().collect::<Vec<_>>().join(" ")).chars().take(300).collect()
}

/// A member of an answer as text.
fn member(answer: &Value, name: &str) -> Option<String> {
    answer.get(name).and_then(text).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
