//! The export that tells `toolkit build` what the toolkit is.
//!
//! The core module exports `toolkit_manifest: func() -> i64`, which is no part of the world and which the component encoder
//! leaves out. It calls no import. Its result holds the address of the manifest's JSON in the upper 32 bits and its length in
//! bytes in the lower 32, both in the memory exported as `memory`, valid until the instance is dropped. `version` is missing
//! from the JSON when the author wrote none.

use super::manifest::Manifest;
use super::manifest_json;

/// Writes the manifest and says where it is.
pub fn manifest_address(manifest: &Manifest) -> u64 {
    let json = manifest_json(manifest).leak();
    (json.as_ptr() as u64) << 32 | json.len() as u64
}
