//! The values of declared fields, read from a body without building the rest of it.
//!
//! A value that does not fit its field's kind counts as absent. The document alone decides on its
//! body, and a query must never fail because of one.

use crate::{Collection, Field, Kind};
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

/// One comparable value. Numbers come before texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scalar {
    /// A whole number, or a time in milliseconds.
    Int(i64),
    /// A string.
    Text(String),
}

impl From<&str> for Scalar {
    fn from(text: &str) -> Scalar {
        Scalar::Text(text.to_owned())
    }
}

impl From<String> for Scalar {
    fn from(text: String) -> Scalar {
        Scalar::Text(text)
    }
}

impl From<&String> for Scalar {
    fn from(text: &String) -> Scalar {
        Scalar::Text(text.clone())
    }
}

impl From<i64> for Scalar {
    fn from(number: i64) -> Scalar {
        Scalar::Int(number)
    }
}

impl From<crate::Time> for Scalar {
    fn from(time: crate::Time) -> Scalar {
        Scalar::Int(time.0)
    }
}

impl From<bool> for Scalar {
    fn from(flag: bool) -> Scalar {
        Scalar::Text(flag.to_string())
    }
}

/// The values of one body, by position of the field in the declaration. An empty list means absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Values(Vec<Vec<Scalar>>);

impl Values {
    /// Reads the declared fields of a body. Fails when the body is not a JSON object.
    pub(crate) fn from_body(
        collection: &'static Collection,
        body: &[u8],
    ) -> Result<Values, serde_json::Error> {
        if collection.fields.is_empty() {
            return Ok(Values::default());
        }
        serde_json::Deserializer::from_slice(body).deserialize_map(Reader(collection.fields))
    }

    /// Creates the values of a body whose declared fields are the given lists of texts.
    pub(crate) fn from_lists(lists: &[&[&str]]) -> Values {
        let values = lists
            .iter()
            .map(|list| list.iter().map(|text| Scalar::from(*text)).collect());
        Values(values.collect())
    }

    /// Returns the values of the field at a position. Elements of a list appear once each, in no
    /// particular order.
    pub(crate) fn at(&self, place: usize) -> &[Scalar] {
        self.0.get(place).map_or(&[], Vec::as_slice)
    }
}

struct Reader(&'static [Field]);

impl<'de> Visitor<'de> for Reader {
    type Value = Values;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a json object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
        let mut values = vec![Vec::new(); self.0.len()];
        while let Some(Name(name)) = map.next_key()? {
            match self.0.iter().position(|field| field.name == name) {
                Some(place) => values[place] = scalars(self.0[place].kind, map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Values(values))
    }
}

/// The name of a field, borrowed if it is free of escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

fn scalars(kind: Kind, value: Value) -> Vec<Scalar> {
    match (kind, value) {
        (Kind::List, Value::Array(elements)) => {
            let mut found: Vec<_> = elements.into_iter().filter_map(element).collect();
            found.sort_unstable();
            found.dedup();
            found
        }
        (Kind::Text, Value::String(text)) => vec![Scalar::Text(text)],
        (Kind::Text, Value::Bool(flag)) => vec![flag.into()],
        (Kind::Int | Kind::Time, Value::Number(number)) => {
            number.as_i64().map(Scalar::Int).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn element(value: Value) -> Option<Scalar> {
    match value {
        Value::String(text) => Some(Scalar::Text(text)),
        Value::Number(number) => number.as_i64().map(Scalar::Int),
        _ => None,
    }
}
