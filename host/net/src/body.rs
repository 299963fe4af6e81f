//! Reads a response body within its size limit.
//!
//! Problem: a small compressed response can expand without end.
//!
//! Guarantee: the limit applies to the decompressed size, because decompression happens here, piece
//! by piece. A response that expands more than a hundredfold is refused even if it is within the
//! limit.
//!
//! Problem: many large responses that arrive concurrently would occupy every thread.
//!
//! Guarantee: large responses take turns for each part that is read, so that at most one of them
//! competes for a thread with other work.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use reqwest::{
    Response, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap},
};
use tokio::sync::Semaphore;

use crate::Limits;

/// Maximum expansion ratio of a compressed body; a higher one counts as an attack.
const MAX_EXPANSION_RATIO: u64 = 100;
/// Size from which the ratio applies, in bytes. Below it a short run of equal bytes expands more.
const RATIO_CHECK_FROM_BYTES: u64 = 1 << 20;
/// Maximum size reserved in advance because of `content-length`, in bytes. A body that exceeds it
/// is large.
const MAX_PREALLOCATED_BYTES: usize = 1 << 20;
/// Number of bytes that a large body receives in one turn.
const TURN_BYTES: usize = 256 << 10;

/// Maximum number of large bodies whose next part waits for a thread.
pub const MAX_LARGE_READS: usize = 1;

/// Memory budget for response bodies.
pub trait MemoryBudget: std::fmt::Debug + Send + Sync {
    /// Reserves more bytes. Returns false if the budget is used up.
    fn grow(&self, bytes: u64) -> bool;
}

/// Reader of response bodies while they arrive.
pub trait BodyReader: std::fmt::Debug + Send + Sync {
    /// Examines everything of a body that has arrived so far, decompressed. Returns true if the rest is
    /// not needed. The body then ends here, and the connection is closed.
    fn is_enough(&self, body: &[u8]) -> bool;
}

/// Observers of one body, and the turns that it shares with others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watch<'r> {
    /// Semaphore with [`MAX_LARGE_READS`] permits.
    pub(crate) large_reads: &'r Semaphore,
    pub(crate) memory: Option<&'r dyn MemoryBudget>,
    pub(crate) reader: Option<&'r dyn BodyReader>,
}

impl Watch<'_> {
    fn is_enough(&self, body: &[u8]) -> bool {
        self.reader.is_some_and(|reader| reader.is_enough(body))
    }
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

/// Reads the whole body, or the part of it that the limits allow or that the reader needs. Each byte is
/// reserved from the memory budget as it arrives.
pub(crate) async fn read(
    mut response: Response,
    headers: &mut HeaderMap,
    limits: Limits,
    watch: Watch<'_>,
) -> Result<Bytes, ReadError> {
    let limit = limits.response_bytes;
    if response.status() != StatusCode::PARTIAL_CONTENT && is_gzip(headers) {
        headers.remove(CONTENT_ENCODING);
        headers.remove(CONTENT_LENGTH);
        return decompress(response, limits, watch).await;
    }
    let content_length = response.content_length().unwrap_or(0);
    if content_length > limit && !limits.cuts_response {
        return Err(ReadError::TooLarge);
    }
    let mut body = Collected::new(content_length.min(limit), limit, watch.memory);
    body.reserve(body.content_length.min(MAX_PREALLOCATED_BYTES))?;
    let mut turns = Turns::new(watch.large_reads);
    while let Some(piece) = response.chunk().await.map_err(ReadError::Broken)? {
        match body.extend(&piece) {
            Err(ReadError::TooLarge) if limits.cuts_response => {
                body.fill(&piece)?;
                break;
            }
            done => done?,
        }
        if watch.is_enough(&body.bytes) {
            break;
        }
        turns.wait(body.bytes.len()).await;
    }
    Ok(body.bytes.into())
}

