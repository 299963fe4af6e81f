//! Comparison of sent bodies with expected ones.

use serde_json::{Value, json};

use super::{GivenFile, body_value};

/// Converts an actual value into the notation of the expected one: keys in the same order, and
/// files by name. The result equals the expected value if the actual one fits it.
#[must_use]
pub fn merged(expected: &Value, actual: &Value, files: &[GivenFile]) -> Value {
    if stands_for(expected, actual, files) {
        return expected.clone();
    }
    match (expected, actual) {
        (Value::Object(old), Value::Object(new)) => {
            let known = old
                .iter()
                .filter_map(|(name, old)| Some((name, merged(old, new.get(name)?, files))));
            let added = new
                .iter()
                .filter(|(name, _)| !old.contains_key(*name))
                .map(|(name, new)| (name, new.clone()));
            Value::Object(
                known
                    .chain(added)
                    .map(|(name, value)| (name.clone(), value))
                    .collect(),
            )
        }
        (Value::Array(old), Value::Array(new)) => {
            let old = old.iter().map(Some).chain(std::iter::repeat(None));
            old.zip(new)
                .map(|(old, new)| old.map_or_else(|| new.clone(), |old| merged(old, new, files)))
                .collect()
        }
        _ => actual.clone(),
    }
}

/// Returns true if two values are equivalent. `{ "blob": id }` matches the content of the file, or
/// any value if the toolkit made the file itself. An empty text matches a missing body.
fn stands_for(expected: &Value, actual: &Value, files: &[GivenFile]) -> bool {
    if let Value::Object(object) = expected
        && object.len() == 1
        && let Some(Value::String(id)) = object.get("blob")
    {
        let given = files.iter().find(|file| file.id == *id);
        return given.is_none_or(|file| body_value(file.text.as_bytes()) == *actual);
    }
    expected == actual || (*expected == json!("") && actual.is_null())
}
