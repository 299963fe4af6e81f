//! What assistants see of a project: tool router sessions, the meta tools of a session, the tools
//! that a session may run, and MCP servers.
//!
//! A session belongs to one user of a project, and its configuration limits the tools that run in it.
//! That limit is one pure function ([`scope`]). Every way to run a tool for a session goes through
//! [`execute`], which asks the scope, selects the account and calls `runs::execute`.

mod check;
mod config;
pub mod errors;
mod execute;
pub mod mcp_servers;
pub mod meta;
pub mod scope;
pub mod selection;
pub mod sessions;
pub mod tool_name;
mod tools;

pub use self::{
    config::{
        Config, Filter, HINTS, MAX_CONFIG_BYTES, ManageConnections, MultiAccount, Preload, Tags,
        ToolFilter, Workbench,
    },
    execute::{SessionExecute, execute, resolve},
    sessions::{MAX_VERSIONS, Session, SessionCaller},
    tools::{permitted, preloaded},
};
