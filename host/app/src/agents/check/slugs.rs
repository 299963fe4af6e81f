//! Slugs in the configuration of a session, spelled as the catalog does.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::{
    Error, Result,
    agents::{Config, Filter, Preload, ToolFilter, errors, meta::MetaTool},
    catalog::{LATEST, Snapshot},
    core::{shown_slug, truncate},
};

/// Path to the permissions of single tools and toolkits in requests.
const OVERRIDES_PATH: &str = "experimental.permissions.overrides";
/// Maximum number of unknown slugs for which a similar one is searched for.
const MAX_SUGGESTIONS: usize = 20;

/// Spells every slug as the catalog does. A tool that was removed keeps its slug if the configuration
/// before named it.
pub(super) fn with_catalog_slugs(
    catalog: &Snapshot,
    mut config: Config,
    before: &Config,
) -> Result<Config> {
    let toolkits = respell_toolkits(catalog, &mut config);
    let tools = respell_tools(catalog, &mut config, &named_tools(before));
    errors::both(toolkits, tools)?;
    Ok(config)
}

/// A slug that the catalog does not have.
struct UnknownSlug {
    /// Path to it in the request.
    path: String,
    slug: String,
}

/// Refuses unknown slugs, with one line for each and a message with all. Both suggest similar slugs.
fn refuse_unknown(
    catalog: &Snapshot,
    unknown: &[UnknownSlug],
    similar: impl Fn(&str) -> String,
    create: impl FnOnce(String) -> Error,
) -> Result<()> {
    if unknown.is_empty() {
        return Ok(());
    }
    let slugs = unknown.iter().map(|one| one.slug.as_str());
    Err(catalog.missing(slugs, || {
        let mut named = Vec::new();
        let mut lines = Vec::new();
        // Several maps of a configuration have the toolkits of `tools`.
        let mut paths = HashSet::new();
        for UnknownSlug { path, slug } in unknown.iter().filter(|one| paths.insert(&one.path)) {
            let shown = shown_slug(slug);
            let question = match lines.len() < MAX_SUGGESTIONS {
                true => similar(slug),
                false => String::new(),
            };
            lines.push(format!("{path}: there is no {shown}{question}"));
            named.push(match question.strip_prefix("; ") {
                Some(question) => format!("{shown} ({question})"),
                None => shown.to_owned(),
            });
        }
        create(named.join(", ")).with_contained_problems(lines)
    }))
}

/// Spells the slugs of tools as the catalog does, or as the configuration before. Tools of unknown toolkits
/// are left out.
fn respell_tools(catalog: &Snapshot, config: &mut Config, before: &BTreeSet<&str>) -> Result<()> {
    let mut unknown = Vec::new();
    let spelled = |toolkit: Option<&str>, slug: &str| {
        let upper = slug.trim().to_ascii_uppercase();
        match catalog.find_tool(slug.trim(), LATEST) {
            Some(found) if toolkit.is_none_or(|own| *own == *found.release.slug) => {
                Some(found.tool.slug.to_string())
            }
            None if before.contains(upper.as_str()) => Some(upper),
            _ => None,
        }
    };
    let filters = config.tools.iter_mut();
    let filtered = filters.filter_map(|(toolkit, filter)| match filter {
        ToolFilter::Enable(tools) => Some((toolkit, "enable", tools)),
        ToolFilter::Disable(tools) => Some((toolkit, "disable", tools)),
        ToolFilter::Tags(_) => None,
    });
    let approvals = config.approval_tools.iter_mut();
    let approved = approvals.map(|(toolkit, tools)| (toolkit, "require_approval", tools));
    for (toolkit, name, tools) in filtered.chain(approved) {
        if catalog.toolkit(toolkit).is_some() {
            let path = format!("tools.{toolkit}.{name}");
            respell(&path, tools, &mut unknown, |slug| {
                spelled(Some(toolkit), slug)
            });
        }
    }
    if let Some(Preload::Tools(tools)) = &mut config.preload {
        respell("preload.tools", tools, &mut unknown, |slug| {
            spelled(None, slug)
        });
        // A list of tools has each name once.
        let mut listed = BTreeSet::new();
        tools.retain(|slug| listed.insert(slug.clone()));
    }
    let permissions = respell_permissions(config, &mut unknown, |slug| {
        let toolkit = catalog
            .toolkit(slug.trim())
            .filter(|_| catalog.find_tool(slug.trim(), LATEST).is_none());
        toolkit.map_or_else(
            || spelled(None, slug),
            |toolkit| Some(toolkit.slug.to_string()),
        )
    });
    let tools = refuse_unknown(
        catalog,
        &unknown,
        |slug| match catalog.find_tool(slug.trim(), LATEST) {
            Some(other) => format!(" in this toolkit, but in toolkit {}", other.release.slug),
            None => catalog.similar_tool(slug),
        },
        errors::invalid_tool_slugs,
    );
    errors::both(tools, permissions).map(drop)
}

