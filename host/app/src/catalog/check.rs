//! Validation of values against the schemas of tools.
//!
//! Schemas come from toolkits and are not trusted. Nothing remote is fetched for a `$ref`, patterns
//! run on an engine that cannot backtrack, and a validation has a budget of steps that grows with
//! the size of the value. A validator is compiled when a tool is first used, and kept with its
//! version while it is in use.

use std::{
    fmt::{self, Write},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use jsonschema::{PatternOptions, ValidationError, Validator, error::ValidationErrorKind};
use manifest::schema_cost;
use serde_json::{Value, json, value::RawValue};
use tokio::time::timeout;

use super::{
    metered::{Budget, Metered, MeteredValue},
    schema_file::SchemaText,
    validators::{CompiledSchema, Slot, Validators},
};
use crate::{
    Result,
    catalog::errors,
    core::{
        json,
        large_work::{LargeWork, MAX_INLINE_BYTES},
    },
};

/// Maximum number of lines that describe the problems of one value.
const MAX_LINES: usize = 100;
/// Maximum length of a line, in characters.
const MAX_LINE_CHARS: usize = 300;
/// Time within which a larger value must be checked, including the wait for its project's turn.
pub const LARGE_CHECK_DEADLINE: Duration = Duration::from_secs(20);
/// Number of steps that a validation may take, in addition to those for the size of the value.
pub const MAX_STEPS: u64 = 1_000_000;
/// Number of additional steps for each byte of the value.
pub const MAX_STEPS_PER_BYTE: u64 = 32;
/// Number of steps in which all problems of a value must be found. Each step may leave a problem in
/// memory.
const MAX_STEPS_FOR_LINES: u64 = 20_000;
/// Number of steps in which the first problem of a value must be found.
const MAX_STEPS_FOR_FIRST_LINE: u64 = 250_000;
/// Number of schemas that only combine others and together cost as much as one access to a value.
const SCHEMAS_PER_STEP: usize = 16;
/// Maximum estimated memory of the validator of one schema, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 32 << 20;
/// Estimated memory of a validator for each byte of its schema, in bytes.
const BYTES_PER_SCHEMA_BYTE: usize = 32;
/// Size of the cache that a pattern keeps for each thread that uses it, in bytes.
const PATTERN_CACHE_BYTES: usize = 64 << 10;
/// Smallest size limit for the program of a pattern, in bytes. The limit is doubled until the
/// program fits, which gives an estimate of its size.
const MIN_PROGRAM_BYTES: usize = 8 << 10;
/// Size limit for the program of any pattern, in bytes. New toolkits have lower limits.
const MAX_PROGRAM_BYTES: usize = 10 << 20;
/// Estimated memory of a pattern, as a multiple of its program.
const PROGRAMS_PER_PATTERN: usize = 3;

const NOT_AN_OBJECT: &str = "not an object";
const TOO_MANY_STEPS: &str =
    "the value takes too many steps to validate: send a smaller or less nested value";
const TOO_DEEP_TO_NAME: &str =
    "does not match the schema; the first problem is nested too deeply to be named";

/// A schema as text, with its validator while that is cached.
#[derive(Debug)]
pub struct Schema {
    text: SchemaText,
    slot: Arc<Slot>,
    validators: Arc<Validators>,
    is_enforced: bool,
}

/// The check that a schema performs.
#[derive(Debug)]
pub(super) enum Check {
    /// Every value passes.
    Anything,
    /// Every object passes.
    AnyObject,
    /// The validator decides.
    Full(Box<Full>),
}

#[derive(Debug)]
pub(super) struct Full {
    validator: Validator<Metered>,
    /// The number of steps for each value that is entered.
    price: u64,
    /// The estimated memory, in bytes.
    weight: usize,
}

/// The origin of a value.
#[derive(Debug, Clone, Copy)]
enum Origin {
    /// A caller. The value is parsed strictly.
    Caller,
    /// A toolkit, as the result of a tool.
    Toolkit,
}

impl Schema {
    /// Creates a schema that has no [`schema_problem`].
    pub(super) fn new(text: SchemaText, validators: &Arc<Validators>) -> Self {
        Self {
            text,
            slot: Arc::default(),
            validators: validators.clone(),
            is_enforced: true,
        }
    }

    /// Creates a schema that is only shown to callers: every object passes its check.
    pub(super) fn loose(text: SchemaText, validators: &Arc<Validators>) -> Self {
        let slot = Slot::from_pointee(CompiledSchema::new(Check::AnyObject));
        Self {
            text,
            slot: Arc::new(slot),
            validators: validators.clone(),
            is_enforced: false,
        }
    }

    /// Returns true if every value that passes the check matches the schema.
    #[must_use]
    pub fn is_enforced(&self) -> bool {
        self.is_enforced
    }

    /// Returns the schema as JSON text.
    ///
    /// # Errors
    /// Returns an error if the schema file cannot be read.
    pub fn text(&self) -> Result<Box<RawValue>> {
        self.text.read()
    }

    /// Parses a value from a caller strictly and validates it. Returns one line per problem, and
    /// none if the value is valid.
    ///
    /// # Errors
    /// Returns an error if [`Schema::text`] does, or if too many large values of the project are
    /// being checked for too long.
    pub async fn problems_strictly(
        &self,
        large: &LargeWork,
        project: &Arc<str>,
        bytes: &Bytes,
    ) -> Result<Vec<String>> {
        self.check(large, project, bytes, Origin::Caller).await
    }

    /// Validates a value that a toolkit returned. For a schema that allows everything, this costs
    /// one pass over the text.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Schema::problems_strictly`].
    pub async fn problems(
        &self,
        large: &LargeWork,
        project: &Arc<str>,
        bytes: &Bytes,
    ) -> Result<Vec<String>> {
        self.check(large, project, bytes, Origin::Toolkit).await
    }

    /// Validates the parts of a caller's value that are known. A value for which `is_unknown` is true,
    /// or that contains such a value, counts as valid apart from missing and unexpected members.
    ///
    /// # Errors
    /// Returns an error if [`Schema::text`] does.
    pub(crate) async fn problems_of_known(
        &self,
        value: Value,
        is_unknown: fn(&Value) -> bool,
    ) -> Result<Vec<String>> {
        let loaded = self.loaded().await?;
        let Check::Full(full) = &loaded.check else {
            return Ok(Vec::new());
        };
        let lines = full.known_lines(&value, is_unknown);
        Ok(lines.unwrap_or_else(|| vec![TOO_MANY_STEPS.to_owned()]))
    }

    async fn check(
        &self,
        large: &LargeWork,
        project: &Arc<str>,
        bytes: &Bytes,
        origin: Origin,
    ) -> Result<Vec<String>> {
        if bytes.len() <= MAX_INLINE_BYTES
            && let Some(loaded) = &*self.slot.load()
        {
            self.validators.touch(loaded);
            return Ok(loaded.check.problems(bytes, origin));
        }
        Box::pin(self.check_in_turn(large, project, bytes, origin)).await
    }

    /// Checks a value that is large, or whose schema is not cached.
    async fn check_in_turn(
        &self,
        large: &LargeWork,
        project: &Arc<str>,
        bytes: &Bytes,
        origin: Origin,
    ) -> Result<Vec<String>> {
        let loaded = self.loaded().await?;
        let own = bytes.clone();
        let checked = large.run(project, bytes.len(), move || {
            loaded.check.problems(&own, origin)
        });
        timeout(LARGE_CHECK_DEADLINE, checked)
            .await
            .unwrap_or_else(|_| Err(errors::deadline(LARGE_CHECK_DEADLINE.as_secs())))
    }

    /// Returns the compiled schema. A schema that is not cached is compiled on a separate thread.
    async fn loaded(&self) -> Result<Arc<CompiledSchema>> {
        if let Some(loaded) = self.slot.load_full() {
            self.validators.touch(&loaded);
            return Ok(loaded);
        }
        let _compile_lock = self.validators.compile_lock(&self.slot).lock().await;
        if let Some(loaded) = self.slot.load_full() {
            return Ok(loaded);
        }
        let (text, slot, validators) = (
            self.text.clone(),
            self.slot.clone(),
            self.validators.clone(),
        );
        let compiled = tokio::task::spawn_blocking(move || {
            let unusable = |cause: &dyn fmt::Display| {
                errors::unavailable(format!("a schema cannot be used: {cause}"))
            };
            let schema =
                serde_json::from_str(text.read()?.get()).map_err(|cause| unusable(&cause))?;
            let check = compile(&schema).map_err(|cause| unusable(&cause))?;
            let weight = check.weight();
            let loaded = Arc::new(CompiledSchema::new(check));
            validators.keep(&slot, loaded.clone(), weight);
            Ok(loaded)
        });
        compiled.await.unwrap_or_else(|broken| {
            Err(errors::unavailable(format!(
                "a schema cannot be compiled: {broken}"
            )))
        })
    }
}

/// Returns the problem of an invalid schema that no toolkit has, or `None`.
///
/// # Errors
/// Returns an error if the work on the schema panics.
pub(crate) async fn schema_problem_of(schema: Value) -> Result<Option<String>> {
    let checked = tokio::task::spawn_blocking(move || schema_problem(&schema));
    checked.await.map_err(errors::internal)
}

/// Validates a value against a schema that no toolkit has and that has no [`schema_problem_of`].
/// Returns one line per problem.
///
/// # Errors
/// Returns an error if the schema is invalid.
pub(crate) async fn problems_with(schema: Value, value: Value) -> Result<Vec<String>> {
    let checked = tokio::task::spawn_blocking(move || {
        let size = value.to_string().len();
        compile(&schema).map(|check| check.problems_of(&value, size))
    });
    let checked = checked.await.map_err(errors::internal)?;
    checked.map_err(errors::internal)
}

/// Returns the problem of an invalid schema, or `None`. Compiles the schema, which may take long.
pub(super) fn schema_problem(schema: &Value) -> Option<String> {
    match compile(schema) {
        Ok(check) if check.weight() > MAX_SCHEMA_BYTES => Some(format!(
            "the schema needs about {} MiB for validation, most of it for patterns; at most {} MiB are allowed",
            check.weight() >> 20,
            MAX_SCHEMA_BYTES >> 20
        )),
        Ok(_) => None,
        Err(schema_problem) => Some(schema_problem),
    }
}

impl Check {
    fn problems(&self, bytes: &[u8], origin: Origin) -> Vec<String> {
        match (origin, self) {
            (Origin::Caller, _) => match json::parse(bytes) {
                Ok(value) => self.problems_of(&value, bytes.len()),
                Err(cause) => vec![format!("not acceptable JSON: {cause}")],
            },
            (Origin::Toolkit, Self::Full(_)) => match serde_json::from_slice(bytes) {
                Ok(value) => self.problems_of(&value, bytes.len()),
                Err(cause) => vec![not_json_line(&cause)],
            },
            (Origin::Toolkit, _) => match serde_json::from_slice::<&RawValue>(bytes) {
                Ok(text) if matches!(self, Self::AnyObject) && !text.get().starts_with('{') => {
                    vec![NOT_AN_OBJECT.to_owned()]
                }
                Ok(_) => Vec::new(),
                Err(cause) => vec![not_json_line(&cause)],
            },
        }
    }

    fn problems_of(&self, value: &Value, size: usize) -> Vec<String> {
        match self {
            Self::AnyObject if !value.is_object() => vec![NOT_AN_OBJECT.to_owned()],
            Self::Anything | Self::AnyObject => Vec::new(),
            Self::Full(full) => full.problems(value, size),
        }
    }

    /// Returns the estimated memory, in bytes.
    fn weight(&self) -> usize {
        match self {
            Self::Anything | Self::AnyObject => 0,
            Self::Full(full) => full.weight,
        }
    }
}

impl Full {
    fn problems(&self, value: &Value, size: usize) -> Vec<String> {
        let budget = self.budget(MAX_STEPS + MAX_STEPS_PER_BYTE * size as u64);
        let fits = self.validator.is_valid(MeteredValue::new(value, &budget));
        if budget.is_spent() {
            return vec![TOO_MANY_STEPS.to_owned()];
        }
        if fits {
            return Vec::new();
        }
        self.all_lines(value).unwrap_or_else(|| {
            vec![
                self.first_line(value)
                    .unwrap_or_else(|| TOO_DEEP_TO_NAME.to_owned()),
            ]
        })
    }

    /// Returns one line per problem, or `None` if finding them takes too many steps.
    fn all_lines(&self, value: &Value) -> Option<Vec<String>> {
        let budget = self.budget(MAX_STEPS_FOR_LINES);
        let errors = self
            .validator
            .iter_errors(MeteredValue::new(value, &budget));
        (!budget.is_spent()).then(|| {
            errors
                .take(MAX_LINES)
                .map(|error| problem_line(&error))
                .collect()
        })
    }

    /// Returns one line per problem of the known parts of a value, or `None` if finding them takes too
    /// many steps.
    fn known_lines(&self, value: &Value, is_unknown: fn(&Value) -> bool) -> Option<Vec<String>> {
        let budget = self.budget(MAX_STEPS_FOR_LINES);
        let is_known = |error: &ValidationError<'_>| {
            let at = value.pointer(error.instance_path().as_str());
            !at.is_some_and(is_unknown) || concerns_names(error.kind())
        };
        let errors = self
            .validator
            .iter_errors(MeteredValue::new(value, &budget));
        let known = errors.filter(is_known).take(MAX_LINES);
        let lines = known.map(|error| problem_line(&error)).collect();
        (!budget.is_spent()).then_some(lines)
    }

    fn first_line(&self, value: &Value) -> Option<String> {
        let budget = self.budget(MAX_STEPS_FOR_FIRST_LINE);
        let error = self
            .validator
            .validate(MeteredValue::new(value, &budget))
            .err()?;
        (!budget.is_spent()).then(|| problem_line(&error))
    }

    fn budget(&self, steps: u64) -> Budget {
        Budget::new(steps, self.price)
    }
}

