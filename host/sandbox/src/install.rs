//! Bytes of a component become a component that can be called.

use manifest::Manifest;

use crate::Digest;

/// A component that can be called.
#[derive(Debug, Clone)]
pub struct Installed {
    /// Its name for [`crate::Call::component`].
    pub digest: Digest,
    /// What it says about itself; valid.
    pub manifest: Manifest,
    /// Its bytes.
    pub size: u64,
    /// Bytes of its compiled form.
    pub artefact_size: u64,
    /// What it imports, for example `toolhost:toolkit/http@1.0.0`, in order.
    pub imports: Vec<String>,
}

/// Why a component was not installed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    /// Every problem of the component.
    #[error("the component was refused: {}", .0.join("; "))]
    Refused(Vec<String>),
    /// Larger than 16 MiB.
    #[error("the component is larger than 16 MiB")]
    TooLarge,
    /// Compiling it takes more time or memory than allowed.
    #[error("{0}")]
    CompileLimit(String),
    /// Something is missing on this node.
    #[error("{0}")]
    Unavailable(String),
}
