//! Text from values: the styles of parameters.

use manifest::plan::{Parameter, Style};
use serde_json::Value;

use crate::http::encode;
use crate::{Result, ToolError};

/// Fills a parameter into the URL.
pub(super) fn fill(url: &mut String, parameter: &Parameter, value: &Value) -> Result<()> {
    let name = &parameter.name;
    let encoded = match parameter.style {
        Style::Label => format!(
            ".{}",
            path(parameter, value, if parameter.explode { '.' } else { ',' })
        ),
        Style::Matrix => matrix(parameter, value),
        Style::Json => encoded(&value.to_string()),
        _ if parameter.segments => segments(name, value)?,
        _ => path(parameter, value, ','),
    };
    // An empty segment, `.` or `..` would lead to another path; encoding does not prevent it.
    if encode::is_dot_segment(&encoded) {
        return Err(ToolError::invalid_input(format!(
            "`{name}` cannot be `{}`",
            plain(value)
        )));
    }
    let hole = format!("{{{name}}}");
    if !url.contains(&hole) {
        return Err(ToolError::internal(format!(
            "the address `{url}` has no `{hole}`"
        )));
    }
    *url = url.replace(&hole, &encoded);
    Ok(())
}

fn segments(name: &str, value: &Value) -> Result<String> {
    let text = plain(value);
    let mut out = String::new();
    for segment in text.trim_matches('/').split('/') {
        if encode::is_dot_segment(segment) {
            return Err(ToolError::invalid_input(format!(
                "`{name}` cannot be the path `{text}`"
            )));
        }
        if !out.is_empty() {
            out.push('/');
        }
        encode::push(&mut out, segment);
    }
    Ok(out)
}

/// Returns the encoded items, or keys and values, joined by a separator.
fn path(parameter: &Parameter, value: &Value, separator: char) -> String {
    let (between, pairs) = if parameter.explode {
        ("=", true)
    } else {
        (",", false)
    };
    let parts: Vec<String> = match value {
        Value::Array(items) => items.iter().map(|item| encoded(&plain(item))).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| [encoded(name), encoded(&plain(value))].join(between))
            .collect(),
        other => vec![encoded(&plain(other))],
    };
    let separator = if pairs { separator } else { ',' };
    parts.join(separator.to_string().as_str())
}

fn matrix(parameter: &Parameter, value: &Value) -> String {
    let name = encoded(&parameter.name);
    match value {
        Value::Array(items) if parameter.explode => items
            .iter()
            .map(|item| format!(";{name}={}", encoded(&plain(item))))
            .collect(),
        Value::Object(members) if parameter.explode => members
            .iter()
            .map(|(name, value)| format!(";{}={}", encoded(name), encoded(&plain(value))))
            .collect(),
        other => format!(";{name}={}", path(parameter, other, ',')),
    }
}

/// Adds the pairs of a query parameter, not yet encoded.
pub(super) fn query(pairs: &mut Vec<(String, String)>, parameter: &Parameter, value: &Value) {
    let name = &parameter.name;
    let separator = match parameter.style {
        Style::Json => return pairs.push((name.clone(), value.to_string())),
        Style::DeepObject => return brackets(pairs, name, value),
        Style::SpaceDelimited => " ",
        Style::PipeDelimited => "|",
        _ => ",",
    };
    match value {
        Value::Array(items) if parameter.explode => {
            pairs.extend(items.iter().map(|item| (name.clone(), plain(item))))
        }
        Value::Object(members) if parameter.explode => {
            pairs.extend(
                members
                    .iter()
                    .map(|(name, value)| (name.clone(), plain(value))),
            );
        }
        other => pairs.push((name.clone(), joined(other, separator, false))),
    }
}

/// Adds `name[key]=value` or `name[]=value`. The objects of a list are numbered, so that their
/// members stay together.
pub(super) fn brackets(pairs: &mut Vec<(String, String)>, name: &str, value: &Value) {
    match value {
        Value::Object(members) => {
            members
                .iter()
                .for_each(|(key, value)| brackets(pairs, &format!("{name}[{key}]"), value));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let nested = item.is_object() || item.is_array();
                let name = if nested {
                    format!("{name}[{index}]")
                } else {
                    format!("{name}[]")
                };
                brackets(pairs, &name, item);
            }
        }
        scalar => pairs.push((name.to_owned(), plain(scalar))),
    }
}

/// Returns the text of a header.
pub(super) fn header(parameter: &Parameter, value: &Value) -> String {
    match parameter.style {
        Style::Json => value.to_string(),
        _ => joined(value, ",", parameter.explode),
    }
}

/// Joins items, or keys and values, into one text.
pub(super) fn joined(value: &Value, separator: &str, pairs: bool) -> String {
    match value {
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(separator),
        Value::Object(members) => {
            let between = if pairs { "=" } else { separator };
            members
                .iter()
                .map(|(name, value)| [name.as_str(), &plain(value)].join(between))
                .collect::<Vec<_>>()
                .join(separator)
        }
        other => plain(other),
    }
}

/// Returns a string as it is, null as an empty string, and any other value as JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn encoded(text: &str) -> String {
    let mut out = String::new();
    encode::push(&mut out, text);
    out
}
