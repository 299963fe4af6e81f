//! Contract by which a credential reaches an outgoing request without passing through the guest.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use manifest::{Placement, Rejection};
use serde_json::{Map, Value};

use crate::{Secret, Signing};

/// Right to use one connected account for one call. The caller of the sandbox implements it. The
/// sandbox uses it when the guest sends a request, never earlier.
#[async_trait]
pub trait Grant: Send + Sync {
    /// Returns the credential to put into a request.
    ///
    /// # Errors
    /// Returns an error if no credential is available any more. The guest then gets an error of
    /// kind `credential`.
    async fn credential(&self) -> Result<Arc<Credential>, GrantError>;

    /// Returns a fresh credential to replace one that the provider rejected, or `None` if no other
    /// exists.
    ///
    /// # Errors
    /// Returns an error if the refresh failed. The guest then gets the provider's rejection.
    async fn refresh(&self, rejected: &Credential) -> Result<Option<Arc<Credential>>, GrantError>;

    /// Returns the proxy for the requests of the account, or `None` for a direct connection.
    fn proxy(&self) -> Option<Arc<net::Proxy>> {
        None
    }
}

/// Credential, ready to be put into requests. Its `Debug` output is not readable.
#[derive(Default)]
pub struct Credential {
    /// Places for the credential in a request, with filled templates.
    pub placements: Vec<Placement>,
    /// Fields to add to request bodies that are JSON objects or forms.
    pub body: Map<String, Value>,
    /// Signature, added to each request last.
    pub sign: Option<Signing>,
    /// Client certificate for connections that carry the credential.
    pub identity: Option<net::Identity>,
    /// Responses that reject the token, in addition to those that the standards define.
    pub rejections: Vec<Rejection>,
    /// Every value to remove from responses: the secrets themselves, including those inside the
    /// placements.
    pub secrets: Vec<Secret>,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").finish_non_exhaustive()
    }
}

/// Error for a missing credential. The guest sees the text, so it must not contain a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GrantError(pub String);
