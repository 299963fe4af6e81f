//! Values against the schemas of a tool.
//!
//! Schemas come from toolkits, so they are not trusted: nothing remote is fetched for a `$ref`, and patterns run on an
//! engine that cannot backtrack. A validator is compiled when a tool is first used and kept with its version.

use std::sync::OnceLock;

use jsonschema::{PatternOptions, Validator};
use serde_json::{Value, value::RawValue};

use super::texts::Text;
use crate::{Result, json};

const LINES: usize = 100;
const LINE: usize = 300;

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

    /// Reads a value from outside strictly and checks it.
    ///
    /// # Errors
    /// One line per problem.
    pub fn check_strictly(&self, bytes: &[u8]) -> std::result::Result<(), Vec<String>> {
        let value = json::read(bytes).map_err(|cause| vec![format!("not acceptable JSON: {cause}")])?;
        self.compiled()?.value(&value)
    }

    /// Checks a value that a toolkit answered. A schema that allows everything costs one look over the text.
    ///
    /// # Errors
    /// One line per problem.
    pub fn check(&self, bytes: &[u8]) -> std::result::Result<(), Vec<String>> {
        let not_json = |cause: serde_json::Error| vec![format!("not JSON: {cause}")];
        match self.compiled()? {
            Check::Full(validator) => {
                let value = serde_json::from_slice(bytes).map_err(not_json)?;
                problems(validator, &value)
            }
            simple => {
                let text: &RawValue = serde_json::from_slice(bytes).map_err(not_json)?;
                let object = text.get().starts_with('{');
                if object || matches!(simple, Check::Anything) { Ok(()) } else { Err(vec!["not an object".into()]) }
            }
        }
    }

    fn compiled(&self) -> std::result::Result<&Check, Vec<String>> {
        if let Some(check) = self.check.get() {
            return Ok(check);
        }
        let text = self.text().map_err(|cause| vec![cause.to_string()])?;
        let schema =
            serde_json::from_str(text.get()).map_err(|cause| vec![format!("the schema is not JSON: {cause}")])?;
        let check = compile(&schema).map_err(|problem| vec![problem])?;
        Ok(self.check.get_or_init(|| check))
    }
}

/// What is wrong with a schema itself.
pub(super) fn problem(schema: &Value) -> Option<String> {
    compile(schema).err()
}

impl Check {
    fn value(&self, value: &Value) -> std::result::Result<(), Vec<String>> {
        match self {
            Self::Anything => Ok(()),
            Self::AnyObject if value.is_object() => Ok(()),
            Self::AnyObject => Err(vec!["not an object".into()]),
            Self::Full(validator) => problems(validator, value),
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

fn problems(validator: &Validator, value: &Value) -> std::result::Result<(), Vec<String>> {
    if validator.is_valid(value) {
        return Ok(());
    }
    let line = |error: jsonschema::ValidationError<'_>| {
        let path = error.instance_path().to_string();
        let place = if path.is_empty() { "at the top" } else { path.as_str() };
        format!("{place}: {error}").chars().take(LINE).collect()
    };
    Err(validator.iter_errors(value).take(LINES).map(line).collect())
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

    #[test]
    fn every_problem_has_its_line_with_its_place() {
        let wanted = schema(json!({
            "type": "object",
            "properties": {"url": {"type": "string"}, "deep": {"type": "object", "properties": {"n": {"maximum": 3}}}},
            "required": ["url"]
        }));
        wanted.check_strictly(br#"{"url":"x"}"#).unwrap();
        let lines = wanted.check_strictly(br#"{"deep":{"n":4}}"#).unwrap_err();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("/deep/n: ")), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("url")), "{lines:?}");
    }

    #[test]
    fn a_pattern_cannot_backtrack_and_nothing_remote_is_fetched() {
        let hard = schema(json!({"type": "string", "pattern": "^(a+)+$"}));
        assert!(hard.check(format!("\"{}b\"", "a".repeat(50_000)).as_bytes()).is_err());
        for unusable in [json!({"pattern": "(?=a)b"}), json!({"$ref": "http://127.0.0.1:9/x.json"})] {
            assert!(problem(&unusable).is_some(), "{unusable}");
        }
    }

    #[test]
    fn a_schema_that_allows_everything_needs_no_validator() {
        for silent in [json!(true), json!({}), json!({"title": "x"})] {
            schema(silent).check(b"[1]").unwrap();
        }
        let object = schema(json!({"type": "object", "additionalProperties": true}));
        object.check(br#"{"a":1}"#).unwrap();
        assert!(object.check(b"[1]").is_err());
        assert!(object.check(b"{").is_err());
        assert!(object.check_strictly(b"[]").is_err());
        let loose = Schema::loose(text(&json!({"type": "object", "required": ["a"]})));
        loose.check(b"{}").unwrap();
        assert!(loose.check(b"[]").is_err());
        assert!(loose.text().unwrap().get().contains("required"), "it is shown as it is");
    }
}
