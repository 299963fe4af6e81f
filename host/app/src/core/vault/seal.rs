//! Sealed values, and the keys that seal them.

use std::{marker::PhantomData, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD as BASE64};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned};
use store::{Document, Record};

use super::{
    compression::{Compressor, decompress},
    wiped::Wiped,
};
use crate::{
    Result,
    core::{errors, ids, json::RawJson},
};

const NONCE_BYTES: usize = 24;
/// Initial size of the buffer for the JSON of a value, in bytes.
const JSON_CAPACITY: usize = 128;
/// The same for a value that may be large, such as the details on a page of the execution log.
const LARGE_JSON_CAPACITY: usize = 64 << 10;

/// The location of a sealed value. The value opens at no other location.
#[derive(Debug, Clone, Copy)]
pub struct SealContext<'a> {
    /// The name of the collection.
    pub collection: &'static str,
    /// The id of the owning project.
    pub project: &'a str,
    /// The id of the record.
    pub id: &'a str,
    /// The field of the record's body.
    pub field: &'static str,
}

impl<'a> SealContext<'a> {
    /// Names a field of a document.
    pub(crate) fn new<T: Document>(project: &'a str, id: &'a str, field: &'static str) -> Self {
        Self {
            collection: T::COLLECTION.name,
            project,
            id,
            field,
        }
    }

    /// Names a field of a stored record.
    pub(crate) fn of<T: Document>(record: &'a Record<T>, field: &'static str) -> Self {
        Self::new::<T>(&record.project, &record.id, field)
    }
}

/// A value of `T` that only the vault can read. It serializes to ciphertext.
#[derive(Serialize, Deserialize)]
#[serde(transparent, bound = "")]
pub struct Sealed<T> {
    /// The ciphertext: `v1.<key id>.<base64 of nonce and ciphertext>`, or of a compressed value
    /// `v2.<key id>.<size before compression>.<base64 of nonce and ciphertext>`.
    text: String,
    value: PhantomData<fn() -> T>,
}

impl<T> std::fmt::Debug for Sealed<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealed")
    }
}

impl<T> Clone for Sealed<T> {
    fn clone(&self) -> Self {
        Self::new(self.text.clone())
    }
}

impl<T> Sealed<T> {
    fn new(text: String) -> Self {
        let value = PhantomData;
        Self { text, value }
    }

    /// Returns the id of the key that sealed the value.
    pub(super) fn key_id(&self) -> Option<&str> {
        Some(Parts::parse(&self.text)?.key_id)
    }

    /// Returns true if both are the same ciphertext. Sealing a value again returns another one.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.text == other.text
    }

    /// Returns the size of the sealed text in bytes, or of a compressed value the size before
    /// compression, so that quotas do not depend on how well a value compresses.
    pub(crate) fn size(&self) -> usize {
        let parts = Parts::parse(&self.text);
        let uncompressed = parts.and_then(|parts| parts.size?.parse().ok());
        uncompressed.unwrap_or(self.text.len())
    }

    /// Writes the same text as [`Serialize`], without looking for characters to escape. Only for
    /// values that this process has just sealed, because their text contains no such characters.
    pub(crate) fn serialize_unescaped<S: Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        RawJson(format!("\"{}\"", self.text).into()).serialize(serializer)
    }

    /// Returns the same ciphertext as a sealed value of another type that reads the same JSON.
    pub(crate) fn cast<U>(self) -> Sealed<U> {
        Sealed::new(self.text)
    }
}

/// The parts of a sealed text.
struct Parts<'a> {
    key_id: &'a str,
    /// Size in bytes before compression, or `None` if the value is not compressed.
    size: Option<&'a str>,
    /// Base64 of nonce and ciphertext.
    bytes: &'a str,
}

impl<'a> Parts<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (version, rest) = text.split_once('.')?;
        let (key_id, rest) = rest.split_once('.')?;
        let (size, bytes) = match version {
            "v1" => (None, rest),
            "v2" => rest
                .split_once('.')
                .map(|(size, bytes)| (Some(size), bytes))?,
            _ => return None,
        };
        Some(Self {
            key_id,
            size,
            bytes,
        })
    }
}

/// A key that seals values.
pub struct DataKey {
    pub(super) id: String,
    cipher: XChaCha20Poly1305,
    compressor: Arc<Compressor>,
}

