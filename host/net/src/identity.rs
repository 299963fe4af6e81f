//! Client certificates, for providers that authenticate the client at the connection (RFC 8446,
//! section 4.4.2).
//!
//! A connection with a certificate belongs to one identity. Each certificate therefore has its own
//! HTTP client and connections, which no other certificate shares. The most recently used clients
//! are kept.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::{Error, ErrorKind, guard, lookup::Lookups};

/// Maximum number of clients in a cache, each with its connections.
const MAX_CACHED_CLIENTS: usize = 64;
/// Length of a line of PEM, in characters (RFC 7468, section 2).
const PEM_LINE_CHARS: usize = 64;

/// Certificate with its chain and its key. They are hidden in `Debug` output.
#[derive(Clone)]
pub struct Identity {
    pub(crate) digest: [u8; 32],
    own: reqwest::Identity,
}

/// Cache of one client per key, with the most recently used at the end.
pub(crate) struct ClientCache<K, T>(Mutex<Vec<(K, Arc<T>)>>);

impl Identity {
    /// Reads a certificate, or a chain that starts with it, and its key, both in PEM. Line ends
    /// that a form changed are repaired.
    ///
    /// # Errors
    /// Returns an error if one of them is not PEM.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, Error> {
        let all = Zeroizing::new(format!(
            "{}{}",
            &*repaired_pem(certificate),
            &*repaired_pem(key)
        ));
        let own = reqwest::Identity::from_pem(all.as_bytes()).map_err(|_| Error {
            kind: ErrorKind::Tls,
            message:
                "the client certificate or its key cannot be read; provide both as complete PEM"
                    .to_owned(),
        })?;
        Ok(Self {
            digest: Sha256::digest(all.as_bytes()).into(),
            own,
        })
    }

    /// Checks that certificate and key match. Otherwise the first connection would fail.
    ///
    /// # Errors
    /// Returns an error if they do not match or if their type cannot be used in a connection.
    pub fn check(&self) -> Result<(), Error> {
        let resolver = guard::Resolver::unguarded(Lookups::new());
        crate::build("", resolver, Some(self), None)
            .map(drop)
            .map_err(|_| {
                Error {
            kind: ErrorKind::Tls,
            message:
                "the client certificate and its key do not match, or their type is not supported; \
                      provide the key of this certificate"
                    .to_owned(),
        }
            })
    }

    pub(crate) fn own(&self) -> reqwest::Identity {
        self.own.clone()
    }
}

impl<K: PartialEq, T> ClientCache<K, T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Returns the cached client for a key, or creates it.
    pub(crate) fn get(
        &self,
        key: K,
        make: impl FnOnce() -> Result<T, Error>,
    ) -> Result<Arc<T>, Error> {
        let mut cached = self.0.lock();
        let entry = match cached.iter().position(|(other, _)| *other == key) {
            Some(at) => cached.remove(at),
            None => (key, Arc::new(make()?)),
        };
        if cached.len() >= MAX_CACHED_CLIENTS {
            cached.remove(0);
        }
        let found = entry.1.clone();
        cached.push(entry);
        Ok(found)
    }
}

/// Restores the lines of PEM text. A single-line field removes them, and JSON writes them as `\n`.
fn repaired_pem(text: &str) -> Zeroizing<String> {
    let text = Zeroizing::new(text.replace("\\n", "\n"));
    let mut mended = Zeroizing::new(String::new());
    // Labels and contents alternate between the dashes.
    for part in text
        .split("-----")
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        if part.starts_with("BEGIN ") || part.starts_with("END ") {
            mended.push_str(&format!("-----{part}-----\n"));
            continue;
        }
        let letters: Zeroizing<Vec<char>> =
            Zeroizing::new(part.chars().filter(|c| !c.is_whitespace()).collect());
        for line in letters.chunks(PEM_LINE_CHARS) {
            mended.extend(line);
            mended.push('\n');
        }
    }
    mended
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_is_repaired_and_errors_hide_input() {
        let body = "A".repeat(70);
        let pem = format!(
            "-----BEGIN X-----\n{}\n{}\n-----END X-----\n",
            &body[..64],
            &body[64..]
        );
        for given in [
            pem.clone(),
            pem.replace('\n', " "),
            pem.replace('\n', "\\n"),
            pem.replace('\n', "\r\n"),
        ] {
            assert_eq!(*repaired_pem(&given), pem, "{given:?}");
        }
        let refused = Identity::from_pem("canary", &pem).unwrap_err();
        assert!(
            refused.kind == ErrorKind::Tls && !refused.message.contains("canary"),
            "{refused:?}"
        );
    }

    #[test]
    fn what_was_used_last_is_kept() {
        let cached = ClientCache::new();
        let get = |number: u8, make: u32| *cached.get([number; 32], || Ok(make)).unwrap();
        assert_eq!((get(0, 1), get(0, 2)), (1, 1));
        for number in 1..=64 {
            get(number, 0);
            assert_eq!(get(0, 3), 1, "it is used all the time");
        }
        assert_eq!(get(1, 4), 4, "it was used longest ago");
    }
}
