//! Checks of tools and triggers.

use std::collections::BTreeSet;

use super::{MAX_DESCRIPTION_BYTES, MAX_NAME_BYTES, Report, hosts, schema, text, unique};
use crate::{EgressRule, Manifest, Subscribing, Tool, Trigger};

const MAX_SLUG_BYTES: usize = 64;
const MAX_LABELS: usize = 64;
const MAX_SYNONYMS: usize = 16;
const MAX_SYNONYM_BYTES: usize = 64;
const MAX_LABEL_BYTES: usize = 256;
const MAX_EXAMPLES: usize = 10;
const MAX_POINTER_BYTES: usize = 256;

pub(super) fn check(manifest: &Manifest, report: &mut Report) {
    let mut seen = BTreeSet::new();
    for (index, tool) in manifest.tools.iter().enumerate() {
        let mut report = place(report, "tools", index, &tool.slug);
        if !seen.insert(tool.slug.to_ascii_uppercase()) {
            report.add("another tool has this slug");
        }
        check_slug(manifest, &tool.slug, &mut report);
        check_tool(manifest, tool, &mut report);
    }
    seen.clear();
    for (index, trigger) in manifest.triggers.iter().enumerate() {
        let mut report = place(report, "triggers", index, &trigger.slug);
        if !seen.insert(trigger.slug.to_ascii_uppercase()) {
            report.add("another trigger has this slug");
        }
        check_slug(manifest, &trigger.slug, &mut report);
        check_trigger(manifest, trigger, &mut report);
        if let Some(subscription) = &trigger.subscription {
            check_subscription(manifest, trigger, subscription, &mut report);
        }
    }
}

/// Returns the report for an item of a list. It is named by its slug if the slug is well formed,
/// otherwise by its number.
fn place<'a>(report: &'a mut Report<'_>, list: &str, index: usize, slug: &str) -> Report<'a> {
    if is_upper(slug) {
        report.at(format_args!("{list}.{slug}"))
    } else {
        report.at(format_args!("{list}[{index}]"))
    }
}

fn check_slug(manifest: &Manifest, slug: &str, report: &mut Report) {
    let mut report = report.at("slug");
    let prefix = format!("{}_", manifest.slug.to_ascii_uppercase());
    if !is_upper(slug) || slug.ends_with('_') {
        report.add(format_args!(
            "`{slug}` is not a slug; write A-Z, 0-9 and _, for example {prefix}LIST_ITEMS"
        ));
    } else if slug.strip_prefix(&prefix).is_none_or(str::is_empty) {
        report.add(format_args!(
            "`{slug}` must begin with `{prefix}` and continue"
        ));
    }
    if slug.len() > MAX_SLUG_BYTES {
        report.add(format_args!(
            "{} characters are too long; at most {MAX_SLUG_BYTES}",
            slug.len()
        ));
    }
}

fn is_upper(slug: &str) -> bool {
    !slug.is_empty()
        && slug
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

fn check_tool(manifest: &Manifest, tool: &Tool, report: &mut Report) {
    text::line(&tool.name, MAX_NAME_BYTES, &mut report.at("name"));
    text::block(
        &tool.description,
        MAX_DESCRIPTION_BYTES,
        &mut report.at("description"),
    );
    schema::check_object(&tool.input, &mut report.at("input"));
    schema::check_answer(&tool.output, &mut report.at("output"));
    if tool.hints.read_only && tool.hints.destructive {
        report
            .at("hints")
            .add("a tool that is read-only cannot be destructive");
    }
    check_labels(&tool.tags, &mut report.at("tags"));
    check_lines(
        &tool.synonyms,
        MAX_SYNONYMS,
        MAX_SYNONYM_BYTES,
        &mut report.at("synonyms"),
    );
    check_scopes(&tool.scopes, &mut report.at("scopes"));
    check_egress(
        manifest,
        tool.egress.as_deref(),
        tool.hints.read_only,
        &mut report.at("egress"),
    );
    let mut report = report.at("examples");
    report.limit(tool.examples.len(), MAX_EXAMPLES);
    for (index, _) in tool
        .examples
        .iter()
        .enumerate()
        .filter(|(_, example)| !example.is_object())
    {
        report
            .at(index)
            .add("must be an object with the arguments of one call");
    }
    for example in &tool.examples {
        text::visible(&example.to_string(), &mut report);
    }
}

fn check_trigger(manifest: &Manifest, trigger: &Trigger, report: &mut Report) {
    text::line(&trigger.name, MAX_NAME_BYTES, &mut report.at("name"));
    text::block(
        &trigger.description,
        MAX_DESCRIPTION_BYTES,
        &mut report.at("description"),
    );
    schema::check_object(&trigger.config, &mut report.at("config"));
    schema::check_answer(&trigger.payload, &mut report.at("payload"));
    check_scopes(&trigger.scopes, &mut report.at("scopes"));
    check_egress(
        manifest,
        trigger.egress.as_deref(),
        false,
        &mut report.at("egress"),
    );
}

fn check_subscription(
    manifest: &Manifest,
    trigger: &Trigger,
    subscription: &Subscribing,
    report: &mut Report,
) {
    let mut report = report.at("subscription");
    if !trigger.kind.receives_webhooks() {
        report.add("only a trigger that receives webhooks can subscribe");
    }
    // Both are run by `execute`.
    if manifest.tool(&trigger.slug).is_some() {
        report.add("a tool has the slug of the trigger; rename one of them");
    }
    let properties = &trigger.config["properties"];
    if properties
        .get(&subscription.secret)
        .is_none_or(|secret| secret["writeOnly"] != true)
    {
        report.at("secret").add(format_args!(
            "`{}` is no property of the configuration with `writeOnly`",
            subscription.secret
        ));
    }
    let pointer = &subscription.pointer;
    if !pointer.starts_with('/') || pointer.len() > MAX_POINTER_BYTES {
        report.at("pointer").add(format_args!(
            "must be a JSON pointer of at most {MAX_POINTER_BYTES} bytes, for example /config/secret"
        ));
    }
    for name in &subscription.requires {
        if properties.get(name).is_none() {
            report
                .at("requires")
                .add(format_args!("`{name}` is no property of the configuration"));
        }
    }
}

fn check_labels(labels: &[String], report: &mut Report) {
    check_lines(labels, MAX_LABELS, MAX_LABEL_BYTES, report);
}

/// Checks a list of different texts of one line.
fn check_lines(lines: &[String], max_lines: usize, max_line_bytes: usize, report: &mut Report) {
    report.limit(lines.len(), max_lines);
    for line in lines {
        text::line(line, max_line_bytes, report);
    }
    unique(lines, report);
}

pub(super) fn check_scopes(scopes: &[String], report: &mut Report) {
    check_labels(scopes, report);
    for scope in scopes
        .iter()
        .filter(|scope| scope.contains(char::is_whitespace))
    {
        report.add(format_args!(
            "`{scope}` holds white space; write each scope by itself"
        ));
    }
}

/// Checks that each rule lies within one of the toolkit's rules.
fn check_egress(
    manifest: &Manifest,
    rules: Option<&[EgressRule]>,
    read_only: bool,
    report: &mut Report,
) {
    let Some(rules) = rules else { return };
    hosts::check_rules(rules, report);
    for rule in rules {
        if !manifest
            .egress
            .iter()
            .any(|outer| hosts::within(rule, outer, read_only))
        {
            report
                .at(&rule.host)
                .add("allows more than the toolkit's own `egress`; widen that or narrow this");
        }
    }
}
