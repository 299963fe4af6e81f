//! Reads a response body within its size limit.
//!
//! Problem: a small compressed response can expand without end.
//!
//! Guarantee: the limit applies to the decompressed size, because decompression happens here, piece
//! by piece. A response that expands more than a hundredfold is refused even if it is within the
//! limit.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use reqwest::{
    Response, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap},
};

/// Maximum expansion ratio of a compressed body; a higher one counts as an attack.
const MAX_EXPANSION_RATIO: u64 = 100;
/// Size from which the ratio applies, in bytes. Below it a short run of equal bytes expands more.
const RATIO_CHECK_FROM_BYTES: u64 = 1 << 20;
/// Maximum size reserved in advance because of `content-length`, in bytes.
const MAX_PREALLOCATED_BYTES: u64 = 1 << 20;

/// Memory budget for response bodies.
pub trait MemoryBudget: std::fmt::Debug + Send + Sync {
    /// Reserves more bytes. Returns false if none are left.
    fn grow(&self, bytes: u64) -> bool;
}

/// Reason that a body could not be read.
#[derive(Debug)]
pub(crate) enum ReadError {
    TooLarge,
    NoMemory,
    ExpandsTooMuch,
    Encoding(io::Error),
    Broken(reqwest::Error),
}

/// Reads the whole body, at most `limit` bytes after decompression. Each byte is reserved from
/// `memory` as it arrives.
pub(crate) async fn read(
    mut response: Response,
    headers: &mut HeaderMap,
    limit: u64,
    memory: Option<&dyn MemoryBudget>,
) -> Result<Bytes, ReadError> {
    if response.status() != StatusCode::PARTIAL_CONTENT && is_gzip(headers) {
        headers.remove(CONTENT_ENCODING);
        headers.remove(CONTENT_LENGTH);
        return decompress(response, limit, memory).await;
    }
    let content_length = response.content_length().unwrap_or(0);
    if content_length > limit {
        return Err(ReadError::TooLarge);
    }
    let mut body = Vec::new();
    reserve(
        &mut body,
        content_length.min(MAX_PREALLOCATED_BYTES) as usize,
        limit,
        memory,
    )?;
    while let Some(piece) = response.chunk().await.map_err(ReadError::Broken)? {
        reserve(&mut body, piece.len(), limit, memory)?;
        body.extend_from_slice(&piece);
    }
    Ok(body.into())
}

/// Reserves memory for `more` bytes and doubles the capacity, so that a body is seldom moved.
fn reserve(
    body: &mut Vec<u8>,
    more: usize,
    limit: u64,
    memory: Option<&dyn MemoryBudget>,
) -> Result<(), ReadError> {
    let size = body.len() + more;
    if size as u64 > limit {
        return Err(ReadError::TooLarge);
    }
    if size > body.capacity() {
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let capacity = (2 * body.capacity()).min(most).max(size);
        if memory.is_some_and(|memory| !memory.grow((capacity - body.capacity()) as u64)) {
            return Err(ReadError::NoMemory);
        }
        body.reserve_exact(capacity - body.len());
    }
    Ok(())
}

fn is_gzip(headers: &HeaderMap) -> bool {
    let encoding = headers.get(CONTENT_ENCODING).map(|value| value.as_bytes());
    encoding.is_some_and(|value| {
        value.eq_ignore_ascii_case(b"gzip") || value.eq_ignore_ascii_case(b"x-gzip")
    })
}

async fn decompress(
    mut response: Response,
    limit: u64,
    memory: Option<&dyn MemoryBudget>,
) -> Result<Bytes, ReadError> {
    let mut decoder = MultiGzDecoder::new(Bounded {
        bytes: Vec::new(),
        limit,
        memory,
        arrived: 0,
        failure: None,
    });
    let mut empty = true;
    while let Some(piece) = response.chunk().await.map_err(ReadError::Broken)? {
        empty &= piece.is_empty();
        decoder.get_mut().arrived += piece.len() as u64;
        if let Err(cause) = decoder.write_all(&piece) {
            return Err(decoder
                .get_mut()
                .failure
                .take()
                .unwrap_or(ReadError::Encoding(cause)));
        }
    }
    // A response to HEAD and a 304 name an encoding but have no body.
    if empty {
        return Ok(Bytes::new());
    }
    match decoder.try_finish() {
        Ok(()) => Ok(std::mem::take(&mut decoder.get_mut().bytes).into()),
        Err(cause) => Err(decoder
            .get_mut()
            .failure
            .take()
            .unwrap_or(ReadError::Encoding(cause))),
    }
}

/// Receives the output of the decoder, up to the limits.
struct Bounded<'r> {
    bytes: Vec<u8>,
    limit: u64,
    memory: Option<&'r dyn MemoryBudget>,
    arrived: u64,
    failure: Option<ReadError>,
}

impl Write for Bounded<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let size = self.bytes.len() as u64 + piece.len() as u64;
        if size <= self.limit
            && size > RATIO_CHECK_FROM_BYTES
            && size > self.arrived.saturating_mul(MAX_EXPANSION_RATIO)
        {
            self.failure = Some(ReadError::ExpandsTooMuch);
        } else {
            self.failure = reserve(&mut self.bytes, piece.len(), self.limit, self.memory).err();
        }
        if self.failure.is_some() {
            return Err(io::Error::other("over the limit"));
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
