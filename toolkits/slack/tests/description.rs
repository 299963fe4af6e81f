//! Checks the toolkit against the methods and typed arguments in Slack's own Python library for its
//! Web API. The OpenAPI description that Slack published dates from 2021 and has neither Markdown
//! nor the current uploads.
//!
//! `tests/setup` fetches the library and pins its version.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use percent_encoding::percent_decode_str;
use serde_json::Value;

const LIBRARY_FILE: &str = "../../target/descriptions/slack_sdk-3.47.0/slack_sdk/web/client.py";
const API_URL: &str = "https://slack.com/api/";

/// A method of the Web API.
#[derive(Default)]
struct Method {
    arguments: BTreeMap<String, Argument>,
    /// True if the method is called with GET.
    reads: bool,
}

/// An argument with its type in the library, for example `Optional[int]`.
struct Argument {
    kind: String,
    required: bool,
}

/// Parses the library, in which each method is a function with typed arguments that ends in
/// `self.api_call("METHOD", …)`.
fn methods(library: &str) -> BTreeMap<String, Method> {
    let mut methods = BTreeMap::new();
    for function in library.split("\n    def ").skip(1) {
        let Some((_, call)) = function.split_once("self.api_call(") else {
            continue;
        };
        let (Some((signature, _)), Some(name)) =
            (function.split_once("->"), call.split('"').nth(1))
        else {
            continue;
        };
        let arguments = signature.lines().filter_map(|line| {
            let (name, kind) = line.trim().split_once(": ")?;
            let (kind, default) = kind
                .split_once(" = ")
                .map_or((kind, None), |(kind, default)| (kind, Some(default)));
            Some((
                name.to_owned(),
                Argument {
                    kind: kind.to_owned(),
                    required: default.is_none(),
                },
            ))
        });
        methods.insert(
            name.to_owned(),
            Method {
                arguments: arguments.collect(),
                reads: call.contains("http_verb=\"GET\""),
            },
        );
    }
    methods
}

impl Argument {
    /// Returns true if a value, or its text in a URL or a form, is of this type.
    fn takes(&self, value: &Value) -> bool {
        let plain = |kind: &str| self.kind.contains(kind);
        match value {
            Value::Bool(_) => plain("bool"),
            Value::Number(_) => plain("int"),
            Value::Array(_) => plain("Sequence") || plain("List"),
            Value::Object(_) => plain("Dict"),
            Value::String(text) if plain("bool") => text == "true" || text == "false",
            Value::String(text) if plain("int") && !plain("str") => text.parse::<i64>().is_ok(),
            Value::String(_) => plain("str"),
            Value::Null => false,
        }
    }
}

/// Returns all requests to the Web API in the cases, each with the path of its file.
fn requests() -> Vec<(String, Value)> {
    let entries = |folder: &Path| {
        let entries = fs::read_dir(folder).expect("cases can be read");
        entries
            .map(|entry| entry.expect("cases can be read").path())
            .collect::<Vec<_>>()
    };
    let mut requests = Vec::new();
    for file in entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases"))
        .iter()
        .flat_map(|folder| entries(folder))
    {
        let case: Value = serde_json::from_slice(&fs::read(&file).expect("a case can be read"))
            .expect("a case is JSON");
        for exchange in case["exchanges"].as_array().into_iter().flatten() {
            let request = &exchange["request"];
            if request["url"]
                .as_str()
                .is_some_and(|url| url.starts_with(API_URL))
            {
                requests.push((file.display().to_string(), request.clone()));
            }
        }
    }
    requests
}

/// Returns the arguments of a request, from its query, form or JSON body.
fn sent(request: &Value) -> Vec<(String, Value)> {
    let decoded = |text: &str| {
        percent_decode_str(text)
            .decode_utf8()
            .expect("it is UTF-8")
            .into_owned()
    };
    let pairs = |text: &str| {
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        pairs
            .map(|(name, value)| (decoded(name), Value::from(decoded(value))))
            .collect::<Vec<_>>()
    };
    let url = request["url"].as_str().expect("a request has an address");
    let mut sent = url
        .split_once('?')
        .map(|(_, query)| pairs(query))
        .unwrap_or_default();
    match &request["body"] {
        Value::String(form) => sent.extend(pairs(form)),
        Value::Object(members) => sent.extend(members.clone()),
        _ => {}
    }
    sent
}

#[test]
fn every_request_is_one_that_slack_knows() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(LIBRARY_FILE);
    let library = fs::read_to_string(&file).unwrap_or_else(|cause| {
        panic!("{}: {cause}; `tests/setup` fetches it", file.display());
    });
    let methods = methods(&library);
    assert!(
        methods.len() > 250,
        "only {} methods were read",
        methods.len()
    );
    let requests = requests();
    let mut problems = Vec::new();
    for (place, request) in &requests {
        let name = request["url"]
            .as_str()
            .and_then(|url| url[API_URL.len()..].split('?').next())
            .unwrap_or_default();
        let Some(method) = methods.get(name) else {
            problems.push(format!("{place}: Slack has no method `{name}`"));
            continue;
        };
        let sent = sent(request);
        if method.reads && request["method"] != "GET" {
            problems.push(format!("{place}: `{name}` is asked for by GET"));
        }
        for (argument, value) in &sent {
            match method.arguments.get(argument) {
                None => problems.push(format!("{place}: `{name}` has no argument `{argument}`")),
                Some(known) if !known.takes(value) => {
                    problems.push(format!(
                        "{place}: `{argument}` of `{name}` is {}, not {value}",
                        known.kind
                    ));
                }
                Some(_) => {}
            }
        }
        for (argument, _) in method
            .arguments
            .iter()
            .filter(|(_, argument)| argument.required)
        {
            if sent.iter().all(|(name, _)| name != argument) {
                problems.push(format!("{place}: `{name}` needs `{argument}`"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(
        requests.len() > 100,
        "only {} requests were held against the library",
        requests.len()
    );
}
