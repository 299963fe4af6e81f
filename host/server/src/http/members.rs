//! JSON values read as the types of bodies: every wrong property is named with its path, and
//! unknown properties are noted, except inside a part with `#[serde(flatten)]`.
//!
//! Written by hand on `serde`: the errors of `serde_json` repeat texts, which could be secrets.

mod problem;
mod reader;

use std::collections::HashSet;

use serde::de::DeserializeOwned;
use serde_json::Value;

use self::{problem::Problem, reader::Reader};
use crate::http::{
    noting::{Notes, Noting},
    unknown::shortened,
};

/// Maximum number of problems of one body that are reported.
const MAX_PROBLEMS: usize = 20;

/// Reads a value. Returns also the notes about its members.
///
/// # Errors
/// The first problem, if the value does not fit the type.
pub(crate) fn read<T: DeserializeOwned>(value: Value) -> Result<(T, Notes), Problem> {
    let mut notes = Notes::default();
    let read = T::deserialize(Noting::new(Reader(value), &mut notes));
    match read {
        Ok(body) => Ok((body, notes)),
        Err(problem) => Err(problem.inside(notes.path)),
    }
}

/// Returns every problem of a value, of which the first one is known. Each wrong property is
/// removed to find the next one.
pub(crate) fn problems<T: DeserializeOwned>(mut value: Value, first: Problem) -> Vec<String> {
    let mut lines = Vec::new();
    let mut removed = HashSet::new();
    let mut problem = first;
    while lines.len() < MAX_PROBLEMS {
        let Problem { path, text } = problem;
        if removed.insert(path.clone()) {
            let place = match &*path {
                "" => "body",
                place => place,
            };
            lines.push(format!("{place}: {text}"));
        }
        // A missing property lacks a position of its own, so its object is removed.
        let Some(rest) = remove(&mut value, &path) else {
            break;
        };
        removed.extend(path.strip_suffix(rest).map(str::to_owned));
        match read::<T>(value.clone()) {
            Ok(_) => break,
            Err(next) => problem = next,
        }
    }
    lines
}

/// Removes the value at a path, or the nearest value around it that can be removed. The other elements
/// of a list would change their positions, so a list is removed as a whole. Returns the end of the path,
/// from the removed value on, or `None` if nothing was removed.
fn remove<'a>(value: &mut Value, path: &'a str) -> Option<&'a str> {
    match value {
        Value::Object(members) => {
            let path = path.strip_prefix('.').unwrap_or(path);
            let (name, rest) = members.keys().find_map(|name| {
                let rest = path.strip_prefix(shortened(name))?;
                let ends = rest.is_empty() || rest.starts_with(['.', '[']);
                ends.then(|| (name.clone(), rest))
            })?;
            remove(members.get_mut(&name)?, rest).or_else(|| {
                members.shift_remove(&name)?;
                Some(rest)
            })
        }
        Value::Array(items) => {
            let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
            remove(items.get_mut(index.parse::<usize>().ok()?)?, rest)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only the reading of its members is tested")]
    struct Body {
        name: String,
        limit: Option<f64>,
        inner: Option<Inner>,
        #[serde(default)]
        list: Vec<Inner>,
        kind: Option<Kind>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only the reading of its members is tested")]
    struct Inner {
        id: String,
        count: Option<u64>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        One,
        Two,
    }

    fn problems_of(value: Value) -> Vec<String> {
        let first = read::<Body>(value.clone()).unwrap_err();
        problems::<Body>(value, first)
    }

    #[test]
    fn every_wrong_member_is_named_with_its_path() {
        let body = json!({
            "name": 5, "limit": "many", "inner": { "count": -1 }, "list": [{ "id": "a" }, { "id": null }],
            "kind": "three",
        });
        assert_eq!(
            problems_of(body),
            [
                "name: expected a string, got 5",
                "limit: expected a number, got a text",
                "inner.count: expected a number, got -1",
                "inner.id: is required",
                "list[1].id: expected a string, got null",
                "kind: must be one of one, two",
            ]
        );
        assert_eq!(problems_of(json!({})), ["name: is required"]);
        assert_eq!(
            problems_of(json!({ "name": "n", "inner": ["i"] })),
            ["inner: expected an object, got a list"]
        );
    }
}
