//! What was expected beside what came, line by line.

use similar::{ChangeTag, TextDiff};

/// `-` stands before what was expected, `+` before what came.
pub(super) fn lines(expected: &str, actual: &str) -> String {
    let diff = TextDiff::from_lines(expected, actual);
    let mut text = String::new();
    for change in diff.iter_all_changes() {
        let sign = match change.tag() {
            ChangeTag::Delete => "-",
            ChangeTag::Insert => "+",
            ChangeTag::Equal => " ",
        };
        text.push_str("    ");
        text.push_str(sign);
        text.push(' ');
        text.push_str(change.value().trim_end_matches('\n'));
        text.push('\n');
    }
    text
}

/// Compares JSON, whatever the order of its keys.
pub(super) fn json(expected: &serde_json::Value, actual: &serde_json::Value) -> Option<String> {
    if expected == actual {
        return None;
    }
    Some(lines(&pretty(expected), &pretty(actual)))
}

/// With keys in order, so that only what differs shows.
fn pretty(value: &serde_json::Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    format!("{value:#}\n")
}
