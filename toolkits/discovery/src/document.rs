//! A Discovery document.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::cases::decoded;

/// Folder to which `tests/setup` fetches the documents.
const DESCRIPTIONS_FOLDER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../target/descriptions/google-api-python-client-2.202.0/googleapiclient/discovery_cache/documents"
);

/// Google's description of one of its APIs.
pub struct Document {
    pub(crate) json: Value,
}

impl Document {
    /// Reads the document with this name: `calendar.v3`.
    ///
    /// # Panics
    /// If it was not fetched.
    #[must_use]
    pub fn get(name: &str) -> Self {
        let file = Path::new(DESCRIPTIONS_FOLDER).join(format!("{name}.json"));
        let bytes = fs::read(&file).unwrap_or_else(|cause| {
            panic!("{}: {cause}; `tests/setup` fetches it", file.display())
        });
        Self {
            json: serde_json::from_slice(&bytes).expect("the document is JSON"),
        }
    }

    /// Finds the method of a request. If several paths match, the one with the most fixed segments
    /// wins.
    pub(crate) fn method(&self, verb: &str, url: &str) -> Option<Method<'_>> {
        let root = self.json["rootUrl"].as_str()?;
        let path = url
            .split('?')
            .next()?
            .strip_prefix(root)?
            .strip_prefix(self.json["servicePath"].as_str()?)?;
        let given: Vec<&str> = path.split('/').collect();
        let mut open = vec![&self.json];
        let mut found = Vec::new();
        while let Some(place) = open.pop() {
            open.extend(
                place["resources"]
                    .as_object()
                    .into_iter()
                    .flat_map(|inner| inner.values()),
            );
            for value in place["methods"]
                .as_object()
                .into_iter()
                .flat_map(|methods| methods.values())
            {
                let template: Vec<&str> = value["path"].as_str()?.split('/').collect();
                if value["httpMethod"] == verb
                    && let Some(path) = fit(&template, &given)
                {
                    found.push(Method {
                        document: self,
                        value,
                        path,
                    });
                }
            }
        }
        found.into_iter().min_by_key(|method| method.path.len())
    }
}

/// One method with the values of its path parameters.
pub(crate) struct Method<'a> {
    document: &'a Document,
    value: &'a Value,
    pub(crate) path: Vec<(String, String)>,
}

impl<'a> Method<'a> {
    /// Returns the description of a parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<&'a Value> {
        [self.value, &self.document.json]
            .into_iter()
            .find_map(|place| place["parameters"].get(name))
    }

    /// Returns the names of the required parameters.
    pub(crate) fn required(&self) -> impl Iterator<Item = &'a String> {
        let own = self.value["parameters"].as_object().into_iter().flatten();
        own.filter(|(_, about)| about["required"] == true)
            .map(|(name, _)| name)
    }

    /// Returns the name of the schema of the request body.
    pub(crate) fn request(&self) -> Option<&'a str> {
        self.value["request"]["$ref"].as_str()
    }

    /// Returns the name of the schema of the response.
    pub(crate) fn response(&self) -> Option<&'a str> {
        self.value["response"]["$ref"].as_str()
    }
}

/// Matches a path against a template and returns the values of its parameters.
fn fit(template: &[&str], given: &[&str]) -> Option<Vec<(String, String)>> {
    if template.len() != given.len() {
        return None;
    }
    let mut values = Vec::new();
    for (step, given) in template.iter().zip(given) {
        match step
            .strip_prefix('{')
            .and_then(|name| name.strip_suffix('}'))
        {
            Some(name) => values.push((name.to_owned(), decoded(given))),
            None if step == given => {}
            None => return None,
        }
    }
    Some(values)
}
