//! The secret parts of a subscription.

use serde::{Deserialize, Serialize};
use store::Time;

use crate::events::signing::SigningKey;

/// Secret parts of a subscription, decrypted.
#[derive(Clone, Serialize, Deserialize)]
pub struct Endpoint {
    /// URL that messages are sent to.
    pub url: String,
    /// Secret that signs messages.
    pub secret: String,
    /// Key of asymmetric signatures, if messages have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_key: Option<SigningKey>,
    /// The secret before the last rotation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) previous: Option<PreviousSecret>,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct PreviousSecret {
    pub(super) secret: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) signing_key: Option<SigningKey>,
    /// Time until which it still signs messages.
    pub(super) until: Time,
}

impl Endpoint {
    /// Returns the secrets that sign messages at a time, the newest first.
    pub(crate) fn signing_secrets(&self, now: Time) -> impl Iterator<Item = &str> {
        let previous = self.previous(now).map(|old| old.secret.as_str());
        [self.secret.as_str()].into_iter().chain(previous)
    }

    /// Returns the keys of the asymmetric signatures at a time, the newest first. Empty if messages
    /// have no such signatures.
    pub(crate) fn signing_keys(&self, now: Time) -> impl Iterator<Item = &SigningKey> {
        let previous = self.previous(now).and_then(|old| old.signing_key.as_ref());
        let keys = self.signing_key.iter();
        keys.flat_map(move |key| [key].into_iter().chain(previous))
    }

    fn previous(&self, now: Time) -> Option<&PreviousSecret> {
        self.previous.as_ref().filter(|old| old.until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_secret_signs_until_its_overlap_ends() {
        let endpoint = Endpoint {
            url: "https://hooks.example.com".into(),
            secret: "new".into(),
            signing_key: None,
            previous: Some(PreviousSecret {
                secret: "old".into(),
                signing_key: None,
                until: Time(10),
            }),
        };
        let secrets = |now| endpoint.signing_secrets(Time(now)).collect::<Vec<_>>();
        assert_eq!(secrets(9), ["new", "old"]);
        assert_eq!(secrets(10), ["new"]);
    }
}