fn compile(schema: &Value) -> std::result::Result<Check, String> {
    if let Some(check) = trivial_check(schema) {
        return Ok(check);
    }
    let unusable = |cause: &dyn fmt::Display| format!("the schema cannot be used: {cause}");
    let cost = schema_cost(schema).map_err(|cause| unusable(&cause))?;
    let validator = build(schema, MAX_PROGRAM_BYTES).map_err(|cause| unusable(&cause))?;
    let patterns: usize = cost
        .patterns
        .iter()
        .map(|pattern| pattern_bytes(pattern))
        .sum();
    let weight = schema.to_string().len() * BYTES_PER_SCHEMA_BYTE + patterns;
    let price = 1 + (cost.schemas_per_value / SCHEMAS_PER_STEP) as u64;
    Ok(Check::Full(Box::new(Full {
        validator,
        price,
        weight,
    })))
}

fn build(
    schema: &Value,
    program: usize,
) -> std::result::Result<Validator<Metered>, ValidationError<'static>> {
    let patterns = PatternOptions::regex()
        .size_limit(program)
        .dfa_size_limit(PATTERN_CACHE_BYTES);
    jsonschema::options_for::<Metered>()
        .with_pattern_options(patterns)
        .offline()
        .build(schema)
}

/// Estimates the memory of a compiled pattern, in bytes.
fn pattern_bytes(pattern: &str) -> usize {
    let schema = json!({"pattern": pattern});
    let mut program = MIN_PROGRAM_BYTES;
    while program < MAX_PROGRAM_BYTES && build(&schema, program).is_err() {
        program *= 2;
    }
    program * PROGRAMS_PER_PATTERN + PATTERN_CACHE_BYTES
}

