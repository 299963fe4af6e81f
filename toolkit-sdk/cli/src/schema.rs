//! Validation of JSON against JSON Schema, with one line per problem.

use jsonschema::Validator;
use serde_json::Value;

/// Compiles a schema, or returns the reason why it is invalid.
pub(crate) fn compile(schema: &Value) -> Result<Validator, String> {
    jsonschema::validator_for(schema).map_err(|cause| cause.to_string())
}

/// Lists all problems of a value with their positions.
pub(crate) fn problems(validator: &Validator, value: &Value) -> Vec<String> {
    validator
        .iter_errors(value)
        .map(|error| match error.instance_path().as_str() {
            "" => error.to_string(),
            place => format!("{}: {error}", place.trim_start_matches('/')),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_problem_is_named_with_its_place() {
        let schema = json!({
            "type": "object",
            "properties": { "limit": { "type": "integer" }, "text": { "type": "string" } },
            "required": ["text"],
        });
        let problems = problems(&compile(&schema).unwrap(), &json!({ "limit": "ten" }));
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(
            problems
                .iter()
                .any(|problem| problem.starts_with("limit: ")),
            "{problems:?}"
        );
        assert!(compile(&json!({ "type": "invented" })).is_err());
    }
}
