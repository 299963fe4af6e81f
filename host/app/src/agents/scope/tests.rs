//! Tests of `scope`.

use std::collections::BTreeMap;

use super::*;

fn owned(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}

fn tags(enable: &[&str], disable: &[&str]) -> Tags {
    Tags {
        enable: owned(enable),
        disable: owned(disable),
        ..Tags::default()
    }
}

fn config(toolkits: Option<Filter>, tools: Option<ToolFilter>, tags: Tags) -> Config {
    Config {
        toolkits,
        tools: tools
            .map(|own| ("mail".to_owned(), own))
            .into_iter()
            .collect(),
        tags,
        ..Config::default()
    }
}

fn send() -> Facts<'static> {
    Facts {
        toolkit: "mail",
        tool: "MAIL_SEND",
        hints: vec!["destructiveHint"],
    }
}

#[test]
fn filters_apply_in_order() {
    use Refusal::*;
    let (mail, chat) = (&["mail"][..], &["chat"][..]);
    let (list, send) = (&["MAIL_LIST"][..], &["MAIL_SEND"][..]);
    let (reads, writes) = (&["readOnlyHint"][..], &["destructiveHint"][..]);
    let both = &["readOnlyHint", "destructiveHint"];
    let repeats = &["idempotentHint"];
    let none = Tags::default;
    let enable = |list| Some(Filter::Enable(owned(list)));
    let disable = |list| Some(Filter::Disable(owned(list)));
    let only = |list| Some(ToolFilter::Enable(owned(list)));
    let without = |list| Some(ToolFilter::Disable(owned(list)));
    let by_tags = |enable, disable| Some(ToolFilter::Tags(tags(enable, disable)));
    // Decides about `MAIL_LIST`, which is read-only and idempotent.
    let decide = |expected, toolkits, tools, tags| {
        let facts = Facts {
            toolkit: "mail",
            tool: "MAIL_LIST",
            hints: vec!["readOnlyHint", "idempotentHint"],
        };
        let config = config(toolkits, tools, tags);
        assert_eq!(permit(&config, &facts).err(), expected, "{config:?}");
    };
    let permits = |toolkits, tools, tags| decide(None, toolkits, tools, tags);
    let refuses = |refusal, toolkits, tools, tags| decide(Some(refusal), toolkits, tools, tags);
    permits(None, None, none());
    permits(enable(mail), None, none());
    refuses(ToolkitNotEnabled, enable(chat), None, none());
    refuses(ToolkitNotEnabled, enable(&[]), None, none());
    permits(disable(chat), None, none());
    refuses(ToolkitDisabled, disable(mail), None, none());
    // The toolkit is decided first: no list of tools brings it back.
    refuses(ToolkitDisabled, disable(mail), only(list), none());
    permits(None, only(list), none());
    refuses(ToolNotEnabled, None, only(send), none());
    refuses(ToolNotEnabled, None, only(&[]), none());
    permits(None, without(send), none());
    refuses(ToolDisabled, None, without(list), none());
    // An explicit list beats tags; a tool that is not listed still needs them.
    permits(None, only(list), tags(writes, &[]));
    permits(None, only(list), tags(&[], reads));
    refuses(ToolDisabled, None, without(list), tags(writes, &[]));
    refuses(HintMissing, None, without(send), tags(writes, &[]));
    permits(None, by_tags(both, &[]), none());
    refuses(ToolkitHintMissing, None, by_tags(writes, &[]), none());
    refuses(ToolkitHintDisabled, None, by_tags(reads, repeats), none());
    permits(None, by_tags(&[], writes), none());
    // In a configuration of an earlier version, the hints of the toolkit and those of the session hold.
    let for_writes = || tags(writes, &[]);
    refuses(ToolkitHintMissing, None, by_tags(writes, &[]), for_writes());
    refuses(HintMissing, None, by_tags(reads, &[]), for_writes());
    permits(None, None, tags(reads, &[]));
    refuses(HintMissing, None, None, for_writes());
    refuses(HintDisabled, None, None, tags(&[], repeats));
    refuses(HintDisabled, None, None, tags(reads, reads));
}

