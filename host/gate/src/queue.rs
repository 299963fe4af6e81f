//! Limits on the queue of a gate.

use std::time::Duration;

/// Limits on callers that wait for a permit.
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    /// Maximum number of waiting callers.
    pub all: usize,
    /// Maximum number of waiting callers of one key.
    pub per_key: usize,
    /// Maximum time for which a caller waits.
    pub wait: Duration,
}

impl Queue {
    /// Limits the time alone. Each caller holds another limited resource.
    #[must_use]
    pub const fn time(wait: Duration) -> Self {
        Self {
            all: usize::MAX,
            per_key: usize::MAX,
            wait,
        }
    }
}
