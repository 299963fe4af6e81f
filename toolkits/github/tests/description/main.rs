//! Checks the toolkit against GitHub's own description of its API: GitHub must accept every request
//! of the cases, and the toolkit must read every response that GitHub may send.
//!
//! The description is fetched by npm once and kept in the target folder.

mod answers;
mod cases;
mod document;
mod schemas;

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;
use toolkit_sdk::testing;

use cases::{Exchange, Given, all};
use document::{Document, Operation};
use schemas::Schemas;

/// Cases that are right although they contradict the description, which does not say that a value
/// may be null: the repository of a pull request whose fork was deleted, the line of a comment on
/// code that has changed, and a gist's file to be deleted.
const NULL_CASES: [&str; 3] = [
    "get_pull_request/fork_is_gone",
    "list_review_comments/on_old_code",
    "update_gist/file_dropped",
];

#[test]
fn every_request_is_one_that_github_takes() {
    let document = Document::get();
    let mut schemas = Schemas::new(document);
    let mut problems = Vec::new();
    for case in all()
        .iter()
        .filter(|case| !NULL_CASES.contains(&case.name.as_str()))
    {
        for (number, exchange) in case.exchanges.iter().enumerate() {
            let found = match document.operation(&exchange.method, &exchange.url) {
                Some(operation) => request_problems(&operation, exchange, &mut schemas),
                None => vec!["no operation has this method and path".to_owned()],
            };
            let place = format!(
                "{}, request {} ({} {})",
                case.name,
                number + 1,
                exchange.method,
                exchange.url
            );
            problems.extend(
                found
                    .into_iter()
                    .map(|problem| format!("{place}: {problem}")),
            );
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn request_problems(
    operation: &Operation<'_>,
    exchange: &Exchange,
    schemas: &mut Schemas,
) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, value) in &exchange.query {
        match operation.parameter("query", name) {
            Some(parameter) => problems.extend(schemas.problems_of_text(&parameter, value)),
            None => problems.push(format!("the query parameter `{name}` is unknown")),
        }
    }
    for (name, value) in &operation.path {
        // Some paths do not declare all their parameters.
        if let Some(parameter) = operation.parameter("path", name) {
            problems.extend(schemas.problems_of_text(&parameter, value));
        }
    }
    for name in operation.required() {
        if !exchange.query.iter().any(|(known, _)| *known == name) {
            problems.push(format!("the query parameter `{name}` is missing"));
        }
    }
    match (operation.body(), &exchange.body) {
        (Some((schema, _)), Some(body)) => problems.extend(schemas.problems(&schema, body)),
        (Some((_, true)), None) => {
            problems.push("the case does not say which body is sent".to_owned())
        }
        (None, Some(_)) => problems.push("this operation takes no body".to_owned()),
        (_, None) => {}
    }
    problems
}

#[test]
fn answers_in_cases_are_ones_that_github_gives() {
    let document = Document::get();
    let mut schemas = Schemas::new(document);
    let mut problems = Vec::new();
    let answered = |exchange: &Exchange| (200..300).contains(&exchange.status);
    for case in all()
        .iter()
        .filter(|case| !NULL_CASES.contains(&case.name.as_str()))
    {
        for exchange in case.exchanges.iter().filter(|exchange| answered(exchange)) {
            let Some(operation) = document.operation(&exchange.method, &exchange.url) else {
                continue;
            };
            let found = match (operation.answer(exchange.status), &exchange.answer) {
                (None, _) => vec![format!("GitHub does not answer {}", exchange.status)],
                // A string is a body of another media type that the request asked for.
                (Some(_), None | Some(Value::String(_))) => Vec::new(),
                (Some(answer), Some(body)) => match answer.schema() {
                    Some(schema) => schemas.problems_of_part(&schema, body),
                    None => vec!["GitHub answers nothing here".to_owned()],
                },
            };
            problems.extend(
                found
                    .into_iter()
                    .map(|problem| format!("{}: {problem}", case.name)),
            );
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_answer_that_github_may_give_is_read() {
    let document = Document::get();
    let manifest = testing::manifest(&github::TOOLKIT);
    let mut schemas = Schemas::new(document);
    let mut problems = Vec::new();
    let mut tried = 0;
    for case in all().iter().filter(|case| case.succeeds) {
        let Some(tool) = manifest.tools.iter().find(|tool| tool.slug == case.slug()) else {
            continue;
        };
        let last = case.exchanges.last().expect("a success asks GitHub");
        let operation = document
            .operation(&last.method, &last.url)
            .expect("the operation is known");
        let answer = operation.answer(last.status).expect("the status is known");
        if last.answer.as_ref().is_some_and(Value::is_string) {
            continue;
        }
        for body in answers::possible(document, &mut schemas, &answer) {
            tried += 1;
            let problem = match call(case, &body) {
                Ok(Ok(data)) => schemas
                    .problems_of_other(&tool.slug, &tool.output, &data)
                    .into_iter()
                    .next(),
                Ok(Err(error)) if ["upstream_error", "internal"].contains(&error.kind()) => {
                    Some(error.to_string())
                }
                Ok(Err(_)) => None,
                Err(panic) => Some(panic),
            };
            problems.extend(
                problem.map(|problem| {
                    format!("{}: {problem}\n  from {}", case.name, shortened(&body))
                }),
            );
        }
    }
    assert!(
        problems.is_empty(),
        "{} of {tried}:\n{}",
        problems.len(),
        problems.join("\n")
    );
    assert!(tried > 300, "only {tried} answers were tried");
}

/// Runs the tool of a case with `last` as the last response. Returns the message of a panic as an
/// error.
fn call(case: &Given, last: &Value) -> Result<toolkit_sdk::Result<Value>, String> {
    let count = case.exchanges.len();
    let host =
        case.exchanges
            .iter()
            .enumerate()
            .fold(testing::host(), |host, (number, exchange)| {
                let own = exchange.answer.clone().unwrap_or_default();
                let answer = if number + 1 == count {
                    last.clone()
                } else {
                    own
                };
                host.exchange(&exchange.method, &exchange.url, exchange.status, answer)
            });
    let host = case.files.iter().fold(host, |host, file| {
        let text = |key: &str| file[key].as_str().expect("a file of a case has this");
        host.file(
            text("id"),
            text("name"),
            text("mimetype"),
            text("text").as_bytes(),
        )
    });
    let run = AssertUnwindSafe(|| {
        host.run(|| testing::call(&github::TOOLKIT, &case.tool, &case.arguments))
            .0
    });
    catch_unwind(run).map_err(|panic| {
        panic
            .downcast_ref::<String>()
            .cloned()
            .unwrap_or_else(|| "a panic".to_owned())
    })
}

fn shortened(body: &Value) -> String {
    body.to_string().chars().take(400).collect()
}
