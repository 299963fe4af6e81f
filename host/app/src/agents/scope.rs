//! The tools that a session permits.
//!
//! One pure function decides, from the configuration of the session and the facts about a tool. The
//! filters apply in this order, and the first one that excludes the tool is the reason: the toolkits
//! of the session, the permission of the tool, the list of tools of the toolkit, the hints set for the
//! toolkit, or else those set for the session. A tool that an `enable` list names is permitted whatever
//! its hints are. A tool needs one of the enabled hints, and a disabled hint excludes it.

use super::{Config, Filter, Permission, Tags, ToolFilter, errors};
use crate::{Error, catalog::ResolvedTool};

/// The facts about a tool by which a session permits it.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// Slug of the toolkit, in lower case.
    pub toolkit: &'a str,
    /// Slug of the tool, in upper case.
    pub tool: &'a str,
    /// Hints of the tool.
    pub hints: Vec<&'a str>,
}

impl<'a> From<&'a ResolvedTool> for Facts<'a> {
    fn from(found: &'a ResolvedTool) -> Self {
        Self {
            toolkit: &found.release.slug,
            tool: &found.tool.slug,
            hints: found.tool.labels().collect(),
        }
    }
}

/// The filter that excludes a toolkit or a tool. Its text is the reason as a part of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The enabled toolkits do not contain it.
    #[error("`toolkits.enable` does not list the toolkit")]
    ToolkitNotEnabled,
    /// The disabled toolkits contain it.
    #[error("`toolkits.disable` lists the toolkit")]
    ToolkitDisabled,
    /// Its permission is [`Permission::AlwaysDeny`].
    #[error("`overrides` of its permissions deny the tool")]
    Denied,
    /// The enabled tools of the toolkit do not contain it.
    #[error("`tools` of the toolkit does not enable the tool")]
    ToolNotEnabled,
    /// The disabled tools of the toolkit contain it.
    #[error("`tools` of the toolkit disables the tool")]
    ToolDisabled,
    /// It lacks the hints that are enabled for the toolkit.
    #[error("the tool has none of the tags enabled for the toolkit")]
    ToolkitHintMissing,
    /// One of its hints is disabled for the toolkit.
    #[error("the tool has a tag that is disabled for the toolkit")]
    ToolkitHintDisabled,
    /// It lacks the hints that are enabled for the session.
    #[error("the tool has none of the tags enabled for the session")]
    HintMissing,
    /// One of its hints is disabled for the session.
    #[error("the tool has a tag that is disabled for the session")]
    HintDisabled,
}

/// Decides whether a session permits a tool. Fails with the first filter that excludes the tool.
pub fn permit(config: &Config, tool: &Facts<'_>) -> Result<(), Refusal> {
    permit_toolkit(config, tool.toolkit)?;
    if permission(config, tool) == Permission::AlwaysDeny {
        return Err(Refusal::Denied);
    }
    match config.tools.get(tool.toolkit) {
        Some(ToolFilter::Enable(enabled)) if lists(enabled, tool.tool) => return Ok(()),
        Some(ToolFilter::Enable(_)) => return Err(Refusal::ToolNotEnabled),
        Some(ToolFilter::Disable(disabled)) if lists(disabled, tool.tool) => {
            return Err(Refusal::ToolDisabled);
        }
        // Empty tags say nothing, and do not override those of the session.
        Some(ToolFilter::Tags(tags)) if !tags.enable.is_empty() || !tags.disable.is_empty() => {
            permit_hints(
                tags,
                &tool.hints,
                Refusal::ToolkitHintMissing,
                Refusal::ToolkitHintDisabled,
            )?;
            if config.toolkit_overrides_tags {
                return Ok(());
            }
        }
        Some(ToolFilter::Disable(_) | ToolFilter::Tags(_)) | None => {}
    }
    permit_hints(
        &config.tags,
        &tool.hints,
        Refusal::HintMissing,
        Refusal::HintDisabled,
    )
}

/// Decides whether a session permits a toolkit. Fails with the filter that excludes the toolkit.
pub fn permit_toolkit(config: &Config, toolkit: &str) -> Result<(), Refusal> {
    match &config.toolkits {
        Some(Filter::Enable(enabled)) if !lists(enabled, toolkit) => {
            Err(Refusal::ToolkitNotEnabled)
        }
        Some(Filter::Disable(disabled)) if lists(disabled, toolkit) => {
            Err(Refusal::ToolkitDisabled)
        }
        _ => Ok(()),
    }
}

fn permit_hints(
    tags: &Tags,
    hints: &[&str],
    missing: Refusal,
    disabled: Refusal,
) -> Result<(), Refusal> {
    if tags.disable.iter().any(|tag| hints.contains(&tag.as_str())) {
        return Err(disabled);
    }
    if tags.enable.is_empty() || tags.enable.iter().any(|tag| hints.contains(&tag.as_str())) {
        Ok(())
    } else {
        Err(missing)
    }
}

