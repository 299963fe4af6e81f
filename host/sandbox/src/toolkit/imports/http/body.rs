//! Conversion of a response body for the guest: text is decoded to UTF-8, and secrets are removed.
//!
//! Guarantee: secrets are searched for in the received bytes and in the decoded text. Bytes decoded from
//! another charset than their own have other characters, from which a secret could be computed. A body
//! that stays in UTF-16 or UTF-32 and contains a secret is withheld.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use net::text;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{
    redact::{self, Redactor},
    schedule::limiter::BodyMemory,
};

pub(super) const NO_MEMORY: &str = "this server has no memory left to decode the response or to remove secrets from it; try again later";
/// Errors for the guest when a response is withheld.
const RESPONSE_WITHHELD: &str =
    "the response is withheld: searching it for secrets takes too many steps";
const WIDE_SECRET_WITHHELD: &str =
    "the response is withheld: it contains a secret whose characters have NUL bytes between them";

/// Body of a response to be converted.
pub(super) struct ReceivedBody {
    pub(super) bytes: Bytes,
    /// Media type of a body to decode if it is text; `None` for a body that is not decoded.
    pub(super) media_type: Option<String>,
    /// Memory of the body.
    pub(super) memory: Arc<BodyMemory>,
    pub(super) redactor: Arc<Redactor>,
    /// Permits of the tenant for turns of a long conversion; `None` for a short one.
    pub(super) cpu_permits: Option<Arc<Semaphore>>,
}

impl ReceivedBody {
    /// Returns the body without secrets, in UTF-8 if it is text, and its media type if decoding has changed
    /// it.
    ///
    /// # Errors
    /// Returns the reason if the body is withheld or memory is missing.
    pub(super) async fn convert(self) -> Result<(Bytes, Option<String>), &'static str> {
        let received = self.redacted(self.bytes.clone()).await?;
        let (decoded, media_type) = self.decode(&received).await?;
        // Text in UTF-8 is decoded to the same bytes in the same memory.
        let is_unchanged = decoded.as_ptr_range() == received.as_ptr_range();
        let clean = if is_unchanged {
            decoded
        } else {
            self.redacted(decoded).await?
        };
        self.check_wide_text(&clean).await?;
        Ok((clean, media_type))
    }

    /// Removes secrets, in memory reserved for the result.
    async fn redacted(&self, bytes: Bytes) -> Result<Bytes, &'static str> {
        let ranges = self.find(&bytes).await?;
        if ranges.is_empty() {
            return Ok(bytes);
        }
        self.reserve(bytes.len() + ranges.len() * redact::REDACTED_NUMBER.len())?;
        let _turn = self.turn().await;
        Ok(redact::replace_ranges(&bytes, &ranges).into_owned().into())
    }

    /// Decodes text, in memory reserved for the result.
    async fn decode(&self, bytes: &Bytes) -> Result<(Bytes, Option<String>), &'static str> {
        let Some(media_type) = &self.media_type else {
            return Ok((bytes.clone(), None));
        };
        let _turn = self.turn().await;
        let (decoded, media_type) = text::decode_body(media_type, bytes.clone());
        self.reserve(decoded.len().saturating_sub(bytes.len()))?;
        Ok((decoded, media_type))
    }

    /// Searches text in UTF-16 or UTF-32 for secrets. Files are not decoded, nor is text that declares another
    /// charset.
    async fn check_wide_text(&self, bytes: &[u8]) -> Result<(), &'static str> {
        if !self.redactor.has_secrets() || !bytes.contains(&0) {
            return Ok(());
        }
        let turn = self.turn().await;
        let nuls = bytes.iter().filter(|byte| **byte == 0).count();
        let capacity = (2 * nuls).min(bytes.len() - nuls);
        let memory = self.memory.0.empty();
        memory.try_grow(capacity as u64).map_err(|_| NO_MEMORY)?;
        let mut narrow = Vec::with_capacity(capacity);
        narrow.extend(bytes_beside_nuls(bytes));
        drop(turn);
        match self.find(&narrow).await?.is_empty() {
            true => Ok(()),
            false => Err(WIDE_SECRET_WITHHELD),
        }
    }

    async fn find(&self, bytes: &[u8]) -> Result<Vec<Range<usize>>, &'static str> {
        let found = match &self.cpu_permits {
            Some(cpu_permits) => self.redactor.find_in_turns(bytes, cpu_permits).await,
            None => self.redactor.find(bytes),
        };
        found.map_err(|_| RESPONSE_WITHHELD)
    }

    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.cpu_permits.as_ref()?.acquire().await.ok()
    }

    fn reserve(&self, bytes: usize) -> Result<(), &'static str> {
        let grown = self.memory.0.try_grow(bytes as u64);
        grown.map_err(|_| NO_MEMORY)
    }
}

/// Iterates over the bytes before and after NUL bytes, which include all ASCII of UTF-16 and UTF-32, and few
/// bytes of compressed data.
fn bytes_beside_nuls(bytes: &[u8]) -> impl Iterator<Item = u8> {
    bytes.iter().enumerate().filter_map(|(at, byte)| {
        let follows_nul = at > 0 && bytes[at - 1] == 0;
        let is_beside_nul = follows_nul || bytes.get(at + 1) == Some(&0);
        (*byte != 0 && is_beside_nul).then_some(*byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Secret, schedule::limiter::NodeMemory};

    const SECRET_TEXT: &str = "cänary-4711";

    async fn convert(media_type: &str, bytes: &[u8]) -> Result<Bytes, &'static str> {
        let memory = NodeMemory::new(u64::MAX).reserve(&"a".into());
        let body = ReceivedBody {
            bytes: Bytes::copy_from_slice(bytes),
            media_type: Some(media_type.to_owned()),
            memory: Arc::new(BodyMemory(memory)),
            redactor: Arc::new(Redactor::new([&Secret::from(SECRET_TEXT)])),
            cpu_permits: None,
        };
        body.convert().await.map(|(bytes, _)| bytes)
    }

    #[tokio::test]
    async fn secret_in_a_wrongly_declared_charset_is_removed() {
        let body = format!("a={SECRET_TEXT};");
        let clean = "a=[redacted];";
        let charsets = [
            "utf-16le",
            "utf-16be",
            "windows-1251",
            "koi8-r",
            "shift_jis",
        ];
        for charset in charsets {
            let media_type = format!("text/plain; charset={charset}");
            let expected = text::decode(&media_type, clean.as_bytes());
            let converted = convert(&media_type, body.as_bytes()).await.unwrap();
            assert_eq!(converted, expected.as_bytes(), "{charset}");
        }
    }

    #[tokio::test]
    async fn body_with_a_secret_between_nuls_is_withheld() {
        let little: Vec<u8> = SECRET_TEXT
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let big: Vec<u8> = SECRET_TEXT
            .encode_utf16()
            .flat_map(u16::to_be_bytes)
            .collect();
        let wide: Vec<u8> = SECRET_TEXT
            .chars()
            .flat_map(|c| u32::from(c).to_le_bytes())
            .collect();
        for body in [little, big, wide] {
            let converted = convert("application/octet-stream", &body).await;
            let body = body.escape_ascii();
            assert_eq!(converted, Err(WIDE_SECRET_WITHHELD), "{body}");
        }
        let binary = &b"\x00\x01canary\x00-\x00\xff"[..];
        let converted = convert("application/octet-stream", binary).await;
        assert_eq!(converted.unwrap(), binary);
    }
}
