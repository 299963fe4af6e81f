//! The tools that a session permits.
//!
//! One pure function decides, from the configuration of the session and the facts about a tool. The
//! filters apply in this order, and the first one that excludes the tool is the reason: the toolkits
//! of the session, the permission of the tool, the list of tools of the toolkit, the hints set for the
//! toolkit, the hints set for the session. A tool that an `enable` list names is permitted whatever its
//! hints are. Of enabled hints a tool needs one; of disabled ones it may have none.

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

/// The filter that excludes a toolkit or a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The enabled toolkits do not contain it.
    ToolkitNotEnabled,
    /// The disabled toolkits contain it.
    ToolkitDisabled,
    /// Its permission is [`Permission::AlwaysDeny`].
    Denied,
    /// The enabled tools of the toolkit do not contain it.
    ToolNotEnabled,
    /// The disabled tools of the toolkit contain it.
    ToolDisabled,
    /// It has none of the hints that are enabled for the toolkit.
    ToolkitHintMissing,
    /// It has a hint that is disabled for the toolkit.
    ToolkitHintDisabled,
    /// It has none of the hints that are enabled for the session.
    HintMissing,
    /// It has a hint that is disabled for the session.
    HintDisabled,
}

impl Refusal {
    /// Returns the reason as a part of a sentence.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::ToolkitNotEnabled => "`toolkits.enable` does not list the toolkit",
            Self::ToolkitDisabled => "`toolkits.disable` lists the toolkit",
            Self::Denied => "`overrides` of its permissions deny the tool",
            Self::ToolNotEnabled => "`tools` of the toolkit does not enable the tool",
            Self::ToolDisabled => "`tools` of the toolkit disables the tool",
            Self::ToolkitHintMissing => "the tool has none of the tags enabled for the toolkit",
            Self::ToolkitHintDisabled => "the tool has a tag that is disabled for the toolkit",
            Self::HintMissing => "the tool has none of the tags enabled for the session",
            Self::HintDisabled => "the tool has a tag that is disabled for the session",
        }
    }
}

/// Decides whether a session permits a tool.
///
/// # Errors
/// Returns the first filter that excludes the tool.
pub fn permit(config: &Config, tool: &Facts<'_>) -> Result<(), Refusal> {
    permit_toolkit(config, tool.toolkit)?;
    if permission_of(config, tool) == Permission::AlwaysDeny {
        return Err(Refusal::Denied);
    }
    match config.tools.get(tool.toolkit) {
        Some(ToolFilter::Enable(enabled)) if lists(enabled, tool.tool) => return Ok(()),
        Some(ToolFilter::Enable(_)) => return Err(Refusal::ToolNotEnabled),
        Some(ToolFilter::Disable(disabled)) if lists(disabled, tool.tool) => {
            return Err(Refusal::ToolDisabled);
        }
        Some(ToolFilter::Tags(tags)) => permit_hints(
            tags,
            &tool.hints,
            Refusal::ToolkitHintMissing,
            Refusal::ToolkitHintDisabled,
        )?,
        Some(ToolFilter::Disable(_)) | None => {}
    }
    permit_hints(
        &config.tags,
        &tool.hints,
        Refusal::HintMissing,
        Refusal::HintDisabled,
    )
}

/// Decides whether a session permits a toolkit.
///
/// # Errors
/// Returns the filter that excludes the toolkit.
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

/// Checks that a session permits a tool of the catalog.
///
/// # Errors
/// Returns [`errors::TOOLKIT_NOT_PERMITTED`] or [`errors::TOOL_NOT_PERMITTED`] with the reason.
pub fn check(config: &Config, found: &ResolvedTool) -> Result<(), Error> {
    check_toolkit(config, &found.release.slug)?;
    let hints = found.tool.labels().collect();
    permit(config, &facts(found, hints))
        .map_err(|refusal| errors::tool_not_permitted(&found.tool.slug, refusal.reason()))
}

