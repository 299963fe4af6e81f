//! What guests can ask of the host: one file for each import.
//!
//! Host functions never panic, never hold a lock while they wait, never call back into the guest, count before they act,
//! and refuse with a typed value. Only exhaustion and mistakes of the host end a guest.

pub(crate) mod blob;
mod clock;
pub(crate) mod http;
mod log;
mod random;
mod state;
pub(crate) mod wasi;

use crate::{abi::v1, state::State};

impl v1::types::Host for State {}
