//! JSON queries and validation against a JSON Schema.

use std::error::Error;

use boon::{CompileError, Compiler, OutputError, OutputUnit, Schemas, UrlLoader, ValidationError};
use jmespath::Expression;
use toolkit_sdk::prelude::*;

/// Operators that deepen the evaluation by at most one call each. Typical expressions have a dozen.
const NESTING_CHARACTERS: [char; 11] = ['.', '|', '&', '!', '(', '[', '{', '*', '=', '<', '>'];
const MAX_OPERATORS: usize = 100;
const MAX_REFERENCES: usize = 256;
/// Max number of reported problems. Data with more problems usually has one common cause.
const MAX_PROBLEMS: usize = 100;
/// Base URL of the schema. Nothing is fetched from it.
const BASE_URL: &str = "https://schema.invalid/";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Query {
    /// Any JSON value.
    data: Value,
    /// A JMESPath expression, for example `people[?age > `30`].name | sort(@)` or
    /// `{total: sum(items[].price)}`.
    expression: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Found {
    /// Selected value; null if nothing matches.
    result: Value,
}

/// Selects, filters and reshapes JSON with a JMESPath expression: picks fields, filters and sorts
/// lists, counts and sums. Use it to reduce a large response to what is needed.
#[tool(
    read_only,
    idempotent,
    important,
    example = r#"{"data": {"people": [{"name": "Ada", "age": 36}]}, "expression": "people[?age > `30`].name"}"#
)]
pub(crate) fn query_json(input: Query) -> Result<Found> {
    let operators = input.expression.matches(NESTING_CHARACTERS).count();
    if operators > MAX_OPERATORS {
        let message = format!(
            "the expression has {operators} operators, at most {MAX_OPERATORS}; split it in two queries"
        );
        return Err(ToolError::invalid_input(message));
    }
    fn wrong(error: impl std::fmt::Display) -> ToolError {
        ToolError::invalid_input(format!("cannot apply the expression: {error}"))
    }
    let expression: Expression<'_> = jmespath::compile(&input.expression).map_err(wrong)?;
    let found = expression.search(input.data).map_err(wrong)?;
    let result = serde_json::to_value(&*found).map_err(wrong)?;
    Ok(Found { result })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Checked {
    /// JSON value to validate.
    data: Value,
    /// JSON Schema: draft 4, 6, 7, 2019-09 or 2020-12, which is assumed if `$schema` is missing.
    /// `$ref` may refer only to the schema itself.
    schema: Value,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Verdict {
    valid: bool,
    /// Problems, at most 100.
    problems: Vec<Problem>,
}

/// A violation of the schema.
#[derive(Serialize, JsonSchema)]
struct Problem {
    /// JSON Pointer into the data, empty for the whole.
    path: String,
    /// JSON Pointer into the schema.
    schema_path: String,
    message: String,
}

/// Validates a JSON value against a JSON Schema, including formats such as `email` and `date-time`,
/// and lists every violation. An invalid value is a result, not an error.
#[tool(
    read_only,
    idempotent,
    example = r#"{"data": {"age": "36"}, "schema": {"type": "object", "properties": {"age": {"type": "integer"}}}}"#
)]
pub(crate) fn validate_json(input: Checked) -> Result<Verdict> {
    check_references(&input.schema)?;
    let mut compiler = Compiler::new();
    compiler.enable_format_assertions();
    compiler.use_loader(Box::new(NothingOutside));
    compiler
        .add_resource(BASE_URL, input.schema)
        .map_err(invalid_schema)?;
    let mut schemas = Schemas::new();
    let schema = compiler
        .compile(BASE_URL, &mut schemas)
        .map_err(invalid_schema)?;
    let problems = schemas
        .validate(&input.data, schema)
        .err()
        .map(|error| problems(&error))
        .unwrap_or_default();
    Ok(Verdict {
        valid: problems.is_empty(),
        problems,
    })
}

/// Refuses schemas with too many references, since the validator recurses along chains of
/// references.
fn check_references(schema: &Value) -> Result<()> {
    let mut open = vec![schema];
    let mut references = 0;
    while let Some(value) = open.pop() {
        match value {
            Value::Object(object) => {
                references +=
                    usize::from(object.contains_key("$ref") || object.contains_key("$dynamicRef"));
                open.extend(object.values());
            }
            Value::Array(array) => open.extend(array),
            _ => {}
        }
    }
    if references > MAX_REFERENCES {
        let message = format!(
            "the schema has {references} references, at most {MAX_REFERENCES}; check a part of it"
        );
        return Err(ToolError::invalid_input(message));
    }
    Ok(())
}

fn invalid_schema(error: CompileError) -> ToolError {
    match &error {
        CompileError::ValidationError { src, .. } => {
            let problems = problems(src)
                .into_iter()
                .map(|Problem { path, message, .. }| format!("`{path}`: {message}"));
            ToolError::invalid_input(format!(
                "the schema is not valid: {}",
                problems.collect::<Vec<_>>().join("; ")
            ))
        }
        _ => ToolError::invalid_input(format!("the schema is not valid: {error:#}")),
    }
}

fn problems(error: &ValidationError<'_, '_>) -> Vec<Problem> {
    let unit = error.basic_output();
    match &unit.error {
        OutputError::Branch(units) => units.iter().take(MAX_PROBLEMS).map(problem).collect(),
        OutputError::Leaf(_) => vec![problem(&unit)],
    }
}

fn problem(unit: &OutputUnit<'_, '_, '_>) -> Problem {
    Problem {
        path: unit.instance_location.to_string(),
        schema_path: unit.keyword_location.clone(),
        message: match &unit.error {
            OutputError::Leaf(kind) => kind.to_string(),
            OutputError::Branch(_) => "does not fit".to_owned(),
        },
    }
}

/// Loader that refuses every reference outside of the schema.
struct NothingOutside;

impl UrlLoader for NothingOutside {
    fn load(&self, _: &str) -> Result<Value, Box<dyn Error>> {
        Err(
            "a `$ref` reaches only into the schema itself; put the other schema under `$defs`"
                .into(),
        )
    }
}
