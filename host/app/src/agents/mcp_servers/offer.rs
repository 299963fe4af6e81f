//! The tools that an MCP server offers to assistants.
//!
//! A server can be pinned to a time. Its tools then have the descriptions, schemas and code that they
//! had at that time, whatever is published later (a *rug pull*, where a new version of a tool that was
//! trusted deceives the model or does something else). A published version never changes, so the time
//! determines everything. A deprecated version is not used, even if it was pinned.

use std::{collections::BTreeMap, sync::Arc};

use store::Time;

use super::McpServer;
use crate::{
    Result,
    catalog::{ResolvedTool, Snapshot},
};

impl McpServer {
    /// Returns the tools, sorted by slug, in the versions that were the latest at a time.
    pub(super) fn tools(&self, catalog: &Snapshot, as_of: Option<Time>) -> Vec<ResolvedTool> {
        let mut tools: Vec<_> = if self.allowed_tools.is_empty() {
            self.toolkits
                .iter()
                .filter_map(|slug| catalog.toolkit(slug)?.current_as_of(as_of))
                .flat_map(|release| release.resolved_tools())
                .collect()
        } else {
            self.allowed_tools
                .iter()
                .filter_map(|slug| catalog.tool_as_of(slug, as_of).ok())
                .collect()
        };
        tools.sort_by(|one, other| one.tool.slug.cmp(&other.tool.slug));
        tools
    }

    pub(super) fn tool(&self, catalog: &Snapshot, name: &str) -> Option<ResolvedTool> {
        let resolved = catalog.tool_as_of(name, self.tools_as_of).ok()?;
        let (offered, slug) = match self.allowed_tools.is_empty() {
            true => (&self.toolkits, &resolved.release.slug),
            false => (&self.allowed_tools, &resolved.tool.slug),
        };
        let is_offered = offered.iter().any(|listed| **listed == **slug);
        is_offered.then_some(resolved)
    }
}

/// Returns the slugs of the tools that the pin of a server keeps as they were, sorted: without it
/// they would be new, gone, or look different to an assistant. Fails if a schema cannot be read.
pub fn changed_tools(catalog: &Snapshot, server: &McpServer) -> Result<Vec<String>> {
    if server.tools_as_of.is_none() {
        return Ok(Vec::new());
    }
    let pinned = by_slug(server.tools(catalog, server.tools_as_of));
    let latest = by_slug(server.tools(catalog, None));
    let mut changed = Vec::new();
    for (slug, found) in &latest {
        let is_same = match pinned.get(slug) {
            Some(before) => looks_same(before, found)?,
            None => false,
        };
        if !is_same {
            changed.push(slug.to_string());
        }
    }
    let removed = pinned.keys().filter(|slug| !latest.contains_key(*slug));
    changed.extend(removed.map(ToString::to_string));
    changed.sort();
    Ok(changed)
}

fn by_slug(tools: Vec<ResolvedTool>) -> BTreeMap<Arc<str>, ResolvedTool> {
    tools
        .into_iter()
        .map(|resolved| (resolved.tool.slug.clone(), resolved))
        .collect()
}

/// Returns true if two versions of a tool are described alike.
fn looks_same(one: &ResolvedTool, other: &ResolvedTool) -> Result<bool> {
    if Arc::ptr_eq(&one.release, &other.release) {
        return Ok(true);
    }
    let (one, other) = (&one.tool, &other.tool);
    Ok(one.name == other.name
        && one.description == other.description
        && one.hints == other.hints
        && one.input.text()?.get() == other.input.text()?.get()
        && one.output.text()?.get() == other.output.text()?.get())
}
