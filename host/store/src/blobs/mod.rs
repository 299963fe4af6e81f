//! Storage of large values outside of the documents: components, files, and bodies too big for a
//! record.
//!
//! A put that has returned survives a power cut. A get never returns damaged bytes: each blob is
//! stored with its own checksum. The caller checks that the bytes are the expected ones, for
//! example when the key is a digest.
//!
//! Blobs are stored in a [`Folder`], or in a [`Bucket`] that several nodes share.

mod bucket;
mod folder;

use crate::Error;
use async_trait::async_trait;
use bytes::Bytes;
use std::time::Duration;

pub use bucket::{Bucket, BucketError, BucketSettings};
pub use folder::Folder;

/// Reason for which a blob of more bytes than expected counts as damaged.
const TOO_LARGE: &str = "it is larger than expected";

/// Operation that a signed link allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedOperation {
    /// Reading a blob.
    Get,
    /// Writing a blob.
    Put,
}

impl SignedOperation {
    /// Returns the HTTP method that the link allows.
    #[must_use]
    pub fn method(self) -> &'static str {
        match self {
            SignedOperation::Get => "GET",
            SignedOperation::Put => "PUT",
        }
    }
}

/// A link to a blob that the bucket serves itself.
#[derive(Debug, Clone)]
pub struct SignedUrl {
    /// URL with the signature.
    pub url: String,
    /// Headers that the request must have, with these values.
    pub headers: Vec<(String, String)>,
}

/// Properties of the blob that a signed link is bound to.
#[derive(Debug, Clone, Copy)]
pub struct SignedUrlTerms<'a> {
    /// MD5 of the bytes, in hexadecimal. An upload must match it.
    pub md5: &'a str,
    /// Media type. An upload must name it, and a download is served with it.
    pub media_type: &'a str,
    /// `Content-Disposition` of a download (RFC 6266).
    pub disposition: &'a str,
    /// Time for which the link can be used.
    pub ttl: Duration,
}

/// A store of byte strings by key.
///
/// A key has 1 to 200 bytes out of `a-z`, `A-Z`, `0-9`, `_`, `-` and `.`, and does not start with a
/// dot.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Stores `bytes` under `key`, replacing any earlier blob. When it returns, the bytes are
    /// durable.
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), Error>;
    /// Returns the blob stored under `key`. A damaged blob is an error and never returned as bytes.
    async fn get(&self, key: &str) -> Result<Option<Bytes>, Error> {
        self.get_at_most(key, u64::MAX).await
    }
    /// Returns a blob as [`Blobs::get`] does. A blob of more than `max_bytes` counts as damaged, and
    /// its bytes are not read.
    async fn get_at_most(&self, key: &str, max_bytes: u64) -> Result<Option<Bytes>, Error>;
    /// Returns the size of the blob stored under `key`, in bytes, without reading it.
    async fn size(&self, key: &str) -> Result<Option<u64>, Error>;
    /// Removes the blob stored under `key`. A missing blob is not an error.
    async fn remove(&self, key: &str) -> Result<(), Error>;
    /// Returns a link that lets a client send one kind of request directly to the bucket, or `None`
    /// where links are not available.
    async fn signed(
        &self,
        _key: &str,
        _operation: SignedOperation,
        _terms: SignedUrlTerms<'_>,
    ) -> Result<Option<SignedUrl>, Error> {
        Ok(None)
    }
    /// Returns all keys, in order.
    async fn keys(&self) -> Result<Vec<String>, Error>;
    /// Reads every blob. Returns the number of blobs and the keys of the damaged ones.
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
    let mut bytes = key.bytes();
    let is_valid = !key.is_empty()
        && key.len() <= 200
        && !key.starts_with('.')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    if is_valid {
        Ok(())
    } else {
        Err(Error::Key(key.to_owned()))
    }
}
