//! How a credential reaches an outgoing request without passing through the guest.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use manifest::Placement;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::Signing;

/// Secrets that one call may bring along.
pub const MAX_SECRETS: usize = 64;
/// Bytes of these secrets together.
pub const MAX_SECRET_BYTES: usize = 16 << 10;

/// The right to use one account, for one call. Whoever calls the sandbox implements it; the sandbox asks it when the guest
/// sends a request, never earlier.
#[async_trait]
pub trait Grant: Send + Sync {
    /// The credential to put into a request.
    ///
    /// # Errors
    /// When there is none any more; the guest gets an error of kind `credential`.
    async fn credential(&self) -> Result<Arc<Credential>, GrantError>;

    /// A fresh credential in place of one that the application answered 401 to; none when there is no other.
    ///
    /// # Errors
    /// When renewing failed; the guest gets the 401.
    async fn renew(&self, rejected: &Credential) -> Result<Option<Arc<Credential>>, GrantError>;

    /// What the requests of the account leave through; none for the straight way.
    fn proxy(&self) -> Option<Arc<net::Proxy>> {
        None
    }
}

/// A credential, ready to be put into requests. Does not print.
#[derive(Default)]
pub struct Credential {
    /// Where it goes; the templates are filled.
    pub placements: Vec<Placement>,
    /// Members for the body of each request that has one: a JSON object, or a form.
    pub body: Map<String, Value>,
    /// What signs each request when all else is in it.
    pub sign: Option<Signing>,
    /// What connections show that carry it.
    pub identity: Option<net::Identity>,
    /// Every value that must not come back: the secrets themselves, also those inside the placements.
    pub secrets: Vec<Secret>,
}

/// A value that must not be seen. Erased from memory when dropped; does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// The value, for the one who puts it into a request.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(Zeroizing::new(value))
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        value.to_owned().into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").finish_non_exhaustive()
    }
}

/// There is no credential to use. The text goes to the guest: no secret in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GrantError(pub String);
