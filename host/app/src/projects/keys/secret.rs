//! The secrets of keys.
//!
//! A key is a prefix, 32 random characters (190 bits) and a checksum. The checksum allows a
//! mistyped key to be refused without a store lookup, and lets a secret scanner tell a key from
//! other text.

use super::KeyKind;
use crate::core::{MIN_SHOWN_SECRET_CHARS, ids};

/// Number of random characters in a key.
const SECRET_CHARS: usize = 32;
/// Number of characters of the checksum.
const CHECKSUM_CHARS: usize = 6;

pub(super) fn new_secret(kind: KeyKind) -> String {
    let mut secret = format!("{}{}", kind.prefix(), ids::random_text(SECRET_CHARS));
    let sum = checksum(secret.as_bytes());
    secret.extend(sum.map(char::from));
    secret
}

fn checksum(body: &[u8]) -> [u8; CHECKSUM_CHARS] {
    ids::number_digits(u64::from(crc32fast::hash(body)))
}

pub(super) fn is_well_formed(secret: &str) -> bool {
    let Some(kind) = KeyKind::of_secret(secret) else {
        return false;
    };
    let split = kind.prefix().len() + SECRET_CHARS;
    secret.is_ascii()
        && secret.len() == split + CHECKSUM_CHARS
        && checksum(&secret.as_bytes()[..split]) == secret.as_bytes()[split..]
}

/// Masks a key: the first six characters, followed by asterisks. A short key is masked completely.
pub(super) fn masked(secret: &str) -> String {
    let is_long = secret.chars().count() >= MIN_SHOWN_SECRET_CHARS;
    let first = secret.chars().take(if is_long { 6 } else { 0 });
    let shown: String = first.filter(char::is_ascii_graphic).collect();
    format!("{shown}********")
}

#[cfg(test)]
mod tests {
    use strum::VariantArray;

    use super::*;

    #[test]
    fn mistyped_key_is_not_is_well_formed() {
        for kind in KeyKind::VARIANTS {
            let secret = new_secret(*kind);
            assert!(is_well_formed(&secret), "{secret}");
            for index in 0..secret.len() {
                let mut typed = secret.clone().into_bytes();
                typed[index] = if typed[index] == b'x' { b'y' } else { b'x' };
                assert!(
                    !is_well_formed(&String::from_utf8(typed).unwrap()),
                    "changed at {index}"
                );
            }
        }
        for other in [
            "",
            "ak_",
            "ak_short",
            "uak_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "ak_å",
        ] {
            assert!(!is_well_formed(other), "{other}");
        }
    }

    #[test]
    fn refused_key_is_masked() {
        assert_eq!(masked("ak_abcdefgh"), "ak_abc********");
        assert_eq!(masked("\u{7}\u{7}"), "********");
        assert_eq!(masked("ak_abcd"), "********");
    }
}
