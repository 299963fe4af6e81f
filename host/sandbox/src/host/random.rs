//! Randomness from the operating system.

use wasmtime::Result;

use crate::{abi::v1::random::Host, state::State};

/// Maximum number of bytes for one call.
pub(super) const AT_ONCE: u32 = 64 << 10;

impl Host for State {
    fn bytes(&mut self, length: u32) -> Result<Vec<u8>> {
        self.count()?;
        let length = length.min(AT_ONCE) as usize;
        match &self.tape {
            None => fresh(length),
            Some(tape) => tape.random(length, || fresh(length)),
        }
    }
}

pub(super) fn fresh(length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes).map_err(|cause| {
        wasmtime::format_err!("the operating system has no randomness: {cause}")
    })?;
    Ok(bytes)
}
