//! Slugs in the filters of lists. One that the catalog does not have selects nothing, so that a misspelled
//! slug would look like an empty list. The response names it in a header.

use app::{catalog::Snapshot, core::shown_slug};

use super::plain_name;
use crate::unknown::{Warnings, slug_warning};

/// Names of the parameters with slugs of toolkits.
const TOOLKIT_PARAMETERS: [&str; 3] = ["toolkit_slug", "toolkit_slugs", "toolkits"];
/// Start of the names of the parameters with versions, before the slug of the toolkit.
const VERSION_PARAMETER_START: &str = "toolkit_versions[";
/// Names of the parameters with slugs of tools.
const TOOL_PARAMETERS: [&str; 2] = ["tool_slug", "tool_slugs"];

/// Returns the warnings about the slugs of toolkits and tools in a query that the catalog does not have.
/// Empty while a server that starts is still publishing toolkits.
pub(crate) fn unknown_slugs(query: &str, catalog: &Snapshot) -> Warnings {
    let mut warnings = Warnings::default();
    if catalog.publication_progress().is_some() {
        return warnings;
    }
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        let versioned = name.strip_prefix(VERSION_PARAMETER_START);
        let versioned = versioned.and_then(|slug| slug.strip_suffix(']'));
        let name = plain_name(&name);
        let of_toolkits = versioned.is_some() || TOOLKIT_PARAMETERS.contains(&name);
        let slugs = versioned.unwrap_or(&value).split(',').map(str::trim);
        for slug in slugs.filter(|slug| !slug.is_empty()) {
            if of_toolkits && catalog.toolkit(slug).is_none() {
                warnings
                    .add(|| slug_warning(name, shown_slug(slug), &catalog.similar_toolkit(slug)));
            } else if TOOL_PARAMETERS.contains(&name) && catalog.toolkit_of(slug).is_none() {
                warnings.add(|| slug_warning(name, shown_slug(slug), &catalog.similar_tool(slug)));
            }
        }
    }
    warnings
}
