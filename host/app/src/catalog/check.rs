//! Values against the schemas of a tool.
//!
//! Schemas come from toolkits, so they are not trusted: nothing remote is fetched for a `$ref`, and patterns run on an
//! engine that cannot backtrack. A validator is compiled when a tool is first used and kept with its version.

use std::sync::OnceLock;

use jsonschema::{PatternOptions, Validator};
use serde_json::{Value, value::RawValue};

use super::texts::Text;
use crate::{Error, Result, json};

const LINES: usize = 100;
const LINE: usize = 300;
const NO_OBJECT: &str = "not an object";

/// A schema as text, and its validator once it was needed.
#[derive(Debug)]
pub struct Schema {
    text: Text,
    check: OnceLock<Check>,
}

#[derive(Debug)]
enum Check {
    /// Every value passes.
    Anything,
    /// Every object passes.
    AnyObject,
    /// The validator decides.
    Full(Box<Validator>),
}

impl Schema {
    /// A schema that has no [`problem`].
    pub(super) const fn new(text: Text) -> Self {
        Self { text, check: OnceLock::new() }
    }

    /// A schema that only describes: every object passes.
    pub(super) fn loose(text: Text) -> Self {
        Self { text, check: OnceLock::from(Check::AnyObject) }
    }

    /// The schema as JSON text.
    ///
    /// # Errors
    /// When the file of texts cannot be read.
    pub fn text(&self) -> Result<Box<RawValue>> {
        self.text.read()
    }

    /// Reads a value from outside strictly and checks it: one line per problem, none when it fits.
    ///
    /// # Errors
    /// As [`Schema::text`].
    pub fn problems_strictly(&self, bytes: &[u8]) -> Result<Vec<String>> {
        Ok(match json::read(bytes) {
            Ok(value) => self.compiled()?.problems(&value),
            Err(cause) => vec![format!("not acceptable JSON: {cause}")],
        })
    }

    /// The same of a value that a toolkit answered. A schema that allows everything costs one look over the text.
    ///
    /// # Errors
    /// As [`Schema::text`].
    pub fn problems(&self, bytes: &[u8]) -> Result<Vec<String>> {
        let problems = match self.compiled()? {
            check @ Check::Full(_) => serde_json::from_slice(bytes).map(|value| check.problems(&value)),
            Check::Anything => serde_json::from_slice(bytes).map(|_: &RawValue| Vec::new()),
            Check::AnyObject => serde_json::from_slice(bytes).map(|text: &RawValue| {
                if text.get().starts_with('{') { Vec::new() } else { vec![NO_OBJECT.to_owned()] }
            }),
        };
        Ok(problems.unwrap_or_else(|cause| vec![format!("not JSON: {cause}")]))
    }

    fn compiled(&self) -> Result<&Check> {
        if let Some(check) = self.check.get() {
            return Ok(check);
        }
        let unusable = |cause: &dyn std::fmt::Display| Error::Unavailable(format!("a schema cannot be used: {cause}"));
        let schema = serde_json::from_str(self.text()?.get()).map_err(|cause| unusable(&cause))?;
        let check = compile(&schema).map_err(|cause| unusable(&cause))?;
        Ok(self.check.get_or_init(|| check))
    }
}

/// What is wrong with a schema itself.
pub(super) fn problem(schema: &Value) -> Option<String> {
    compile(schema).err()
}

impl Check {
    fn problems(&self, value: &Value) -> Vec<String> {
        match self {
            Self::AnyObject if !value.is_object() => vec![NO_OBJECT.to_owned()],
            Self::Anything | Self::AnyObject => Vec::new(),
            Self::Full(validator) => lines(validator, value),
        }
    }
}

fn compile(schema: &Value) -> std::result::Result<Check, String> {
    if let Some(simple) = simple(schema) {
        return Ok(simple);
    }
    jsonschema::options()
        .with_pattern_options(PatternOptions::regex())
        .offline()
        .build(schema)
        .map(|validator| Check::Full(Box::new(validator)))
        .map_err(|cause| format!("the schema cannot be used: {cause}"))
}

