//! Verification of the signatures of components.
//!
//! A signature is a minisign file over the bytes of the component. If the operator lists trusted
//! keys, a component is published only with a signature by one of them. Without such a list, no
//! signature is required. Keys are identified by the id that `minisign` prints.

use base64::{Engine, engine::general_purpose::STANDARD};
use minisign_verify::{Error as Verdict, PublicKey, Signature};

use crate::{Result, catalog::errors};

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
    /// Parses minisign public keys. Each text is the line with the key, or the whole file with its
    /// comment.
    ///
    /// # Errors
    /// Returns the first text that is not a public key.
    pub fn read<T: AsRef<str>>(keys: &[T]) -> std::result::Result<Self, String> {
        let one = |text: &str| {
            let line = text.trim().lines().last()?.trim();
            Some(Trusted {
                id: id(line)?,
                key: PublicKey::from_base64(line).ok()?,
            })
        };
        let all = keys
            .iter()
            .map(|text| one(text.as_ref()).ok_or_else(|| crate::core::truncate(text.as_ref())));
        all.collect::<std::result::Result<_, _>>().map(Self)
    }

    /// Verifies the signature of a component. Returns the id of the key that signed it, or `None`
    /// if no signature is required.
    ///
    /// # Errors
    /// Returns an error if a required signature is missing, cannot be read, belongs to other bytes,
    /// or is by an untrusted key.
    pub(super) fn check(
        &self,
        component: &[u8],
        signature: Option<&str>,
    ) -> Result<Option<String>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let text = signature.ok_or_else(errors::signature_missing)?;
        let unreadable = || errors::signature_invalid("it is not a minisign signature");
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
mod tests {
    use super::*;

    /// Public key made by the `minisign` command, like all keys and signatures in these tests.
    const PUBLIC_KEY: &str = "RWSzCa9XNNJDY/2B/4Ce5J1cRsiyoMpb44jVuoHH/xnNauAkQu+rwqti";
    const OTHER_KEY: &str = "untrusted comment: minisign public key D9A05A072A2C13DF\n\
        RWTfEywqB1qg2WI3U1XP3/vXq1IxO6890MxHdEwyqzXpti3b8oJso+WH\n";
    const SIGNED_BYTES: &[u8] = b"component";
    const SIGNATURE_FILE: &str = "untrusted comment: signature from minisign secret key\n\
        RUSzCa9XNNJDY//AQKOJKo9rKAFNZajVJ30RD3aYNoIxGp4pOc7dcsucaG62i48EXb3PEy8c/WvA/jCbfZCZ63vT1tDOBsBoGAQ=\n\
        trusted comment: toolkit:hello version:20260101_00\n\
        nwrmly05Ih7D8yxQ8Z/m2qcN4JiO8rsdulmQXcZ8Id6ibcQxZM0lqOa8xGjzplwMWEpm0RjJOS4Gi6galVFACw==\n";
    const LEGACY_SIGNATURE_FILE: &str = "untrusted comment: signature from minisign secret key\n\
        RWSzCa9XNNJDY9NzAQuTN3NBjAFKQlD+7DbXUmh7pae+jcDYPwTX1D9zQkGFezQdiNBmlsXMLxtt91IHMMKVgkmZZeEk9mP+hwU=\n\
        trusted comment: timestamp:1795246352\tfile:c\n\
        vW/21CA13r9AJit9N1vQuTF8MPtX4SkBfnYTWqd3EaJu8turbkbxIzH7KXYW+3Ryu2+1ZBgYdNJMDfD+cCBJBw==\n";

    fn check(keys: &[&str], component: &[u8], signature: Option<&str>) -> Result<Option<String>> {
        TrustedKeys::read(keys).unwrap().check(component, signature)
    }

    #[test]
    fn valid_signature_names_its_key() {
        let signer = check(&[OTHER_KEY, PUBLIC_KEY], SIGNED_BYTES, Some(SIGNATURE_FILE)).unwrap();
        assert_eq!(signer.as_deref(), Some("6343D23457AF09B3"));
        assert_eq!(check(&[], SIGNED_BYTES, None).unwrap(), None);
        assert_eq!(check(&[], SIGNED_BYTES, Some("nonsense")).unwrap(), None);
    }

    #[test]
    fn nothing_else_is_good() {
        let invalid = |keys: &[&str], bytes: &[u8], text: &str| {
            let refused = check(keys, bytes, Some(text)).unwrap_err();
            assert!(
                refused.is(&errors::SIGNATURE_INVALID),
                "{text:?}: {refused}"
            );
        };
        invalid(&[PUBLIC_KEY], b"componenT", SIGNATURE_FILE);
        invalid(
            &[PUBLIC_KEY],
            SIGNED_BYTES,
            &SIGNATURE_FILE.replace("hello", "other"),
        );
        invalid(&[PUBLIC_KEY], SIGNED_BYTES, LEGACY_SIGNATURE_FILE);
        for text in [
            "",
            "nonsense",
            "a\nb\nc\nd\n",
            &SIGNATURE_FILE[..200],
            "\n\n\n\n",
            "a\nRWSzCa9XNNJDY/2B",
        ] {
            invalid(&[PUBLIC_KEY], SIGNED_BYTES, text);
        }
        assert!(
            check(&[PUBLIC_KEY], SIGNED_BYTES, None)
                .is_err_and(|error| error.is(&errors::SIGNATURE_MISSING))
        );
        assert!(
            check(&[OTHER_KEY], SIGNED_BYTES, Some(SIGNATURE_FILE))
                .is_err_and(|error| error.is(&errors::SIGNER_UNKNOWN))
        );
    }

    #[test]
    fn a_key_that_is_none_is_named() {
        for wrong in ["", "RWSz", SIGNATURE_FILE, "untrusted comment: only"] {
            assert!(
                TrustedKeys::read(&[PUBLIC_KEY, wrong]).is_err(),
                "{wrong:?}"
            );
        }
    }
}
