//! Signatures of webhook requests. Comparisons take constant time.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Sha256, Sha512};

use crate::contract::v1::webhook::Algorithm;

/// Text before the base64 of a secret of Standard Webhooks.
pub const STANDARD_WEBHOOKS_PREFIX: &str = "whsec_";

/// Returns true if the signature of a message is right; `None` for a malformed secret.
pub(crate) fn is_right(
    algorithm: Algorithm,
    secret: &str,
    message: &[u8],
    signature: &[u8],
) -> Option<bool> {
    let key = secret.as_bytes();
    Some(match algorithm {
        Algorithm::HmacSha1 => is_mac::<Hmac<Sha1>>(key, message, signature),
        Algorithm::HmacSha256 => is_mac::<Hmac<Sha256>>(key, message, signature),
        Algorithm::HmacSha512 => is_mac::<Hmac<Sha512>>(key, message, signature),
        Algorithm::StandardWebhooks => {
            is_mac::<Hmac<Sha256>>(&standard_webhooks_key(secret)?, message, signature)
        }
        Algorithm::Token => is_token(key, signature),
    })
}

/// Returns the MAC of a message; `None` for an algorithm without a MAC, and for a malformed secret.
pub(crate) fn sign(algorithm: Algorithm, secret: &str, message: &[u8]) -> Option<Vec<u8>> {
    let key = secret.as_bytes();
    match algorithm {
        Algorithm::HmacSha1 => mac_of::<Hmac<Sha1>>(key, message),
        Algorithm::HmacSha256 => mac_of::<Hmac<Sha256>>(key, message),
        Algorithm::HmacSha512 => mac_of::<Hmac<Sha512>>(key, message),
        Algorithm::StandardWebhooks => {
            mac_of::<Hmac<Sha256>>(&standard_webhooks_key(secret)?, message)
        }
        Algorithm::Token => None,
    }
}

/// Returns true if a signature is the MAC of a message. Takes constant time.
fn is_mac<M: KeyInit + Mac>(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    M::new_from_slice(key)
        .is_ok_and(|mac| mac.chain_update(message).verify_slice(signature).is_ok())
}

/// Returns the key that a secret of Standard Webhooks encodes; `None` if it is not base64.
fn standard_webhooks_key(secret: &str) -> Option<Vec<u8>> {
    let base64 = secret.strip_prefix(STANDARD_WEBHOOKS_PREFIX);
    STANDARD.decode(base64.unwrap_or(secret)).ok()
}

fn mac_of<M: KeyInit + Mac>(key: &[u8], message: &[u8]) -> Option<Vec<u8>> {
    let mac = M::new_from_slice(key).ok()?;
    Some(mac.chain_update(message).finalize().into_bytes().to_vec())
}

/// Returns true if a request carries the secret itself. Compares MACs of both, in constant time.
fn is_token(secret: &[u8], token: &[u8]) -> bool {
    let mac = |text: &[u8]| {
        Hmac::<Sha256>::new_from_slice(secret).map(|mac| mac.chain_update(text).finalize())
    };
    mac(secret).is_ok_and(|secret| mac(token).is_ok_and(|token| token == secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verify(secret: &str, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        is_right(algorithm, secret, message, signature).unwrap()
    }

    #[test]
    fn documented_signatures_are_accepted() {
        let bytes = |digits: &str| hex::decode(digits).unwrap();
        // RFC 2202 and RFC 4231, test case 2.
        let message = b"what do ya want for nothing?";
        for (algorithm, digits) in [
            (
                Algorithm::HmacSha1,
                "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
            ),
            (
                Algorithm::HmacSha256,
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                Algorithm::HmacSha512,
                "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
            ),
        ] {
            assert!(verify("Jefe", algorithm, message, &bytes(digits)));
            assert!(!verify("Jefe", algorithm, b"what else?", &bytes(digits)));
            assert!(!verify("other", algorithm, message, &bytes(digits)));
            assert!(!verify("Jefe", algorithm, message, &bytes(&digits[2..])));
            assert!(!verify("Jefe", algorithm, message, b""));
        }
        // Example of the specification of Standard Webhooks.
        let signature = STANDARD
            .decode("g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
            .unwrap();
        let message = br#"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}"#;
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        for secret in [secret, &secret["whsec_".len()..]] {
            assert!(verify(
                secret,
                Algorithm::StandardWebhooks,
                message,
                &signature
            ));
        }
        assert!(verify("abcdefgh", Algorithm::Token, b"", b"abcdefgh"));
        assert!(!verify("abcdefgh", Algorithm::Token, b"", b"abcdefg"));
    }
}