/// The turns of one body.
struct Turns<'r> {
    large_reads: &'r Semaphore,
    /// The size of the body at the end of its last turn.
    last: usize,
}

impl<'r> Turns<'r> {
    fn new(large_reads: &'r Semaphore) -> Self {
        Self {
            large_reads,
            last: 0,
        }
    }

    /// Waits for the next turn of a body that has `size` bytes, if it is large and has received
    /// enough since the last one. Other tasks of the thread go first, and other large bodies wait.
    async fn wait(&mut self, size: usize) {
        if size > MAX_PREALLOCATED_BYTES && size - self.last >= TURN_BYTES {
            self.last = size;
            // The semaphore is never closed.
            let _turn = self.large_reads.acquire().await;
            tokio::task::yield_now().await;
        }
    }
}

/// A body being received.
struct Collected<'r> {
    bytes: Vec<u8>,
    /// The announced size of the body, or zero if it is not known.
    content_length: usize,
    limit: u64,
    memory: Option<&'r dyn MemoryBudget>,
    /// The number of bytes that are reserved from `memory`.
    reserved: usize,
}

impl<'r> Collected<'r> {
    fn new(content_length: u64, limit: u64, memory: Option<&'r dyn MemoryBudget>) -> Self {
        Self {
            bytes: Vec::new(),
            content_length: usize::try_from(content_length).unwrap_or(usize::MAX),
            limit,
            memory,
            reserved: 0,
        }
    }

    fn extend(&mut self, piece: &[u8]) -> Result<(), ReadError> {
        self.reserve(piece.len())?;
        self.bytes.extend_from_slice(piece);
        Ok(())
    }

    /// Adds the beginning of a piece, up to the limit.
    fn fill(&mut self, piece: &[u8]) -> Result<(), ReadError> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        self.extend(&piece[..limit.saturating_sub(self.bytes.len()).min(piece.len())])
    }

    /// Reserves memory for `more` bytes. A body of unknown size doubles its capacity, so that it is
    /// rarely moved. Another one gets its whole capacity when it becomes large, and a body that
    /// does not fit into the budget is refused before it is read.
    fn reserve(&mut self, more: usize) -> Result<(), ReadError> {
        let size = self.bytes.len() + more;
        if size as u64 > self.limit {
            return Err(ReadError::TooLarge);
        }
        if size <= self.reserved {
            return Ok(());
        }
        let reserved = if size > self.content_length {
            let most = usize::try_from(self.limit).unwrap_or(usize::MAX);
            (2 * self.reserved).min(most).max(size)
        } else if size > MAX_PREALLOCATED_BYTES {
            self.content_length
        } else {
            self.content_length.min(MAX_PREALLOCATED_BYTES)
        };
        let added = (reserved - self.reserved) as u64;
        if self.memory.is_some_and(|memory| !memory.grow(added)) {
            return Err(ReadError::NoMemory);
        }
        self.reserved = reserved;
        let additional = reserved - self.bytes.len();
        let allocated = self.bytes.try_reserve_exact(additional);
        allocated.map_err(|_| ReadError::NoMemory)
    }
}

fn is_gzip(headers: &HeaderMap) -> bool {
    let encoding = headers.get(CONTENT_ENCODING).map(|value| value.as_bytes());
    encoding.is_some_and(|value| {
        value.eq_ignore_ascii_case(b"gzip") || value.eq_ignore_ascii_case(b"x-gzip")
    })
}