/// Returns the permission of the calls of a tool of the catalog.
#[must_use]
pub fn permission(config: &Config, found: &ResolvedTool) -> Permission {
    let hints = found.tool.labels().collect();
    permission_of(config, &facts(found, hints))
}

/// Returns the stricter of two permissions: the own one of the tool, its toolkit or all tools, and that
/// of the lists of what needs approval.
fn permission_of(config: &Config, tool: &Facts<'_>) -> Permission {
    let of_tool = config.permissions.get(tool.tool);
    let own = of_tool.or_else(|| config.permissions.get(tool.toolkit));
    let own = own.copied().unwrap_or_else(|| of_all(config));
    let tools = config.approval_tools.get(tool.toolkit);
    let is_listed = lists(&config.approval_toolkits, tool.toolkit)
        || tools.is_some_and(|tools| lists(tools, tool.tool))
        || tool
            .hints
            .iter()
            .any(|hint| lists(&config.approval_tags, hint));
    if is_listed {
        own.max(Permission::AskAlways)
    } else {
        own
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
    // The slug of a tool begins with that of its toolkit.
    let prefix = format!("{}_", toolkit.to_uppercase());
    let mut restricted = config.permissions.iter();
    config.approval_of_all
        || lists(&config.approval_toolkits, toolkit)
        || config.approval_tools.contains_key(toolkit)
        || !config.approval_tags.is_empty()
        || restricted.any(|(slug, permission)| {
            *permission != Permission::AlwaysAllow && (slug == toolkit || slug.starts_with(&prefix))
        })
}

fn facts<'a>(found: &'a ResolvedTool, hints: Vec<&'a str>) -> Facts<'a> {
    Facts {
        toolkit: &found.release.slug,
        tool: &found.tool.slug,
        hints,
    }
}

/// Checks that a session permits a toolkit.
///
/// # Errors
/// Returns [`errors::TOOLKIT_NOT_PERMITTED`] with the reason.
pub fn check_toolkit(config: &Config, toolkit: &str) -> Result<(), Error> {
    permit_toolkit(config, toolkit)
        .map_err(|refusal| errors::toolkit_not_permitted(toolkit, refusal.reason()))
}

/// Checks that a session permits proxy requests to the provider of a toolkit. A session that limits
/// the tools of the toolkit permits none, because a proxy request could do what an excluded tool does.
///
/// # Errors
/// Returns [`errors::TOOLKIT_NOT_PERMITTED`] or [`errors::TOOL_NOT_PERMITTED`] with the reason.
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
    Err(errors::tool_not_permitted("PROXY_EXECUTE", reason))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn owned(list: &[&str]) -> Vec<String> {
        list.iter().map(|&text| text.to_owned()).collect()
    }

    fn tags(enable: &[&str], disable: &[&str]) -> Tags {
        Tags {
            enable: owned(enable),
            disable: owned(disable),
        }
    }

    fn config(toolkits: Option<Filter>, tools: Option<ToolFilter>, tags: Tags) -> Config {
        Config {
            toolkits,
            tools: tools
                .map(|filter| ("mail".to_owned(), filter))
                .into_iter()
                .collect(),
            tags,
            ..Config::default()
        }
    }

    /// Decides about `MAIL_LIST`, which is read-only and idempotent.
    fn decide(toolkits: Option<Filter>, tools: Option<ToolFilter>, tags: Tags) -> Option<Refusal> {
        let facts = Facts {
            toolkit: "mail",
            tool: "MAIL_LIST",
            hints: vec!["readOnlyHint", "idempotentHint"],
        };
        permit(&config(toolkits, tools, tags), &facts).err()
    }

    #[test]
    fn filters_apply_in_order() {
        use Refusal::*;
        let none = Tags::default;
        let enable = |list: &[&str]| Some(Filter::Enable(owned(list)));
        let disable = |list: &[&str]| Some(Filter::Disable(owned(list)));
        let only = |list: &[&str]| Some(ToolFilter::Enable(owned(list)));
        let without = |list: &[&str]| Some(ToolFilter::Disable(owned(list)));
        let by_tags =
            |enable: &[&str], disable: &[&str]| Some(ToolFilter::Tags(tags(enable, disable)));
        let writes = || tags(&["destructiveHint"], &[]);
        for (number, (toolkits, tools, session_tags, expected)) in [
            (None, None, none(), None),
            (enable(&["mail"]), None, none(), None),
            (enable(&["chat"]), None, none(), Some(ToolkitNotEnabled)),
            (enable(&[]), None, none(), Some(ToolkitNotEnabled)),
            (disable(&["chat"]), None, none(), None),
            (disable(&["mail"]), None, none(), Some(ToolkitDisabled)),
            // The toolkit is decided first: no list of tools brings it back.
            (
                disable(&["mail"]),
                only(&["MAIL_LIST"]),
                none(),
                Some(ToolkitDisabled),
            ),
            (None, only(&["MAIL_LIST"]), none(), None),
            (None, only(&["MAIL_SEND"]), none(), Some(ToolNotEnabled)),
            (None, only(&[]), none(), Some(ToolNotEnabled)),
            (None, without(&["MAIL_SEND"]), none(), None),
            (None, without(&["MAIL_LIST"]), none(), Some(ToolDisabled)),
            // An explicit list beats tags; a tool that is not listed still needs them.
            (None, only(&["MAIL_LIST"]), writes(), None),
            (
                None,
                only(&["MAIL_LIST"]),
                tags(&[], &["readOnlyHint"]),
                None,
            ),
            (None, without(&["MAIL_LIST"]), writes(), Some(ToolDisabled)),
            (None, without(&["MAIL_SEND"]), writes(), Some(HintMissing)),
            (
                None,
                by_tags(&["readOnlyHint", "destructiveHint"], &[]),
                none(),
                None,
            ),
            (
                None,
                by_tags(&["destructiveHint"], &[]),
                none(),
                Some(ToolkitHintMissing),
            ),
            (
                None,
                by_tags(&["readOnlyHint"], &["idempotentHint"]),
                none(),
                Some(ToolkitHintDisabled),
            ),
            (None, by_tags(&[], &["destructiveHint"]), none(), None),
            // The hints of the toolkit come before those of the session, and both must hold.
            (
                None,
                by_tags(&["destructiveHint"], &[]),
                writes(),
                Some(ToolkitHintMissing),
            ),
            (
                None,
                by_tags(&["readOnlyHint"], &[]),
                writes(),
                Some(HintMissing),
            ),
            (None, None, tags(&["readOnlyHint"], &[]), None),
            (None, None, writes(), Some(HintMissing)),
            (
                None,
                None,
                tags(&[], &["idempotentHint"]),
                Some(HintDisabled),
            ),
            (
                None,
                None,
                tags(&["readOnlyHint"], &["readOnlyHint"]),
                Some(HintDisabled),
            ),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(
                decide(toolkits, tools, session_tags),
                expected,
                "row {number}"
            );
        }
    }

    #[test]
    fn limited_toolkits_refuse_proxy_requests() {
        let none = || Filter::Enable(owned(&["mail"]));
        let by_list = Some(ToolFilter::Disable(Vec::new()));
        let off = Config {
            proxy_execute: Some(false),
            ..Config::default()
        };
        for (config, permitted) in [
            (Config::default(), true),
            (config(Some(none()), None, Tags::default()), true),
            (
                config(
                    Some(Filter::Disable(owned(&["mail"]))),
                    None,
                    Tags::default(),
                ),
                false,
            ),
            (config(None, by_list, Tags::default()), false),
            (config(None, None, tags(&["readOnlyHint"], &[])), false),
            (off, false),
        ] {
            assert_eq!(
                check_proxy(&config, "mail").is_ok(),
                permitted,
                "{config:?}"
            );
        }
    }

    #[test]
    fn approval_is_required_by_toolkit_tool_or_hint() {
        let facts = Facts {
            toolkit: "mail",
            tool: "MAIL_SEND",
            hints: vec!["destructiveHint"],
        };
        let of_tool = |toolkit: &str, tool: &str| Config {
            approval_tools: BTreeMap::from([(toolkit.to_owned(), owned(&[tool]))]),
            ..Config::default()
        };
        let of_toolkit = |toolkit: &str| Config {
            approval_toolkits: owned(&[toolkit]),
            ..Config::default()
        };
        let of_tag = |tag: &str| Config {
            approval_tags: owned(&[tag]),
            ..Config::default()
        };
        let of_all = Config {
            approval_of_all: true,
            ..Config::default()
        };
        for (config, required) in [
            (Config::default(), false),
            (of_tool("mail", "MAIL_SEND"), true),
            (of_tool("mail", "MAIL_LIST"), false),
            (of_tool("chat", "MAIL_SEND"), false),
            (of_toolkit("mail"), true),
            (of_toolkit("chat"), false),
            (of_tag("destructiveHint"), true),
            (of_tag("readOnlyHint"), false),
            (of_all, true),
        ] {
            let permission = permission_of(&config, &facts);
            let expected = if required {
                Permission::AskAlways
            } else {
                Permission::AlwaysAllow
            };
            assert_eq!(permission, expected, "{config:?}");
        }
    }

    #[test]
    fn permission_of_tool_goes_before_toolkit_and_default() {
        use Permission::*;
        let facts = Facts {
            toolkit: "mail",
            tool: "MAIL_SEND",
            hints: vec!["destructiveHint"],
        };
        let once = Config {
            approval_of_all: true,
            approval_once: true,
            ..Config::default()
        };
        let listed = Config {
            approval_tags: owned(&["destructiveHint"]),
            ..Config::default()
        };
        let free = Config::default();
        let of_both = [("mail", AlwaysDeny), ("MAIL_SEND", AskAlways)];
        for (config, permissions, expected, has_proxy) in [
            (&free, vec![], AlwaysAllow, true),
            (&once, vec![], AskOnce, false),
            (&once, vec![("mail", AlwaysAllow)], AlwaysAllow, false),
            (&once, vec![("MAIL_LIST", AlwaysAllow)], AskOnce, false),
            (&free, vec![("mail", AskOnce)], AskOnce, false),
            (&free, vec![("MAIL_LIST", AlwaysDeny)], AlwaysAllow, false),
            (&free, vec![("CHAT_SEND", AlwaysDeny)], AlwaysAllow, true),
            (&free, of_both.to_vec(), AskAlways, false),
            (&listed, vec![("MAIL_SEND", AlwaysAllow)], AskAlways, false),
            (&listed, vec![("MAIL_SEND", AlwaysDeny)], AlwaysDeny, false),
        ] {
            let permissions = permissions.into_iter();
            let permissions = permissions.map(|(slug, own)| (slug.to_owned(), own));
            let config = Config {
                permissions: permissions.collect(),
                ..config.clone()
            };
            assert_eq!(permission_of(&config, &facts), expected, "{config:?}");
            let refusal = (expected == AlwaysDeny).then_some(Refusal::Denied);
            assert_eq!(permit(&config, &facts).err(), refusal, "{config:?}");
            let proxy = check_proxy(&config, "mail");
            assert_eq!(proxy.is_ok(), has_proxy, "{config:?}");
        }
    }

    #[test]
    fn filters_of_another_toolkit_do_not_apply() {
        let mut config = config(None, None, Tags::default());
        let filter = ToolFilter::Enable(Vec::new());
        config.tools.insert("chat".to_owned(), filter);
        let facts = Facts {
            toolkit: "mail",
            tool: "MAIL_SEND",
            hints: Vec::new(),
        };
        assert_eq!(permit(&config, &facts), Ok(()));
    }
}
