//! GitHub's description of its REST API (OpenAPI 3.0, MIT license), as published by Octokit.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::cases::decoded;

const PACKAGE_NAME: &str = "@octokit/openapi";
const PACKAGE_VERSION: &str = "23.0.2";
const DESCRIPTION_FILE: &str = "package/generated/api.github.com.json";
const API_URL: &str = "https://api.github.com";
/// Base URL of uploads in the description.
const UPLOADS_URL: &str = "https://uploads.github.com";
/// Path parameters whose values may have several segments.
const MULTI_SEGMENT_PARAMETERS: [&str; 2] = ["path", "ref"];

pub(crate) struct Document {
    pub(crate) json: Value,
}

impl Document {
    /// Returns the description, which is fetched at the first use.
    pub(crate) fn get() -> &'static Self {
        static FETCHED_DOCUMENT: OnceLock<Document> = OnceLock::new();
        FETCHED_DOCUMENT.get_or_init(|| {
            let json = serde_json::from_slice(&kept()).expect("the description is JSON");
            Self { json }
        })
    }

    /// Finds the operation of a request. If several paths match, the one with the most fixed
    /// segments wins.
    pub(crate) fn operation(&self, method: &str, url: &str) -> Option<Operation<'_>> {
        let path = url.split('?').next()?;
        let path = path
            .strip_prefix(API_URL)
            .or_else(|| path.strip_prefix(UPLOADS_URL))?;
        let given: Vec<&str> = path.split('/').collect();
        let method = method.to_lowercase();
        let paths = self.json["paths"].as_object()?.iter();
        let fitting = paths.filter_map(|(path, item)| {
            let template: Vec<&str> = path.split('/').collect();
            let values = fit(&template, &given)?;
            let value = item.get(&method)?;
            let place = format!("/paths/{}/{method}", escaped(path));
            Some((
                template.len() - values.len(),
                Operation {
                    document: self,
                    place,
                    value,
                    path: values,
                },
            ))
        });
        fitting
            .max_by_key(|(fixed, _)| *fixed)
            .map(|(_, operation)| operation)
    }

    /// Follows references and returns the final JSON pointer with the value.
    pub(crate) fn follow<'a>(
        &'a self,
        mut place: String,
        mut value: &'a Value,
    ) -> (String, &'a Value) {
        while let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            reference
                .strip_prefix('#')
                .expect("references stay inside")
                .clone_into(&mut place);
            value = self
                .json
                .pointer(&place)
                .expect("a reference leads somewhere");
        }
        (place, value)
    }
}

/// One operation with the values of its path parameters.
pub(crate) struct Operation<'a> {
    document: &'a Document,
    place: String,
    value: &'a Value,
    pub(crate) path: Vec<(String, String)>,
}

/// JSON pointer of a schema.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place(pub(crate) String);

impl Operation<'_> {
    fn parameters(&self) -> impl Iterator<Item = (String, &Value)> {
        let list = self.value["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate();
        list.map(|(index, value)| {
            self.document
                .follow(format!("{}/parameters/{index}", self.place), value)
        })
    }

    /// Returns the schema of a parameter.
    pub(crate) fn parameter(&self, kind: &str, name: &str) -> Option<Place> {
        let mut parameters = self.parameters();
        let (place, _) =
            parameters.find(|(_, value)| value["in"] == kind && value["name"] == name)?;
        Some(Place(format!("{place}/schema")))
    }

    /// Returns the names of the required query parameters.
    pub(crate) fn required(&self) -> Vec<String> {
        let needed = self
            .parameters()
            .filter(|(_, value)| value["in"] == "query" && value["required"] == true);
        needed
            .filter_map(|(_, value)| Some(value["name"].as_str()?.to_owned()))
            .collect()
    }

    /// Returns the schema of the request body, and true if the body is required.
    pub(crate) fn body(&self) -> Option<(Place, bool)> {
        let body = self.value.get("requestBody")?;
        let (place, body) = self
            .document
            .follow(format!("{}/requestBody", self.place), body);
        let content = body["content"].as_object()?;
        let media_type = ["application/json", "application/octet-stream"]
            .into_iter()
            .find(|name| content.contains_key(*name))?;
        let place = format!("{place}/content/{}/schema", escaped(media_type));
        Some((Place(place), body["required"] == true))
    }

    /// Returns the response with this status.
    pub(crate) fn answer(&self, status: u16) -> Option<Answer<'_>> {
        let place = format!("{}/responses/{status}", self.place);
        let (place, value) = self
            .document
            .follow(place, self.value["responses"].get(status.to_string())?);
        let content = value
            .get("content")
            .and_then(|content| content.get("application/json"));
        Some(Answer {
            place: format!("{place}/content/{}", escaped("application/json")),
            content,
        })
    }
}