#[test]
fn hints_of_toolkit_stand_in_place_of_those_of_session() {
    let by_tags = |enable: &[&str]| Some(ToolFilter::Tags(tags(enable, &[])));
    let config = Config {
        toolkit_overrides_tags: true,
        ..config(
            None,
            by_tags(&["destructiveHint"]),
            tags(&["readOnlyHint"], &[]),
        )
    };
    assert_eq!(permit(&config, &send()), Ok(()));
    let chat = Facts {
        toolkit: "chat",
        ..send()
    };
    assert_eq!(permit(&config, &chat), Err(Refusal::HintMissing));
    let by_list = ToolFilter::Disable(owned(&["MAIL_LIST"]));
    for without_tags in [by_list, ToolFilter::Tags(Tags::default())] {
        let config = Config {
            tools: BTreeMap::from([("mail".to_owned(), without_tags)]),
            ..config.clone()
        };
        assert_eq!(permit(&config, &send()), Err(Refusal::HintMissing));
    }
}

#[test]
fn approval_of_toolkit_stands_in_place_of_that_of_session() {
    let mail = |list: &[&str]| BTreeMap::from([("mail".to_owned(), owned(list))]);
    let base = Config {
        approval_tags: owned(&["destructiveHint"]),
        toolkit_overrides_tags: true,
        ..Config::default()
    };
    let by_tools = |list: &[&str], toolkit_overrides_tags| Config {
        approval_tools: mail(list),
        toolkit_overrides_tags,
        ..base.clone()
    };
    let by_tags = |list: &[&str]| Config {
        approval_toolkit_tags: mail(list),
        ..base.clone()
    };
    for (config, required) in [
        (base.clone(), true),
        (by_tools(&[], true), false),
        (by_tools(&["MAIL_LIST"], true), false),
        (by_tools(&["MAIL_SEND"], true), true),
        (by_tools(&[], false), true),
        (by_tags(&[]), false),
        (by_tags(&["readOnlyHint"]), false),
        (by_tags(&["destructiveHint"]), true),
    ] {
        let permission = permission(&config, &send());
        assert_eq!(permission == Permission::AskAlways, required, "{config:?}");
        let restricts = required || config.approval_tools.values().any(|list| !list.is_empty());
        let restricts = restricts
            || config
                .approval_toolkit_tags
                .values()
                .any(|list| !list.is_empty());
        assert_eq!(
            check_proxy(&config, "mail").is_ok(),
            !restricts,
            "{config:?}"
        );
    }
}

#[test]
fn limited_toolkits_refuse_proxy_requests() {
    let included = Filter::Enable(owned(&["mail"]));
    let excluded = Filter::Disable(owned(&["mail"]));
    let by_list = Some(ToolFilter::Disable(Vec::new()));
    let off = Config {
        proxy_execute: Some(false),
        ..Config::default()
    };
    for (config, permitted) in [
        (Config::default(), true),
        (config(Some(included), None, Tags::default()), true),
        (config(Some(excluded), None, Tags::default()), false),
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
        let permission = permission(&config, &send());
        assert_eq!(permission == Permission::AskAlways, required, "{config:?}");
        assert_eq!(
            permission == Permission::AlwaysAllow,
            !required,
            "{config:?}"
        );
    }
}

#[test]
fn permission_of_tool_goes_before_toolkit_and_default() {
    use Permission::*;
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
        assert_eq!(permission(&config, &send()), expected, "{config:?}");
        let refusal = (expected == AlwaysDeny).then_some(Refusal::Denied);
        assert_eq!(permit(&config, &send()).err(), refusal, "{config:?}");
        let proxy = check_proxy(&config, "mail");
        assert_eq!(proxy.is_ok(), has_proxy, "{config:?}");
    }
}

#[test]
fn filters_of_another_toolkit_do_not_apply() {
    let mut config = config(None, None, Tags::default());
    let filter = ToolFilter::Enable(Vec::new());
    config.tools.insert("chat".to_owned(), filter);
    assert_eq!(permit(&config, &send()), Ok(()));
}
