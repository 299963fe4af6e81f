//! Operations that only older clients use: the former logs, legacy ids, and operations
//! that a self-hosted server does not have.

pub(crate) mod action_logs;
pub(crate) mod legacy_ids;
pub mod not_offered;
pub(crate) mod trigger_logs;