/// A response, with its content if that is JSON.
pub(crate) struct Answer<'a> {
    place: String,
    pub(crate) content: Option<&'a Value>,
}

impl Answer<'_> {
    pub(crate) fn schema(&self) -> Option<Place> {
        self.content?.get("schema")?;
        Some(Place(format!("{}/schema", self.place)))
    }
}

/// Matches a path against a template and returns the values of its parameters.
fn fit(template: &[&str], given: &[&str]) -> Option<Vec<(String, String)>> {
    let Some((first, rest)) = template.split_first() else {
        return given.is_empty().then(Vec::new);
    };
    let Some(name) = first
        .strip_prefix('{')
        .and_then(|name| name.strip_suffix('}'))
    else {
        return if given.first() == Some(first) {
            fit(rest, &given[1..])
        } else {
            None
        };
    };
    let most = if MULTI_SEGMENT_PARAMETERS.contains(&name) {
        given.len()
    } else {
        1.min(given.len())
    };
    (1..=most).find_map(|length| {
        let mut values = fit(rest, &given[length..])?;
        values.push((name.to_owned(), decoded(&given[..length].join("/"))));
        Some(values)
    })
}

/// Escapes one step of a JSON pointer.
fn escaped(step: &str) -> String {
    step.replace('~', "~0").replace('/', "~1")
}

/// Returns the bytes of the description, from the target folder or else from npm.
fn kept() -> Vec<u8> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let kept = folder.join(format!("api.github.com-{PACKAGE_VERSION}.json"));
    if !kept.exists() {
        let fetched = folder.join(format!("npm-{}", std::process::id()));
        fs::create_dir_all(&fetched).expect("the target folder takes files");
        fetch(&fetched);
        fs::rename(fetched.join(DESCRIPTION_FILE), &kept)
            .expect("the package holds the description");
        fs::remove_dir_all(&fetched).expect("what was fetched can be removed");
    }
    fs::read(&kept).expect("the description can be read")
}

fn fetch(folder: &Path) {
    let package = format!("{PACKAGE_NAME}@{PACKAGE_VERSION}");
    run(
        folder,
        "npm",
        &["pack", "--silent", &package],
        "`apt-get install npm` (Debian, Ubuntu) or `brew install node` (macOS)",
    );
    let archive = format!("octokit-openapi-{PACKAGE_VERSION}.tgz");
    run(
        folder,
        "tar",
        &["-xzf", &archive, DESCRIPTION_FILE],
        "`apt-get install tar` (Debian, Ubuntu)",
    );
}

fn run(folder: &Path, program: &str, arguments: &[&str], install: &str) {
    match Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
    {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            panic!(
                "`{program} {}` failed; it fetches GitHub's description of its API:\n{said}",
                arguments.join(" ")
            )
        }
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            panic!(
                "{program} is missing, which fetches GitHub's description of its API; install it: {install}"
            )
        }
        Err(cause) => panic!("{program} cannot be started: {cause}"),
    }
}
