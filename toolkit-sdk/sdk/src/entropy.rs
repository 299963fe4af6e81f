//! Randomness for crates that take it from the operating system.
//!
//! On this target, `getrandom` only knows the randomness of a browser. `toolkit build` selects its
//! `custom` backend instead, which is defined here and returns the platform's randomness. This
//! makes `rand`, `uuid` (feature `rng-getrandom`) and seeded hash maps work in a toolkit.

#![expect(unsafe_code, reason = "this is how the crate looks for a source")]

use getrandom::Error;

use crate::random;

/// Largest number of random bytes that the platform returns per request.
const CHUNK_BYTES: usize = 64 * 1024;

/// Fills `length` bytes from `start`. Versions 0.3 and 0.4 of `getrandom` call this function; their
/// errors are represented by the same number.
///
/// # Safety
/// The bytes belong to the caller; `getrandom` calls this function with a slice that it owns.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(start: *mut u8, length: usize) -> Result<(), Error> {
    // SAFETY: `getrandom` passes the parts of one `&mut [MaybeUninit<u8>]`, and every byte is
    // written before it is read.
    let bytes = unsafe {
        start.write_bytes(0, length);
        std::slice::from_raw_parts_mut(start, length)
    };
    for chunk in bytes.chunks_mut(CHUNK_BYTES) {
        let random = random::bytes(u32::try_from(chunk.len()).unwrap_or(u32::MAX));
        chunk.copy_from_slice(random.get(..chunk.len()).ok_or(Error::UNEXPECTED)?);
    }
    Ok(())
}
