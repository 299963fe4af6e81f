//! Conversion between Notion's rich text and plain text.

use serde_json::Value;
use toolkit_sdk::prelude::json;

/// Max number of characters of one part of a rich text.
const MAX_PART_CHARS: usize = 2000;

/// Returns the plain text of a rich text.
pub(crate) fn plain(rich: &Value) -> String {
    rich.as_array()
        .into_iter()
        .flatten()
        .filter_map(|part| part["plain_text"].as_str())
        .collect()
}

/// Returns a JSON string, or an empty one for any other value.
pub(crate) fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Converts plain text to rich text.
pub(crate) fn rich(text: &str) -> Value {
    let letters: Vec<char> = text.chars().collect();
    let parts = letters
        .chunks(MAX_PART_CHARS)
        .map(|part| json!({ "text": { "content": part.iter().collect::<String>() } }));
    parts.collect()
}
