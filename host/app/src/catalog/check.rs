//! The check that a schema performs, and its compilation.
//!
//! Schemas come from toolkits and are not trusted. Nothing remote is fetched for a `$ref`, patterns
//! run on an engine that cannot backtrack, and a validation has a budget of steps that grows with
//! the size of the value.

use std::{
    collections::BTreeSet,
    fmt::{self, Write},
    sync::Arc,
};

use bumpalo::Bump;
use bytes::Bytes;
use jsonschema::{
    JsonType, PatternOptions, ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind},
    paths::LocationSegment,
};
use manifest::schema_cost;
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    budgeted::{Budget, BudgetedJson, BudgetedValue, MAX_LINE_CHARS},
    described_names::{DescribedNames, UnknownName, misspellings, with_misspellings},
};
use crate::{
    Result,
    core::{
        json::{self, Problem, Rules, Tree},
        large_work::LargeWork,
        spelling::{sent_instead, shortened},
    },
};

/// Maximum number of lines that describe the problems of one value.
const MAX_LINES: usize = 100;
/// Path of the whole value in lines.
const WHOLE_NAME: &str = "at the top";
/// Maximum number of allowed values that one line lists.
const MAX_LISTED_OPTIONS: usize = 20;
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

const NULL_TEXT: &[u8] = b"null";
pub(super) const NOT_AN_OBJECT: &str = "not an object";
const TOO_MANY_STEPS: &str =
    "the value takes too many steps to validate: send a smaller or less nested value";
const TOO_DEEP: &str = "the value is nested too deeply to be validated";
const TOO_DEEP_TO_NAME: &str =
    "does not match the schema; the first problem is nested too deeply to be named";

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
    validator: Validator<BudgetedJson>,
    names: Option<DescribedNames>,
    /// The number of steps for each value that the validator enters.
    price: u64,
    /// The estimated memory, in bytes.
    weight: usize,
}

/// A value of a caller that matches a schema.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// The value to use, as JSON text.
    pub value: Bytes,
    /// Names at its top level that the schema does not describe.
    pub unknown: Vec<UnknownName>,
}

impl Accepted {
    /// Refuses the value if it has names that are probably misspelled, one line each.
    pub(crate) fn without_misspellings(self) -> std::result::Result<Self, Vec<String>> {
        let problems = misspellings(&self.unknown);
        if problems.is_empty() {
            return Ok(self);
        }
        Err(problems)
    }
}

/// Returns the problems of a schema that is not part of a toolkit: those for which a toolkit would be
/// refused. Each line starts with the name of the schema. Compiles the schema in the turn of the
/// project. Fails if the work on the schema panics.
pub(crate) async fn schema_problems_of(
    large: &LargeWork,
    project: &Arc<str>,
    name: &'static str,
    schema: Value,
) -> Result<Vec<String>> {
    let problems = large
        .run_in_turn(project, move || compile_checked(name, &schema).err())
        .await?;
    Ok(problems.unwrap_or_default())
}

/// Validates a value of a caller against a schema that is not part of a toolkit, in the turn of the
/// project. Returns the accepted value, see [`Check::accept`], or one line per problem of the value or
/// the schema. The lines of the schema start with its name. Fails if the work panics.
pub(crate) async fn accept_with(
    large: &LargeWork,
    project: &Arc<str>,
    name: &'static str,
    schema: Value,
    value: Value,
) -> Result<std::result::Result<Value, Vec<String>>> {
    large
        .run_in_turn(project, move || {
            let accepted = compile_checked(name, &schema)?.accept(&value.to_string().into())?;
            let text = accepted.without_misspellings()?.value;
            json::parse(&text).map_err(|problem| vec![problem.line(WHOLE_NAME)])
        })
        .await
}

/// Compiles a schema under the rules for those of toolkits.
fn compile_checked(name: &str, schema: &Value) -> std::result::Result<Check, Vec<String>> {
    let problems = manifest::schema_problems(name, schema);
    if !problems.is_empty() {
        return Err(problems);
    }
    compile_up_to(schema, MAX_SCHEMA_BYTES).map_err(|problem| vec![format!("{name}: {problem}")])
}

