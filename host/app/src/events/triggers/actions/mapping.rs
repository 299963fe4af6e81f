//! Placeholders in the arguments of actions.
//!
//! `{{event}}` stands for the event, in the third version of messages, and `{{event.data.subject}}`
//! for a value in it; numbers are positions in lists. A text that is one placeholder becomes the
//! value itself, with its type. In a longer text the value is inserted as text. A value that does not
//! exist is null, or nothing in a longer text. The templates of toolkits have single braces, which
//! are plain text here: arguments may contain JSON or code.

use manifest::at;
use serde_json::{Map, Value};

use crate::core::truncate;

/// Maximum size of the values that are filled into the arguments of one run, in bytes.
pub const MAX_FILLED_BYTES: usize = 1 << 20;

enum Part<'a> {
    Text(&'a str),
    /// Path in the event; empty for the event itself.
    Value(&'a str),
}

/// Checks every placeholder of some arguments. The error says what is wrong.
pub(super) fn check(arguments: &Map<String, Value>) -> Result<(), String> {
    fill(arguments, &Value::Null).map(|_| ())
}

/// Fills values of an event into arguments. The error says what is wrong.
pub(super) fn fill(
    arguments: &Map<String, Value>,
    event: &Value,
) -> Result<Map<String, Value>, String> {
    let mut room = MAX_FILLED_BYTES;
    fill_members(arguments, event, &mut room)
}

fn fill_members(
    members: &Map<String, Value>,
    event: &Value,
    room: &mut usize,
) -> Result<Map<String, Value>, String> {
    members
        .iter()
        .map(|(name, value)| Ok((name.clone(), fill_value(value, event, room)?)))
        .collect()
}

fn fill_value(value: &Value, event: &Value, room: &mut usize) -> Result<Value, String> {
    match value {
        Value::String(text) => fill_text(text, event, room),
        Value::Array(items) => {
            let items = items.iter().map(|item| fill_value(item, event, room));
            items.collect()
        }
        Value::Object(members) => Ok(fill_members(members, event, room)?.into()),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
    }
}

fn fill_text(text: &str, event: &Value, room: &mut usize) -> Result<Value, String> {
    let parts = parse(text)?;
    if let [Part::Value(path)] = parts[..] {
        let Some(value) = at(event, path) else {
            return Ok(Value::Null);
        };
        take_room(room, value.to_string().len())?;
        return Ok(value.clone());
    }
    let mut filled = String::new();
    for part in parts {
        let value = match part {
            Part::Text(text) => text.to_owned(),
            Part::Value(path) => match at(event, path) {
                None | Some(Value::Null) => continue,
                Some(Value::String(value)) => value.clone(),
                Some(value) => value.to_string(),
            },
        };
        take_room(room, value.len())?;
        filled.push_str(&value);
    }
    Ok(filled.into())
}

fn take_room(room: &mut usize, bytes: usize) -> Result<(), String> {
    let left = room.checked_sub(bytes);
    *room = left.ok_or_else(|| {
        format!("the values of the event have more than {MAX_FILLED_BYTES} bytes")
    })?;
    Ok(())
}

fn parse(text: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        let (name, after) = after
            .split_once("}}")
            .ok_or_else(|| format!("`{{{{` without `}}}}` in `{}`", truncate(text)))?;
        parts.push(Part::Value(path(name.trim())?));
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    Ok(parts)
}

/// Returns the path of a placeholder, such as `data.id` for `event.data.id`.
fn path(name: &str) -> Result<&str, String> {
    let path = match name.strip_prefix("event") {
        Some("") => Some(""),
        Some(rest) => rest.strip_prefix('.').filter(|path| !path.is_empty()),
        None => None,
    };
    path.filter(|path| path.is_empty() || path.split('.').all(|name| !name.is_empty()))
        .ok_or_else(|| {
            format!(
                "`{{{{{}}}}}` is no placeholder; write `{{{{event.data.name}}}}`",
                truncate(name)
            )
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(arguments: Value, event: &Value) -> Result<Value, String> {
        let Value::Object(arguments) = arguments else {
            unreachable!("it is an object")
        };
        fill(&arguments, event).map(Value::Object)
    }

    #[test]
    fn values_keep_their_type_or_become_text() {
        let event = json!({
            "type": "service.trigger.message",
            "data": { "count": 7, "tags": ["a", "b"], "from": { "name": "Amy" }, "none": null, "open": true },
        });
        for (argument, expected) in [
            (json!("{{event.data.count}}"), json!(7)),
            (json!("{{ event.data.tags }}"), json!(["a", "b"])),
            (json!("{{event.data.tags.1}}"), json!("b")),
            (json!("{{event}}"), event.clone()),
            (json!("{{event.data.nothing}}"), json!(null)),
            (json!("{{event.data.none}}"), json!(null)),
            (
                json!("{{event.data.from.name}} wrote {{event.data.count}} of {{event.data.tags}}"),
                json!("Amy wrote 7 of [\"a\",\"b\"]"),
            ),
            (json!("[{{event.data.nothing}}]"), json!("[]")),
            (
                json!([{ "open": "{{event.data.open}}" }]),
                json!([{ "open": true }]),
            ),
            (json!({ "{{event}}": 1 }), json!({ "{{event}}": 1 })),
            (
                json!("{single} {\"a\": 1} }}"),
                json!("{single} {\"a\": 1} }}"),
            ),
            (json!(""), json!("")),
        ] {
            let arguments = json!({ "a": argument });
            assert_eq!(
                filled(arguments, &event),
                Ok(json!({ "a": expected })),
                "{argument}"
            );
        }
    }

    #[test]
    fn filled_values_are_not_filled_again() {
        let event = json!({ "data": { "text": "{{event.data.secret}}", "secret": "s" } });
        let arguments = json!({ "a": "{{event.data.text}}", "b": "x{{event.data.text}}" });
        assert_eq!(
            filled(arguments, &event),
            Ok(json!({ "a": "{{event.data.secret}}", "b": "x{{event.data.secret}}" }))
        );
    }

    #[test]
    fn malformed_placeholder_is_refused_with_its_text() {
        for text in [
            "{{",
            "a {{event.data",
            "{{}}",
            "{{data.id}}",
            "{{events.id}}",
            "{{event.}}",
            "{{event..id}}",
            "{{event.data id}} {{",
        ] {
            let refused = filled(json!({ "a": [text] }), &Value::Null);
            assert!(refused.is_err(), "{text}: {refused:?}");
        }
        let refused = filled(json!({ "a": "{{evnt.id}}" }), &Value::Null).unwrap_err();
        assert!(refused.contains("{{evnt.id}}"), "{refused}");
    }

    #[test]
    fn filled_values_are_limited() {
        let event = json!({ "data": "x".repeat(MAX_FILLED_BYTES / 2) });
        filled(json!({ "a": "{{event.data}}" }), &event).unwrap();
        let refused = filled(
            json!({ "a": ["{{event.data}}", "b {{event.data}}"] }),
            &event,
        );
        assert!(refused.unwrap_err().contains("1048576 bytes"));
    }
}
