//! Small key-value state. For a trigger it lasts from call to call of the same instance. For a tool
//! it ends with the call.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Result, ToolError, host, mismatch};

/// Returns the value stored under a key, or `None` if the key is not set.
///
/// # Errors
/// `internal` if the stored value cannot be read as `T`, for example after the type changed.
pub fn get<T: DeserializeOwned>(key: &str) -> Result<Option<T>> {
    let Some(bytes) = host::state_get(key) else {
        return Ok(None);
    };
    let value = serde_json::from_slice(&bytes);
    value.map(Some).map_err(|error| {
        let reason = mismatch::reason_with_path(&bytes, &error);
        ToolError::internal(format!("the state `{key}` cannot be read: {reason}"))
    })
}

/// Stores a value. At most 128 keys, 256 bytes per key and 64 KiB per value.
///
/// # Errors
/// `internal` if one of these limits is exceeded; in that case nothing is stored.
pub fn set(key: &str, value: &impl Serialize) -> Result<()> {
    if host::state_set(key, &serde_json::to_vec(value)?) {
        return Ok(());
    }
    Err(ToolError::internal(format!(
        "the state `{key}` is too large, or there are too many keys"
    )))
}

/// Removes a key.
pub fn remove(key: &str) {
    host::state_remove(key);
}
