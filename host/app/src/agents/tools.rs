//! The tools that a session lists.

use super::{Config, Preload, scope};
use crate::catalog::{LATEST, ResolvedTool, Snapshot};

/// Returns the tools of toolkits that a session lists next to its meta tools, as far as they exist and
/// are permitted: in the order of the configuration, or all of them by toolkit.
#[must_use]
pub fn preloaded(catalog: &Snapshot, config: &Config) -> Vec<ResolvedTool> {
    match &config.preload {
        None => Vec::new(),
        Some(Preload::All) => permitted(catalog, config).collect(),
        Some(Preload::Tools(slugs)) => slugs
            .iter()
            .filter_map(|slug| permitted_tool(catalog, config, slug))
            .collect(),
    }
}

/// Finds a tool among those that a session lists next to its meta tools, by its slug in any case.
#[must_use]
pub fn preloaded_tool(catalog: &Snapshot, config: &Config, slug: &str) -> Option<ResolvedTool> {
    let is_listed = match config.preload.as_ref()? {
        Preload::All => true,
        Preload::Tools(slugs) => slugs.iter().any(|listed| listed.eq_ignore_ascii_case(slug)),
    };
    permitted_tool(catalog, config, slug).filter(|_| is_listed)
}

/// Returns true if a session permits a tool, whether it lists the tool or not.
#[must_use]
pub fn is_permitted(catalog: &Snapshot, config: &Config, slug: &str) -> bool {
    permitted_tool(catalog, config, slug).is_some()
}

/// Finds a tool that a session permits, in the latest version of its toolkit.
pub(super) fn permitted_tool(
    catalog: &Snapshot,
    config: &Config,
    slug: &str,
) -> Option<ResolvedTool> {
    let found = catalog.find_tool(slug, LATEST);
    found.filter(|tool| scope::permits(config, tool))
}

/// Returns every tool that a session permits, in the latest version of its toolkit.
pub fn permitted<'a>(
    catalog: &'a Snapshot,
    config: &'a Config,
) -> impl Iterator<Item = ResolvedTool> + 'a {
    let toolkits = catalog.toolkits().filter(|toolkit| {
        !toolkit.is_deprecated() && scope::permit_toolkit(config, &toolkit.slug).is_ok()
    });
    let tools = toolkits.flat_map(|toolkit| toolkit.current().resolved_tools());
    tools.filter(|found| scope::permits(config, found))
}
