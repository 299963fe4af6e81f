//! What only older clients ask for: the former execution log, ids of former versions, and operations
//! that a self-hosted server does not have.

pub(crate) mod action_logs;
pub(crate) mod legacy_ids;
pub(crate) mod not_offered;
