//! JSON values read as the types of bodies: every wrong property is named with its path, and
//! unknown properties are noted.
//!
//! Written by hand on `serde`: the errors of `serde_json` name no property, and its deserializer
//! does not tell which properties a type ignores.

mod problem;
mod value;

use std::collections::HashSet;

use serde::de::DeserializeOwned;
use serde_json::Value;

use self::{
    problem::{Step, shown},
    value::{Noted, read_value},
};

pub(crate) use self::problem::Problem;
use crate::http::unknown::Warning;

/// Maximum number of problems of one body that are reported.
const MAX_PROBLEMS: usize = 20;

/// Reads a value, and adds warnings about unknown members, up to the maximum number of them.
///
/// # Errors
/// The first problem, if the value does not fit the type.
pub(crate) fn read<T: DeserializeOwned>(
    value: Value,
    warnings: &mut Vec<Warning>,
) -> Result<T, Problem> {
    let mut noted = Noted::default();
    let read = read_value(value, &mut noted);
    warnings.append(&mut noted.warnings);
    read
}

/// Returns every problem of a value, of which the first one is known. Each wrong property is
/// removed to find the next one.
pub(crate) fn problems<T: DeserializeOwned>(mut value: Value, first: Problem) -> Vec<String> {
    let mut lines = Vec::new();
    let mut removed = HashSet::new();
    let mut problem = first;
    while lines.len() < MAX_PROBLEMS {
        let mut path = std::mem::take(&mut problem.path);
        path.reverse();
        let text = shown(&path);
        if removed.insert(text.clone()) {
            lines.push(format!("{text}: {}", problem.text));
        }
        // A missing property lacks a position of its own, so its object is removed.
        while !path.is_empty() && !remove(&mut value, &path) {
            path.pop();
        }
        if path.is_empty() {
            break;
        }
        removed.insert(shown(&path));
        match read::<T>(value.clone(), &mut Vec::new()) {
            Ok(_) => break,
            Err(next) => problem = next,
        }
    }
    lines
}

/// Removes the value at a path. The other elements of a list would change their positions, so a
/// list is removed as a whole. Returns false if the value does not exist.
fn remove(value: &mut Value, path: &[Step]) -> bool {
    let Some((last, parents)) = path.split_last() else {
        return false;
    };
    let mut inside = value;
    for step in parents {
        let next = match (step, inside) {
            (Step::Name(name), Value::Object(members)) => members.get_mut(name),
            (Step::Index(index), Value::Array(items)) => items.get_mut(*index),
            _ => None,
        };
        match next {
            Some(next) => inside = next,
            None => return false,
        }
    }
    match (last, inside) {
        (Step::Name(name), Value::Object(members)) => members.shift_remove(name).is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Map, json};

    use super::*;
    use crate::http::unknown::MAX_WARNINGS;

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
        let first = read::<Body>(value.clone(), &mut Vec::new()).unwrap_err();
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

    #[test]
    fn unknown_members_are_noted_at_any_depth() {
        let body = json!({
            "name": "n", "Limt": 1, "inner": { "id": "i", "cuont": 1 }, "list": [{ "id": "a", "zzzzzzzz": {} }],
            "kind": "two",
        });
        let mut warnings = Vec::new();
        read::<Body>(body, &mut warnings).unwrap();
        let warnings: Vec<_> = warnings.iter().map(Warning::to_string).collect();
        assert_eq!(
            warnings,
            [
                "unknown body member `Limt` is ignored; the nearest known name is `limit`",
                "unknown body member `inner.cuont` is ignored; the nearest known name is `inner.count`",
                "unknown body member `list[0].zzzzzzzz` is ignored",
            ]
        );
    }

    #[test]
    fn noted_unknown_members_are_limited() {
        let unknown = (0..5_000).map(|number| (format!("unknown{number}"), Value::Null));
        let mut body: Map<_, _> = unknown.collect();
        body.insert("name".to_owned(), json!("n"));
        let mut warnings = Vec::new();
        read::<Body>(body.into(), &mut warnings).unwrap();
        assert_eq!(warnings.len(), MAX_WARNINGS);
    }
}
