//! Small key-value store of the guest.

use wasmtime::Result;

use crate::{abi::v1::state::Host, state::State};

const KEYS: usize = 128;
const KEY_BYTES: usize = 256;
const VALUE_BYTES: usize = 64 << 10;

impl Host for State {
    fn get(&mut self, key: String) -> Result<Option<Vec<u8>>> {
        self.count()?;
        Ok(self.kept.get(&key).cloned())
    }

    fn set(&mut self, key: String, value: Vec<u8>) -> Result<bool> {
        self.count()?;
        let room = self.kept.len() < KEYS || self.kept.contains_key(&key);
        let fits = room && key.len() <= KEY_BYTES && value.len() <= VALUE_BYTES;
        if fits {
            self.kept.insert(key, value);
        }
        Ok(fits)
    }

    fn remove(&mut self, key: String) -> Result<()> {
        self.count()?;
        self.kept.remove(&key);
        Ok(())
    }
}
