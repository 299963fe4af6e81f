//! Reason why a value does not fit its type, with the path to the value.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use crate::http::unknown::{MAX_NAME_CHARS, member_warning};

/// One step from a value to a value inside it.
#[derive(Debug)]
pub(super) enum Step {
    Name(String),
    Index(usize),
}

/// Returns a path as text.
pub(super) fn shown(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Name(name) if text.is_empty() => text.push_str(name),
            Step::Name(name) => text.push_str(&format!(".{name}")),
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    if text.is_empty() {
        text.push_str("body");
    }
    text
}

/// Reason why a value does not fit its type.
#[derive(Debug)]
pub(crate) struct Problem {
    /// Path to the value, from the inside.
    pub(super) path: Vec<Step>,
    pub(super) text: String,
}

impl Problem {
    pub(super) fn new(text: String) -> Self {
        Self {
            path: Vec::new(),
            text,
        }
    }

    /// Adds the step from a value to the value with the problem.
    pub(super) fn inside(mut self, step: Option<Step>) -> Self {
        self.path.extend(step);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl std::error::Error for Problem {}

impl de::Error for Problem {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!(
            "expected {}, got {}",
            kind(&expected.to_string()),
            got(found)
        ))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("must be one of {}", expected.join(", ")))
    }

    fn unknown_field(name: &str, expected: &'static [&'static str]) -> Self {
        let name: String = name.chars().take(MAX_NAME_CHARS).collect();
        Self::new(member_warning("", &name, expected).refusal()).inside(Some(Step::Name(name)))
    }

    fn missing_field(name: &'static str) -> Self {
        Self::new("is required".to_owned()).inside(Some(Step::Name(name.to_owned())))
    }
}

/// Returns the name of an expected kind of values, as JSON has them.
fn kind(expected: &str) -> &str {
    let first = expected.split(' ').next().unwrap_or_default();
    match expected {
        "a map" => "an object",
        "a sequence" => "a list",
        _ if ["struct", "internally"].contains(&first) => "an object",
        _ if first.len() <= 5
            && first.starts_with(['i', 'u', 'f'])
            && first[1..].parse::<u8>().is_ok() =>
        {
            "a number"
        }
        _ => expected,
    }
}

/// Describes a value. A string could be a secret in the wrong field, so it is not repeated.
fn got(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => number.to_string(),
        Unexpected::Char(_) | Unexpected::Str(_) => "a text".to_owned(),
        Unexpected::Unit | Unexpected::Option => "null".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "an object".to_owned(),
        other => other.to_string(),
    }
}
