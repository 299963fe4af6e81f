//! Small key-value store of the guest.

use wasmtime::Result;

use crate::{contract::v1::state::Host, toolkit::State};

const MAX_KEYS: usize = 128;
const MAX_KEY_BYTES: usize = 256;
const MAX_VALUE_BYTES: usize = 64 << 10;

impl Host for State {
    fn get(&mut self, key: String) -> Result<Option<Vec<u8>>> {
        self.count_host_call()?;
        Ok(self.guest_state.get(&key).cloned())
    }

    fn set(&mut self, key: String, value: Vec<u8>) -> Result<bool> {
        self.count_host_call()?;
        let room = self.guest_state.len() < MAX_KEYS || self.guest_state.contains_key(&key);
        let fits = room && key.len() <= MAX_KEY_BYTES && value.len() <= MAX_VALUE_BYTES;
        if fits {
            self.guest_state.insert(key, value);
        }
        Ok(fits)
    }

    fn remove(&mut self, key: String) -> Result<()> {
        self.count_host_call()?;
        self.guest_state.remove(&key);
        Ok(())
    }
}
