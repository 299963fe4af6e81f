//! Assertions that a client or an account signs (RFC 7519, RFC 7523).

use jsonwebtoken::{EncodingKey, Header};
use manifest::{Algorithm, Assertion, Source};
use serde_json::{Map, Value};

use super::{Refusal, Result};

/// Allowance in seconds for provider clocks that are behind.
const CLOCK_SKEW_SECONDS: i64 = 30;

/// Signs the assertion that the manifest describes, for one request with these values.
pub(super) fn sign(assertion: &Assertion, values: &impl Source, now_ms: i64) -> Result<String> {
    let pem = manifest::fill(&assertion.key, values)
        .map(zeroize::Zeroizing::new)
        .ok_or_else(|| Refusal::unsent("the account has no signing key"))?;
    let (algorithm, key) = read_key(assertion.algorithm, &pem);
    let key = key.map_err(unusable_key)?;
    let mut header = Header::new(algorithm);
    header.kid = assertion
        .key_id
        .as_ref()
        .and_then(|template| manifest::fill(template, values));
    let issued = now_ms / 1000 - CLOCK_SKEW_SECONDS;
    let expires = issued + i64::from(assertion.lifetime);
    let mut claims = Map::from_iter([
        ("iat".to_owned(), Value::from(issued)),
        ("exp".to_owned(), expires.into()),
        ("jti".to_owned(), super::nonce().into()),
    ]);
    let declared = assertion.claims.iter();
    claims.extend(
        declared.filter_map(|(name, claim)| {
            Some((name.clone(), manifest::fill(claim, values)?.into()))
        }),
    );
    jsonwebtoken::encode(&header, &claims, &key).map_err(unusable_key)
}

fn unusable_key(_: jsonwebtoken::errors::Error) -> Refusal {
    Refusal::unsent("the signing key of the account cannot be read: it must be complete PEM")
}

/// Rejects a key that cannot create signatures of an algorithm. The text is meant for users and
/// does not contain the key.
pub(super) fn check_key(algorithm: Algorithm, key: &str) -> std::result::Result<(), String> {
    let (kind, key) = read_key(algorithm, key);
    let signs = key.and_then(|key| jsonwebtoken::crypto::sign(b"", &key, kind));
    let expected = match algorithm {
        Algorithm::Rs256 | Algorithm::Ps256 => "an RSA key of at least 2048 bits",
        Algorithm::Es256 => "a P-256 key as PKCS#8",
        Algorithm::Hs256 => "a shared secret",
    };
    signs.map(drop).map_err(|_| {
        format!("the key cannot sign: the provider requires {expected}, as complete PEM without a password")
    })
}

fn read_key(
    algorithm: Algorithm,
    key: &str,
) -> (
    jsonwebtoken::Algorithm,
    jsonwebtoken::errors::Result<EncodingKey>,
) {
    let pem = restore_line_ends(key);
    match algorithm {
        Algorithm::Rs256 => (
            jsonwebtoken::Algorithm::RS256,
            EncodingKey::from_rsa_pem(pem.as_bytes()),
        ),
        Algorithm::Ps256 => (
            jsonwebtoken::Algorithm::PS256,
            EncodingKey::from_rsa_pem(pem.as_bytes()),
        ),
        Algorithm::Es256 => (
            jsonwebtoken::Algorithm::ES256,
            EncodingKey::from_ec_pem(pem.as_bytes()),
        ),
        Algorithm::Hs256 => (
            jsonwebtoken::Algorithm::HS256,
            Ok(EncodingKey::from_secret(key.as_bytes())),
        ),
    }
}

/// Restores the line ends of a key that was pasted from JSON, where they are written as `\n`.
fn restore_line_ends(key: &str) -> zeroize::Zeroizing<String> {
    zeroize::Zeroizing::new(key.replace("\\n", "\n"))
}
