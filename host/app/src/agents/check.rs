//! Checks of a session's configuration before it is stored.

mod slugs;

use self::slugs::with_catalog_slugs;
use super::{Config, KNOWN_TOOL_HINTS, MAX_CONFIG_BYTES, Tags, ToolFilter, errors};
use crate::{
    App, Result,
    accounts::{self, auth_configs},
    core::truncate,
    projects::Project,
};

/// Maximum number of accounts of one toolkit that a session may pin.
pub const MAX_PINNED_ACCOUNTS: usize = 10;
/// Maximum number of unknown tags of one list that an error names.
const MAX_NAMED_TAGS: usize = 20;
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
    let values = check_values(&config);
    let respelled = with_catalog_slugs(&app.catalog.snapshot(), config, before);
    let (config, ()) = errors::both(respelled, values)?;
    let auth_configs = check_auth_configs(app, project, &config, before).await;
    let accounts = check_accounts(app, project, &config, before).await;
    errors::both(auth_configs, accounts)?;
    Ok(config.normalized())
}

/// Checks the values that need no look-up.
fn check_values(config: &Config) -> Result<()> {
    let mut problems = tag_problems(config);
    for (toolkit, ids) in &config.connected_accounts {
        let toolkit = truncate(toolkit);
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

/// Returns the path to the tags to enable.
fn enable_path(path: &str, tags: &Tags) -> String {
    let end = if tags.is_list { "" } else { ".enable" };
    format!("{path}{end}")
}

/// Returns the problems of the tags that a configuration names.
fn tag_problems(config: &Config) -> Vec<String> {
    let mut lists = vec![
        (enable_path("tags", &config.tags), &config.tags.enable),
        ("tags.disable".to_owned(), &config.tags.disable),
        ("tags.require_approval".to_owned(), &config.approval_tags),
    ];
    for (toolkit, filter) in &config.tools {
        if let ToolFilter::Tags(tags) = filter {
            let path = format!("tools.{}.tags", truncate(toolkit));
            lists.push((enable_path(&path, tags), &tags.enable));
            lists.push((format!("{path}.disable"), &tags.disable));
        }
    }
    for (toolkit, tags) in &config.approval_toolkit_tags {
        let path = format!("tools.{}.tags.require_approval", truncate(toolkit));
        lists.push((path, tags));
    }
    let known = KNOWN_TOOL_HINTS.join(", ");
    let mut problems = Vec::new();
    for (path, tags) in lists {
        let unknown = tags
            .iter()
            .enumerate()
            .filter(|(_, tag)| !KNOWN_TOOL_HINTS.contains(&tag.as_str()));
        let lines = unknown.map(|(index, _)| format!("{path}[{index}]: must be one of {known}"));
        problems.extend(lines.take(MAX_NAMED_TAGS));
    }
    problems
}

async fn check_auth_configs(
    app: &App,
    project: &Project,
    config: &Config,
    before: &Config,
) -> Result<()> {
    if config.auth_configs == before.auth_configs {
        return Ok(());
    }
    let mut problems = Vec::new();
    for (toolkit, id) in &config.auth_configs {
        let found = auth_configs::find(&app.store, &project.id, id).await?;
        let reason = match found.map(|found| found.body) {
            None => "not found",
            Some(found) if found.toolkit != *toolkit => "belongs to another toolkit",
            Some(found) if found.status != auth_configs::Status::Enabled => "is disabled",
            Some(found) if !found.in_sessions => "is not enabled for sessions",
            Some(_) => continue,
        };
        problems.push(format!("auth_configs.{toolkit}: {id} {reason}"));
    }
    errors::refuse_problems(problems, |problems| {
        errors::invalid_auth_configs(problems.join(", ")).with_contained_problems(problems)
    })
}

async fn check_accounts(
    app: &App,
    project: &Project,
    config: &Config,
    before: &Config,
) -> Result<()> {
    if config.connected_accounts == before.connected_accounts {
        return Ok(());
    }
    let mut problems = Vec::new();
    for (toolkit, ids) in &config.connected_accounts {
        for (index, id) in ids.iter().enumerate() {
            let usable = accounts::check_usable(app, project, id, toolkit, &config.user_id).await;
            if let Err(cause) = usable {
                problems.push(format!("connected_accounts.{toolkit}[{index}]: {cause}"));
            }
        }
    }
    errors::refuse_problems(problems, |problems| {
        errors::invalid_accounts(problems.join(", ")).with_contained_problems(problems)
    })
}
