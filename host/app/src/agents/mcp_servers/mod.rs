//! MCP servers: tools of toolkits that a project offers to assistants at one address.
//!
//! A server limits the tools, and the auth configs of its toolkits limit the accounts. Its address
//! names the user, or the accounts, for which tools run ([`McpCaller`]). An instance records that a
//! user has connected an account for every auth config of a server.

mod cache;
mod caller;
mod edit;
mod instances;
mod offer;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use store::{Collection, Document, Field, Kind, Listed, Query, Record, Time, Window};

pub(crate) use self::{
    cache::ServerCache,
    instances::{COLLECTION as INSTANCES, find_instance, remove_instance},
};
pub use self::{
    caller::{McpCaller, Selection},
    edit::{Changes, change, create, remove},
    instances::{Instance, create_instance, list_instances},
    offer::changed_tools,
};
use super::errors;
use crate::{
    App, Result,
    core::{ids::AuthConfigId, truncate},
    projects::Project,
};

/// Collection of MCP servers.
pub(crate) static COLLECTION: Collection = Collection {
    name: "mcp_servers",
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

/// Filter for lists of MCP servers. Empty fields do not filter.
#[derive(Debug, Default)]
pub struct Filter {
    /// Part of the name, in any case.
    pub name: String,
    /// Slugs of toolkits, of which a server has at least one.
    pub toolkits: Vec<String>,
    /// Ids of auth configs, of which a server has at least one.
    pub auth_configs: Vec<String>,
    /// Order of the list.
    pub order: Order,
}

/// Order of a list of MCP servers or instances.
#[derive(Debug, Clone, Copy, Default)]
pub struct Order {
    /// True to sort by creation instead of by last change.
    pub by_creation: bool,
    /// True for the oldest first.
    pub ascending: bool,
}

impl Order {
    fn apply(self, query: Query) -> Query {
        let query = if self.by_creation {
            query
        } else {
            query.order_by("changed_at")
        };
        if self.ascending {
            query
        } else {
            query.descending()
        }
    }
}

/// Returns an MCP server of the project.
///
/// # Errors
/// Fails if the server does not exist.
pub async fn get(app: &App, project: &Project, id: &str) -> Result<Record<McpServer>> {
    let found = app.store.get(project.id.as_str(), id).await?;
    found.ok_or_else(|| errors::mcp_server_not_found(truncate(id)))
}

/// Returns a page of MCP servers and their total number.
///
/// # Errors
/// Fails if the store cannot be read.
pub async fn list(
    app: &App,
    project: &Project,
    filter: &Filter,
    window: Window,
) -> Result<Listed<Record<McpServer>>> {
    let mut query = Query::for_project(project.id.as_str()).window(window);
    if !filter.name.is_empty() {
        query = query.contains("folded_name", &filter.name.to_lowercase());
    }
    if !filter.toolkits.is_empty() {
        let slugs = filter.toolkits.iter().map(|slug| slug.to_lowercase());
        query = query.any_of("toolkits", slugs);
    }
    if !filter.auth_configs.is_empty() {
        query = query.any_of(
            "auth_configs",
            filter.auth_configs.iter().map(String::as_str),
        );
    }
    Ok(app.store.list(&filter.order.apply(query)).await?)
}

/// Returns the number of instances of each of these servers.
///
/// # Errors
/// Fails if the store cannot be read.
pub async fn count_instances(
    app: &App,
    project: &Project,
    servers: &[&str],
) -> Result<HashMap<String, u64>> {
    let all = Query::for_project(project.id.as_str());
    let counts = app.store.count_by::<Instance>(&all, "server", servers);
    Ok(counts.await?)
}

/// Returns the address of an MCP server without a user.
#[must_use]
pub fn url(app: &App, server: &str) -> String {
    format!("{}/v3/mcp/{server}", app.base_url())
}