impl DataKey {
    pub(super) fn new(id: String, key: &[u8; 32], compressor: Arc<Compressor>) -> Self {
        Self {
            id,
            cipher: XChaCha20Poly1305::new(key.into()),
            compressor,
        }
    }

    /// Seals a value for one location. Fails if the value cannot be written as JSON.
    pub fn seal<T: Serialize>(&self, context: SealContext<'_>, value: &T) -> Result<Sealed<T>> {
        let plain = to_json(context, value, JSON_CAPACITY)?;
        Ok(Sealed::new(self.seal_bytes(context, &plain, None)))
    }

    /// Seals a value as [`DataKey::seal`] does, compressed if it is large. Not for credentials: the
    /// size of a compressed value depends on its content. Fails if the value cannot be written as
    /// JSON.
    pub(crate) fn seal_compressed<T: Serialize>(
        &self,
        context: SealContext<'_>,
        value: &T,
    ) -> Result<Sealed<T>> {
        let plain = to_json(context, value, LARGE_JSON_CAPACITY)?;
        Ok(Sealed::new(match self.compressor.compress(&plain) {
            Some(compressed) => self.seal_bytes(context, &compressed, Some(plain.len())),
            None => self.seal_bytes(context, &plain, None),
        }))
    }

    /// Opens a value that was sealed for this location. Fails if the value was sealed for another
    /// location or with another key, or was changed.
    pub fn open<T: DeserializeOwned>(
        &self,
        context: SealContext<'_>,
        sealed: &Sealed<T>,
    ) -> Result<T> {
        let unreadable = |problem| {
            let field = format!("{} of {}", context.field, context.collection);
            errors::internal(format!("{field} {} cannot be {problem}", context.id))
        };
        let plain = self.open_bytes(context, &sealed.text);
        let plain = plain.ok_or_else(|| unreadable("decrypted"))?;
        serde_json::from_slice(&plain).map_err(|_| unreadable("parsed"))
    }

    /// Seals bytes, with their size before compression if they are compressed.
    fn seal_bytes(
        &self,
        context: SealContext<'_>,
        bytes: &[u8],
        uncompressed_size: Option<usize>,
    ) -> String {
        let size = uncompressed_size.map(|size| size.to_string());
        let nonce: [u8; NONCE_BYTES] = ids::random();
        let aad = associated_data(context, &self.id, size.as_deref());
        let payload = Payload {
            msg: bytes,
            aad: &aad,
        };
        let cipher = self.cipher.encrypt(&XNonce::from(nonce), payload);
        let cipher = cipher.expect("a value of this size can always be sealed");
        let sealed = BASE64.encode([&nonce[..], &cipher].concat());
        match size {
            None => format!("v1.{}.{sealed}", self.id),
            Some(size) => format!("v2.{}.{size}.{sealed}", self.id),
        }
    }

    fn open_bytes(&self, context: SealContext<'_>, text: &str) -> Option<Wiped> {
        let parts = Parts::parse(text).filter(|parts| parts.key_id == self.id)?;
        let bytes = BASE64.decode(parts.bytes).ok()?;
        let (nonce, cipher) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        let aad = associated_data(context, parts.key_id, parts.size);
        let payload = Payload {
            msg: cipher,
            aad: &aad,
        };
        let opened = self.cipher.decrypt(&XNonce::from(*nonce), payload);
        let opened = opened.ok().map(Wiped)?;
        match parts.size {
            None => Some(opened),
            Some(size) => decompress(&opened, size.parse().ok()?),
        }
    }
}

fn to_json<T: Serialize>(context: SealContext<'_>, value: &T, capacity: usize) -> Result<Wiped> {
    let mut json = Wiped(Vec::with_capacity(capacity));
    serde_json::to_writer(&mut json.0, value).map_err(|cause| {
        errors::internal(format!("cannot write {} as JSON: {cause}", context.field))
    })?;
    Ok(json)
}

/// Builds the associated data. Each part is preceded by its length, so that no two locations give
/// the same bytes, nor a compressed value and one that is not.
fn associated_data(context: SealContext<'_>, key: &str, size: Option<&str>) -> Vec<u8> {
    let mut out = Vec::with_capacity(96);
    let parts = [
        context.collection,
        context.project,
        context.id,
        context.field,
        key,
    ];
    for part in parts.into_iter().chain(size) {
        out.extend_from_slice(&(part.len() as u64).to_le_bytes());
        out.extend_from_slice(part.as_bytes());
    }
    out
}

#[cfg(test)]
mod tests;
