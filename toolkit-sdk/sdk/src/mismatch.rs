//! Reasons why JSON does not fit a type, without its values: others read the error, and a string in the
//! wrong field could be a secret.

use serde_json::{Error, error::Category};

/// An open object or list of a JSON text.
enum Level<'j> {
    /// Name of the current member, unless it was not read yet.
    Object(Option<&'j [u8]>),
    /// Index of the current element.
    List(usize),
}

/// Returns the reason of an error, without its position if it is about a value.
#[must_use]
pub fn reason(error: &Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&*position).unwrap_or(&text);
    match error.classify() {
        Category::Eof => return "the text ends too early".to_owned(),
        Category::Syntax if text == "number out of range" => {
            return format!("a number is too large{position}");
        }
        Category::Syntax => return format!("the text is not JSON{position}"),
        Category::Data | Category::Io => {}
    }
    if let Some(name) = text.strip_prefix("missing field ") {
        return format!("{name} is required");
    }
    match text.rsplit_once(", expected ") {
        Some((_, expected)) => format!("expected {}", kind(expected)),
        None if text.starts_with("unknown ") => "is unknown".to_owned(),
        None => text.to_owned(),
    }
}

/// Returns the name of an expected kind of values, as JSON has them.
fn kind(expected: &str) -> &str {
    match expected {
        "a sequence" => "a list",
        "a map" => "an object",
        "a borrowed string" => "a string",
        "unit" => "null",
        "f32" | "f64" => "a number",
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16" | "i32" | "i64" | "i128"
        | "isize" => "a whole number",
        _ if expected.starts_with("struct ") => "an object",
        _ => expected,
    }
}

/// Returns the reason of an error in a JSON text, with the path to the value.
pub(crate) fn reason_with_path(json: &[u8], error: &Error) -> String {
    let reason = reason(error);
    if !error.is_data() {
        return reason;
    }
    let lines = json.split_inclusive(|byte| *byte == b'\n');
    let before = lines.take(error.line().saturating_sub(1));
    let end = before.map(<[u8]>::len).sum::<usize>() + error.column();
    match path_at(&json[..end.min(json.len())]).as_str() {
        "" => reason,
        path => format!("{path}: {reason}"),
    }
}

/// Returns the path to the value with which the start of a JSON text ends, such as `a.b[2]`.
fn path_at(json: &[u8]) -> String {
    let mut levels = Vec::new();
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        at += 1;
        match byte {
            b'{' => levels.push(Level::Object(None)),
            b'[' => levels.push(Level::List(0)),
            b'}' | b']' => drop(levels.pop()),
            b',' => match levels.last_mut() {
                Some(Level::Object(name)) => *name = None,
                Some(Level::List(index)) => *index += 1,
                None => {}
            },
            b'"' => {
                let text = string(&json[at..]);
                if let Some(Level::Object(name @ None)) = levels.last_mut() {
                    *name = Some(text);
                }
                at += text.len() + 1;
            }
            _ => {}
        }
    }
    let mut path = String::new();
    for level in levels {
        match level {
            Level::Object(Some(name)) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&String::from_utf8_lossy(name));
            }
            Level::Object(None) => {}
            Level::List(index) => path.push_str(&format!("[{index}]")),
        }
    }
    path
}

/// Returns the rest of a string up to its closing quote.
fn string(json: &[u8]) -> &[u8] {
    let mut length = 0;
    while let Some(byte) = json.get(length) {
        length += match byte {
            b'"' => break,
            b'\\' => 2,
            _ => 1,
        };
    }
    &json[..length.min(json.len())]
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the errors of its fields are tested")]
    struct Arguments {
        limit: Option<u64>,
        #[serde(default)]
        list: Vec<Item>,
        kind: Option<Kind>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only the errors of its fields are tested")]
    struct Item {
        id: u8,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        One,
        Two,
    }

    #[test]
    fn reasons_name_paths_and_no_values() {
        for (json, reason) in [
            (
                r#"{"limit": "secret, expected b"}"#,
                "limit: expected a whole number",
            ),
            (
                "{\"limit\": 1,\n \"list\": [{\"id\": 1}, {\"id\": 4711}]}",
                "list[1].id: expected a whole number",
            ),
            (r#"{"list": [{"a\"": 1}]}"#, "list[0]: `id` is required"),
            (r#"{"list": {"id": 1}}"#, "list: expected a list"),
            (r#"{"kind": "secret"}"#, "kind: expected `one` or `two`"),
            (
                r#"{"secret": 1}"#,
                "secret: expected one of `limit`, `list`, `kind`",
            ),
            ("{", "the text ends too early"),
            ("{]", "the text is not JSON at line 1 column 2"),
        ] {
            let error = serde_json::from_str::<Arguments>(json).unwrap_err();
            assert_eq!(reason_with_path(json.as_bytes(), &error), reason, "{json}");
        }
        let error = serde_json::from_str::<f64>("1e999").unwrap_err();
        let text = super::reason(&error);
        assert!(text.starts_with("a number is too large"), "{text}");
        let error = serde_json::from_value::<u64>("secret".into()).unwrap_err();
        assert_eq!(super::reason(&error), "expected a whole number");
    }
}
