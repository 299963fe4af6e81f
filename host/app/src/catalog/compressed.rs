//! Compressed manifests in records. The store keeps read records in memory, and schemas compress
//! well.
//!
//! The format is Base64 of raw deflate (RFC 1951) of the JSON. Records of earlier versions contain
//! the plain JSON.

use std::io::{Read, Write};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use sandbox::MAX_COMPONENT_BYTES;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::{Error, Result, catalog::errors};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Compressed(Box<RawValue>);

impl Compressed {
    /// Compresses the JSON of a manifest. Fails only if memory cannot be written.
    pub(super) fn from_json(json: &str) -> Result<Self> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        let compressed = encoder
            .write_all(json.as_bytes())
            .and_then(|()| encoder.finish())
            .map_err(|cause| failed("written", &cause))?;
        Ok(Self(
            to_raw_value(&STANDARD.encode(compressed))
                .map_err(|cause| failed("written", &cause))?,
        ))
    }

    /// Returns the JSON of the manifest. Fails if the stored data is damaged.
    pub(super) fn json(&self) -> Result<String> {
        let Ok(compressed) = serde_json::from_str::<&str>(self.0.get()) else {
            return Ok(self.0.get().to_owned());
        };
        let compressed = STANDARD
            .decode(compressed)
            .map_err(|cause| failed("read", &cause))?;
        let mut json = String::new();
        // The JSON is embedded in the component, so it is never larger than a component.
        let read = DeflateDecoder::new(&compressed[..])
            .take(MAX_COMPONENT_BYTES as u64)
            .read_to_string(&mut json);
        read.map_err(|cause| failed("read", &cause))?;
        Ok(json)
    }
}

fn failed(what: &str, cause: &dyn std::fmt::Display) -> Error {
    errors::internal(format!("a manifest could not be {what}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(text: &str) -> Compressed {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn packed_and_plain_manifests_are_read() {
        let plain = format!(
            "{{\"name\":\"ü\",\"tools\":[{}7]}}",
            "{\"slug\":\"ACME_A\"},".repeat(50)
        );
        assert_eq!(stored(&plain).json().unwrap(), plain);
        let compressed = serde_json::to_string(&Compressed::from_json(&plain).unwrap()).unwrap();
        assert!(
            compressed.len() < plain.len() / 4,
            "{} of {} bytes",
            compressed.len(),
            plain.len()
        );
        assert_eq!(stored(&compressed).json().unwrap(), plain);
    }

    #[test]
    fn what_is_no_packed_manifest_is_refused() {
        for damaged in ["\"!\"", "\"AAAA\"", "\"A\""] {
            assert!(stored(damaged).json().is_err(), "{damaged}");
        }
    }
}
