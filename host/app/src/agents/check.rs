//! Checks of a session's configuration before it is stored.

use std::collections::{BTreeMap, BTreeSet};

use super::{Config, Filter, KNOWN_TOOL_HINTS, MAX_CONFIG_BYTES, Preload, ToolFilter, errors};
use crate::{
    App, Result,
    accounts::{self, auth_configs},
    catalog::{LATEST, Snapshot},
    core::truncate,
    projects::Project,
};

/// Maximum number of accounts of one toolkit that a session may pin.
pub const MAX_PINNED_ACCOUNTS: usize = 10;
/// Sizes of a workbench that a client may ask for.
const SANDBOX_SIZES: [&str; 4] = ["standard", "medium", "large", "xlarge"];

/// Returns a configuration in its normal form, with the slugs of the catalog, if everything that it
/// names exists and can be used by its user. What the configuration before named already is not checked
/// again, so that an account that was paused, or a tool that a new version dropped, prevents no other
/// change.
pub(super) async fn checked(
    app: &App,
    project: &Project,
    config: Config,
    before: &Config,
) -> Result<Config> {
    let config = with_catalog_slugs(&app.catalog.snapshot(), config, before)?;
    check_values(&config)?;
    if config.auth_configs != before.auth_configs {
        check_auth_configs(app, project, &config).await?;
    }
    if config.connected_accounts != before.connected_accounts {
        check_accounts(app, project, &config).await?;
    }
    Ok(config.normalized())
}

/// Spells every slug as the catalog does. A tool that was removed keeps its slug if the configuration
/// before named it.
fn with_catalog_slugs(catalog: &Snapshot, mut config: Config, before: &Config) -> Result<Config> {
    respell_toolkits(catalog, &mut config)?;
    let mut unknown = Vec::new();
    let named = named_tools(before);
    let mut tool = |toolkit: Option<&str>, slug: &str| {
        let upper = slug.trim().to_ascii_uppercase();
        match catalog.tool(slug.trim(), LATEST) {
            Ok(found) if toolkit.is_none_or(|own| *own == *found.release.slug) => {
                found.tool.slug.to_string()
            }
            Err(_) if named.contains(upper.as_str()) => upper,
            _ => {
                unknown.push(truncate(slug));
                String::new()
            }
        }
    };
    for (slug, filter) in &mut config.tools {
        if let ToolFilter::Enable(tools) | ToolFilter::Disable(tools) = filter {
            respell(tools, &mut |one| tool(Some(slug), one));
        }
    }
    for (slug, tools) in &mut config.approval_tools {
        respell(tools, &mut |one| tool(Some(slug), one));
    }
    if let Some(Preload::Tools(tools)) = &mut config.preload {
        respell(tools, &mut |one| tool(None, one));
        // A list of tools has each name once.
        let mut listed = BTreeSet::new();
        tools.retain(|slug| listed.insert(slug.clone()));
    }
    for (slug, permission) in std::mem::take(&mut config.permissions) {
        if slug.contains(':') {
            return Err(errors::session_invalid(format!(
                "permissions.overrides: {} is a permission of an account, which this server does not have: name a tool or a toolkit",
                truncate(&slug)
            )));
        }
        let catalog_slug = catalog
            .toolkit(slug.trim())
            .filter(|_| catalog.tool(slug.trim(), LATEST).is_err())
            .map_or_else(|| tool(None, &slug), |toolkit| toolkit.slug.to_string());
        // Of two spellings of a slug the stricter one holds.
        let entry = config.permissions.entry(catalog_slug).or_insert(permission);
        *entry = permission.max(*entry);
    }
    if unknown.is_empty() {
        Ok(config)
    } else {
        let slugs = unknown.iter().map(String::as_str);
        Err(catalog.missing(slugs, || {
            errors::invalid_tool_slugs(suggested(&unknown, |slug| catalog.similar_tool(slug)))
        }))
    }
}

/// Spells the slugs of toolkits as the catalog does.
fn respell_toolkits(catalog: &Snapshot, config: &mut Config) -> Result<()> {
    let mut unknown = Vec::new();
    let mut toolkit = |slug: &str| {
        let found = catalog.toolkit(slug.trim());
        if found.is_none() {
            unknown.push(truncate(slug));
        }
        found.map_or_else(String::new, |found| found.slug.to_string())
    };
    if let Some(Filter::Enable(slugs) | Filter::Disable(slugs)) = &mut config.toolkits {
        respell(slugs, &mut toolkit);
    }
    respell(&mut config.approval_toolkits, &mut toolkit);
    let repeated = [
        respell_keys(&mut config.tools, &mut toolkit),
        respell_keys(&mut config.approval_tools, &mut toolkit),
        respell_keys(&mut config.approval_toolkit_tags, &mut toolkit),
        respell_keys(&mut config.auth_configs, &mut toolkit),
        respell_keys(&mut config.connected_accounts, &mut toolkit),
    ];
    if !unknown.is_empty() {
        let slugs = unknown.iter().map(String::as_str);
        return Err(catalog.missing(slugs, || {
            errors::invalid_toolkit_slugs(suggested(&unknown, |slug| catalog.similar_toolkit(slug)))
        }));
    }
    // One of the two would be ignored, which could permit more than was meant.
    if let Some(slug) = repeated.into_iter().flatten().next() {
        let slug = truncate(&slug);
        let problem = format!("toolkit {slug} is named twice, in different spellings");
        return Err(errors::session_invalid(problem));
    }
    Ok(())
}

