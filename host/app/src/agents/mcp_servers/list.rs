//! Lists of MCP servers.

use store::{Listed, Query, Record, Window};

use super::McpServer;
use crate::{App, Result, projects::Project};

/// Filter for lists of MCP servers. Empty fields do not filter.
#[derive(Debug, Default)]
pub struct Filter {
    /// Part of the name, in any case.
    pub name: String,
    /// Slugs of toolkits, of which a server has at least one.
    pub toolkits: Vec<String>,
    /// Slug of a toolkit that every server has.
    pub toolkit: Option<String>,
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
    pub(super) fn apply(self, query: Query) -> Query {
        let query = match self.by_creation {
            true => query,
            false => query.order_by("changed_at"),
        };
        match self.ascending {
            true => query,
            false => query.descending(),
        }
    }
}

/// Returns a page of MCP servers and their total number.
pub async fn list(
    app: &App,
    project: &Project,
    filter: &Filter,
    window: Window,
) -> Result<Listed<Record<McpServer>>> {
    let slugs = filter.toolkits.iter().map(|slug| slug.to_lowercase());
    let common_slug = filter.toolkit.iter().map(|slug| slug.to_lowercase());
    let ids = filter.auth_configs.iter().map(String::as_str);
    let mut query = Query::for_project(project.id.as_str())
        .window(window)
        .filter("toolkits", slugs)
        .filter("toolkits", common_slug)
        .filter("auth_configs", ids);
    if !filter.name.is_empty() {
        query = query.contains("folded_name", &filter.name.to_lowercase());
    }
    Ok(app.store.list(&filter.order.apply(query)).await?)
}
