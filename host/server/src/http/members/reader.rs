//! Deserializer of a JSON value whose errors are [`Problem`]s.

use serde::{
    de::{
        Deserializer, IntoDeserializer, Visitor,
        value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer, StringDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::{Map, Value};

use super::problem::Problem;

/// A JSON value to be read.
pub(super) struct Reader(pub(super) Value);

impl Reader {
    fn members<'de>(
        object: Map<String, Value>,
    ) -> MapDeserializer<'de, impl Iterator<Item = (String, Self)>, Problem> {
        MapDeserializer::new(object.into_iter().map(|(name, value)| (name, Self(value))))
    }
}

impl IntoDeserializer<'_, Problem> for Reader {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Reader {
    type Error = Problem;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), ..) => visitor.visit_u64(number),
                (None, Some(number), _) => visitor.visit_i64(number),
                (None, None, number) => visitor.visit_f64(number.unwrap_or_default()),
            },
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => {
                let items = items.into_iter().map(Self);
                visitor.visit_seq(SeqDeserializer::<_, Problem>::new(items))
            }
            Value::Object(object) => visitor.visit_map(Self::members(object)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        match self.0 {
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
        match self.0 {
            Value::String(text) => visitor.visit_enum(StringDeserializer::<Problem>::new(text)),
            Value::Object(object) => {
                visitor.visit_enum(MapAccessDeserializer::new(Self::members(object)))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Problem> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier
    }
}