/// Spells the slugs with a permission of their own.
fn respell_permissions(
    config: &mut Config,
    unknown: &mut Vec<UnknownSlug>,
    spelled: impl Fn(&str) -> Option<String>,
) -> Result<()> {
    let mut problems = Vec::new();
    for (slug, permission) in std::mem::take(&mut config.permissions) {
        let path = format!("{OVERRIDES_PATH}.{}", truncate(&slug));
        if slug.contains(':') {
            problems.push(format!(
                "{path}: is a permission of an account, which this server does not have: name a tool or a toolkit"
            ));
        } else if let Some(tool) = MetaTool::from_slug(slug.trim()) {
            let remedy = tool.setting().map_or_else(String::new, |setting| {
                format!(": `{setting}` switches it on and off")
            });
            problems.push(format!(
                "{path}: is a meta tool, which has no permission{remedy}"
            ));
        } else if let Some(known) = spelled(&slug) {
            // Of two spellings of a slug the stricter one holds.
            let entry = config.permissions.entry(known).or_insert(permission);
            *entry = permission.max(*entry);
        } else {
            unknown.push(UnknownSlug { path, slug });
        }
    }
    errors::refuse_problems(problems, errors::session_invalid)
}

/// Spells the slugs of toolkits as the catalog does. Unknown ones stay as they are.
fn respell_toolkits(catalog: &Snapshot, config: &mut Config) -> Result<()> {
    let mut unknown = Vec::new();
    let spelled = |slug: &str| Some(catalog.toolkit(slug.trim())?.slug.to_string());
    match &mut config.toolkits {
        Some(Filter::Enable(slugs)) => respell("toolkits.enable", slugs, &mut unknown, spelled),
        Some(Filter::Disable(slugs)) => respell("toolkits.disable", slugs, &mut unknown, spelled),
        None => {}
    }
    let approval = &mut config.approval_toolkits;
    respell("toolkits.require_approval", approval, &mut unknown, spelled);
    let repeated = [
        respell_keys("tools", &mut config.tools, &mut unknown, spelled),
        respell_keys("tools", &mut config.approval_tools, &mut unknown, spelled),
        respell_keys(
            "tools",
            &mut config.approval_toolkit_tags,
            &mut unknown,
            spelled,
        ),
        respell_keys(
            "auth_configs",
            &mut config.auth_configs,
            &mut unknown,
            spelled,
        ),
        respell_keys(
            "connected_accounts",
            &mut config.connected_accounts,
            &mut unknown,
            spelled,
        ),
    ];
    let toolkits = refuse_unknown(
        catalog,
        &unknown,
        |slug| catalog.similar_toolkit(slug),
        errors::invalid_toolkit_slugs,
    );
    // One of the two would be ignored, which could permit more than was meant.
    let repeated = errors::refuse_problems(repeated.concat(), errors::session_invalid);
    errors::both(toolkits, repeated).map(drop)
}

/// Returns the slugs of tools that a configuration names, and those of toolkits with a permission.
fn named_tools(config: &Config) -> BTreeSet<&str> {
    let filtered = config.tools.values().flat_map(|filter| match filter {
        ToolFilter::Enable(tools) | ToolFilter::Disable(tools) => &tools[..],
        ToolFilter::Tags(_) => &[],
    });
    let preloaded = match &config.preload {
        Some(Preload::Tools(tools)) => &tools[..],
        Some(Preload::All) | None => &[],
    };
    let named = filtered
        .chain(preloaded)
        .chain(config.approval_tools.values().flatten())
        .chain(config.permissions.keys());
    named.map(String::as_str).collect()
}

fn respell(
    path: &str,
    slugs: &mut [String],
    unknown: &mut Vec<UnknownSlug>,
    spelled: impl Fn(&str) -> Option<String>,
) {
    for (index, slug) in slugs.iter_mut().enumerate() {
        match spelled(slug) {
            Some(known) => *slug = known,
            None => unknown.push(UnknownSlug {
                path: format!("{path}[{index}]"),
                slug: slug.clone(),
            }),
        }
    }
}

/// Spells the keys as the catalog does. Returns a line for each that is a spelling of an earlier one.
fn respell_keys<V>(
    path: &str,
    map: &mut BTreeMap<String, V>,
    unknown: &mut Vec<UnknownSlug>,
    spelled: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let mut repeated = Vec::new();
    for (slug, value) in std::mem::take(map) {
        let path = format!("{path}.{}", truncate(&slug));
        let known = spelled(&slug).unwrap_or_else(|| {
            unknown.push(UnknownSlug {
                path: path.clone(),
                slug: slug.clone(),
            });
            slug
        });
        if map.insert(known, value).is_some() {
            repeated.push(format!(
                "{path}: the toolkit is named twice, in different spellings"
            ));
        }
    }
    repeated
}