fn lists(list: &[String], slug: &str) -> bool {
    list.iter().any(|one| one == slug)
}

/// Checks that a session permits a tool of the catalog. Fails with
/// [`errors::TOOLKIT_NOT_PERMITTED`] or [`errors::TOOL_NOT_PERMITTED`] with the reason.
pub fn check(config: &Config, found: &ResolvedTool) -> Result<(), Error> {
    check_toolkit(config, &found.release.slug)?;
    permit(config, &found.into())
        .map_err(|refusal| errors::tool_not_permitted(&found.tool.slug, refusal))
}

/// Returns true if a session permits a tool of the catalog.
#[must_use]
pub fn permits(config: &Config, found: &ResolvedTool) -> bool {
    permit(config, &found.into()).is_ok()
}

/// Returns true if the calls of a tool that needs approval run once the user has approved all of them: its
/// permission does not ask always.
#[must_use]
pub fn honors_approvals(config: &Config, found: &ResolvedTool) -> bool {
    own_permission(config, &found.into()) < Permission::AskAlways
}

/// Returns the permission of the tool, its toolkit or all tools.
fn own_permission(config: &Config, tool: &Facts<'_>) -> Permission {
    let of_tool = config.permissions.get(tool.tool);
    let permission = of_tool.or_else(|| config.permissions.get(tool.toolkit));
    permission.copied().unwrap_or_else(|| of_all(config))
}

/// Returns the permission of the calls of a tool: the stricter of its own one and that of the lists of what
/// needs approval.
#[must_use]
pub fn permission(config: &Config, tool: &Facts<'_>) -> Permission {
    let own = own_permission(config, tool);
    let tools = config.approval_tools.get(tool.toolkit);
    let tags = approval_tags(config, tool.toolkit);
    let is_listed = lists(&config.approval_toolkits, tool.toolkit)
        || tools.is_some_and(|tools| lists(tools, tool.tool))
        || tool.hints.iter().any(|hint| lists(tags, hint));
    if is_listed {
        own.max(Permission::AskAlways)
    } else {
        own
    }
}

/// Returns the hints of the tools of a toolkit that need approval: those of the toolkit if approval is
/// set for it, or else those of the session.
fn approval_tags<'a>(config: &'a Config, toolkit: &str) -> &'a [String] {
    match config.approval_toolkit_tags.get(toolkit) {
        Some(tags) => tags,
        None if config.toolkit_overrides_tags && config.approval_tools.contains_key(toolkit) => &[],
        None => &config.approval_tags,
    }
}

fn of_all(config: &Config) -> Permission {
    match (config.approval_of_all, config.approval_once) {
        (false, _) => Permission::AlwaysAllow,
        (true, true) => Permission::AskOnce,
        (true, false) => Permission::AskAlways,
    }
}

/// Returns true if any tool of a toolkit may need approval or be denied.
fn restricts_calls(config: &Config, toolkit: &str) -> bool {
    // The slug of a tool starts with that of its toolkit.
    let prefix = format!("{}_", toolkit.to_uppercase());
    let mut restricted = config.permissions.iter();
    let tools = config.approval_tools.get(toolkit);
    config.approval_of_all
        || lists(&config.approval_toolkits, toolkit)
        || tools.is_some_and(|tools| !tools.is_empty())
        || !approval_tags(config, toolkit).is_empty()
        || restricted.any(|(slug, permission)| {
            *permission != Permission::AlwaysAllow && (slug == toolkit || slug.starts_with(&prefix))
        })
}

/// Checks that a session permits a toolkit. Fails with [`errors::TOOLKIT_NOT_PERMITTED`] with the
/// reason.
pub fn check_toolkit(config: &Config, toolkit: &str) -> Result<(), Error> {
    permit_toolkit(config, toolkit)
        .map_err(|refusal| errors::toolkit_not_permitted(toolkit, refusal))
}

/// Checks that a session permits proxy requests to the provider of a toolkit. A session that limits
/// the tools of the toolkit refuses them, because a proxy request could do what an excluded tool
/// does. Fails with [`errors::TOOLKIT_NOT_PERMITTED`] or [`errors::TOOL_NOT_PERMITTED`] with the
/// reason.
pub fn check_proxy(config: &Config, toolkit: &str) -> Result<(), Error> {
    check_toolkit(config, toolkit)?;
    let reason = if config.proxy_execute == Some(false) {
        "`proxy_execute.enable` is false"
    } else if restricts_calls(config, toolkit) {
        "calls of tools of the toolkit need approval or are denied"
    } else if config.tools.contains_key(toolkit) || config.tags != Tags::default() {
        "`tools` or `tags` limit the tools of the toolkit"
    } else {
        return Ok(());
    };
    Err(errors::tool_not_permitted("SERVICE_PROXY_EXECUTE", reason))
}

#[cfg(test)]
mod tests;
