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
            let toolkits = self.toolkits.iter();
            let toolkits = toolkits.filter_map(|slug| catalog.toolkit(slug));
            let releases = toolkits.filter_map(|toolkit| toolkit.current_as_of(as_of));
            releases
                .flat_map(|release| release.resolved_tools())
                .collect()
        } else {
            let found = |slug: &String| catalog.tool_as_of(slug, as_of).ok();
            self.allowed_tools.iter().filter_map(found).collect()
        };
        tools.sort_by(|one, other| one.tool.slug.cmp(&other.tool.slug));
        tools
    }

    /// Finds a tool by its name.
    pub(super) fn tool(&self, catalog: &Snapshot, name: &str) -> Option<ResolvedTool> {
        let found = catalog.tool_as_of(name, self.tools_as_of).ok()?;
        let (offered, slug) = match self.allowed_tools.is_empty() {
            true => (&self.toolkits, &found.release.slug),
            false => (&self.allowed_tools, &found.tool.slug),
        };
        let is_offered = offered.iter().any(|own| **own == **slug);
        is_offered.then_some(found)
    }
}

/// Returns the slugs of the tools that the pin of a server keeps as they were, sorted: without it
/// they would be new, gone, or look different to an assistant. Fails if a schema cannot be read.
pub fn changed_tools(catalog: &Snapshot, server: &McpServer) -> Result<Vec<String>> {
    if server.tools_as_of.is_none() {
        return Ok(Vec::new());
    }
    let by_slug = |tools: Vec<ResolvedTool>| -> BTreeMap<_, _> {
        let with_slug = |found: ResolvedTool| (found.tool.slug.clone(), found);
        tools.into_iter().map(with_slug).collect()
    };
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
    let is_gone = |slug: &&Arc<str>| !latest.contains_key(*slug);
    changed.extend(pinned.keys().filter(is_gone).map(ToString::to_string));
    changed.sort();
    Ok(changed)
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
