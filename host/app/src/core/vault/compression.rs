//! Compression of values before they are sealed, as raw deflate (RFC 1951).

use std::{io::Read, ops::RangeInclusive};

use flate2::{Compress, Compression, FlushCompress, Status, bufread::DeflateDecoder};
use parking_lot::Mutex;

use super::wiped::Wiped;

/// Sizes of values that are compressed, in bytes. Smaller values save less than they cost. Larger
/// ones would keep the thread of a request for milliseconds. Stored values have any of these sizes,
/// so the range must not become narrower.
const COMPRESSED_SIZES: RangeInclusive<usize> = (2 << 10)..=(512 << 10);
/// The fastest level of `zlib-rs` whose codes follow from the content.
const DEFLATE_LEVEL: Compression = Compression::new(2);

/// Compresses values. Keeps a compressor from one value to the next, because making one allocates and
/// clears 400 KiB.
#[derive(Default)]
pub(super) struct Compressor(Mutex<Option<Compress>>);

impl Compressor {
    /// Compresses a value. Returns `None` if its size is not one of [`COMPRESSED_SIZES`], or it would
    /// not become smaller.
    pub(super) fn compress(&self, plain: &[u8]) -> Option<Wiped> {
        if !COMPRESSED_SIZES.contains(&plain.len()) {
            return None;
        }
        let kept = self.0.lock().take();
        let mut deflate = kept.unwrap_or_else(|| Compress::new(DEFLATE_LEVEL, false));
        let mut compressed = Wiped(Vec::with_capacity(plain.len()));
        // Only the capacity is written to.
        let status = deflate.compress_vec(plain, &mut compressed.0, FlushCompress::Finish);
        if !matches!(status, Ok(Status::StreamEnd)) {
            // A reset would not remove the output that did not fit.
            return None;
        }
        deflate.reset();
        *self.0.lock() = Some(deflate);
        Some(compressed)
    }
}

/// Restores a value of `size` bytes. Returns `None` if the compressed value is damaged or has another
/// size. Takes no more memory than the size, which is one of [`COMPRESSED_SIZES`].
pub(super) fn decompress(compressed: &[u8], size: usize) -> Option<Wiped> {
    if !COMPRESSED_SIZES.contains(&size) {
        return None;
    }
    // One more byte than expected shows that the value is larger.
    let most = size + 1;
    let mut plain = Wiped(Vec::with_capacity(most));
    let mut decoder = DeflateDecoder::new(compressed).take(most as u64);
    decoder.read_to_end(&mut plain.0).ok()?;
    (plain.len() == size).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::ids;

    fn json(size: usize) -> Vec<u8> {
        let records = br#"{"id":7,"name":"record","done":true},"#.iter();
        records.cycle().take(size).copied().collect()
    }

    fn compress(plain: &[u8]) -> Option<Wiped> {
        Compressor::default().compress(plain)
    }

    #[test]
    fn compressed_value_is_small_and_restored() {
        for size in [2 << 10, 20 << 10, 512 << 10] {
            let plain = json(size);
            let compressed = compress(&plain).unwrap();
            assert!(compressed.len() < size / 8, "{}", compressed.len());
            assert_eq!(*decompress(&compressed, size).unwrap(), plain);
        }
    }

    #[test]
    fn small_large_and_random_values_stay_uncompressed() {
        assert!(compress(&json((2 << 10) - 1)).is_none());
        assert!(compress(&json((512 << 10) + 1)).is_none());
        assert!(compress(&ids::random::<4096>()).is_none());
    }

    #[test]
    fn compressor_is_used_again_after_any_value() {
        let compressor = Compressor::default();
        for size in [20 << 10, 2 << 10, 512 << 10] {
            let plain = json(size);
            let compressed = compressor.compress(&plain).unwrap();
            assert_eq!(*decompress(&compressed, size).unwrap(), plain);
            assert!(compressor.compress(&ids::random::<4096>()).is_none());
        }
    }

    #[test]
    fn damaged_value_or_wrong_size_is_refused() {
        let size = 20 << 10;
        let compressed = compress(&json(size)).unwrap();
        for wrong in [0, 2 << 10, size - 1, size + 1, usize::MAX] {
            assert!(decompress(&compressed, wrong).is_none(), "{wrong}");
        }
        assert!(decompress(&compressed[..compressed.len() / 2], size).is_none());
        assert!(decompress(&json(size), size).is_none());
    }
}
