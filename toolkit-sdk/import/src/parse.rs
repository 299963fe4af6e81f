//! Parses JSON or YAML bytes to a JSON value.

use serde_json::Value;

use crate::{Error, Result};

/// Largest size of one description in bytes. The largest known description has 20 MB.
const MAX_DOCUMENT_BYTES: usize = 64 << 20;

/// Largest number of keys, values and brackets of one YAML document. The largest known document has
/// a third of that.
const MAX_YAML_EVENTS: usize = 2_000_000;

/// Parses JSON or YAML.
///
/// # Errors
/// The description is neither, or too large.
pub(crate) fn document(bytes: &[u8]) -> Result<Value> {
    let text = utf8(bytes)?;
    if text.trim_start().starts_with(['{', '[']) {
        return serde_json::from_str(text)
            .map_err(|cause| Error::new(format!("the description is not JSON: {cause}")));
    }
    yaml(text)
}

/// Returns the text of a description, without a byte order mark.
///
/// # Errors
/// The description is too large or not text.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str> {
    if bytes.len() > MAX_DOCUMENT_BYTES {
        return Err(Error::new(format!(
            "{} bytes are too many; at most {} MiB are read",
            bytes.len(),
            MAX_DOCUMENT_BYTES >> 20
        )));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|cause| Error::new(format!("the description is not UTF-8 text: {cause}")))?;
    Ok(text.trim_start_matches('\u{feff}'))
}

fn yaml(text: &str) -> Result<Value> {
    let options = serde_saphyr::options! {
        // YAML 1.2 reads `on`, `no` and `y` as words.
        strict_booleans: true,
        budget: serde_saphyr::budget! { max_events: MAX_YAML_EVENTS, max_nodes: MAX_YAML_EVENTS },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|cause| {
        let cause = cause.to_string();
        let first = cause.lines().next().unwrap_or_default();
        Error::new(format!("the description is neither JSON nor YAML: {first}"))
    })
}

/// Returns a scalar as text: hand-written YAML has numbers where texts are meant.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_and_yaml_are_read_alike() {
        let expected =
            json!({ "openapi": "3.0.0", "responses": { "200": { "ok": true } }, "version": 1.0 });
        let yaml = "openapi: '3.0.0'\nresponses:\n  200:\n    ok: true\nversion: 1.0\n";
        assert_eq!(document(yaml.as_bytes()).unwrap(), expected);
        assert_eq!(
            document(format!("\u{feff}{expected}").as_bytes()).unwrap(),
            expected
        );
        let merged = "a: &a {x: 1}\nb: *a\nd: 2020-01-01\ne: on\n";
        assert_eq!(
            document(merged.as_bytes()).unwrap(),
            json!({ "a": { "x": 1 }, "b": { "x": 1 }, "d": "2020-01-01", "e": "on" })
        );
    }

    #[test]
    fn what_is_neither_is_refused_in_words() {
        for (bytes, part) in [
            (&b"{\"a\":"[..], "not JSON"),
            (b"a: [", "nor YAML"),
            (b"\xff\xfe", "UTF-8"),
        ] {
            let refused = document(bytes).unwrap_err().to_string();
            assert!(refused.contains(part), "{refused}");
        }
        let bomb = format!("a: &a [{}]\n", "x,".repeat(10))
            + &(0..9).fold(String::new(), |text, n| {
                let name = char::from(b'a' + n);
                let next = char::from(b'b' + n);
                text + &format!("{next}: &{next} [{}]\n", format!("*{name},").repeat(10))
            });
        assert!(
            document(bomb.as_bytes()).is_err(),
            "aliases of aliases have no end"
        );
    }
}
