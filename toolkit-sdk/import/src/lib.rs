//! From the description of an API to a toolkit, without code.
//!
//! Each kind of description has a reader, a function from bytes to an [`Api`]. Everything after that is the same for all of
//! them: an [`Overlay`], written by a person, chooses and corrects; [`toolkit`](toolkit()) makes a manifest for
//! agents and the calls of a plan for the guest ([`manifest::plan`]).
//!
//! ```text
//! bytes ──reader──▶ Api ──overlay──▶ Api ──────▶ Manifest + plan ──toolkit build──▶ component
//! ```
//!
//! Guarantees: nothing of a description is left out in silence, it is listed as [`Unsupported`]; names depend on the operation
//! alone, never on its place; what is made passes [`manifest::Manifest::problems`]; descriptions are from outside, so every
//! reader is bounded in time and memory and never panics.

mod address;
mod api;
mod arguments;
mod discovery;
mod graphql;
#[cfg(test)]
mod hostile;
mod mcp;
mod names;
mod openapi;
mod overlay;
mod parse;
mod said;
mod schema;
mod text;
mod toolkit;

pub use api::{Answer, Api, Body, Error, Field, Media, Operation, Parameter, Result, Server, Unsupported, Variable};
pub use discovery::discovery;
pub use graphql::graphql;
pub use mcp::mcp;
pub use openapi::openapi;
pub use overlay::{Argument, Change, Choose, Except, HintsChange, Overlay};
pub use said::{file, hints, is_file};
pub use toolkit::{Imported, Report, toolkit};
