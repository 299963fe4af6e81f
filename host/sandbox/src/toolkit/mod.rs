//! Everything that a guest can reach: the contract (`abi`), the host functions behind it
//! (`imports`), and their data (`state`).

pub(crate) mod abi;
pub(crate) mod imports;
mod state;

pub(crate) use state::State;
