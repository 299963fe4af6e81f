//! Checks the toolkit against the endpoints in Notion's own JavaScript library, with the names of
//! their parameters. The OpenAPI description that Notion publishes is older: it has no Markdown in
//! new pages and comments.
//!
//! `tests/setup` fetches the library and pins its version.

use std::fs;
use std::path::Path;

use serde_json::Value;

const LIBRARY_FOLDER: &str =
    "../../target/descriptions/notionhq-client-5.26.0/package/build/src/api-endpoints";
const API_URL: &str = "https://api.notion.com/v1/";

/// An endpoint of the API.
struct Endpoint {
    method: String,
    /// Segments of the path; `None` for an id.
    path: Vec<Option<String>>,
    query: Vec<String>,
    body: Vec<String>,
}

impl Endpoint {
    /// Parses `{ method: "get", pathParams: ["page_id"], queryParams: […], bodyParams: […],
    /// path: (p) => `pages/${p.page_id}` }`.
    fn read(text: &str) -> Option<Self> {
        let after = |key: &str| text.split_once(key).map(|(_, rest)| rest);
        let list = |key: &str| {
            let (list, _) = after(key)?.split_once(']')?;
            Some(
                list.split('"')
                    .skip(1)
                    .step_by(2)
                    .map(str::to_owned)
                    .collect(),
            )
        };
        let path = after("path: ")?.split('`').nth(1)?;
        let segment = |segment: &str| (!segment.starts_with("${")).then(|| segment.to_owned());
        Some(Self {
            method: after("method: \"")?.split('"').next()?.to_uppercase(),
            path: path.split('/').map(segment).collect(),
            query: list("queryParams: [")?,
            body: list("bodyParams: [")?,
        })
    }

    fn is(&self, method: &str, path: &[&str]) -> bool {
        let fits =
            |(own, given): (&Option<String>, &&str)| own.as_ref().is_none_or(|own| own == given);
        self.method == method
            && self.path.len() == path.len()
            && self.path.iter().zip(path).all(fits)
    }

    /// Counts the ids in the path. A fixed path wins over one with an id: `users/me` is not a
    /// user's id.
    fn ids(&self) -> usize {
        self.path.iter().filter(|segment| segment.is_none()).count()
    }
}

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap_or_else(|cause| panic!("{}: {cause}; see `tests/setup`", folder.display()));
    entries
        .map(|entry| entry.expect("a folder can be read").path())
        .collect()
}

fn endpoints() -> Vec<Endpoint> {
    let mut files = entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join(LIBRARY_FOLDER));
    files.retain(|file| file.extension().is_some_and(|end| end == "js"));
    let read = |file: &Path| fs::read_to_string(file).expect("the library can be read");
    files
        .iter()
        .flat_map(|file| {
            read(file)
                .split("\nexports.")
                .filter_map(Endpoint::read)
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn every_request_is_one_that_notion_knows() {
    let endpoints = endpoints();
    assert!(
        endpoints.len() > 50,
        "only {} endpoints were read",
        endpoints.len()
    );
    let mut problems = Vec::new();
    let mut count = 0;
    let cases = entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases"));
    for file in cases.iter().flat_map(|folder| entries(folder)) {
        let case: Value = serde_json::from_slice(&fs::read(&file).expect("a case can be read"))
            .expect("a case is JSON");
        for exchange in case["exchanges"].as_array().into_iter().flatten() {
            count += 1;
            let request = &exchange["request"];
            let method = request["method"].as_str().unwrap_or_default();
            let url = request["url"].as_str().unwrap_or_default();
            let (path, query) = url.split_once('?').unwrap_or((url, ""));
            let segments: Vec<&str> = path
                .strip_prefix(API_URL)
                .unwrap_or_default()
                .split('/')
                .collect();
            let fitting = endpoints
                .iter()
                .filter(|endpoint| endpoint.is(method, &segments));
            let Some(endpoint) = fitting.min_by_key(|endpoint| endpoint.ids()) else {
                problems.push(format!(
                    "{}: Notion knows no {method} {path}",
                    file.display()
                ));
                continue;
            };
            let names = query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .map(|(name, _)| name);
            let unknown = names.filter(|name| !endpoint.query.iter().any(|known| known == name));
            problems.extend(unknown.map(|name| {
                format!(
                    "{}: the query parameter `{name}` is unknown",
                    file.display()
                )
            }));
            let members = request["body"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name);
            let unknown = members.filter(|name| !endpoint.body.contains(name));
            problems.extend(
                unknown.map(|name| format!("{}: the member `{name}` is unknown", file.display())),
            );
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(
        count > 70,
        "only {count} requests were held against the library"
    );
}
