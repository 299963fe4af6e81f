//! Deserializer of a JSON value whose errors are [`Problem`]s with the path to the wrong value.
//!
//! Written by hand on `serde`: the errors of `serde_json` lack paths and repeat strings, which could
//! be secrets.

use std::vec;

use serde::{
    de::{
        DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess,
        Unexpected, Visitor,
        value::{
            BorrowedStrDeserializer, MapAccessDeserializer, MapDeserializer, StrDeserializer,
            StringDeserializer,
        },
    },
    forward_to_deserialize_any,
};
use serde_json::{Map, Value, map};

use super::problem::Problem;

/// Name of the struct as which `serde_json` reads and writes a `RawValue`.
pub(super) const RAW_VALUE: &str = "$serde_json::private::RawValue";
/// String that takes the position of a wrong value. JSON that is parsed strictly contains no NUL.
pub(super) const HOLE_TEXT: &str = "\0";

/// Returns true if a value takes the position of a wrong one.
pub(super) fn is_hole(value: &Value) -> bool {
    value.as_str() == Some(HOLE_TEXT)
}

/// A JSON value to be read.
#[derive(Debug)]
pub struct Reader {
    value: Value,
    /// True if [`HOLE_TEXT`] is read as a value of any type, and raw text as the simplest of its kind. The
    /// result is then meaningless: only its problems count.
    has_holes: bool,
}

impl Reader {
    /// Returns the reader of a value.
    #[must_use]
    pub fn new(value: Value) -> Self {
        Self {
            value,
            has_holes: false,
        }
    }

    pub(super) fn with_holes(value: Value) -> Self {
        Self {
            value,
            has_holes: true,
        }
    }

    fn is_hole(&self) -> bool {
        self.has_holes && is_hole(&self.value)
    }

    fn members(&self, object: Map<String, Value>) -> Members {
        Members {
            rest: object.into_iter(),
            current: None,
            has_holes: self.has_holes,
        }
    }

    fn elements(&self, list: Vec<Value>) -> Elements {
        Elements {
            rest: list.into_iter(),
            index: 0,
            has_holes: self.has_holes,
        }
    }
}

/// Returns the shortest JSON text of the kind of a value.
fn simplest_text(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true",
        Value::Number(_) => "0",
        Value::String(_) => r#""""#,
        Value::Array(_) => "[]",
        Value::Object(_) => "{}",
    }
}

/// Reads a value as what it is, and a hole as a value of the requested kind.
macro_rules! kinds {
    ($($method:ident => $visit:ident($hole:expr);)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
            if self.is_hole() {
                return visitor.$visit($hole);
            }
            self.deserialize_any(visitor)
        }
    )+};
}

impl<'de> Deserializer<'de> for Reader {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Problem> {
        match self.value.take() {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), ..) => visitor.visit_u64(number),
                (None, Some(number), _) => visitor.visit_i64(number),
                (None, None, number) => visitor.visit_f64(number.unwrap_or_default()),
            },
            Value::String(text) => visitor.visit_string(text),
            Value::Array(list) => visitor.visit_seq(self.elements(list)),
            Value::Object(object) => visitor.visit_map(self.members(object)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ if self.is_hole() => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        if name == RAW_VALUE && self.has_holes {
            let text = BorrowedStrDeserializer::<Problem>::new(simplest_text(&self.value));
            let raw = std::iter::once((RAW_VALUE, text));
            return visitor.visit_map(MapDeserializer::new(raw));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        if self.is_hole() {
            let first = variants.first().copied().unwrap_or_default();
            return visitor.visit_enum(StrDeserializer::<Problem>::new(first));
        }
        match self.value.take() {
            Value::String(text) => visitor.visit_enum(StringDeserializer::<Problem>::new(text)),
            Value::Object(object) if object.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(self.members(object)))
            }
            // The first member alone would count.
            Value::Object(_) => Err(Problem::new(format!(
                "must have exactly one of {}",
                variants.join(", ")
            ))),
            _ => Err(Problem::unknown_variant("", variants)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_unit()
    }

    /// Reads a list of a fixed length. The elements after it would be ignored.
    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Problem> {
        if self.is_hole() {
            let holes = vec![Value::from(HOLE_TEXT); length];
            return visitor.visit_seq(self.elements(holes));
        }
        match self.value.as_array().map(Vec::len) {
            Some(given) if given != length => Err(Problem::new(format!(
                "expected a list of {length} values, got {given}"
            ))),
            _ => self.deserialize_any(visitor),
        }
    }

    /// Reads an object. A struct would also read its fields from a list, in order.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Problem> {
        if self.value.is_array() {
            return Err(Problem::invalid_type(Unexpected::Seq, &visitor));
        }
        // Names are copied only while the problems of a refused value are searched for.
        let sent = self.value.as_object().filter(|_| self.has_holes);
        let names = sent.into_iter().flat_map(Map::keys);
        let unknown: Vec<_> = names
            .filter(|name| !known.contains(&name.as_str()))
            .cloned()
            .collect();
        self.deserialize_map(visitor)
            .map_err(|problem| problem.with_sent(known, &unknown))
    }

    kinds! {
        deserialize_bool => visit_bool(false);
        deserialize_i8 => visit_u64(0);
        deserialize_i16 => visit_u64(0);
        deserialize_i32 => visit_u64(0);
        deserialize_i64 => visit_u64(0);
        deserialize_u8 => visit_u64(0);
        deserialize_u16 => visit_u64(0);
        deserialize_u32 => visit_u64(0);
        deserialize_u64 => visit_u64(0);
        deserialize_f32 => visit_f64(0.0);
        deserialize_f64 => visit_f64(0.0);
        deserialize_str => visit_str("");
        deserialize_string => visit_str("");
        deserialize_seq => visit_seq(Self::new(Value::Null).elements(Vec::new()));
        deserialize_map => visit_map(Self::new(Value::Null).members(Map::new()));
    }

    forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple_struct identifier
    }
}

struct Members {
    rest: map::IntoIter,
    current: Option<(String, Value)>,
    has_holes: bool,
}

impl<'de> MapAccess<'de> for Members {
    type Error = Problem;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Problem> {
        self.current = self.rest.next();
        let name = self.current.as_ref().map(|(name, _)| name.as_str());
        name.map(|name| seed.deserialize(name.into_deserializer()))
            .transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Problem> {
        let current = self.current.take();
        let (name, value) = current.ok_or_else(|| Problem::custom("is read before its name"))?;
        let has_holes = self.has_holes;
        seed.deserialize(Reader { value, has_holes })
            .map_err(|problem| problem.inside(&name))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

struct Elements {
    rest: vec::IntoIter<Value>,
    index: usize,
    has_holes: bool,
}

impl<'de> SeqAccess<'de> for Elements {
    type Error = Problem;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Problem> {
        let Some(value) = self.rest.next() else {
            return Ok(None);
        };
        let (index, has_holes) = (self.index, self.has_holes);
        self.index += 1;
        seed.deserialize(Reader { value, has_holes })
            .map(Some)
            .map_err(|problem| problem.inside_element(index))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}