async fn decompress(
    mut response: Response,
    limits: Limits,
    watch: Watch<'_>,
) -> Result<Bytes, ReadError> {
    let mut decoder = MultiGzDecoder::new(Bounded {
        body: Collected::new(0, limits.response_bytes, watch.memory),
        arrived: 0,
        failure: None,
    });
    let (mut empty, mut turns) = (true, Turns::new(watch.large_reads));
    while let Some(piece) = response.chunk().await.map_err(ReadError::Broken)? {
        empty &= piece.is_empty();
        decoder.get_mut().arrived += piece.len() as u64;
        let mut written = decoder.write_all(&piece);
        if watch.reader.is_some() {
            // The decoder holds decompressed bytes back until it is flushed.
            written = written.and_then(|()| decoder.flush());
        }
        if let Err(cause) = written {
            return decoder.get_mut().stop(cause, limits);
        }
        if watch.is_enough(&decoder.get_ref().body.bytes) {
            return Ok(std::mem::take(&mut decoder.get_mut().body.bytes).into());
        }
        turns.wait(decoder.get_ref().body.bytes.len()).await;
    }
    // A response to HEAD and a 304 name an encoding but have no body.
    if empty {
        return Ok(Bytes::new());
    }
    match decoder.try_finish() {
        Ok(()) => Ok(std::mem::take(&mut decoder.get_mut().body.bytes).into()),
        Err(cause) => decoder.get_mut().stop(cause, limits),
    }
}

/// Receives the output of the decoder, up to the limits.
struct Bounded<'r> {
    body: Collected<'r>,
    arrived: u64,
    failure: Option<ReadError>,
}

impl Bounded<'_> {
    /// Returns the result after the decoder failed: what has arrived if it is enough, or the reason.
    fn stop(&mut self, cause: io::Error, limits: Limits) -> Result<Bytes, ReadError> {
        match self.failure.take() {
            Some(ReadError::TooLarge | ReadError::ExpandsTooMuch) if limits.cuts_response => {
                Ok(std::mem::take(&mut self.body.bytes).into())
            }
            failure => Err(failure.unwrap_or(ReadError::Encoding(cause))),
        }
    }
}

impl Write for Bounded<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let size = self.body.bytes.len() as u64 + piece.len() as u64;
        if size <= self.body.limit
            && size > RATIO_CHECK_FROM_BYTES
            && size > self.arrived.saturating_mul(MAX_EXPANSION_RATIO)
        {
            self.failure = Some(ReadError::ExpandsTooMuch);
        } else {
            self.failure = self.body.extend(piece).err();
        }
        if self.failure.is_some() {
            return Err(io::Error::other("over the limit"));
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU64, Ordering::Relaxed},
        task::{Context, Waker},
    };

    use super::*;

    #[derive(Debug, Default)]
    struct Counted(AtomicU64);

    impl MemoryBudget for Counted {
        fn grow(&self, bytes: u64) -> bool {
            self.0.fetch_add(bytes, Relaxed);
            true
        }
    }

    #[tokio::test]
    async fn large_bodies_are_read_in_turns() {
        let large_reads = Semaphore::new(MAX_LARGE_READS);
        let turn = large_reads.acquire().await.unwrap();
        let mut turns = Turns::new(&large_reads);
        turns.wait(MAX_PREALLOCATED_BYTES).await;
        let mut waits = Box::pin(turns.wait(2 * MAX_PREALLOCATED_BYTES));
        let mut context = Context::from_waker(Waker::noop());
        assert!(waits.as_mut().poll(&mut context).is_pending());
        drop(turn);
        waits.await;
        turns
            .wait(2 * MAX_PREALLOCATED_BYTES + TURN_BYTES - 1)
            .await;
    }

    #[test]
    fn announced_body_is_moved_once() {
        let memory = Counted::default();
        let mut body = Collected::new(10 * MAX_PREALLOCATED_BYTES as u64, u64::MAX, Some(&memory));
        let held = |body: &mut Collected<'_>, bytes: usize| {
            body.extend(&vec![1; bytes]).unwrap();
            (memory.0.load(Relaxed), body.bytes.capacity())
        };
        let small = MAX_PREALLOCATED_BYTES;
        assert_eq!(held(&mut body, 3), (small as u64, small));
        for bytes in [small, 8 * small] {
            assert_eq!(held(&mut body, bytes), (10 * small as u64, 10 * small));
        }
    }
}
