//! Checks the toolkit against Linear's own schema: every query in the cases must be valid, with
//! variables of the right types, and every response must be one that Linear may send.
//!
//! `tests/setup` fetches the library from which the schema is read, and pins its version.

mod schema;

use std::fs;
use std::path::{Path, PathBuf};

use apollo_compiler::executable::SelectionSet;
use apollo_compiler::response::JsonMap;
use apollo_compiler::validation::Valid;
use apollo_compiler::{ExecutableDocument, Schema};
use serde_json::Value;

const LIBRARY_FOLDER: &str = "../../target/descriptions/linear-sdk-98.0.0/package/dist";

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|cause| panic!("{}: {cause}; see `tests/setup`", folder.display()));
    entries
        .map(|entry| entry.expect("a folder can be read").path())
        .collect()
}

fn schema() -> Valid<Schema> {
    let mut files = entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join(LIBRARY_FOLDER));
    files.retain(|file| file.extension().is_some_and(|end| end == "mts"));
    let texts = files
        .iter()
        .map(|file| fs::read_to_string(file).expect("the library can be read"));
    let types = texts
        .into_iter()
        .find(|text| text.contains("\ntype Mutation = {"))
        .expect("the library has the types");
    let text = schema::from_types(&types);
    // `toolkit import` reads this file, see overlay.toml.
    fs::write(
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("linear.graphql"),
        &text,
    )
    .expect("the target folder takes files");
    Schema::parse_and_validate(text, "linear.graphql").unwrap_or_else(|problems| {
        panic!(
            "{}",
            problems
                .errors
                .to_string()
                .chars()
                .take(4000)
                .collect::<String>()
        )
    })
}

#[test]
fn queries_and_responses_match_the_linear_schema() {
    let schema = schema();
    let mut problems = Vec::new();
    let mut count = 0;
    let cases = entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases"));
    for file in cases.iter().flat_map(|folder| entries(folder)) {
        let case: Value = serde_json::from_slice(&fs::read(&file).expect("a case can be read"))
            .expect("a case is JSON");
        for exchange in case["exchanges"].as_array().into_iter().flatten() {
            count += 1;
            let found = checked(
                &schema,
                &exchange["request"]["body"],
                &exchange["response"]["body"]["data"],
            );
            problems.extend(
                found
                    .into_iter()
                    .map(|problem| format!("{}: {problem}", file.display())),
            );
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(
        count > 60,
        "only {count} requests were held against the schema"
    );
}

/// Validates a query, its variables, and the data of its response, if there is any.
fn checked(schema: &Valid<Schema>, body: &Value, data: &Value) -> Vec<String> {
    let query = body["query"].as_str().unwrap_or_default();
    let document = match ExecutableDocument::parse_and_validate(schema, query, "query.graphql") {
        Ok(document) => document,
        Err(problems) => return vec![problems.errors.to_string()],
    };
    let operation = document
        .operations
        .iter()
        .next()
        .expect("a valid document has an operation");
    let variables = body.get("variables").cloned().unwrap_or_default();
    let variables: JsonMap = serde_json::from_value(variables).unwrap_or_default();
    let mut problems = Vec::new();
    if let Err(problem) =
        apollo_compiler::request::coerce_variable_values(schema, operation, &variables)
    {
        problems.push(problem.message().to_string());
    }
    if !data.is_null() {
        fits(
            &document,
            &operation.selection_set,
            data,
            "data",
            &mut problems,
        );
    }
    problems
}

/// Checks that an object has exactly the selected fields.
fn fits(
    document: &ExecutableDocument,
    selected: &SelectionSet,
    data: &Value,
    place: &str,
    problems: &mut Vec<String>,
) {
    let Some(members) = data.as_object() else {
        problems.push(format!("`{place}` is no object"));
        return;
    };
    let fields: Vec<_> = selected.root_fields(document).collect();
    for name in members.keys().filter(|name| {
        fields
            .iter()
            .all(|field| field.response_key().as_str() != name.as_str())
    }) {
        problems.push(format!("nobody asked for `{place}.{name}`"));
    }
    for field in fields {
        let place = format!("{place}.{}", field.response_key());
        let value = members.get(field.response_key().as_str());
        match value {
            None => problems.push(format!("`{place}` is missing")),
            Some(Value::Null) if field.ty().is_non_null() => {
                problems.push(format!("`{place}` is never null"))
            }
            Some(Value::Null) => {}
            Some(value) if field.selection_set.selections.is_empty() => {
                if value.is_array() != field.ty().is_list() {
                    problems.push(format!("`{place}` is {value}"));
                }
            }
            Some(Value::Array(items)) if field.ty().is_list() => {
                items
                    .iter()
                    .for_each(|item| fits(document, &field.selection_set, item, &place, problems));
            }
            Some(value) => fits(document, &field.selection_set, value, &place, problems),
        }
    }
}
