//! Everything that a guest can reach: the contract (`abi`), the host functions behind it
//! (`imports`) with their data (`state`), and the search for secrets in what it reads (`redact`).

pub(crate) mod abi;
pub(crate) mod imports;
pub(crate) mod redact;
mod state;

pub(crate) use state::State;
