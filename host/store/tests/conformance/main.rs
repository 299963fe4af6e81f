//! The guarantees of every backend, asserted once and run on each of them.
//!
//! `suite` holds one function per guarantee. `model` is the reference: a map and
//! [`store::Query::run`]. A backend adds a file with its setup and lists the guarantees with
//! `promises!`.

#![expect(
    clippy::unwrap_used,
    reason = "a test that meets an error it does not expect has failed"
)]

mod model;
mod postgres;
mod random;
mod sled;
mod suite;
