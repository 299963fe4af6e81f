//! Converts the description of an API to a toolkit without code.
//!
//! Each kind of description has a reader, a function from bytes to an [`Api`]. All further steps
//! are the same for all of them. A hand-written [`Overlay`] chooses and corrects operations.
//! [`toolkit`](toolkit()) makes a manifest for agents, and the calls of a plan for the guest
//! ([`manifest::plan`]).
//!
//! ```text
//! bytes ──reader──▶ Api ──overlay──▶ Api ──────▶ Manifest + plan ──toolkit build──▶ component
//! ```
//!
//! Guarantees:
//!
//! - No part of a description is left out silently; it is listed as [`Unsupported`].
//! - Names depend on the operation alone, never on its position.
//! - The result passes [`manifest::Manifest::problems`].
//! - Descriptions come from outside, so every reader is bounded in time and memory and never
//!   panics.

mod address;
mod api;
mod arguments;
mod conventions;
mod discovery;
mod graphql;
#[cfg(test)]
mod hostile;
mod mcp;
mod names;
mod openapi;
mod overlay;
mod parse;
mod schema;
mod text;
mod toolkit;

pub use api::{
    Answer, Api, Body, Error, Field, Media, Operation, Parameter, Result, Server, Unsupported,
    Variable,
};
pub use conventions::{file, hints, is_file};
pub use discovery::discovery;
pub use graphql::graphql;
pub use mcp::mcp;
pub use openapi::openapi;
pub use overlay::{Argument, Change, Choose, Except, HintsChange, Overlay};
pub use toolkit::{Imported, Report, toolkit};
