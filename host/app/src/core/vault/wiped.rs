//! Bytes that are overwritten when they are dropped.

use std::ops::Deref;

use zeroize::optimization_barrier;

/// Secret bytes. Faster than `Zeroizing`, which overwrites a vector byte by byte, and its unused capacity,
/// too.
pub(super) struct Wiped(pub(super) Vec<u8>);

impl Deref for Wiped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        self.0.fill(0);
        optimization_barrier(self.0.as_slice());
    }
}
