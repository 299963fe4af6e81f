//! Reads arbitrary bytes as a description and makes a toolkit of it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use toolkit_sdk_import::{Overlay, openapi, toolkit};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(api) = openapi(bytes)
        && let Ok(made) = toolkit(api, "acme", &Overlay::default())
    {
        assert!(made.manifest.problems().is_empty());
    }
});
