//! The rules that concern data of every module: deletion of projects, archives of the whole store,
//! ids of older clients, the list of recurring jobs, and the measures of a server.

pub mod archive;
pub mod errors;
pub(crate) mod jobs;
pub mod legacy_ids;
pub mod measures;
mod remove_account;
mod remove_mcp_instance;
pub mod remove_project;
mod retention;

pub use remove_account::remove_account;
pub use remove_mcp_instance::remove_mcp_instance;