/// Returns the problem of an invalid schema, or `None`. Compiles the schema, which may take long.
pub(super) fn schema_problem(schema: &Value) -> Option<String> {
    compile_up_to(schema, MAX_SCHEMA_BYTES).err()
}

impl Check {
    /// Validates a value of a caller. Returns the value to use, or one line per problem.
    ///
    /// Strict function calling makes a model send every property, with null for those that it leaves
    /// out. A property whose value is null, where the schema does not allow null, counts as absent
    /// and is removed.
    pub(super) fn accept(&self, bytes: &Bytes) -> std::result::Result<Accepted, Vec<String>> {
        let problems = match self.validate(bytes) {
            Ok(unknown) => {
                let value = bytes.clone();
                return Ok(Accepted { value, unknown });
            }
            Err(problems) => problems,
        };
        let value = self.without_refused_nulls(bytes).ok_or(problems)?;
        let unknown = self.validate(&value)?;
        Ok(Accepted { value, unknown })
    }

    /// Validates a value of a caller, which is parsed strictly. Returns the names that the schema does
    /// not describe, or one line per problem, those of misspelled names first.
    fn validate(&self, bytes: &[u8]) -> std::result::Result<Vec<UnknownName>, Vec<String>> {
        let arena = Bump::new();
        let value = Tree::parse(bytes, &arena, Rules::Strict)
            .map_err(|problem| vec![problem.line(WHOLE_NAME)])?;
        match self {
            Self::Full(full) => {
                let problems = full.problems(&value, bytes.len());
                let unknown = full.unknown_names(&value);
                if problems.is_empty() {
                    return Ok(unknown);
                }
                Err(with_misspellings(&unknown, problems))
            }
            Self::AnyObject if !matches!(value, Tree::Object(_)) => {
                Err(vec![NOT_AN_OBJECT.to_owned()])
            }
            Self::Anything | Self::AnyObject => Ok(Vec::new()),
        }
    }

    /// Returns a value without the properties that are null against the schema, or `None` if there
    /// are no such properties.
    fn without_refused_nulls(&self, bytes: &[u8]) -> Option<Bytes> {
        let has_null = bytes.windows(NULL_TEXT.len()).any(|part| part == NULL_TEXT);
        let Self::Full(full) = self else {
            return None;
        };
        if !has_null {
            return None;
        }
        let mut value = json::parse(bytes).ok()?;
        full.remove_refused_nulls(&mut value)
            .then(|| value.to_string().into())
    }

    /// Returns one line per problem of a value of a toolkit, such as the result of a tool.
    pub(super) fn problems(&self, bytes: &[u8]) -> Vec<String> {
        let Self::Full(full) = self else {
            return self.problems_of_text(bytes);
        };
        let arena = Bump::new();
        match Tree::parse(bytes, &arena, Rules::Lenient) {
            Ok(value) => full.problems(&value, bytes.len()),
            Err(problem) => vec![problem.line(WHOLE_NAME)],
        }
    }

    /// Checks text without making values of it.
    fn problems_of_text(&self, bytes: &[u8]) -> Vec<String> {
        match serde_json::from_slice::<&RawValue>(bytes) {
            Ok(text) if matches!(self, Self::AnyObject) && !text.get().starts_with('{') => {
                vec![NOT_AN_OBJECT.to_owned()]
            }
            Ok(_) => Vec::new(),
            Err(cause) => vec![Problem::of_syntax(&cause).line(WHOLE_NAME)],
        }
    }

    /// Returns the estimated memory, in bytes.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Anything | Self::AnyObject => 0,
            Self::Full(full) => full.weight,
        }
    }
}

