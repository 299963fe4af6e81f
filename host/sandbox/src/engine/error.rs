//! Reason that a component was not installed.

use crate::limits::MAX_COMPONENT_BYTES;

/// Reason that a component was not installed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstallError {
    /// The component is broken or uses unsupported features. Each problem is one line.
    #[error("the component was refused: {}", .0.join("; "))]
    Refused(Vec<String>),
    /// The component is larger than [`MAX_COMPONENT_BYTES`].
    #[error("the component is larger than {} MiB", MAX_COMPONENT_BYTES >> 20)]
    TooLarge,
    /// The component is valid, but its content or the time or memory to compile it exceeds a limit.
    /// Each exceeded limit is one line.
    #[error("the component exceeds a limit: {}", .0.join("; "))]
    PastLimit(Vec<String>),
    /// This node lacks something that the installation needs.
    #[error("{0}")]
    Unavailable(String),
}
