//! Randomness from the operating system.

use wasmtime::Result;

use crate::{contract::v1::random::Host, toolkit::State};

/// Maximum number of bytes for one call.
pub(super) const MAX_RANDOM_BYTES: u32 = 64 << 10;

impl Host for State {
    fn bytes(&mut self, length: u32) -> Result<Vec<u8>> {
        self.count_host_call()?;
        let length = length.min(MAX_RANDOM_BYTES) as usize;
        match &self.session {
            None => random_bytes(length),
            Some(session) => session.random(length, || random_bytes(length)),
        }
    }
}

pub(super) fn random_bytes(length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes).map_err(|cause| {
        wasmtime::format_err!("the operating system has no randomness: {cause}")
    })?;
    Ok(bytes)
}
