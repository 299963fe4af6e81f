//! The part of a project that assistants see: tool router sessions, the meta tools of a session, the
//! tools that a session may run, and MCP servers.
//!
//! A session belongs to one user of a project, and its configuration limits the tools that run in it.
//! That limit is one pure function ([`scope`]). Every way to run a tool for a session goes through
//! [`execute`], which asks the scope, selects the account and calls `runs::execute`.

pub(crate) mod approval;
mod assistive_prompt;
mod caller;
mod check;
mod config;
mod connect;
mod credential;
pub mod errors;
mod execute;
pub mod mcp_oauth;
pub mod mcp_servers;
pub mod meta;
mod progress;
mod proxy;
pub mod recipes;
mod resolve;
pub mod scope;
pub mod selection;
pub mod session_files;
pub mod sessions;
mod settings;
mod toolkits;
mod tools;
mod workbench;

pub use self::{
    approval::{APPROVAL_TTL, Approvable, Approval, ApprovalDecision, execute_with_approval},
    assistive_prompt::assistive_prompt,
    caller::{CallerRights, SessionCaller},
    check::MAX_PINNED_ACCOUNTS,
    config::{
        Config, Filter, KNOWN_TOOL_HINTS, MAX_CONFIG_BYTES, ManageConnections, MultiAccount,
        Permission, Preload, Tags, ToolFilter, Workbench,
    },
    connect::{Connect, ConnectionLink, link, link_for_tool},
    credential::Credential,
    execute::{SessionExecute, execute},
    proxy::proxy,
    resolve::resolve,
    sessions::{MAX_APPROVALS, MAX_VERSIONS, Session},
    settings::Settings,
    toolkits::{SessionToolkit, SessionToolkitFilter, toolkits},
    tools::{is_permitted, permitted, preloaded, preloaded_tool},
};
