//! The export from which `toolkit build` reads the manifest.
//!
//! The core module exports `toolkit_manifest: func() -> i64`. It is not part of the WIT world, and
//! the component encoder leaves it out. It calls no import. Its result holds the address of the
//! manifest's JSON in the upper 32 bits and its length in bytes in the lower 32 bits. Both refer to
//! the memory exported as `memory` and are valid until the instance is dropped. The JSON lacks
//! `version` if the author did not write one.

use super::manifest::Manifest;
use super::manifest_json;

/// Serializes the manifest and returns its address and length.
pub fn manifest_address(manifest: &Manifest) -> u64 {
    let json = manifest_json(manifest).leak();
    (json.as_ptr() as u64) << 32 | json.len() as u64
}
