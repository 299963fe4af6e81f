//! The newest events of an instance, so that one reported twice is delivered once.

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD as BASE64};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Number of events that an instance remembers.
pub const MAX_SEEN_EVENTS: usize = 2_000;
/// Bytes of an event's hash.
const HASH_BYTES: usize = 9;
/// Characters of an event's hash.
const HASH_CHARS: usize = HASH_BYTES / 3 * 4;

/// Concatenated hashes of the ids of events, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct SeenEvents(String);

impl SeenEvents {
    /// Adds an event. Returns false if it is known.
    pub(super) fn insert(&mut self, id: &str) -> bool {
        let hash = Sha256::digest(id.as_bytes());
        let hash = BASE64.encode(&hash[..HASH_BYTES]);
        let mut known = self.0.as_bytes().chunks_exact(HASH_CHARS);
        if known.any(|known| known == hash.as_bytes()) {
            return false;
        }
        self.0.push_str(&hash);
        let surplus = self.0.len().saturating_sub(MAX_SEEN_EVENTS * HASH_CHARS);
        self.0.drain(..surplus);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_events_are_remembered() {
        let mut seen = SeenEvents::default();
        for number in 0..=MAX_SEEN_EVENTS {
            assert!(seen.insert(&number.to_string()));
            assert!(!seen.insert(&number.to_string()));
        }
        assert!(!seen.insert("1"), "it is among the newest");
        assert!(seen.insert("0"), "it is older than the newest");
    }
}