impl Full {
    fn problems(&self, value: &Tree<'_>, size: usize) -> Vec<String> {
        let budget = self.budget(MAX_STEPS + MAX_STEPS_PER_BYTE * size as u64);
        let fits = self.validator.is_valid(BudgetedValue::new(value, &budget));
        if budget.is_spent() {
            return vec![TOO_MANY_STEPS.to_owned()];
        }
        if fits {
            return Vec::new();
        }
        self.all_lines(value).unwrap_or_else(|| {
            let first = self.first_line(value);
            vec![first.unwrap_or_else(|| TOO_DEEP_TO_NAME.to_owned())]
        })
    }

    /// Returns one line per problem, or `None` if finding them takes too many steps.
    fn all_lines(&self, value: &Tree<'_>) -> Option<Vec<String>> {
        let budget = self.budget(MAX_STEPS_FOR_LINES);
        let errors = self
            .validator
            .iter_errors(BudgetedValue::new(value, &budget));
        let lines = errors.flat_map(|error| problem_lines(&error));
        (!budget.is_spent()).then(|| lines.take(MAX_LINES).collect())
    }

    /// Removes the properties that are null against the schema. Returns true if there were any.
    fn remove_refused_nulls(&self, value: &mut Value) -> bool {
        let mut places = BTreeSet::new();
        let (text, arena) = (value.to_string(), Bump::new());
        if let Ok(tree) = Tree::parse(text.as_bytes(), &arena, Rules::Lenient) {
            let budget = self.budget(MAX_STEPS_FOR_LINES);
            let errors = self
                .validator
                .iter_errors(BudgetedValue::new(&tree, &budget));
            errors.for_each(|error| add_refused_nulls(&error, &mut places));
            if budget.is_spent() {
                return false;
            }
        }
        let mut is_changed = false;
        for place in &places {
            is_changed |= remove_member(value, place);
        }
        is_changed
    }

    /// Returns the names of a value that the schema does not describe.
    fn unknown_names(&self, value: &Tree<'_>) -> Vec<UnknownName> {
        let names = self.names.as_ref();
        names.map_or_else(Vec::new, |names| names.unknown(value))
    }

    /// Returns one line per problem of the known parts of a value.
    pub(super) fn problems_of_known(
        &self,
        mut value: Value,
        is_unknown: fn(&Value) -> bool,
    ) -> Vec<String> {
        self.remove_refused_nulls(&mut value);
        let budget = self.budget(MAX_STEPS_FOR_LINES);
        let (text, arena) = (value.to_string(), Bump::new());
        let Ok(tree) = Tree::parse(text.as_bytes(), &arena, Rules::Lenient) else {
            return vec![TOO_DEEP.to_owned()];
        };
        let budgeted = BudgetedValue::new(&tree, &budget);
        let known = self.validator.iter_errors(budgeted).filter(|error| {
            let at = value.pointer(error.instance_path().as_str());
            !at.is_some_and(is_unknown) || concerns_names(error.kind())
        });
        let problems = known.flat_map(|error| problem_lines(&error));
        let problems = problems.take(MAX_LINES).collect();
        if budget.is_spent() {
            return vec![TOO_MANY_STEPS.to_owned()];
        }
        with_misspellings(&self.unknown_names(&tree), problems)
    }

    fn first_line(&self, value: &Tree<'_>) -> Option<String> {
        let budget = self.budget(MAX_STEPS_FOR_FIRST_LINE);
        let error = self
            .validator
            .validate(BudgetedValue::new(value, &budget))
            .err()?;
        let lines = (!budget.is_spent()).then(|| problem_lines(&error));
        lines?.into_iter().next()
    }

    fn budget(&self, steps: u64) -> Budget {
        Budget::new(steps, self.price)
    }
}

/// Compiles a schema. Returns the reason if it cannot be used.
pub(super) fn compile(schema: &Value) -> std::result::Result<Check, String> {
    compile_up_to(schema, usize::MAX)
}

fn unusable(cause: impl fmt::Display) -> String {
    format!("the schema cannot be used: {cause}")
}

