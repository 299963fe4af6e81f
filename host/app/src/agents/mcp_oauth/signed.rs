//! Strings that this installation has signed. A signed string ends with an HMAC-SHA-256 over the rest.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};

use store::Time;

use crate::{
    App,
    core::vault::{is_keyed_hash, keyed_hash},
};

/// Purpose of the key of signatures. Tokens that were issued depend on it, so it never changes.
const SIGNING_KEY_PURPOSE: &str = "mcp oauth";

/// Kind of a token, which its prefix names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An authorization code.
    Code,
    /// An access token.
    Access,
    /// A refresh token.
    Refresh,
}

/// A token that this installation has issued.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) consent: String,
    /// For a refresh token, its number in the consent. For others, the end of their validity in epoch
    /// milliseconds.
    pub(super) number: i64,
}

impl Kind {
    fn prefix(self) -> &'static str {
        match self {
            Self::Code => "mcpc_",
            Self::Access => "mcpa_",
            Self::Refresh => "mcpr_",
        }
    }
}

impl Token {
    /// Returns the signed text of the token.
    pub(super) fn issue(&self, app: &App, kind: Kind) -> String {
        let Self { consent, number } = self;
        sign(app, &format!("{}{consent}.{number}", kind.prefix()))
    }

    /// Returns true if an authorization code or an access token ends after a time.
    pub(super) fn ends_after(&self, time: Time) -> bool {
        self.number > time.0
    }

    /// Reads a token of a kind. Returns `None` if this installation did not issue it.
    pub(super) fn read(app: &App, kind: Kind, text: &str) -> Option<Self> {
        let token = verify(app, text)?.strip_prefix(kind.prefix())?;
        let (consent, number) = token.split_once('.')?;
        Some(Self {
            consent: consent.to_owned(),
            number: number.parse().ok()?,
        })
    }
}

pub(super) fn sign(app: &App, text: &str) -> String {
    let hash = keyed_hash(&app.vault.derive(SIGNING_KEY_PURPOSE), text.as_bytes());
    format!("{text}.{}", BASE64.encode(hash))
}

/// Returns a signed string without its signature, or `None` if the signature is not valid.
pub(super) fn verify<'a>(app: &App, signed: &'a str) -> Option<&'a str> {
    let (text, hash) = signed.rsplit_once('.')?;
    let hash = BASE64.decode(hash).ok()?;
    let key = app.vault.derive(SIGNING_KEY_PURPOSE);
    is_keyed_hash(&key, text.as_bytes(), &hash).then_some(text)
}
