//! Verification of the signatures of components.
//!
//! A signature is a minisign file over the bytes of the component. If the operator lists trusted
//! keys, a component is published only with a signature by one of them. Without such a list, no
//! signature is required. Keys are identified by the id that `minisign` prints.

use base64::{Engine, engine::general_purpose::STANDARD};
use minisign_verify::{Error as Verdict, PublicKey, Signature};

use crate::{Error, Result, catalog::errors};

/// The position of the eight bytes of the id in a decoded key or signature, least significant byte
/// first.
const ID_BYTES: std::ops::Range<usize> = 2..10;

/// The public keys of trusted signers. If empty, no signature is required.
#[derive(Debug, Clone, Default)]
pub struct TrustedKeys(Vec<Trusted>);

#[derive(Debug, Clone)]
struct Trusted {
    id: String,
    key: PublicKey,
}

impl TrustedKeys {
    /// Parses minisign public keys. Each string is the line with the key, or the whole file with
    /// its comment. Fails with the first string that is not a public key.
    pub fn read<T: AsRef<str>>(keys: &[T]) -> std::result::Result<Self, String> {
        let trusted = keys.iter().map(|text| {
            parse_key(text.as_ref()).ok_or_else(|| crate::core::truncate(text.as_ref()))
        });
        trusted.collect::<std::result::Result<_, _>>().map(Self)
    }

    /// Verifies the signature of a component. Returns the id of the key that signed it, or `None`
    /// if no signature is required. Fails if a required signature is missing, cannot be read,
    /// belongs to other bytes, or is by an untrusted key.
    pub(super) fn check(
        &self,
        component: &[u8],
        signature: Option<&str>,
    ) -> Result<Option<String>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let text = signature.ok_or_else(errors::signature_missing)?;
        let signer = text.lines().nth(1).and_then(id).ok_or_else(unreadable)?;
        let signature = Signature::decode(text).map_err(|_| unreadable())?;
        let mut verdict = None;
        // The id of a key is chosen by its creator, so that two keys may have the same id.
        for trusted in self.0.iter().filter(|trusted| trusted.id == signer) {
            match trusted.key.verify(component, &signature, false) {
                Ok(()) => return Ok(Some(signer)),
                Err(cause) => verdict = Some(cause),
            }
        }
        Err(match verdict {
            None => errors::signer_unknown(signer),
            Some(Verdict::UnexpectedAlgorithm) => {
                errors::signature_invalid("it is in minisign's legacy format")
            }
            Some(_) => errors::signature_invalid(format!("key {signer} did not sign these bytes")),
        })
    }
}

fn unreadable() -> Error {
    errors::signature_invalid("it is not a minisign signature")
}

fn parse_key(text: &str) -> Option<Trusted> {
    let line = text.trim().lines().last()?.trim();
    Some(Trusted {
        id: id(line)?,
        key: PublicKey::from_base64(line).ok()?,
    })
}

fn id(line: &str) -> Option<String> {
    let bytes: [u8; 8] = STANDARD
        .decode(line.trim())
        .ok()?
        .get(ID_BYTES)?
        .try_into()
        .ok()?;
    Some(format!("{:016X}", u64::from_le_bytes(bytes)))
}

#[cfg(test)]
mod tests;
