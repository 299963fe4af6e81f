//! Search for every problem of a value that does not fit its type.
//!
//! Reading ends at the first problem. The wrong value is then replaced by a hole, which is read as any
//! type, and the whole is read again.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{
    problem::Problem,
    reader::{HOLE_TEXT, Reader, is_hole},
};
use crate::core::spelling::shortened;

/// Maximum number of times that a value is read to find its problems.
const MAX_READS: usize = 40;

/// Returns the lines for the problems of a document, which `read` finds one by one. The paths of problems
/// of the whole are its name.
#[must_use]
pub fn all_problems(
    mut value: Value,
    document: &str,
    mut read: impl FnMut(Reader) -> Option<Problem>,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut named: HashSet<String> = HashSet::new();
    for _ in 0..MAX_READS {
        let Some(problem) = read(Reader::with_holes(value.clone())) else {
            break;
        };
        // A required property of a replaced object is no problem of the document.
        if !named.iter().any(|path| is_inside(&problem.path, path)) {
            lines.push(problem.line(document));
        }
        let is_first = named.insert(problem.path.clone());
        if !make_hole(&mut value, &problem.path, is_first) {
            break;
        }
    }
    lines
}

/// Returns true if a path is another one, or leads into the value there.
fn is_inside(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Replaces the value at a path, or adds the missing one unless a problem was found there before. A hole
/// that does not fit either is removed. Returns false if nothing can be replaced.
fn make_hole(value: &mut Value, path: &str, is_first: bool) -> bool {
    if is_hole(value) && !path.is_empty() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(members) => {
            let path = path.strip_prefix('.').unwrap_or(path);
            make_hole_in_object(members, path, is_first)
        }
        Value::Array(elements) => make_hole_in_list(elements, path, is_first).unwrap_or_default(),
        _ => false,
    }
}

fn make_hole_in_object(members: &mut Map<String, Value>, path: &str, is_first: bool) -> bool {
    let found = members.keys().find_map(|name| {
        let rest = path.strip_prefix(shortened(name))?;
        let ends = rest.is_empty() || rest.starts_with(['.', '[']);
        ends.then(|| (name.clone(), rest))
    });
    match found {
        Some((name, "")) if members.get(&name).is_some_and(is_hole) => {
            members.shift_remove(&name).is_some()
        }
        Some((name, "")) => members.insert(name, HOLE_TEXT.into()).is_some(),
        Some((name, rest)) => members
            .get_mut(&name)
            .is_some_and(|inner| make_hole(inner, rest, is_first)),
        None if is_first && !path.is_empty() => {
            members.insert(path.to_owned(), HOLE_TEXT.into()).is_none()
        }
        None => false,
    }
}

/// Variant of [`make_hole`] for a list, whose elements keep their positions. Returns `None` if the path
/// leads to no element.
fn make_hole_in_list(elements: &mut [Value], path: &str, is_first: bool) -> Option<bool> {
    let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
    let element = elements.get_mut(index.parse::<usize>().ok()?)?;
    if !rest.is_empty() {
        return Some(make_hole(element, rest, is_first));
    }
    let is_new = !is_hole(element);
    *element = HOLE_TEXT.into();
    Some(is_new)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{json, value::RawValue};

    use super::*;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only the reading of its members is tested")]
    struct Body<'a> {
        name: String,
        limit: Option<f64>,
        inner: Inner,
        #[serde(default)]
        list: Vec<Inner>,
        kind: Option<Kind>,
        pair: Option<[u8; 2]>,
        choice: Option<Choice>,
        #[serde(borrow)]
        raw: Option<&'a RawValue>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only the reading of its members is tested")]
    struct Inner {
        id: String,
        count: Option<u8>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        One,
        Two,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Choice {
        One(()),
        Two(()),
    }

    fn problems_of(value: Value) -> Vec<String> {
        all_problems(value, "body", |reader| Body::deserialize(reader).err())
    }

    #[test]
    fn every_wrong_value_is_named_without_its_content() {
        let body = json!({
            "name": 5, "limit": "many", "inner": { "count": -1 }, "kind": "three", "raw": { "any": 1 },
            "list": [{ "id": 1 }, { "id": "a" }, "b", { "id": null, "count": 300 }, {}],
        });
        assert_eq!(
            problems_of(body),
            [
                "name: expected a string, got a number",
                "limit: expected a number, got a string",
                "inner.count: expected a whole number from 0 to 255, got a negative number",
                "inner.id: is required",
                "kind: must be one of one, two",
                "list[0].id: expected a string, got a number",
                "list[2]: expected an object, got a string",
                "list[3].id: expected a string, got null",
                "list[3].count: expected a whole number from 0 to 255, got a number",
                "list[4].id: is required",
            ]
        );
        assert_eq!(
            problems_of(json!({ "inner": ["i"], "kind": 1 })),
            [
                "inner: expected an object, got a list",
                "kind: must be one of one, two",
                "name: is required",
            ]
        );
        let surplus = json!({
            "name": "a", "inner": { "id": "a" }, "pair": [1, 2, 3], "choice": { "one": null, "two": null },
        });
        assert_eq!(
            problems_of(surplus),
            [
                "pair: expected a list of 2 values, got 3",
                "choice: must have exactly one of one, two",
            ]
        );
        assert_eq!(
            problems_of(json!({ "names": "n", "inner": { "Id": "a" } })),
            [
                "inner.id: is required; `Id` was sent: did you mean `id`?",
                "name: is required; `names` was sent: did you mean `name`?",
            ]
        );
        assert_eq!(
            problems_of(json!([1])),
            ["body: expected an object, got a list"]
        );
    }
}
