//! MCP servers: tools of toolkits that a project offers to assistants at one address.
//!
//! A server limits the tools, and the auth configs of its toolkits limit the accounts. Its address
//! names the user, or the accounts, for which tools run ([`McpCaller`]). An instance records that a
//! user has connected an account for every auth config of a server.

mod cache;
mod caller;
mod edit;
mod instances;
mod list;
mod offer;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use store::{Collection, Document, Erasure, Field, Kind, Query, Record, Time};

pub(crate) use self::{
    cache::{ServerCache, new_cache},
    instances::{COLLECTION as INSTANCES, find_instance, remove_instance},
};
pub use self::{
    caller::McpCaller,
    edit::{Changes, change, create, remove},
    instances::{Instance, count_instances, create_instance, list_instances},
    list::{Filter, Order, list},
    offer::changed_tools,
};
use super::errors;
use crate::{
    App, Result,
    accounts::auth_configs::{self, AuthConfig},
    core::{
        ids::{AccountId, AuthConfigId},
        shown_slug,
    },
    projects::Project,
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "mcp_servers",
    erasure: Erasure::Project,
    fields: &[
        Field::new("folded_name", Kind::Text),
        Field::new("toolkits", Kind::List),
        Field::new("auth_configs", Kind::List),
        Field::new("changed_at", Kind::Time),
    ],
};

/// An MCP server, as stored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct McpServer {
    /// Display name.
    pub name: String,
    /// Name in lower case, for search.
    folded_name: String,
    /// Slugs of the toolkits, sorted: those that were named, and those of the auth configs and of
    /// the allowed tools.
    pub toolkits: Vec<String>,
    /// Slugs of the toolkits that were named; `None` in records that are older than this field.
    #[serde(default)]
    named_toolkits: Option<BTreeSet<String>>,
    /// Auth configs whose accounts the tools use, at most one for each toolkit.
    pub auth_configs: Vec<AuthConfigId>,
    /// Slugs of the tools; empty for every tool of the toolkits.
    pub allowed_tools: Vec<String>,
    /// True if assistants get the tools that connect accounts.
    pub with_helper_tools: bool,
    /// Time to which the tools are pinned: versions of toolkits that were published later are not
    /// used. Without it, the latest versions are.
    #[serde(default)]
    pub tools_as_of: Option<Time>,
    /// Time of the last change by a request.
    pub changed_at: Time,
}

impl Document for McpServer {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// User and accounts that an address names. They select, and prove nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// User for whom tools run, or `None` for the owner of the accounts, or for the default user if
    /// there are no accounts.
    pub user_id: Option<String>,
    /// Accounts that tools of their toolkits use.
    pub accounts: Vec<AccountId>,
    /// True if assistants get the meta tools that connect accounts.
    #[serde(default)]
    pub with_helper_tools: bool,
}

/// Returns an MCP server of the project. Fails if the server does not exist.
pub async fn get(app: &App, project: &Project, id: &str) -> Result<Record<McpServer>> {
    let server = app.store.get(project.id.as_str(), id).await?;
    server.ok_or_else(|| errors::mcp_server_not_found(shown_slug(id)))
}

/// Returns the toolkit of an auth config. A deleted auth config keeps its toolkit, whose tools then
/// find no account instead of one of another auth config.
async fn toolkit_of_config(
    app: &App,
    project: &Project,
    id: &AuthConfigId,
) -> Result<Option<String>> {
    let config = match auth_configs::find(&app.store, &project.id, id).await? {
        Some(config) => Some(config),
        None => {
            let query = Query::for_project(project.id.as_str()).is("id", id.as_str());
            app.store.first::<AuthConfig>(query.with_deleted()).await?
        }
    };
    Ok(config.map(|config| config.body.toolkit))
}

/// Returns the address of an MCP server without a user.
#[must_use]
pub fn url(app: &App, server: &str) -> String {
    format!("{}/v3/mcp/{server}", app.base_url())
}
