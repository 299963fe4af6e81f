//! From the bytes of a component to loaded machine code.
//!
//! `runtime` holds every setting of the engine and its reason. Modules of the install path, in
//! reading order: `install`, `check`, `compile`, and `cache`. Calls get components
//! from `library`.

pub(crate) mod cache;
pub(crate) mod check;
pub(crate) mod compile;
pub(crate) mod error;
pub(crate) mod install;
pub(crate) mod library;
mod runtime;

pub use runtime::open_page_map;
pub(crate) use runtime::{Runtime, config, program_config};