/// Compiles a schema, unless its validator is estimated to need more memory than this many bytes.
fn compile_up_to(schema: &Value, max_bytes: usize) -> std::result::Result<Check, String> {
    if let Some(check) = trivial_check(schema) {
        return Ok(check);
    }
    let cost = schema_cost(schema).map_err(unusable)?;
    let mut weight = schema.to_string().len() * BYTES_PER_SCHEMA_BYTE;
    for pattern in &cost.patterns {
        weight += pattern_bytes(pattern);
        if weight > max_bytes {
            return Err(format!(
                "the schema needs more than {} MiB for validation, most of it for patterns",
                max_bytes >> 20
            ));
        }
    }
    let validator = build(schema, MAX_PROGRAM_BYTES).map_err(unusable)?;
    let price = 1 + (cost.schemas_per_value / SCHEMAS_PER_STEP) as u64;
    Ok(Check::Full(Box::new(Full {
        validator,
        names: DescribedNames::of(schema),
        price,
        weight,
    })))
}

fn build(
    schema: &Value,
    program: usize,
) -> std::result::Result<Validator<BudgetedJson>, ValidationError<'static>> {
    let patterns = PatternOptions::regex()
        .size_limit(program)
        .dfa_size_limit(PATTERN_CACHE_BYTES);
    jsonschema::options_for::<BudgetedJson>()
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
    let has_only_annotations = members.iter().all(|(name, value)| match name.as_str() {
        "title" | "description" | "$schema" | "type" => true,
        "additionalProperties" => *value == Value::Bool(true),
        "properties" => value.as_object().is_some_and(serde_json::Map::is_empty),
        "required" => value.as_array().is_some_and(Vec::is_empty),
        _ => false,
    });
    if !has_only_annotations {
        return None;
    }
    match members.get("type") {
        None => Some(Check::Anything),
        Some(Value::String(name)) if name == "object" => Some(Check::AnyObject),
        Some(_) => None,
    }
}

/// Adds the JSON pointers of the nulls that a schema does not allow according to an error. Of
/// alternatives, one that allows the value apart from nulls decides.
fn add_refused_nulls(error: &ValidationError<'_>, places: &mut BTreeSet<String>) {
    if error.instance().is_null() {
        places.insert(error.instance_path().as_str().to_owned());
        return;
    }
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return;
    };
    let allowed_apart_from_nulls = context
        .iter()
        .find(|errors| errors.iter().all(|error| error.instance().is_null()));
    match allowed_apart_from_nulls {
        Some(errors) => errors
            .iter()
            .for_each(|error| add_refused_nulls(error, places)),
        None => context
            .iter()
            .flatten()
            .for_each(|error| add_refused_nulls(error, places)),
    }
}

/// Removes the property of an object at a JSON pointer. Returns false if nothing was removed; elements of
/// arrays are not.
fn remove_member(value: &mut Value, pointer: &str) -> bool {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        return false;
    };
    let members = value.pointer_mut(parent).and_then(Value::as_object_mut);
    let name = name.replace("~1", "/").replace("~0", "~");
    members.is_some_and(|members| members.shift_remove(&name).is_some())
}

/// Returns true for a problem of the names of properties, which are known whatever the values are.
fn concerns_names(kind: &ValidationErrorKind) -> bool {
    matches!(
        kind,
        ValidationErrorKind::Required { .. } | ValidationErrorKind::AdditionalProperties { .. }
    )
}

/// Returns the path of the value and its problem, for example `tools[0].tool_slug: is required`, in a
/// line for each unknown name, or else one. It repeats no value, which could be a secret.
fn problem_lines(error: &ValidationError<'_>) -> Vec<String> {
    let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() else {
        return vec![Line::written(|line| write_problem(line, error))];
    };
    let names = unexpected.iter().take(MAX_LINES);
    names
        .map(|name| Line::written(|line| write_member(line, error, shortened(name), "is unknown")))
        .collect()
}

/// Writes the path of a value, and returns what separates it from the name of a member.
fn write_path(
    line: &mut Line,
    error: &ValidationError<'_>,
) -> std::result::Result<&'static str, fmt::Error> {
    let mut separator = "";
    for segment in error.instance_path().segments() {
        match segment {
            LocationSegment::Property(name) => write!(line, "{separator}{name}")?,
            LocationSegment::Index(index) => write!(line, "[{index}]")?,
        }
        separator = ".";
    }
    Ok(separator)
}

