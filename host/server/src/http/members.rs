//! JSON values read as the types of bodies: every wrong member is named with its path, and unknown
//! members are noted.
//!
//! Written by hand on `serde`: the errors of `serde_json` name no member, and its deserializer does
//! not tell which members a type ignores.

use std::{cell::RefCell, collections::HashSet, fmt};

use serde::{
    de::{
        self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, IntoDeserializer,
        MapAccess, SeqAccess, Unexpected, Visitor,
        value::{MapAccessDeserializer, StrDeserializer, StringDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::Value;

use crate::http::unknown::member_warning;

/// Maximum number of problems of one body that are reported.
const MAX_PROBLEMS: usize = 20;

/// Reads a value, and adds a warning about each unknown member.
///
/// # Errors
/// The first problem, if the value does not fit the type.
pub(crate) fn read<T: DeserializeOwned>(
    value: Value,
    warnings: &mut Vec<String>,
) -> Result<T, Problem> {
    let noted = RefCell::new(std::mem::take(warnings));
    let read = T::deserialize(Member {
        value,
        place: None,
        warnings: &noted,
    });
    *warnings = noted.into_inner();
    read
}

/// Returns every problem of a value, of which the first one is known. Each wrong member is removed
/// to find the next one.
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
        // A member that is missing has no place of its own, so its object goes.
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

/// Removes the value at a path. The other elements of a list would change their places, so a list is
/// removed as a whole. Returns false if there is no such value.
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

/// One step from a value to a value inside it.
#[derive(Debug)]
enum Step {
    Name(String),
    Index(usize),
}

fn shown(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Name(name) if text.is_empty() => text.push_str(name),
            Step::Name(name) => text.push_str(&format!(".{name}")),
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    if text.is_empty() {
        text.push_str("body");
    }
    text
}

/// Reason why a value does not fit its type.
#[derive(Debug)]
pub(crate) struct Problem {
    /// Path to the value, from the inside.
    path: Vec<Step>,
    text: String,
}

impl Problem {
    fn new(text: String) -> Self {
        Self {
            path: Vec::new(),
            text,
        }
    }

    fn inside(mut self, step: Step) -> Self {
        self.path.push(step);
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl std::error::Error for Problem {}

impl de::Error for Problem {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!(
            "expected {}, got {}",
            kind(&expected.to_string()),
            got(found)
        ))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("must be one of {}", expected.join(", ")))
    }

    fn unknown_field(name: &str, expected: &'static [&'static str]) -> Self {
        Self::new(member_warning("", name, expected).replace(" is ignored", " is not allowed"))
    }

    fn missing_field(name: &'static str) -> Self {
        Self::new("is required".to_owned()).inside(Step::Name(name.to_owned()))
    }
}

/// Returns the name of an expected kind of values, as JSON has them.
fn kind(expected: &str) -> &str {
    let first = expected.split(' ').next().unwrap_or_default();
    match expected {
        "a map" => "an object",
        "a sequence" => "a list",
        _ if ["struct", "internally"].contains(&first) => "an object",
        _ if first.len() <= 5
            && first.starts_with(['i', 'u', 'f'])
            && first[1..].parse::<u8>().is_ok() =>
        {
            "a number"
        }
        _ => expected,
    }
}

/// Describes a value. A text could be a secret in the wrong place, so it is not repeated.
fn got(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => number.to_string(),
        Unexpected::Char(_) | Unexpected::Str(_) => "a text".to_owned(),
        Unexpected::Unit | Unexpected::Option => "null".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "an object".to_owned(),
        other => other.to_string(),
    }
}

/// Place of a value in the body.
#[derive(Clone, Copy)]
struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: PlaceStep<'a>,
}

#[derive(Clone, Copy)]
enum PlaceStep<'a> {
    Name(&'a str),
    Index(usize),
}

impl Place<'_> {
    fn path(&self) -> Vec<Step> {
        let mut path = self.parent.map(Place::path).unwrap_or_default();
        path.push(match self.step {
            PlaceStep::Name(name) => Step::Name(name.to_owned()),
            PlaceStep::Index(index) => Step::Index(index),
        });
        path
    }
}

