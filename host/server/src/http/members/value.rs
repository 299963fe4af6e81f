//! Deserializer of a JSON value that knows the path to it.

use app::core::spelling::misspelling;
use serde::{
    de::{
        self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess,
        SeqAccess, Unexpected, Visitor,
        value::{MapAccessDeserializer, StrDeserializer, StringDeserializer},
    },
    forward_to_deserialize_any,
};
use serde_json::Value;

use super::problem::{Problem, Step, shown};
use crate::http::unknown::{Warning, add_warning, member_warning};

/// Notes taken while a body is read.
#[derive(Default)]
pub(super) struct Noted {
    /// Path to the value being read.
    path: Vec<Step>,
    /// Warnings about unknown members, up to the maximum number of them.
    pub(super) warnings: Vec<Warning>,
}

impl Noted {
    /// Reads a value one step inside the current one.
    fn step<'de, S: DeserializeSeed<'de>>(
        &mut self,
        step: Step,
        value: Value,
        seed: S,
    ) -> Result<S::Value, Problem> {
        self.path.push(step);
        let read = seed.deserialize(Member { value, noted: self });
        let step = self.path.pop();
        read.map_err(|problem| problem.inside(step))
    }
}

/// Reads a whole body.
///
/// # Errors
/// The first problem.
pub(super) fn read_value<T: DeserializeOwned>(
    value: Value,
    noted: &mut Noted,
) -> Result<T, Problem> {
    T::deserialize(Member { value, noted })
}

/// A value, and the notes about its body.
struct Member<'a> {
    value: Value,
    noted: &'a mut Noted,
}

impl<'a> Member<'a> {
    fn members(
        members: serde_json::Map<String, Value>,
        known: Option<&'static [&'static str]>,
        noted: &'a mut Noted,
    ) -> Members<'a> {
        Members {
            left: members.into_iter(),
            next: None,
            known,
            noted,
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
                noted: self.noted,
            }),
            Value::Object(members) => visitor.visit_map(Self::members(members, None, self.noted)),
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
                let members = Self::members(members, None, self.noted);
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
            Value::Object(members) => {
                visitor.visit_map(Self::members(members, Some(fields), self.noted))
            }
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
    noted: &'a mut Noted,
}

impl Members<'_> {
    fn warn(&mut self, name: &str, known: &[&str]) {
        let Noted { path, warnings } = &mut *self.noted;
        add_warning(warnings, || {
            let place = match path.as_slice() {
                [] => String::new(),
                path => format!("{}.", shown(path)),
            };
            member_warning(&place, name, known)
        });
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
            if let Some(problem) = misspelling(&name, known) {
                return Err(Problem::new(problem).inside(Some(Step::Name(name))));
            }
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
        self.noted.step(Step::Name(name), value, seed)
    }
}

/// The elements of a list.
struct Items<'a> {
    left: std::iter::Enumerate<std::vec::IntoIter<Value>>,
    noted: &'a mut Noted,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Problem;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Problem> {
        let next = self.left.next();
        next.map(|(index, value)| self.noted.step(Step::Index(index), value, seed))
            .transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}
