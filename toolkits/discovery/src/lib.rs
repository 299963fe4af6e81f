//! Checks the cases of a toolkit against Google's own description of its API, in tests.
//!
//! Cases are written by hand, so only Google's description can show that Google accepts their
//! requests and sends their responses. Google's Discovery documents are in a Python package, which
//! `tests/setup` fetches. Objects are closed here: an unknown parameter, property or enum value
//! is a mistake.

mod cases;
mod document;
mod made;
mod schemas;

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;
use toolkit_sdk::rt::Toolkit;
use toolkit_sdk::testing;

pub use cases::{Exchange, Given, all};
pub use document::Document;
use document::Method;
use schemas::Schemas;

/// Returns the problems of requests in the cases that Google would not accept. The list is empty if
/// there are none.
#[must_use]
pub fn refused(document: &Document, cases: &[Given]) -> Vec<String> {
    let mut schemas = Schemas::new(document);
    let mut problems = Vec::new();
    for case in cases {
        for (number, exchange) in case.exchanges.iter().enumerate() {
            let found = match document.method(&exchange.method, &exchange.url) {
                Some(method) => request_problems(&method, exchange, &mut schemas),
                None => vec!["no method has this address".to_owned()],
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
    problems
}

fn request_problems(
    method: &Method<'_>,
    exchange: &Exchange,
    schemas: &mut Schemas,
) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, value) in exchange.query.iter().chain(&method.path) {
        match method.parameter(name) {
            Some(schema) => problems.extend(schemas.problems_of_text(schema, value)),
            None => problems.push(format!("the parameter `{name}` is unknown")),
        }
    }
    for name in method.required() {
        if !exchange
            .query
            .iter()
            .chain(&method.path)
            .any(|(known, _)| known == name)
        {
            problems.push(format!("the parameter `{name}` is missing"));
        }
    }
    match (method.request(), &exchange.body) {
        (Some(name), Some(body)) => problems.extend(schemas.problems(name, &without_nulls(body))),
        (Some(_), None) => problems.push("the case does not say which body is sent".to_owned()),
        (None, Some(body)) if !body.is_null() => {
            problems.push("this method takes no body".to_owned())
        }
        (None, _) => {}
    }
    problems
}

/// Removes null properties. In a change, null deletes a property, which the schemas do not
/// describe.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(_, member)| !member.is_null());
            Value::Object(
                kept.map(|(name, member)| (name.clone(), without_nulls(member)))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

/// Returns the problems of responses in the cases that Google would not send. The list is empty if
/// there are none.
#[must_use]
pub fn invented(document: &Document, cases: &[Given]) -> Vec<String> {
    let mut schemas = Schemas::new(document);
    let mut problems = Vec::new();
    for case in cases {
        for exchange in case.exchanges.iter().filter(|exchange| exchange.succeeds()) {
            let Some(method) = document.method(&exchange.method, &exchange.url) else {
                continue;
            };
            let found = match (method.response(), &exchange.answer) {
                (Some(name), Some(body)) => schemas.problems(name, body),
                (Some(_), None) => vec!["Google answers something here".to_owned()],
                (None, Some(_)) => vec!["Google answers nothing here".to_owned()],
                (None, None) => Vec::new(),
            };
            problems.extend(
                found
                    .into_iter()
                    .map(|problem| format!("{}: {problem}", case.name)),
            );
        }
    }
    problems
}

/// Returns the problems of responses that Google may send and the toolkit's own tools cannot read.
/// Each successful case is run with a last response that has every property of its schema. A tool
/// that then sends a further request has read that response.
#[must_use]
pub fn unread(document: &Document, cases: &[Given], toolkit: &Toolkit) -> Vec<String> {
    let mut schemas = Schemas::new(document);
    let manifest = testing::manifest(toolkit);
    let mut problems = Vec::new();
    for case in cases.iter().filter(|case| case.succeeds) {
        let slug = format!("{}_{}", toolkit.slug, case.tool).to_uppercase();
        let Some(tool) = manifest.tools.iter().find(|tool| tool.slug == slug) else {
            continue;
        };
        let Some(last) = case.exchanges.last() else {
            continue;
        };
        let method = document.method(&last.method, &last.url);
        let Some(name) = method.as_ref().and_then(Method::response) else {
            continue;
        };
        let body = made::whole(document, name);
        let problem = match call(toolkit, case, &body) {
            Ok(Ok(data)) => schemas
                .problems_of_other(&tool.slug, &tool.output, &data)
                .into_iter()
                .next(),
            Ok(Err(error)) if ["upstream_error", "internal"].contains(&error.kind()) => {
                Some(error.to_string())
            }
            Ok(Err(_)) => None,
            Err(panic) if panic.starts_with("the toolkit sent a request that was not expected") => {
                None
            }
            Err(panic) => Some(panic),
        };
        problems.extend(problem.map(|problem| format!("{}: {problem}", case.name)));
    }
    problems
}

/// Runs the tool of a case with `last` as the last response. Returns the message of a panic as an
/// error.
fn call(
    toolkit: &Toolkit,
    case: &Given,
    last: &Value,
) -> Result<toolkit_sdk::Result<Value>, String> {
    let count = case.exchanges.len();
    let mut host = testing::host();
    for (number, exchange) in case.exchanges.iter().enumerate() {
        let own = exchange.answer.clone().unwrap_or_default();
        let answer = if number + 1 == count {
            last.clone()
        } else {
            own
        };
        host = host.exchange(&exchange.method, &exchange.url, exchange.status, answer);
    }
    for file in &case.files {
        let text = |key: &str| file[key].as_str().unwrap_or_default();
        host = host.file(
            text("id"),
            text("name"),
            text("mimetype"),
            text("text").as_bytes(),
        );
    }
    if let Some(now) = case.now {
        host = host.now(now);
    }
    let run = AssertUnwindSafe(|| {
        host.run(|| testing::call(toolkit, &case.tool, &case.arguments))
            .0
    });
    catch_unwind(run).map_err(|panic| {
        panic
            .downcast_ref::<String>()
            .cloned()
            .unwrap_or_else(|| "a panic".to_owned())
    })
}
