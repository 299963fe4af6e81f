//! Rich text, which agents read and write as plain text.

use serde_json::Value;
use toolkit_sdk::prelude::json;

/// Characters that one part may have.
const PART: usize = 2000;

/// The words of a rich text.
pub(crate) fn plain(rich: &Value) -> String {
    rich.as_array().into_iter().flatten().filter_map(|part| part["plain_text"].as_str()).collect()
}

/// A rich text of these words.
pub(crate) fn rich(text: &str) -> Value {
    let letters: Vec<char> = text.chars().collect();
    let parts = letters.chunks(PART).map(|part| json!({ "text": { "content": part.iter().collect::<String>() } }));
    parts.collect()
}
