//! Large values beside the documents: components, files, the bodies too big for a record.
//!
//! A put that has returned survives a power cut. A get never answers with damaged bytes: each blob is kept with a
//! checksum of its own. Whether the bytes are the *right* ones (a key that is a digest) is for the caller to check.
//!
//! They lie in a [`Folder`], or in a [`Bucket`] that several nodes share.

mod bucket;
mod folder;

use crate::Error;
use async_trait::async_trait;
use bytes::Bytes;
use std::time::Duration;

pub use bucket::{Bucket, BucketError, BucketSettings};
pub use folder::Folder;

/// What a signed link is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signed {
    /// Reading a blob.
    Get,
    /// Putting one.
    Put,
}

impl Signed {
    /// The method of the one request it allows.
    #[must_use]
    pub fn method(self) -> &'static str {
        match self {
            Signed::Get => "GET",
            Signed::Put => "PUT",
        }
    }
}

/// A link that the place of the blobs answers itself.
#[derive(Debug, Clone)]
pub struct SignedUrl {
    /// With everything it needs.
    pub url: String,
    /// Headers that a request must have, with these values.
    pub headers: Vec<(String, String)>,
}

/// What a signed link says of its blob.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// Of the bytes, in hexadecimal. What is put has to have it.
    pub md5: &'a str,
    /// What is put has to name it, and what is read comes with it.
    pub media_type: &'a str,
    /// The `Content-Disposition` with which it is read (RFC 6266).
    pub disposition: &'a str,
    /// How long the link can be used.
    pub lasts: Duration,
}

/// A store of byte strings by key.
///
/// A key has 1 to 200 bytes out of `a-z`, `A-Z`, `0-9`, `_`, `-` and `.`, and does not begin with a dot.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Keeps `bytes` under `key`, replacing what is there. When it returns, the bytes are durable.
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), Error>;
    /// Answers with what is kept under `key`. Damage is an error, never other bytes.
    async fn get(&self, key: &str) -> Result<Option<Bytes>, Error>;
    /// Forgets `key`; one that is not there is no error.
    async fn remove(&self, key: &str) -> Result<(), Error>;
    /// A link for one request past this server; none where links are not given.
    async fn signed(&self, _key: &str, _way: Signed, _terms: Terms<'_>) -> Result<Option<SignedUrl>, Error> {
        Ok(None)
    }
    /// Every key there is, in order.
    async fn keys(&self) -> Result<Vec<String>, Error>;
    /// Reads every blob and answers with the keys of those that are damaged, and how many there are.
    async fn verify(&self) -> Result<(u64, Vec<String>), Error> {
        let keys = self.keys().await?;
        let mut damaged = Vec::new();
        for key in &keys {
            match self.get(key).await {
                Ok(_) => {}
                Err(Error::Damaged { .. }) => damaged.push(key.clone()),
                Err(error) => return Err(error),
            }
        }
        Ok((keys.len() as u64, damaged))
    }
}

fn check(key: &str) -> Result<(), Error> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let good = !key.is_empty() && key.len() <= 200 && !key.starts_with('.') && key.bytes().all(legal);
    if good { Ok(()) } else { Err(Error::Key(key.to_owned())) }
}
