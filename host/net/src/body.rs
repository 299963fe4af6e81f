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
const RATIO: u64 = 100;
/// Size from which the ratio applies, in bytes. Below it a short run of equal bytes expands more.
const RATIO_FROM: u64 = 1 << 20;
/// Maximum size reserved in advance because of `content-length`, in bytes.
const ROOM: u64 = 1 << 20;

/// Memory budget for response bodies.
pub trait Room: std::fmt::Debug + Send + Sync {
    /// Reserves more bytes. Returns false if none are left.
    fn grow(&self, bytes: u64) -> bool;
}

/// Reason that a body could not be read.
#[derive(Debug)]
pub(crate) enum Failure {
    TooLarge,
    NoRoom,
    Bomb,
    Encoding(io::Error),
    Broken(reqwest::Error),
}

/// Reads the whole body, at most `limit` bytes after decompression. Each byte is reserved from
/// `room` as it arrives.
pub(crate) async fn read(
    mut answer: Response,
    headers: &mut HeaderMap,
    limit: u64,
    room: Option<&dyn Room>,
) -> Result<Bytes, Failure> {
    if answer.status() != StatusCode::PARTIAL_CONTENT && gzipped(headers) {
        headers.remove(CONTENT_ENCODING);
        headers.remove(CONTENT_LENGTH);
        return unpack(answer, limit, room).await;
    }
    let announced = answer.content_length().unwrap_or(0);
    if announced > limit {
        return Err(Failure::TooLarge);
    }
    let mut body = Vec::new();
    make_room(&mut body, announced.min(ROOM) as usize, limit, room)?;
    while let Some(piece) = answer.chunk().await.map_err(Failure::Broken)? {
        make_room(&mut body, piece.len(), limit, room)?;
        body.extend_from_slice(&piece);
    }
    Ok(body.into())
}

/// Makes room for `more` bytes and doubles the capacity, so that a body is seldom moved.
fn make_room(
    body: &mut Vec<u8>,
    more: usize,
    limit: u64,
    room: Option<&dyn Room>,
) -> Result<(), Failure> {
    let size = body.len() + more;
    if size as u64 > limit {
        return Err(Failure::TooLarge);
    }
    if size > body.capacity() {
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let capacity = (2 * body.capacity()).min(most).max(size);
        if room.is_some_and(|room| !room.grow((capacity - body.capacity()) as u64)) {
            return Err(Failure::NoRoom);
        }
        body.reserve_exact(capacity - body.len());
    }
    Ok(())
}

fn gzipped(headers: &HeaderMap) -> bool {
    let encoding = headers.get(CONTENT_ENCODING).map(|value| value.as_bytes());
    encoding.is_some_and(|value| {
        value.eq_ignore_ascii_case(b"gzip") || value.eq_ignore_ascii_case(b"x-gzip")
    })
}

async fn unpack(
    mut answer: Response,
    limit: u64,
    room: Option<&dyn Room>,
) -> Result<Bytes, Failure> {
    let mut decoder = MultiGzDecoder::new(Bounded {
        bytes: Vec::new(),
        limit,
        room,
        arrived: 0,
        failure: None,
    });
    let mut empty = true;
    while let Some(piece) = answer.chunk().await.map_err(Failure::Broken)? {
        empty &= piece.is_empty();
        decoder.get_mut().arrived += piece.len() as u64;
        if let Err(cause) = decoder.write_all(&piece) {
            return Err(decoder
                .get_mut()
                .failure
                .take()
                .unwrap_or(Failure::Encoding(cause)));
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
            .unwrap_or(Failure::Encoding(cause))),
    }
}

/// Receives the output of the decoder, up to the limits.
struct Bounded<'r> {
    bytes: Vec<u8>,
    limit: u64,
    room: Option<&'r dyn Room>,
    arrived: u64,
    failure: Option<Failure>,
}

impl Write for Bounded<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let size = self.bytes.len() as u64 + piece.len() as u64;
        if size <= self.limit && size > RATIO_FROM && size > self.arrived.saturating_mul(RATIO) {
            self.failure = Some(Failure::Bomb);
        } else {
            self.failure = make_room(&mut self.bytes, piece.len(), self.limit, self.room).err();
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
