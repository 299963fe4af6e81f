//! `OpenAPI` 3.0 and 3.1, and Swagger 2.0, as JSON or YAML.
//!
//! A document of version 2.0 is first converted to 3.0. Only references within the document are
//! followed.

mod body;
mod document;
mod operation;
mod pages;
mod parameter;
mod schema;
mod security;
mod swagger;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::{Api, Error, Operation, Result, Server, Unsupported, Variable, parse, text};
use document::Document;
use schema::Schemas;
use security::Security;

/// Largest number of operations of one description. It exceeds the limit of any manifest, even
/// before operations are chosen.
const MAX_OPERATIONS: usize = 20_000;
/// Methods that are about the connection to the provider and never become tools.
const IGNORED_METHODS: [&str; 2] = ["TRACE", "CONNECT"];

/// Reads a description.
///
/// # Errors
/// The input is neither JSON nor YAML, has another version, or is too large.
pub fn openapi(bytes: &[u8]) -> Result<Api> {
    let document = parse::document(bytes)?;
    let version = document
        .get("openapi")
        .or_else(|| document.get("swagger"))
        .map(parse::text)
        .unwrap_or_default();
    let root = match version.split('.').next() {
        Some("2") => swagger::upgraded(document),
        Some("3") => document,
        _ if version.is_empty() => {
            return Err(Error::new(
                "this is not an OpenAPI document: it has neither `openapi` nor `swagger` at the top",
            ));
        }
        _ => {
            return Err(Error::new(format!(
                "OpenAPI {version} is not supported; use 2.0, 3.0 or 3.1"
            )));
        }
    };
    Reader::new(&Document::new(&root)).read()
}

struct Reader<'a> {
    document: &'a Document<'a>,
    schemas: Schemas<'a>,
    security: Security<'a>,
    api: Api,
    /// Ids of operations that appear in the document more than once.
    ambiguous: BTreeSet<&'a str>,
}

impl<'a> Reader<'a> {
    fn new(document: &'a Document<'a>) -> Self {
        Self {
            document,
            schemas: Schemas::new(document),
            security: Security::new(document),
            api: Api::default(),
            ambiguous: BTreeSet::new(),
        }
    }

    fn read(mut self) -> Result<Api> {
        let root = self.document.root;
        let info = &root["info"];
        self.api.name = text::line(info["title"].as_str().unwrap_or_default(), 100);
        let about = info["description"]
            .as_str()
            .or_else(|| info["summary"].as_str())
            .unwrap_or_default();
        self.api.description =
            text::block(about.trim().split("\n\n").next().unwrap_or_default(), 1000);
        self.api.servers = servers(root);
        self.paths()?;
        if let Some(hooks) = root
            .get("webhooks")
            .and_then(Value::as_object)
            .filter(|hooks| !hooks.is_empty())
        {
            let names: Vec<&str> = hooks.keys().take(5).map(String::as_str).collect();
            let what = format!(
                "{} webhooks, which are not imported as triggers: {}",
                hooks.len(),
                names.join(", ")
            );
            self.api
                .unsupported
                .push(Unsupported::whole(text::line(&what, 300)));
        }
        let Self {
            schemas,
            security,
            mut api,
            ..
        } = self;
        security.finish(&mut api);
        schemas.finish(&mut api);
        Ok(api)
    }

    fn paths(&mut self) -> Result<()> {
        let paths: Vec<(&'a String, &'a Map<String, Value>)> = self
            .document
            .root
            .get("paths")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(path, item)| Some((path, self.document.follow(item).as_object()?)))
            .collect();
        self.ambiguous = ambiguous(&paths);
        let mut count = 0;
        for (path, item) in paths {
            for (method, operation) in item {
                let Some(operation) = operation.as_object().filter(|_| is_method(method)) else {
                    let method = method.to_ascii_uppercase();
                    if IGNORED_METHODS.contains(&method.as_str()) {
                        let what = format!("the method {method}");
                        self.api
                            .unsupported
                            .push(Unsupported::unusable(&format!("{method} {path}"), what));
                    }
                    continue;
                };
                if method.eq_ignore_ascii_case("options") && is_preflight(operation) {
                    let what = "the preflight request of browsers";
                    self.part(&format!("OPTIONS {path}"), what);
                    continue;
                }
                count += 1;
                if count > MAX_OPERATIONS {
                    return Err(Error::new(format!(
                        "the description has more than {MAX_OPERATIONS} operations"
                    )));
                }
                let operation = self.operation(path, &method.to_ascii_uppercase(), item, operation);
                self.api.operations.push(operation);
            }
        }
        Ok(())
    }

    /// Records that a part of an operation is not carried over.
    fn part(&mut self, id: &str, what: impl Into<String>) {
        self.api.unsupported.push(Unsupported::part(id, what));
    }

    /// Returns the id of an operation, which stays the same when the document grows.
    fn id(&self, path: &str, method: &str, operation: &Map<String, Value>) -> String {
        let stated = operation
            .get("operationId")
            .and_then(Value::as_str)
            .map(str::trim)
            .filter(|id| !id.is_empty() && id.len() <= 200 && !self.ambiguous.contains(id));
        match stated {
            Some(id) => manifest::cleaned(id),
            None => manifest::cleaned(&format!("{method} {path}")),
        }
    }
}

