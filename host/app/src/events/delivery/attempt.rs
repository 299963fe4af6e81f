//! The attempts of a delivery.

use serde::{Deserialize, Serialize};
use store::Time;

use super::seal_context;
use crate::{
    App, Result,
    core::{ids::ProjectId, vault::Sealed},
};

/// An attempt to deliver an event.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Attempt<Text = String> {
    /// Time at which it started.
    pub at: Time,
    /// Time that it took, in milliseconds.
    pub duration_ms: u64,
    /// Status of the response, if there was one.
    pub status: Option<u16>,
    /// Reason why there was no response.
    pub error: Option<String>,
    /// Beginning of the response body.
    pub response: Option<Text>,
}

/// An attempt as stored: its response is sealed.
pub(in crate::events) type StoredAttempt = Attempt<Sealed<String>>;

impl Attempt {
    /// Seals the response for the delivery with this id.
    pub(in crate::events) async fn seal(
        self,
        app: &App,
        project: &ProjectId,
        id: &str,
    ) -> Result<StoredAttempt> {
        let key = app.vault.key(project.as_str(), self.at).await?;
        self.try_map(|text| key.seal(seal_context(project, id), &text))
    }
}

impl<Text> Attempt<Text> {
    /// Converts the response.
    pub(super) fn try_map<T>(self, change: impl FnOnce(Text) -> Result<T>) -> Result<Attempt<T>> {
        Ok(Attempt {
            at: self.at,
            duration_ms: self.duration_ms,
            status: self.status,
            error: self.error,
            response: self.response.map(change).transpose()?,
        })
    }
}
