//! Signatures of messages, in the forms of Standard Webhooks.
//!
//! The key of a symmetric signature is the text of the secret, unchanged. It is not base64 and
//! lacks a prefix. An asymmetric signature is one of Ed25519, which receivers verify with a public
//! key and without a secret.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::errors;
use crate::{Result, core::ids};

/// Prefix of a public key in the form of Standard Webhooks.
const PUBLIC_KEY_PREFIX: &str = "whpk_";
/// Bytes of the seed of a private key.
const SEED_BYTES: usize = 32;

/// Private key of asymmetric signatures: its seed in base64.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SigningKey(String);

impl SigningKey {
    pub(super) fn random() -> Self {
        Self(BASE64.encode(ids::random::<SEED_BYTES>()))
    }

    /// Returns the public key in the form of Standard Webhooks. Fails if the stored key cannot be
    /// read.
    pub fn public_key(&self) -> Result<String> {
        let encoded = BASE64.encode(self.pair()?.public_key());
        Ok(format!("{PUBLIC_KEY_PREFIX}{encoded}"))
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>> {
        Ok(self.pair()?.sign(message).as_ref().to_vec())
    }

    fn pair(&self) -> Result<Ed25519KeyPair> {
        let seed = BASE64.decode(&self.0).ok();
        let pair = seed.and_then(|seed| Ed25519KeyPair::from_seed_unchecked(&seed).ok());
        pair.ok_or_else(|| errors::internal("a stored signing key cannot be read"))
    }
}

/// Returns the value of the signature header: one signature per secret and per key, separated by
/// blanks. `timestamp` is in Unix seconds.
pub(crate) fn signature<'a>(
    secrets: impl Iterator<Item = &'a str>,
    keys: impl Iterator<Item = &'a SigningKey>,
    message_id: &str,
    timestamp: i64,
    body: &[u8],
) -> Result<String> {
    let signed = [format!("{message_id}.{timestamp}.").as_bytes(), body].concat();
    let symmetric = secrets.map(|secret| {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
            .expect("this hash takes keys of every length");
        mac.update(&signed);
        Ok(format!("v1,{}", BASE64.encode(mac.finalize().into_bytes())))
    });
    let asymmetric = keys.map(|key| Ok(format!("v1a,{}", BASE64.encode(key.sign(&signed)?))));
    let signatures = symmetric.chain(asymmetric).collect::<Result<Vec<_>>>()?;
    Ok(signatures.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_is_that_of_standard_webhooks() {
        // Made with the published library, whose key is the base64 text of these bytes.
        let signed = signature(
            ["the secret", "older"].into_iter(),
            [].into_iter(),
            "msg_1",
            1_700_000_000,
            b"{\"a\": 1}",
        )
        .unwrap();
        let (new, old) = signed.split_once(' ').unwrap();
        assert_eq!(new, "v1,T0/NnOhbsMNmjrGvCQ22eKkBJh7Sn6TBJJbke193Ogw=");
        assert!(old.starts_with("v1,") && old != new);
    }

    #[test]
    fn asymmetric_signature_is_that_of_rfc_8032() {
        // Section 7.1, test 2.
        let seed = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
        let key = SigningKey(BASE64.encode(hex::decode(seed).unwrap()));
        let public = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
        let public = BASE64.encode(hex::decode(public).unwrap());
        assert_eq!(key.public_key().unwrap(), format!("whpk_{public}"));
        let signature = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
        assert_eq!(hex::encode(key.sign(&[0x72]).unwrap()), signature);
    }
}
