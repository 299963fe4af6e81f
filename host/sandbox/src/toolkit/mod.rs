//! Everything that a guest can reach: the host functions behind the contract (`imports`) with their
//! data (`state`, `webhook_secrets`), and how a component is linked to them (`abi`).

pub(crate) mod abi;
pub(crate) mod imports;
mod state;
pub(crate) mod webhook_secrets;

pub(crate) use state::State;
