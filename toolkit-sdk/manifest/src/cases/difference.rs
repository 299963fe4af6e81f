//! Line-by-line differences between an expected and an actual value.

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// Number of unchanged lines shown around a change.
const CONTEXT_LINES: usize = 3;

/// Returns the differences between two texts. `-` marks expected lines, `+` marks actual lines.
/// Lines far from a change are left out.
#[must_use]
pub fn lines(expected: &str, actual: &str) -> String {
    let diff = TextDiff::from_lines(expected, actual);
    let mut lines = Vec::new();
    for (number, group) in diff.grouped_ops(CONTEXT_LINES).iter().enumerate() {
        if number > 0 {
            lines.push("    …".to_owned());
        }
        for change in group
            .iter()
            .flat_map(|operation| diff.iter_changes(operation))
        {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            lines.push(format!(
                "  {sign} {}",
                change.value().trim_end_matches('\n')
            ));
        }
    }
    lines.join("\n")
}

/// Returns the differences between two values regardless of the order of their keys, or `None` if
/// they are equal.
#[must_use]
pub fn difference(expected: &Value, actual: &Value) -> Option<String> {
    (expected != actual).then(|| lines(&sorted(expected), &sorted(actual)))
}

/// Formats a value with its keys in order, so that their order does not count as a difference.
fn sorted(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all_objects();
    super::pretty(&value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_near_a_change_is_shown() {
        let list = |last: u32| Value::from((0..50).chain([last]).collect::<Vec<_>>());
        let shown = difference(&list(98), &list(99)).unwrap();
        assert!(
            shown.contains("-   98") && shown.contains("+   99") && shown.contains("    49,"),
            "{shown}"
        );
        assert!(!shown.contains("    12,"), "{shown}");
        assert_eq!(
            difference(&json!({ "a": 1, "b": 2 }), &json!({ "b": 2, "a": 1 })),
            None
        );
    }
}
