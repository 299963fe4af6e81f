//! Placeholders in JSON, into which values are filled.
//!
//! A placeholder names a *root* and a path in its value: `{{event}}` is the value of the root
//! `event`, and `{{event.data.subject}}` for a value in it; numbers are positions in lists. A
//! string with nothing but a placeholder becomes the value itself, with its type. In a longer text
//! the value is inserted as text. A value that does not exist is null, or nothing in a longer text.
//! The templates of toolkits have single braces, which are plain text here, because a string may
//! contain JSON or code.

use manifest::at;
use serde_json::{Map, Value};

use crate::core::{shown_slug, spelling::shortened};

/// Maximum number of problems that are collected.
pub(crate) const MAX_PROBLEMS: usize = 100;
/// Maximum size of the values that are filled in at a time, in bytes.
pub const MAX_FILLED_BYTES: usize = 1 << 20;

/// A value that placeholders may name, with the name of its root.
pub(crate) type Root<'a> = (&'static str, &'a Value);

enum Part<'a> {
    Text(&'a str),
    Value(Placeholder<'a>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placeholder<'a> {
    pub(crate) root: &'a str,
    /// Path in the value of the root; empty for the value itself.
    pub(crate) path: &'a str,
}

/// Adds a line with its path for each wrong placeholder of a value, until there are [`MAX_PROBLEMS`].
/// `problem_of` returns the problem of a well-formed one.
pub(crate) fn add_problems(
    problems: &mut Vec<String>,
    value: &Value,
    path: &str,
    problem_of: &dyn Fn(Placeholder<'_>) -> Option<String>,
) {
    if problems.len() >= MAX_PROBLEMS {
        return;
    }
    match value {
        Value::String(text) => match parse(text) {
            Ok(parts) => {
                let found = parts.into_iter().filter_map(|part| match part {
                    Part::Text(_) => None,
                    Part::Value(placeholder) => problem_of(placeholder),
                });
                let lines = found.map(|problem| format!("{path}: {problem}"));
                problems.extend(lines.take(MAX_PROBLEMS));
            }
            Err(problem) => problems.push(format!("{path}: {problem}")),
        },
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                add_problems(problems, item, &format!("{path}[{index}]"), problem_of);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                let path = format!("{path}.{}", shortened(name));
                add_problems(problems, value, &path, problem_of);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Values whose placeholders are filled sequentially. One limit covers everything that is filled
/// in.
pub(crate) struct Filling<'a> {
    roots: &'a [Root<'a>],
    /// Bytes that may still be filled in.
    room: usize,
}

impl<'a> Filling<'a> {
    /// Creates a filling with the values of roots.
    pub(crate) fn new(roots: &'a [Root<'a>]) -> Self {
        Self {
            roots,
            room: MAX_FILLED_BYTES,
        }
    }

    /// Fills values into the members of an object. The error says what is wrong.
    pub(crate) fn members(
        &mut self,
        members: &Map<String, Value>,
    ) -> Result<Map<String, Value>, String> {
        let filled = members.iter();
        filled
            .map(|(name, value)| Ok((name.clone(), self.value(value)?)))
            .collect()
    }

    /// Returns true if a value, once it is filled in, is not null. Nothing is filled in.
    pub(crate) fn exists(&self, value: &Value) -> Result<bool, String> {
        let Value::String(text) = value else {
            return Ok(!value.is_null());
        };
        match parse(text)?[..] {
            [Part::Value(placeholder)] => {
                let found = self.find(placeholder)?;
                Ok(found.is_some_and(|value| !value.is_null()))
            }
            _ => Ok(true),
        }
    }

    /// Fills values into a value. The error says what is wrong.
    pub(crate) fn value(&mut self, value: &Value) -> Result<Value, String> {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => Ok(self.members(members)?.into()),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
        }
    }

    fn text(&mut self, text: &str) -> Result<Value, String> {
        let parts = parse(text)?;
        if let [Part::Value(placeholder)] = parts[..] {
            let Some(value) = self.find(placeholder)? else {
                return Ok(Value::Null);
            };
            self.take_room(value.to_string().len())?;
            return Ok(value.clone());
        }
        let mut filled = String::new();
        for part in parts {
            let value = match part {
                Part::Text(text) => text.to_owned(),
                Part::Value(placeholder) => match self.find(placeholder)? {
                    None | Some(Value::Null) => continue,
                    Some(Value::String(value)) => value.clone(),
                    Some(value) => value.to_string(),
                },
            };
            self.take_room(value.len())?;
            filled.push_str(&value);
        }
        Ok(filled.into())
    }

    fn find(&self, placeholder: Placeholder<'_>) -> Result<Option<&'a Value>, String> {
        let Placeholder { root, path } = placeholder;
        let roots: &'a [Root<'a>] = self.roots;
        let found = roots.iter().find(|(name, _)| *name == root);
        let (_, value) = found.ok_or_else(|| {
            let known: Vec<_> = roots.iter().map(|(name, _)| *name).collect();
            not_a_placeholder(root, &known)
        })?;
        Ok(at(value, path))
    }

    fn take_room(&mut self, bytes: usize) -> Result<(), String> {
        let left = self.room.checked_sub(bytes);
        self.room = left.ok_or_else(|| {
            format!("the values that are filled in have more than {MAX_FILLED_BYTES} bytes")
        })?;
        Ok(())
    }
}

/// Returns the problem of a placeholder whose root is not one of the known ones.
pub(crate) fn not_a_placeholder(root: &str, known: &[&str]) -> String {
    let (root, known) = (shown_slug(root), known.join("`, `"));
    format!("`{{{{{root}}}}}` is no placeholder: its first name must be one of `{known}`")
}

fn parse(text: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        let (name, after) = after.split_once("}}").ok_or("`{{` without `}}`")?;
        parts.push(Part::Value(placeholder(name.trim())?));
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    Ok(parts)
}

fn placeholder(name: &str) -> Result<Placeholder<'_>, String> {
    if name.split('.').any(str::is_empty) {
        return Err(
            "a placeholder has an empty name: write names with a dot between them".to_owned(),
        );
    }
    let (root, path) = name.split_once('.').unwrap_or((name, ""));
    Ok(Placeholder { root, path })
}

#[cfg(test)]
mod tests;
