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

// Parts of one program, so that a test that waits for the disk leaves the processors to others.
#[path = "../blobs.rs"]
mod blobs;
#[path = "../damage.rs"]
mod damage;
#[path = "../space.rs"]
mod space;
