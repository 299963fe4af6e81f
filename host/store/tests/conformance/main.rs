//! What every backend promises, asserted once and run on each of them.
//!
//! `suite` holds one function per promise; `model` is the reference, a map and [`store::Query::run`]. A backend adds a
//! file that says how to open and reopen it and lists the promises with `promises!`.

#![expect(clippy::unwrap_used, reason = "a test that meets an error it does not expect has failed")]

mod model;
mod postgres;
mod random;
mod sled;
mod suite;