fn write_member(
    line: &mut Line,
    error: &ValidationError<'_>,
    name: &str,
    problem: &str,
) -> fmt::Result {
    let separator = write_path(line, error)?;
    write!(line, "{separator}{name}: {problem}")
}

fn write_problem(line: &mut Line, error: &ValidationError<'_>) -> fmt::Result {
    if let ValidationErrorKind::Required {
        property: Value::String(name),
    } = error.kind()
    {
        let instance: &Value = error.instance();
        let sent = instance.as_object().into_iter().flat_map(Map::keys);
        let question = sent_instead(name, sent.map(String::as_str));
        return write_member(line, error, name, &format!("is required{question}"));
    }
    let whole = match write_path(line, error)? {
        "" => WHOLE_NAME,
        _ => "",
    };
    write!(line, "{whole}: ")?;
    if let Some(options) = allowed_values(error) {
        return write_options(line, &options);
    }
    let instance: &Value = error.instance();
    let found = type_words(JsonType::from(instance));
    match error.kind() {
        ValidationErrorKind::Type { kind } => {
            write!(line, "expected {}, got {found}", expected_words(kind))
        }
        ValidationErrorKind::PropertyNames { error } => {
            write!(line, "{}", error.masked_with("the name of a property"))
        }
        _ => write!(line, "{}", error.masked_with(found)),
    }
}

/// Returns the values that a schema allows, if it lists them, or if each of its alternatives does.
fn allowed_values<'e>(error: &'e ValidationError<'_>) -> Option<Vec<&'e Value>> {
    match error.kind() {
        ValidationErrorKind::Constant { expected_value } => Some(vec![&**expected_value]),
        ValidationErrorKind::Enum { options } => {
            options.as_array().map(|options| options.iter().collect())
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let place = error.instance_path().as_str();
            let alternatives = context.iter().map(|errors| {
                let mut own = errors
                    .iter()
                    .filter(|error| error.instance_path().as_str() == place);
                own.find_map(allowed_values)
            });
            alternatives
                .collect::<Option<Vec<_>>>()
                .map(|values| values.concat())
        }
        _ => None,
    }
}

/// Writes the values that a schema allows. They may be large, so none is copied before it is cut.
fn write_options(line: &mut Line, options: &[&Value]) -> fmt::Result {
    let mut separator = match options {
        [_] => "expected ",
        _ => "expected one of ",
    };
    for option in options.iter().take(MAX_LISTED_OPTIONS) {
        write!(line, "{separator}{option}")?;
        separator = ", ";
    }
    match options.len().saturating_sub(MAX_LISTED_OPTIONS) {
        0 => Ok(()),
        more => write!(line, " and {more} more"),
    }
}

fn expected_words(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(json_type) => type_words(*json_type).to_owned(),
        TypeKind::Multiple(types) => {
            let words: Vec<_> = types.iter().map(type_words).collect();
            words.join(" or ")
        }
    }
}

fn type_words(json_type: JsonType) -> &'static str {
    match json_type {
        JsonType::Null => "null",
        JsonType::Boolean => "a boolean",
        JsonType::Integer => "a whole number",
        JsonType::Number => "a number",
        JsonType::String => "a string",
        JsonType::Array => "a list",
        JsonType::Object => "an object",
    }
}

/// A string of limited length: characters beyond its capacity are not accepted.
struct Line {
    text: String,
    /// The number of characters that still fit.
    left: usize,
}

impl Line {
    /// Returns what a function writes, as far as it fits. A message quotes its schema, which may be large.
    fn written(write: impl FnOnce(&mut Self) -> fmt::Result) -> String {
        let mut line = Self {
            text: String::new(),
            left: MAX_LINE_CHARS,
        };
        // An error means that the line is full.
        _ = write(&mut line);
        line.text
    }
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
mod tests;
