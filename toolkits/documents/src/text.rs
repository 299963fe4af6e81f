//! Plain text: differences and pattern matches.

use std::collections::BTreeMap;

use regex::{Captures, Regex, RegexBuilder};
use similar::{ChangeTag, TextDiff};
use toolkit_sdk::prelude::*;

/// Max size of a compiled pattern in bytes. `\w{1000}` and the like exceed it.
const MAX_PATTERN_BYTES: usize = 1 << 20;
/// Max depth of nested groups. The compiler recurses once per level.
const MAX_PATTERN_DEPTH: u32 = 32;
const MAX_MATCHES: usize = 10_000;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Versions {
    /// Old text.
    before: String,
    /// New text.
    after: String,
    /// Name of the old text in the diff's header.
    #[serde(default = "before")]
    before_name: String,
    /// Name of the new text in the diff's header.
    #[serde(default = "after")]
    after_name: String,
    /// Number of unchanged lines to show around each change.
    #[serde(default = "three")]
    #[schemars(range(max = 100))]
    context: usize,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Diff {
    /// Unified diff; empty if the texts are equal.
    diff: String,
    /// Number of lines that are only in the new text.
    added: usize,
    /// Number of lines that are only in the old text.
    removed: usize,
    identical: bool,
}

/// Compares two texts line by line and returns a unified diff, as `diff -u` and version control
/// show it.
#[tool(
    read_only,
    idempotent,
    important,
    example = r#"{"before": "one\ntwo\n", "after": "one\n2\n"}"#
)]
pub(crate) fn diff_text(input: Versions) -> Result<Diff> {
    let changes = TextDiff::from_lines(&input.before, &input.after);
    let count = |tag| {
        changes
            .iter_all_changes()
            .filter(|change| change.tag() == tag)
            .count()
    };
    let added = count(ChangeTag::Insert);
    let removed = count(ChangeTag::Delete);
    let mut diff = changes.unified_diff();
    diff.context_radius(input.context.min(100))
        .header(&input.before_name, &input.after_name);
    let identical = added + removed == 0;
    Ok(Diff {
        diff: if identical {
            String::new()
        } else {
            diff.to_string()
        },
        added,
        removed,
        identical,
    })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Pattern {
    text: String,
    /// Regular expression: Perl-like syntax with Unicode, without look-around and back-references.
    /// Name a group with `(?<name>…)`.
    pattern: String,
    /// Ignores upper and lower case.
    #[serde(default)]
    ignore_case: bool,
    /// `^` and `$` match at each line, not only at the ends of the text.
    #[serde(default)]
    multi_line: bool,
    /// `.` matches a line break too.
    #[serde(default)]
    dot_matches_new_line: bool,
    /// Max number of matches to return.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1, max = 10000))]
    limit: usize,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Matches {
    matches: Vec<Match>,
    /// True if more than `limit` matches exist.
    more: bool,
}

#[derive(Serialize, JsonSchema)]
struct Match {
    /// Text of the whole match.
    text: String,
    /// Start of the match, in characters from the start of the text.
    start: usize,
    /// Text of each group, by name, or by number from 1 if it has no name; null for a group without
    /// a match.
    groups: BTreeMap<String, Option<String>>,
}

/// Finds every match of a regular expression in text, with its groups. The time is linear in the
/// text for every pattern. Use it to extract numbers, addresses, identifiers or log fields from
/// text.
#[tool(
    read_only,
    idempotent,
    important,
    example = r#"{"text": "Order 17 of 2026-11-21", "pattern": "(?<year>\\d{4})-(?<month>\\d{2})"}"#
)]
pub(crate) fn extract_matches(input: Pattern) -> Result<Matches> {
    let regex = RegexBuilder::new(&input.pattern)
        .case_insensitive(input.ignore_case)
        .multi_line(input.multi_line)
        .dot_matches_new_line(input.dot_matches_new_line)
        .size_limit(MAX_PATTERN_BYTES)
        .nest_limit(MAX_PATTERN_DEPTH)
        .build()
        .map_err(|error| {
            // The message starts with the pattern and a mark in it; the reason is in the last line.
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default();
            let reason = reason.trim_start_matches("error: ");
            ToolError::invalid_input(format!("cannot use the pattern: {reason}"))
        })?;
    let limit = input.limit.clamp(1, MAX_MATCHES);
    let mut found = regex.captures_iter(&input.text);
    let mut seen = (0, 0);
    let matches = found
        .by_ref()
        .take(limit)
        .map(|captures| one_match(&regex, &captures, &input.text, &mut seen))
        .collect();
    Ok(Matches {
        matches,
        more: found.next().is_some(),
    })
}

/// Converts one match. `seen` is the position up to which characters were counted: bytes,
/// characters.
fn one_match(
    regex: &Regex,
    captures: &Captures<'_>,
    text: &str,
    seen: &mut (usize, usize),
) -> Match {
    let whole = captures.get_match();
    *seen = (
        whole.start(),
        seen.1 + text[seen.0..whole.start()].chars().count(),
    );
    let groups = regex
        .capture_names()
        .enumerate()
        .skip(1)
        .map(|(number, name)| {
            let name = name.map_or_else(|| number.to_string(), str::to_owned);
            (
                name,
                captures.get(number).map(|group| group.as_str().to_owned()),
            )
        });
    Match {
        text: whole.as_str().to_owned(),
        start: seen.1,
        groups: groups.collect(),
    }
}

fn before() -> String {
    "before".to_owned()
}

fn after() -> String {
    "after".to_owned()
}

fn three() -> usize {
    3
}

fn hundred() -> usize {
    100
}
