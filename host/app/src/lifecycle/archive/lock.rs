//! The keys and passphrases that encrypt and decrypt archives.

use std::{
    fs::File,
    io::{BufReader, BufWriter},
    path::Path,
};

use age::{
    DecryptError, Decryptor, Encryptor,
    secrecy::SecretString,
    stream::{StreamReader, StreamWriter},
    x25519,
};
use zeroize::Zeroizing;

use super::ArchiveError;

/// Minimum length of a passphrase, in characters.
pub const MIN_PASSPHRASE_CHARS: usize = 12;
/// Work factor for deriving a key from a passphrase, as a power of two. It costs about a second and
/// 256 MiB.
const LOG2_WORK_FACTOR: u8 = 18;
/// Maximum work factor accepted when an archive is opened: 16 times the work. Both factors are
/// constants and not measured on the machine, because a busy machine must open an archive of a fast
/// one.
const MAX_LOG2_WORK_FACTOR: u8 = LOG2_WORK_FACTOR + 4;

/// The method that encrypts an archive.
pub enum Lock {
    /// A passphrase. Every holder of it can read the archive.
    Passphrase(SecretString),
    /// An age recipient. Every holder of its identity can read the archive.
    Recipient(x25519::Recipient),
}

/// The method that decrypts an archive.
pub enum Unlock {
    /// The passphrase that encrypted the archive.
    Passphrase(SecretString),
    /// Identities, one of which belongs to the recipient.
    Identities(Vec<x25519::Identity>),
}

impl Lock {
    /// Creates a lock with a passphrase. Fails if the passphrase is too short.
    pub fn passphrase(text: &str) -> Result<Self, ArchiveError> {
        if text.chars().count() < MIN_PASSPHRASE_CHARS {
            return Err(ArchiveError::WeakPassphrase);
        }
        Ok(Self::Passphrase(SecretString::from(text)))
    }

    /// Creates a lock for an age recipient, `age1…`. Fails if the text is not a recipient.
    pub fn recipient(text: &str) -> Result<Self, ArchiveError> {
        let parsed = text.trim().parse().map(Self::Recipient);
        parsed.map_err(|_| ArchiveError::InvalidRecipient(text.to_owned()))
    }

    pub(super) fn lock(&self, file: File) -> std::io::Result<StreamWriter<BufWriter<File>>> {
        let mut derived;
        let recipient: &dyn age::Recipient = match self {
            Self::Passphrase(passphrase) => {
                derived = age::scrypt::Recipient::new(passphrase.clone());
                derived.set_work_factor(LOG2_WORK_FACTOR);
                &derived
            }
            Self::Recipient(recipient) => recipient,
        };
        let encryptor = Encryptor::with_recipients(std::iter::once(recipient));
        let encryptor = encryptor.map_err(std::io::Error::other)?;
        encryptor.wrap_output(BufWriter::new(file))
    }
}

impl Unlock {
    /// Creates the counterpart of a passphrase lock.
    #[must_use]
    pub fn passphrase(text: &str) -> Self {
        Self::Passphrase(SecretString::from(text))
    }

    /// Reads the identities of a file written by `age-keygen`. Fails if the file cannot be read or
    /// holds no identity.
    pub fn identities(path: &Path) -> Result<Self, ArchiveError> {
        let read = std::fs::read_to_string(path).map(Zeroizing::new);
        let text = read.map_err(|cause| ArchiveError::Io {
            operation: "read",
            file: path.to_owned(),
            cause,
        })?;
        let found = text.lines().filter_map(|line| line.trim().parse().ok());
        let found: Vec<_> = found.collect();
        if found.is_empty() {
            return Err(ArchiveError::NoIdentity(path.to_owned()));
        }
        Ok(Self::Identities(found))
    }

    pub(super) fn unlock(
        &self,
        path: &Path,
        file: File,
    ) -> Result<StreamReader<BufReader<File>>, ArchiveError> {
        let closed = |cause: DecryptError| ArchiveError::Undecryptable {
            file: path.to_owned(),
            reason: reason(&cause),
        };
        let decryptor = Decryptor::new_buffered(BufReader::new(file)).map_err(closed)?;
        let unlocked = match self {
            Self::Passphrase(passphrase) => {
                let mut identity = age::scrypt::Identity::new(passphrase.clone());
                identity.set_max_work_factor(MAX_LOG2_WORK_FACTOR);
                decryptor.decrypt(std::iter::once(&identity as &dyn age::Identity))
            }
            Self::Identities(all) => {
                decryptor.decrypt(all.iter().map(|identity| identity as &dyn age::Identity))
            }
        };
        unlocked.map_err(closed)
    }
}

fn reason(cause: &DecryptError) -> String {
    match cause {
        DecryptError::NoMatchingKeys => {
            "it is encrypted for another recipient, or with a passphrase".into()
        }
        DecryptError::DecryptionFailed | DecryptError::KeyDecryptionFailed => {
            "the passphrase is wrong, or the header of the file is damaged".into()
        }
        DecryptError::InvalidHeader | DecryptError::UnknownFormat => {
            "it is not an archive, or the header of the file is damaged".into()
        }
        other => format!("the header of the file is damaged: {other}"),
    }
}
