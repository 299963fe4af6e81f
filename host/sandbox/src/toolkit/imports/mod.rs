//! Host functions for guests, one file for each import.
//!
//! Host functions never panic, never hold a lock while they wait and never call back into the
//! guest. They count a call before they act and refuse with a typed value. Only exhausted limits
//! and errors of the host end a guest.

mod blob;
pub(crate) mod clock;
pub(crate) mod http;
mod log;
mod random;
mod state;
pub(crate) mod wasi;
mod webhook;

use crate::{contract::v1, toolkit::State};

impl v1::types::Host for State {}
