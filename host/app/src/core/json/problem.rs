//! Reason why a value does not fit its type, with the path to the value.
//!
//! It names types in the words of JSON, and repeats no value: a string in the wrong field could be a
//! secret.

use std::fmt::Display;

use serde::de::{self, Expected, Unexpected};

use crate::core::spelling::{misspelling, nearest, sent_instead, shortened};

/// Problem of a missing property.
const MISSING_TEXT: &str = "is required";

/// Reason why a value does not fit its type.
#[derive(Debug)]
pub struct Problem {
    /// Path to the value; empty for the whole document.
    pub(super) path: String,
    pub(super) text: String,
}

impl Problem {
    pub(super) fn new(text: String) -> Self {
        Self {
            path: String::new(),
            text,
        }
    }

    /// Adds the name of the property that was being read.
    #[must_use]
    pub fn inside(mut self, name: &str) -> Self {
        if !self.path.is_empty() && !self.path.starts_with('[') {
            self.path.insert(0, '.');
        }
        self.path.insert_str(0, shortened(name));
        self
    }

    /// Adds the index of the element that was being read.
    pub(super) fn inside_element(mut self, index: usize) -> Self {
        if !self.path.is_empty() && !self.path.starts_with('[') {
            self.path.insert(0, '.');
        }
        self.path.insert_str(0, &format!("[{index}]"));
        self
    }

    /// Adds the question whether an unknown name was meant, if the problem is that one of the names that are
    /// known to the object is missing.
    pub(super) fn with_sent(mut self, known: &[&str], unknown: &[String]) -> Self {
        if self.text == MISSING_TEXT && known.contains(&&*self.path) {
            let sent = unknown.iter().map(String::as_str);
            self.text.push_str(&sent_instead(&self.path, sent));
        }
        self
    }

    /// Returns the line for the problem of a document, whose name is the path to the whole of it.
    #[must_use]
    pub fn line(&self, document: &str) -> String {
        let path = match &*self.path {
            "" => document,
            path => path,
        };
        format!("{path}: {}", self.text)
    }
}

impl Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.text)
    }
}

impl std::error::Error for Problem {}

impl de::Error for Problem {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        let text = format!("expected {}, got {}", kind(&expected), got(found));
        Self::new(text)
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("must be one of {}", expected.join(", ")))
    }

    fn unknown_field(name: &str, expected: &'static [&'static str]) -> Self {
        let text = misspelling(name, expected).unwrap_or_else(|| match nearest(name, expected) {
            Some(nearest) => format!("is unknown; the nearest known name is `{nearest}`"),
            None => format!("is unknown; the known names are {}", expected.join(", ")),
        });
        Self::new(text).inside(name)
    }

    fn missing_field(name: &'static str) -> Self {
        Self::new(MISSING_TEXT.to_owned()).inside(name)
    }

    fn duplicate_field(name: &'static str) -> Self {
        Self::new("is given twice".to_owned()).inside(name)
    }
}

/// Returns the name of an expected kind of values, as JSON has them.
fn kind(expected: &str) -> &str {
    match expected {
        "a map" => "an object",
        "a sequence" => "a list",
        "a borrowed string" | "string or map" | "unit variant" => "a string",
        "unit" => "null",
        "f32" | "f64" => "a number",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "u128" | "usize" => "a whole number of at least 0",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        _ if expected.starts_with("struct ") || expected.contains(" tagged enum ") => "an object",
        _ if expected.starts_with("enum ") => "one of the known words",
        _ if ["tuple ", "a tuple ", "an array "]
            .iter()
            .any(|start| expected.starts_with(start)) =>
        {
            "a list"
        }
        _ => expected,
    }
}

/// Returns the kind of a value.
fn got(found: Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(_) => "a number",
        Unexpected::Signed(_) => "a negative number",
        Unexpected::Float(number) if number.fract() != 0.0 => "a number with a fraction",
        Unexpected::Float(_) => "a number with a point or an exponent, or of more than 64 bits",
        Unexpected::Char(_) | Unexpected::Str(_) => "a string",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "a list",
        Unexpected::Map => "an object",
        _ => "another value",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_name_is_answered_with_known_ones() {
        let problem: Problem = de::Error::unknown_field("session_id", &["limit", "filters"]);
        let expected = "session_id: is unknown; the known names are limit, filters";
        assert_eq!(problem.line("body"), expected);
    }

    #[test]
    fn fraction_is_named_only_where_there_is_one() {
        assert_eq!(got(Unexpected::Float(0.5)), "a number with a fraction");
        let large = got(Unexpected::Float(1e30));
        assert!(large.ends_with("more than 64 bits"), "{large}");
    }

    #[test]
    fn types_have_words_of_json() {
        for (expected, words) in [
            ("struct Body", "an object"),
            ("internally tagged enum Step", "an object"),
            ("enum Permission", "one of the known words"),
            ("u8", "a whole number from 0 to 255"),
            ("a borrowed string", "a string"),
            ("unit", "null"),
            ("a list or an object", "a list or an object"),
        ] {
            assert_eq!(kind(expected), words);
        }
    }
}