/// Returns unknown slugs, each with the question after similar ones.
fn suggested(unknown: &[String], question: impl Fn(&str) -> String) -> String {
    let slugs = unknown
        .iter()
        .map(|slug| format!("{slug}{}", question(slug)));
    slugs.collect::<Vec<_>>().join(", ")
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

fn respell(slugs: &mut [String], spelled: &mut impl FnMut(&str) -> String) {
    for slug in slugs {
        *slug = spelled(slug);
    }
}

/// Spells the keys as the catalog does. Returns those that are spellings of an earlier one.
fn respell_keys<V>(
    map: &mut BTreeMap<String, V>,
    spelled: &mut impl FnMut(&str) -> String,
) -> Vec<String> {
    let mut repeated = Vec::new();
    for (slug, value) in std::mem::take(map) {
        if map.insert(spelled(&slug), value).is_some() {
            repeated.push(slug);
        }
    }
    repeated
}

/// Checks the values that need no look-up.
fn check_values(config: &Config) -> Result<()> {
    let mut problems = tag_problems(config);
    for (toolkit, ids) in &config.connected_accounts {
        if !(1..=MAX_PINNED_ACCOUNTS).contains(&ids.len()) {
            problems.push(format!(
                "connected_accounts.{toolkit}: must have 1 to {MAX_PINNED_ACCOUNTS} accounts"
            ));
        }
    }
    let most = config.multi_account.as_ref();
    if let Some(most) = most.and_then(|accounts| accounts.max_accounts)
        && !(2..=10).contains(&most)
    {
        problems.push("multi_account.max_accounts_per_toolkit: must be 2 to 10".to_owned());
    }
    let size = config.workbench.sandbox_size.as_deref();
    if size.is_some_and(|size| !SANDBOX_SIZES.contains(&size)) {
        let known = SANDBOX_SIZES.join(", ");
        problems.push(format!("workbench.sandbox_size: must be one of {known}"));
    }
    let threshold = config.workbench.auto_offload_threshold;
    if threshold.is_some_and(|threshold| threshold <= 0.0) {
        problems.push("workbench.auto_offload_threshold: must be above 0".to_owned());
    }
    if let Some(url) = &config.manage_connections.callback_url
        && let Err(cause) =
            accounts::check_redirect_url("manage_connections.callback_url", url.clone())
    {
        problems.extend_from_slice(cause.problems());
    }
    if serde_json::to_vec(config).is_ok_and(|text| text.len() > MAX_CONFIG_BYTES) {
        problems.push(format!(
            "the configuration has more than {MAX_CONFIG_BYTES} bytes as JSON"
        ));
    }
    errors::refuse_problems(problems, errors::session_invalid)
}

/// Returns the problems of the tags that a configuration names.
fn tag_problems(config: &Config) -> Vec<String> {
    let mut lists = vec![
        ("tags".to_owned(), &config.tags.enable),
        ("tags".to_owned(), &config.tags.disable),
        ("tags.require_approval".to_owned(), &config.approval_tags),
    ];
    for (toolkit, filter) in &config.tools {
        if let ToolFilter::Tags(tags) = filter {
            let path = format!("tools.{toolkit}.tags");
            lists.push((path.clone(), &tags.enable));
            lists.push((path, &tags.disable));
        }
    }
    for (toolkit, tags) in &config.approval_toolkit_tags {
        lists.push((format!("tools.{toolkit}.tags.require_approval"), tags));
    }
    let known = KNOWN_TOOL_HINTS.join(", ");
    lists.retain(|(_, tags)| {
        tags.iter()
            .any(|tag| !KNOWN_TOOL_HINTS.contains(&tag.as_str()))
    });
    lists
        .iter()
        .map(|(path, _)| format!("{path}: each must be one of {known}"))
        .collect()
}

async fn check_auth_configs(app: &App, project: &Project, config: &Config) -> Result<()> {
    let mut problems = Vec::new();
    for (toolkit, id) in &config.auth_configs {
        let found = auth_configs::find(app, project, id).await?;
        let reason = match found.map(|found| found.body) {
            None => "not found",
            Some(found) if found.toolkit != *toolkit => "belongs to another toolkit",
            Some(found) if found.status != auth_configs::Status::Enabled => "is disabled",
            Some(found) if !found.in_sessions => "is not enabled for sessions",
            Some(_) => continue,
        };
        problems.push(format!("{toolkit}: {id} {reason}"));
    }
    errors::refuse_problems(problems, |problems| {
        errors::invalid_auth_configs(problems.join(", "))
    })
}

async fn check_accounts(app: &App, project: &Project, config: &Config) -> Result<()> {
    let mut problems = Vec::new();
    for (toolkit, ids) in &config.connected_accounts {
        for id in ids {
            let usable = accounts::check_usable(app, project, id, toolkit, &config.user_id).await;
            if let Err(cause) = usable {
                problems.push(format!("{toolkit}: {cause}"));
            }
        }
    }
    errors::refuse_problems(problems, |problems| {
        errors::invalid_accounts(problems.join(", "))
    })
}