/// Returns the check of a schema that needs no validator.
fn trivial_check(schema: &Value) -> Option<Check> {
    let Value::Object(members) = schema else {
        return (*schema == Value::Bool(true)).then_some(Check::Anything);
    };
    let is_annotation = |name: &str, value: &Value| match name {
        "title" | "description" | "$schema" | "type" => true,
        "additionalProperties" => *value == Value::Bool(true),
        "properties" => value.as_object().is_some_and(serde_json::Map::is_empty),
        "required" => value.as_array().is_some_and(Vec::is_empty),
        _ => false,
    };
    if !members
        .iter()
        .all(|(name, value)| is_annotation(name, value))
    {
        return None;
    }
    match members.get("type") {
        None => Some(Check::Anything),
        Some(Value::String(name)) if name == "object" => Some(Check::AnyObject),
        Some(_) => None,
    }
}

/// Returns true for a problem of the names of members, which are known whatever the values are.
fn concerns_names(kind: &ValidationErrorKind) -> bool {
    matches!(
        kind,
        ValidationErrorKind::Required { .. } | ValidationErrorKind::AdditionalProperties { .. }
    )
}

fn not_json_line(cause: &serde_json::Error) -> String {
    format!("not JSON: {cause}")
}

fn problem_line(error: &ValidationError<'_>) -> String {
    let path = error.instance_path().to_string();
    let location = if path.is_empty() {
        "at the top"
    } else {
        path.as_str()
    };
    let mut problem_line = Line {
        text: String::new(),
        left: MAX_LINE_CHARS,
    };
    // A write error means that the line is full. A message quotes its value, which may be large.
    _ = write!(problem_line, "{location}: {error}");
    problem_line.text
}

