//! Keyed hashes.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Computes HMAC-SHA-256.
pub(crate) fn keyed_hash(key: &[u8; 32], message: &[u8]) -> [u8; 32] {
    HashKey::new(key).hash(message)
}

/// Returns true if a hash is the HMAC-SHA-256 of a message. The time that it takes does not depend on
/// the hash.
pub(crate) fn is_keyed_hash(key: &[u8; 32], message: &[u8], hash: &[u8]) -> bool {
    HashKey::new(key).hmac(message).verify_slice(hash).is_ok()
}

/// A key of HMAC-SHA-256 for many messages. A part of the work is done once for all of them.
pub(crate) struct HashKey(Hmac<Sha256>);

impl HashKey {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        let prepared = Hmac::new_from_slice(key);
        Self(prepared.expect("this hash takes keys of every length"))
    }

    /// Computes the hash of a message, as [`keyed_hash`] does.
    pub(crate) fn hash(&self, message: &[u8]) -> [u8; 32] {
        self.hmac(message).finalize().into_bytes().into()
    }

    fn hmac(&self, message: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(message);
        mac
    }
}
