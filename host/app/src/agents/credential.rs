//! The key or the access token with which a request in a session, or to an MCP server, was sent.
//!
//! Problem: batches, scripts, recipes and waits continue after their request was admitted.
//!
//! Guarantee: no such call starts after this server has acknowledged that the key, or the consent behind
//! the token, is revoked. Other servers know of it once they have learned of the change.

use serde::{Deserialize, Serialize};

use super::mcp_oauth;
use crate::{
    App, Result,
    projects::{self, Holder, errors},
};

/// The credential of a request. It contains no secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Credential {
    /// Id of the record of the key, or of the key with which the user of a token has signed in.
    key: String,
    /// Id of the consent behind an access token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    consent: Option<String>,
}

impl Credential {
    /// Returns the credential of the holder of a key, or of an access token with this consent.
    #[must_use]
    pub fn new(holder: &Holder, consent: Option<String>) -> Self {
        let key = holder.record_id.clone();
        Self { key, consent }
    }

    /// Checks that the key and the consent still exist. Fails with [`errors::CREDENTIAL_REVOKED`]
    /// if one does not.
    pub(super) async fn check(&self, app: &App) -> Result<()> {
        let is_valid = projects::holder_by_record(app, &self.key).await?.is_some()
            && match &self.consent {
                Some(consent) => mcp_oauth::has_consent(app, consent).await?,
                None => true,
            };
        is_valid
            .then_some(())
            .ok_or_else(errors::credential_revoked)
    }
}