/// A value with its place.
struct Member<'a> {
    value: Value,
    place: Option<&'a Place<'a>>,
    warnings: &'a RefCell<Vec<String>>,
}

impl<'a> Member<'a> {
    fn members(
        members: serde_json::Map<String, Value>,
        known: Option<&'static [&'static str]>,
        place: Option<&'a Place<'a>>,
        warnings: &'a RefCell<Vec<String>>,
    ) -> Members<'a> {
        Members {
            left: members.into_iter(),
            next: None,
            known,
            place,
            warnings,
        }
    }
}

impl<'de> Deserializer<'de> for Member<'_> {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), ..) => visitor.visit_u64(number),
                (None, Some(number), _) => visitor.visit_i64(number),
                (None, None, number) => visitor.visit_f64(number.unwrap_or_default()),
            },
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => visitor.visit_seq(Items {
                left: items.into_iter().enumerate(),
                place: self.place,
                warnings: self.warnings,
            }),
            Value::Object(members) => {
                visitor.visit_map(Self::members(members, None, self.place, self.warnings))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        match self.value {
            Value::String(text) => {
                let variant: StringDeserializer<Problem> = text.into_deserializer();
                visitor.visit_enum(variant)
            }
            Value::Object(members) => {
                let members = Self::members(members, None, self.place, self.warnings);
                visitor.visit_enum(MapAccessDeserializer::new(members))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    /// Reads an object only: a struct would also read its members from a list, in order.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        match self.value {
            Value::Object(members) => visitor.visit_map(Self::members(
                members,
                Some(fields),
                self.place,
                self.warnings,
            )),
            Value::Array(_) => Err(de::Error::invalid_type(Unexpected::Seq, &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier
    }
}

/// The members of an object.
struct Members<'a> {
    left: serde_json::map::IntoIter,
    next: Option<(String, Value)>,
    /// Names of the members that the type has; absent if it takes any.
    known: Option<&'static [&'static str]>,
    place: Option<&'a Place<'a>>,
    warnings: &'a RefCell<Vec<String>>,
}

impl Members<'_> {
    fn warn(&self, name: &str, known: &[&str]) {
        let place = self.place.map(|place| format!("{}.", shown(&place.path())));
        let warning = member_warning(&place.unwrap_or_default(), name, known);
        self.warnings.borrow_mut().push(warning);
    }
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = Problem;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Problem> {
        let Some((name, value)) = self.left.next() else {
            return Ok(None);
        };
        if let Some(known) = self.known.filter(|known| !known.contains(&name.as_str())) {
            self.warn(&name, known);
        }
        let key: StrDeserializer<'_, Problem> = name.as_str().into_deserializer();
        let key = seed.deserialize(key)?;
        self.next = Some((name, value));
        Ok(Some(key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Problem> {
        let next = self.next.take();
        let (name, value) =
            next.ok_or_else(|| Problem::new("a value is read before its name".to_owned()))?;
        let place = Place {
            parent: self.place,
            step: PlaceStep::Name(&name),
        };
        let read = seed.deserialize(Member {
            value,
            place: Some(&place),
            warnings: self.warnings,
        });
        read.map_err(|problem| problem.inside(Step::Name(name)))
    }
}

/// The elements of a list.
struct Items<'a> {
    left: std::iter::Enumerate<std::vec::IntoIter<Value>>,
    place: Option<&'a Place<'a>>,
    warnings: &'a RefCell<Vec<String>>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Problem;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Problem> {
        let Some((index, value)) = self.left.next() else {
            return Ok(None);
        };
        let place = Place {
            parent: self.place,
            step: PlaceStep::Index(index),
        };
        let read = seed.deserialize(Member {
            value,
            place: Some(&place),
            warnings: self.warnings,
        });
        read.map(Some)
            .map_err(|problem| problem.inside(Step::Index(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
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
        assert_eq!(
            warnings,
            [
                "unknown body member `Limt` is ignored; the nearest known name is `limit`",
                "unknown body member `inner.cuont` is ignored; the nearest known name is `inner.count`",
                "unknown body member `list[0].zzzzzzzz` is ignored",
            ]
        );
    }
}