/// Schemas that need no validator.
fn simple(schema: &Value) -> Option<Check> {
    let Value::Object(members) = schema else { return (*schema == Value::Bool(true)).then_some(Check::Anything) };
    let silent = |name: &str, value: &Value| match name {
        "title" | "description" | "$schema" | "type" => true,
        "additionalProperties" => *value == Value::Bool(true),
        "properties" => value.as_object().is_some_and(serde_json::Map::is_empty),
        "required" => value.as_array().is_some_and(Vec::is_empty),
        _ => false,
    };
    if !members.iter().all(|(name, value)| silent(name, value)) {
        return None;
    }
    match members.get("type") {
        None => Some(Check::Anything),
        Some(Value::String(name)) if name == "object" => Some(Check::AnyObject),
        Some(_) => None,
    }
}

fn lines(validator: &Validator, value: &Value) -> Vec<String> {
    if validator.is_valid(value) {
        return Vec::new();
    }
    let line = |error: jsonschema::ValidationError<'_>| {
        let path = error.instance_path().to_string();
        let place = if path.is_empty() { "at the top" } else { path.as_str() };
        format!("{place}: {error}").chars().take(LINE).collect()
    };
    validator.iter_errors(value).take(LINES).map(line).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{json, value::to_raw_value};

    use super::*;
    use crate::catalog::Texts;

    fn text(schema: &Value) -> Text {
        let mut texts = Texts::within(&tempfile::env::temp_dir()).unwrap();
        let text = texts.add(&to_raw_value(schema).unwrap());
        texts.write().unwrap();
        text
    }

    fn schema(schema: Value) -> Schema {
        Schema::new(text(&schema))
    }

    fn fits(schema: &Schema, value: &[u8]) -> bool {
        schema.problems(value).unwrap().is_empty()
    }

    #[test]
    fn a_schema_that_cannot_be_read_is_an_outage_and_no_fault_of_the_value() {
        let mut texts = Texts::within(&tempfile::env::temp_dir()).unwrap();
        let unwritten = Schema::new(texts.add(&to_raw_value(&json!({"type": "string"})).unwrap()));
        for problems in [unwritten.problems(b"1"), unwritten.problems_strictly(b"1")] {
            assert_eq!(problems.unwrap_err().row().status, 503);
        }
    }

    #[test]
    fn every_problem_has_its_line_with_its_place() {
        let wanted = schema(json!({
            "type": "object",
            "properties": {"url": {"type": "string"}, "deep": {"type": "object", "properties": {"n": {"maximum": 3}}}},
            "required": ["url"]
        }));
        assert!(wanted.problems_strictly(br#"{"url":"x"}"#).unwrap().is_empty());
        let lines = wanted.problems_strictly(br#"{"deep":{"n":4}}"#).unwrap();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("/deep/n: ")), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("url")), "{lines:?}");
    }

    #[test]
    fn a_pattern_cannot_backtrack_and_nothing_remote_is_fetched() {
        let hard = schema(json!({"type": "string", "pattern": "^(a+)+$"}));
        assert!(!fits(&hard, format!("\"{}b\"", "a".repeat(50_000)).as_bytes()));
        for unusable in [json!({"pattern": "(?=a)b"}), json!({"$ref": "http://127.0.0.1:9/x.json"})] {
            assert!(problem(&unusable).is_some(), "{unusable}");
        }
    }

    #[test]
    fn a_schema_that_allows_everything_needs_no_validator() {
        for silent in [json!(true), json!({}), json!({"title": "x"})] {
            assert!(fits(&schema(silent), b"[1]"));
        }
        let object = schema(json!({"type": "object", "additionalProperties": true}));
        assert!(fits(&object, br#"{"a":1}"#));
        assert!(!fits(&object, b"[1]"));
        assert!(!fits(&object, b"{"));
        assert!(!object.problems_strictly(b"[]").unwrap().is_empty());
        let loose = Schema::loose(text(&json!({"type": "object", "required": ["a"]})));
        assert!(fits(&loose, b"{}"));
        assert!(!fits(&loose, b"[]"));
        assert!(loose.text().unwrap().get().contains("required"), "it is shown as it is");
    }
}
