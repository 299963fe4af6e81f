//! From the description of an API to a toolkit, without code.
//!
//! Each kind of description has a reader, a function from bytes to an [`Api`]. Everything after that is the same for all of
//! them: an overlay, written by a person, chooses and corrects; then there is a manifest for
//! agents and a plan for the guest ([`manifest::plan`]).
//!
//! ```text
//! bytes ──reader──▶ Api ──overlay──▶ Api ──────▶ Manifest + plan ──toolkit build──▶ component
//! ```
//!
//! Guarantees: nothing of a description is left out in silence, it is listed as [`Unsupported`]; names depend on the operation
//! alone, never on its place; what is made passes [`manifest::Manifest::problems`]; descriptions are from outside, so every
//! reader is bounded in time and memory and never panics.

mod api;
mod said;

pub use api::{Answer, Api, Body, Error, Field, Media, Operation, Parameter, Result, Server, Unsupported, Variable};
pub use said::{file, hints, is_file};
