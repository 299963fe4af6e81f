//! Standard output and standard error of one run, readable after the program was ended.

use bytes::Bytes;
use parking_lot::Mutex;

use crate::Reservation;

/// Both streams.
pub(super) struct Output {
    /// Maximum size of each stream, in bytes.
    limit: u64,
    streams: Mutex<[Vec<u8>; 2]>,
    memory: Reservation,
}

/// One of the streams.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stream {
    Output,
    Error,
}

impl Output {
    pub(super) fn new(limit: u64, memory: Reservation) -> Self {
        Self {
            limit,
            streams: Mutex::default(),
            memory,
        }
    }

    /// Appends bytes and returns the number of accepted ones: fewer at the limit of the stream, and
    /// 0 past it or if the node is out of memory.
    pub(super) fn write(&self, stream: Stream, bytes: &[u8]) -> usize {
        let mut streams = self.streams.lock();
        let written = &mut streams[stream as usize];
        let room = self.limit.saturating_sub(written.len() as u64);
        let accepted = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        if accepted == 0 || self.memory.try_grow(accepted as u64).is_err() {
            return 0;
        }
        written.extend_from_slice(&bytes[..accepted]);
        accepted
    }

    /// Takes standard output, standard error and the reservation for both.
    pub(super) fn take(&self) -> (Bytes, Bytes, Reservation) {
        let [output, error] = std::mem::take(&mut *self.streams.lock());
        (output.into(), error.into(), self.memory.split_off())
    }
}
