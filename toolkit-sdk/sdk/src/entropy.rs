//! Randomness for crates that take it from the system.
//!
//! `getrandom` knows only a browser on this target. `toolkit build` chooses its `custom` source instead, which is here: the
//! platform's randomness. So `rand`, `uuid` (feature `rng-getrandom`) and hash maps with seeds work in a toolkit.

#![expect(unsafe_code, reason = "this is how the crate looks for a source")]

use getrandom::Error;

use crate::random;

/// What the platform gives at once.
const CHUNK: usize = 64 * 1024;

/// Fills `length` bytes from `start`. Versions 0.3 and 0.4 of the crate call it, and their errors are the same number.
///
/// # Safety
/// The bytes belong to the caller; `getrandom` calls this with a slice that it holds.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(start: *mut u8, length: usize) -> Result<(), Error> {
    // SAFETY: `getrandom` passes the parts of one `&mut [MaybeUninit<u8>]`, and every byte is written before it is read.
    let bytes = unsafe {
        start.write_bytes(0, length);
        std::slice::from_raw_parts_mut(start, length)
    };
    for chunk in bytes.chunks_mut(CHUNK) {
        let random = random::bytes(u32::try_from(chunk.len()).unwrap_or(u32::MAX));
        chunk.copy_from_slice(random.get(..chunk.len()).ok_or(Error::UNEXPECTED)?);
    }
    Ok(())
}