/// Returns true if a property of a path item is an operation.
fn is_method(word: &str) -> bool {
    manifest::HTTP_METHODS
        .iter()
        .any(|method| method.eq_ignore_ascii_case(word))
}

/// Returns true if an OPTIONS operation is only a preflight of browsers and not part of the API: it
/// lacks id, summary and description.
fn is_preflight(operation: &Map<String, Value>) -> bool {
    ["operationId", "summary", "description"]
        .iter()
        .all(|word| {
            operation
                .get(*word)
                .and_then(Value::as_str)
                .is_none_or(str::is_empty)
        })
}

fn ambiguous<'a>(paths: &[(&'a String, &'a Map<String, Value>)]) -> BTreeSet<&'a str> {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    let operations = paths
        .iter()
        .flat_map(|(_, item)| item.iter().filter(|(method, _)| is_method(method)));
    for id in operations.filter_map(|(_, operation)| operation.get("operationId")?.as_str()) {
        *seen.entry(id.trim()).or_default() += 1;
    }
    seen.into_iter()
        .filter(|(_, count)| *count > 1)
        .map(|(id, _)| id)
        .collect()
}

/// Returns the servers of a document, a path or an operation.
fn servers(holder: &Value) -> Vec<Server> {
    let mut servers: Vec<Server> = holder
        .get("servers")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .take(100)
        .filter_map(server)
        .collect();
    // A server that can be called as it is comes first, and a production server comes before a test
    // server.
    servers.sort_by_key(|server| {
        let play = ["sandbox", "staging", "localhost", "127.0.0.1", "test"]
            .iter()
            .any(|word| server.url.contains(word));
        (!server.url.starts_with("https://"), play)
    });
    servers
}

fn server(server: &Value) -> Option<Server> {
    let stated = server.get("url")?.as_str()?.trim();
    let variables = server
        .get("variables")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let url = if let Some(rest) = stated.strip_prefix("//") {
        format!("https://{rest}")
    } else {
        stated.to_owned()
    };
    Some(Server {
        url: url.trim_end_matches('/').to_owned(),
        variables: variables
            .map(|(name, about)| Variable {
                name: name.clone(),
                default: about.get("default").map(parse::text),
                choices: about
                    .get("enum")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .map(parse::text)
                    .collect(),
                description: text::block(about["description"].as_str().unwrap_or_default(), 500),
            })
            .collect(),
    })
}

fn trimmed<'a>(operation: &'a Map<String, Value>, name: &str) -> &'a str {
    operation
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .trim()
}

impl Reader<'_> {
    /// Returns the title and the description for an agent, made from the summary and the
    /// description.
    fn title_and_description(operation: &Map<String, Value>) -> (String, String) {
        let summary = trimmed(operation, "summary");
        let description = trimmed(operation, "description");
        let both = match (summary, description) {
            (summary, "") => summary.to_owned(),
            ("", description) => description.to_owned(),
            (summary, description) if description.starts_with(summary.trim_end_matches('.')) => {
                description.to_owned()
            }
            (summary, description) => {
                format!("{}.\n\n{description}", summary.trim_end_matches('.'))
            }
        };
        (text::line(summary, 100), text::block(&both, 4000))
    }

    fn labels(operation: &Map<String, Value>) -> Vec<String> {
        text::listed(operation.get("tags"))
            .map(|tag| text::line(tag, 100))
            .filter(|tag| !tag.is_empty())
            .collect()
    }

    /// Reads an operation without its parameters, body and responses.
    fn outline(&self, path: &str, method: &str, operation: &Map<String, Value>) -> Operation {
        let (title, description) = Self::title_and_description(operation);
        Operation {
            id: self.id(path, method, operation),
            method: method.to_owned(),
            path: path.to_owned(),
            title,
            description,
            tags: Self::labels(operation),
            hints: crate::hints(method),
            deprecated: operation.get("deprecated").and_then(Value::as_bool) == Some(true),
            ..Operation::default()
        }
    }
}

#[cfg(test)]
mod tests;
