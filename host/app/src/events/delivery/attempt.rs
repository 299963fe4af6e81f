//! The attempts of a delivery.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::Time;

use super::seal_context;
use crate::{
    App, Result,
    core::{
        ids::ProjectId,
        vault::{DataKey, SealContext, Sealed},
    },
};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::events) struct StoredAttempt {
    pub(super) at: Time,
    pub(super) duration_ms: u64,
    pub(super) status: Option<u16>,
    pub(super) error: Option<String>,
    pub(super) response: Option<Sealed<String>>,
}

/// An attempt to deliver an event.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Time at which it started.
    pub at: Time,
    /// Time that it took.
    pub duration: Duration,
    /// Status of the response, if there was one.
    pub status: Option<u16>,
    /// Reason why there was no response.
    pub error: Option<String>,
    /// Beginning of the response body.
    pub response: Option<String>,
}

impl Attempt {
    /// Seals the response for the delivery with this id.
    pub(in crate::events) async fn seal(
        self,
        app: &App,
        project: &ProjectId,
        id: &str,
    ) -> Result<StoredAttempt> {
        let key = app.vault.key(project.as_str(), self.at).await?;
        let context = seal_context(project, id);
        let response = self.response.map(|text| key.seal(context, &text));
        Ok(StoredAttempt {
            at: self.at,
            duration_ms: u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
            status: self.status,
            error: self.error,
            response: response.transpose()?,
        })
    }
}

impl StoredAttempt {
    /// Decrypts the response.
    pub(super) fn open(&self, key: &DataKey, context: SealContext<'_>) -> Result<Attempt> {
        let response = self.response.as_ref();
        Ok(Attempt {
            at: self.at,
            duration: Duration::from_millis(self.duration_ms),
            status: self.status,
            error: self.error.clone(),
            response: response.map(|text| key.open(context, text)).transpose()?,
        })
    }
}
