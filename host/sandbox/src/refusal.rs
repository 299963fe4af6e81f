//! Refusal of a call that did not start.

use gate::{Busy, Capacity};

/// Refusal of a call that did not start. A retry is safe; it helps if the tenant or the node was
/// busy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No verified compiled form exists. Install the component's bytes with
    /// [`crate::Sandbox::install`], then call again.
    #[error("the toolkit is not prepared on this node")]
    NotInstalled,
    /// The tenant has reached its limit for running and waiting calls, or for their memory.
    #[error("the project has reached its limit of {0}; try again in a second")]
    TenantBusy(Capacity),
    /// Other tenants leave no permit, or too little memory, for the call.
    #[error("this node has reached its limit of {0}; try again in a second")]
    NodeBusy(Capacity),
    /// Host code panicked too often while this component ran. A retry helps only after a restart.
    #[error("the toolkit is quarantined: the host failed three times while it ran")]
    Quarantined,
    /// This node lacks something else that the call needs.
    #[error("{0}")]
    Unavailable(String),
}

impl Refusal {
    /// Returns the refusal of a call for which a capacity is exhausted.
    pub(crate) const fn busy(capacity: Capacity, busy: Busy) -> Self {
        match busy {
            Busy::Own => Self::TenantBusy(capacity),
            Busy::Others => Self::NodeBusy(capacity),
        }
    }
}
