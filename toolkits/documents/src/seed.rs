//! Seeds for the hash maps of `boon`.
//!
//! They come from `getrandom`, which on this target knows only a browser; `.cargo/config.toml` of this workspace chooses the
//! crate's `custom` source instead, and here it is: the platform's randomness. Without it the component would import
//! functions that no host has, and `toolkit build` would refuse it.

use getrandom::Error;
use toolkit_sdk::random;

/// What the platform gives at once.
const CHUNK: usize = 64 * 1024;

/// Fills `length` bytes from `start`.
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
