//! Reason why a value does not fit its type, with the path to the value.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

use crate::http::unknown::member_warning;

/// Reason why a value does not fit its type.
#[derive(Debug)]
pub(crate) struct Problem {
    /// Path to the value; empty for the whole body.
    pub(super) path: String,
    pub(super) text: String,
}

impl Problem {
    fn new(text: String) -> Self {
        Self {
            path: String::new(),
            text,
        }
    }

    /// Adds the path to the value that was being read.
    pub(super) fn inside(mut self, mut place: String) -> Self {
        if !place.is_empty() && !self.path.is_empty() {
            place.push('.');
        }
        self.path.insert_str(0, &place);
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
        Self::new(member_warning("", name, expected).refusal())
    }

    fn missing_field(name: &'static str) -> Self {
        Self::new("is required".to_owned()).inside(name.to_owned())
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