/// A text that accepts only as many characters as it has room for.
struct Line {
    text: String,
    /// The number of characters that still fit.
    left: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let part = text
            .char_indices()
            .nth(self.left)
            .map_or(text, |(end, _)| &text[..end]);
        self.text.push_str(part);
        self.left -= part.chars().count();
        if self.left > 0 {
            Ok(())
        } else {
            Err(fmt::Error)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use serde_json::value::to_raw_value;

    use super::*;
    use crate::catalog::SchemaFile;

    static TEST_LARGE_WORK: LazyLock<LargeWork> =
        LazyLock::new(|| LargeWork::start(|| {}).unwrap());
    static TEST_PROJECT: LazyLock<Arc<str>> = LazyLock::new(|| "a".into());

    fn schema_file() -> SchemaFile {
        SchemaFile::create_in(&tempfile::env::temp_dir()).unwrap()
    }

    fn schema(schema: &Value) -> Schema {
        let mut schema_file = schema_file();
        let text = schema_file.add(&to_raw_value(schema).unwrap());
        schema_file.write().unwrap();
        Schema::new(text, schema_file.validators())
    }

    fn problems(schema: &Value, value: &str) -> Vec<String> {
        compile(schema)
            .unwrap()
            .problems(value.as_bytes(), Origin::Toolkit)
    }

    fn fits(schema: &Value, value: &str) -> bool {
        problems(schema, value).is_empty()
    }

    /// Returns a schema whose nodes contain two further nodes for the same value.
    fn doubling() -> Value {
        let twice = json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]});
        json!({"type": "object", "properties": {"in": twice}})
    }

    fn nested(levels: usize, core: &str) -> String {
        format!("{}{core}{}", "{\"in\":".repeat(levels), "}".repeat(levels))
    }

    #[tokio::test]
    async fn unreadable_schema_is_an_outage() {
        let mut schema_file = schema_file();
        let text = schema_file.add(&to_raw_value(&json!({"type": "string"})).unwrap());
        let unwritten = Schema::new(text, schema_file.validators());
        let value = Bytes::from_static(b"1");
        for problems in [
            unwritten
                .problems(&TEST_LARGE_WORK, &TEST_PROJECT, &value)
                .await,
            unwritten
                .problems_strictly(&TEST_LARGE_WORK, &TEST_PROJECT, &value)
                .await,
        ] {
            assert!(problems.unwrap_err().is(&errors::UNAVAILABLE));
        }
    }

    #[tokio::test]
    async fn every_problem_has_its_line_with_its_place() {
        let wanted = schema(&json!({
            "type": "object",
            "properties": {"url": {"type": "string"}, "deep": {"type": "object", "properties": {"n": {"maximum": 3}}}},
            "required": ["url"]
        }));
        assert!(
            wanted
                .problems_strictly(
                    &TEST_LARGE_WORK,
                    &TEST_PROJECT,
                    &Bytes::from_static(br#"{"url":"x"}"#)
                )
                .await
                .unwrap()
                .is_empty()
        );
        let lines = wanted
            .problems_strictly(
                &TEST_LARGE_WORK,
                &TEST_PROJECT,
                &Bytes::from_static(br#"{"deep":{"n":4}}"#),
            )
            .await
            .unwrap();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines
                .iter()
                .any(|problem_line| problem_line.starts_with("/deep/n: ")),
            "{lines:?}"
        );
        assert!(
            lines
                .iter()
                .any(|problem_line| problem_line.contains("url")),
            "{lines:?}"
        );
    }

    #[test]
    fn patterns_and_references_stay_bounded() {
        let hard = json!({"type": "string", "pattern": "^(a+)+$"});
        assert!(!fits(&hard, &format!("\"{}b\"", "a".repeat(50_000))));
        for unusable in [
            json!({"pattern": "(?=a)b"}),
            json!({"$ref": "http://127.0.0.1:9/x.json"}),
        ] {
            assert!(schema_problem(&unusable).is_some(), "{unusable}");
        }
    }

    #[tokio::test]
    async fn a_schema_that_allows_everything_needs_no_validator() {
        for schema in [json!(true), json!({}), json!({"title": "x"})] {
            assert!(fits(&schema, "[1]"));
        }
        let object = json!({"type": "object", "additionalProperties": true});
        assert!(fits(&object, r#"{"a":1}"#));
        assert!(!fits(&object, "[1]"));
        assert!(!fits(&object, "{"));
        assert!(
            !compile(&object)
                .unwrap()
                .problems(b"[]", Origin::Caller)
                .is_empty()
        );
        let mut schema_file = schema_file();
        let text =
            schema_file.add(&to_raw_value(&json!({"type": "object", "required": ["a"]})).unwrap());
        schema_file.write().unwrap();
        let loose = Schema::loose(text, schema_file.validators());
        assert!(
            loose
                .problems(&TEST_LARGE_WORK, &TEST_PROJECT, &Bytes::from_static(b"{}"))
                .await
                .unwrap()
                .is_empty()
        );
        assert!(
            !loose
                .problems(&TEST_LARGE_WORK, &TEST_PROJECT, &Bytes::from_static(b"[]"))
                .await
                .unwrap()
                .is_empty()
        );
        assert!(
            loose.text().unwrap().get().contains("required"),
            "it is shown as it is"
        );
    }

    #[test]
    fn doubling_schema_ends_with_one_line() {
        assert!(fits(&doubling(), &nested(50, "{}")));
        let lines = problems(&doubling(), &nested(50, "1"));
        assert_eq!(lines.len(), 1, "{lines:?}");
        let location = format!("{}: 1 is not", "/in".repeat(50));
        assert!(lines[0].starts_with(&location), "{lines:?}");
    }

    #[test]
    fn large_wrong_value_has_one_line() {
        let schema = json!({"type": "array", "items": {"type": "string"}});
        let lines = problems(&schema, &format!("[{}1]", "1,".repeat(100_000)));
        assert_eq!(lines, [r#"/0: 1 is not of type "string""#]);
    }

    #[test]
    fn work_grows_with_the_value_alone() {
        let many: Vec<_> = (0..900)
            .map(|number| json!({"not": {"const": number}}))
            .collect();
        let schema = json!({"type": "array", "items": {"allOf": many}});
        assert_eq!(
            problems(&schema, &format!("[{}1000]", "1000,".repeat(10_000))),
            [TOO_MANY_STEPS]
        );
        assert!(fits(&schema, "[1000,1000]"));
    }

    #[test]
    fn shared_references_compile_once() {
        let mut definitions = serde_json::Map::new();
        for level in 0..60 {
            let next = json!({"$ref": format!("#/$defs/{}", level + 1)});
            definitions.insert(
                level.to_string(),
                json!({"properties": {"a": next, "b": next}, "unevaluatedProperties": false}),
            );
        }
        definitions.insert("60".into(), json!({"type": "string"}));
        let schema = json!({"$ref": "#/$defs/0", "$defs": definitions});
        assert_eq!(schema_problem(&schema), None);
        assert!(fits(&schema, r#"{"a":{"b":{}}}"#));
    }

    #[test]
    fn deepest_schema_and_value_fit_the_stack() {
        let mut definitions = serde_json::Map::new();
        for level in 0..14 {
            definitions.insert(
                level.to_string(),
                json!({"anyOf": [{"$ref": format!("#/$defs/{}", level + 1)}]}),
            );
        }
        definitions.insert("14".into(), json!({"properties": {"in": {"$ref": "#"}}}));
        let schema = json!({"type": "object", "$ref": "#/$defs/0", "$defs": definitions});
        let value = nested(60, "{}");
        let checked = std::thread::Builder::new()
            .stack_size(2 << 20)
            .spawn(move || problems(&schema, &value));
        assert_eq!(checked.unwrap().join().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn heavy_patterns_are_refused() {
        let heavy: serde_json::Map<_, _> = (0..60)
            .map(|number| {
                (
                    format!(r"^{number}\p{{L}}{{20}}"),
                    json!({"type": "string"}),
                )
            })
            .collect();
        let light: serde_json::Map<_, _> = (0..60)
            .map(|number| (format!("^x-{number}"), json!(true)))
            .collect();
        assert!(
            schema_problem(&json!({"patternProperties": heavy}))
                .unwrap()
                .contains("patterns")
        );
        assert_eq!(schema_problem(&json!({"patternProperties": light})), None);
    }

    #[test]
    fn message_is_cut_where_it_is_written() {
        let lines = problems(
            &json!({"type": "string"}),
            &format!("[{}1]", "1,".repeat(1_000)),
        );
        assert_eq!(lines[0].chars().count(), MAX_LINE_CHARS);
    }
}
