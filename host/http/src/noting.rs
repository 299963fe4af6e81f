//! Deserializer around another one, which notes unknown members of a body at any depth. It reads bodies that
//! borrow from the received bytes, and those that are parsed to values.
//!
//! It costs one comparison of each name, and nothing for the values. The path to a value is written only
//! when the value has members or elements.

use std::fmt;

use app::core::spelling::{misspelling, shortened};
use serde::{
    Deserializer,
    de::{self, DeserializeSeed, EnumAccess, MapAccess, SeqAccess, Unexpected, Visitor},
    forward_to_deserialize_any,
};

use crate::unknown::{Warnings, member_warning};

/// Property of a change that repeats the kind of the record, and changes nothing.
const KIND_PROPERTY: &str = "type";

/// Notes of [`Noting`] about a body.
#[derive(Debug, Default)]
pub struct Notes {
    /// Warnings about unknown members.
    pub warnings: Warnings,
    /// True if the body has a known property other than `type`.
    pub has_known: bool,
    /// Path to the object or list being read. Of a long name it has the start.
    path: String,
    /// Known property whose value is being read. The path lacks it until the value is entered.
    property: &'static str,
}

impl Notes {
    /// Steps from an object, whose path has this length, to a property.
    ///
    /// # Errors
    /// If its name is a misspelled restriction.
    fn step<E: de::Error>(
        &mut self,
        object: usize,
        name: &str,
        known: Option<&'static [&'static str]>,
    ) -> Result<(), E> {
        self.path.truncate(object);
        self.property = "";
        let own = known.and_then(|known| known.iter().find(|own| **own == name));
        if let Some(own) = own {
            self.has_known |= name != KIND_PROPERTY;
            self.property = own;
            return Ok(());
        }
        if object > 0 {
            self.path.push('.');
        }
        if let Some(known) = known {
            let path = &self.path;
            self.warnings.add(|| member_warning(path, name, known));
            if misspelling(name, known).is_some() {
                return Err(E::unknown_field(name, known));
            }
        }
        self.path.push_str(shortened(name));
        Ok(())
    }

    /// Enters the object or list that is being read. Returns the length of its path.
    fn enter(&mut self) -> usize {
        let property = std::mem::take(&mut self.property);
        if !property.is_empty() {
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(property);
        }
        self.path.len()
    }

    /// Steps from a list, whose path has this length, to an element.
    fn step_to_element(&mut self, list: usize, index: usize) {
        self.path.truncate(list);
        self.path.push_str(&format!("[{index}]"));
        self.property = "";
    }
}

/// A value of a body, or what reads it.
pub(crate) struct Noting<'a, T> {
    inner: T,
    /// Names of the members that the value has; absent if it takes any.
    known: Option<&'static [&'static str]>,
    notes: &'a mut Notes,
}

impl<'a, T> Noting<'a, T> {
    /// Wraps the deserializer of a body.
    pub(crate) fn new(inner: T, notes: &'a mut Notes) -> Self {
        Self {
            inner,
            known: None,
            notes,
        }
    }

    /// Wraps another part of the same value, and returns it with the part inside.
    fn swap<U>(self, other: U) -> (T, Noting<'a, U>) {
        let noting = Noting {
            inner: other,
            known: self.known,
            notes: self.notes,
        };
        (self.inner, noting)
    }
}

/// Reads every kind of value with a visitor that takes notes.
macro_rules! noted {
    ($($method:ident($($argument:ident: $type:ty),*))+) => {
        $(fn $method<V: Visitor<'de>>(
            self,
            $($argument: $type,)*
            visitor: V,
        ) -> Result<V::Value, D::Error> {
            let (inner, visitor) = self.swap(visitor);
            inner.$method($($argument,)* visitor)
        })+
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Noting<'_, D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.known = Some(fields);
        let (inner, visitor) = self.swap(visitor);
        inner.deserialize_struct(name, fields, visitor)
    }

    noted! {
        deserialize_any() deserialize_bool() deserialize_i8() deserialize_i16() deserialize_i32()
        deserialize_i64() deserialize_i128() deserialize_u8() deserialize_u16() deserialize_u32()
        deserialize_u64() deserialize_u128() deserialize_f32() deserialize_f64() deserialize_char()
        deserialize_str() deserialize_string() deserialize_bytes() deserialize_byte_buf()
        deserialize_option() deserialize_unit() deserialize_unit_struct(name: &'static str)
        deserialize_newtype_struct(name: &'static str) deserialize_seq()
        deserialize_tuple(len: usize) deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_map() deserialize_identifier() deserialize_ignored_any()
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }
}

/// Values without members are visited as they are.
macro_rules! plain {
    ($($method:ident: $type:ty,)+) => {
        $(fn $method<E: de::Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        })+
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Noting<'_, V> {
    type Value = V::Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(out)
    }

    plain! {
        visit_bool: bool,
        visit_i64: i64,
        visit_i128: i128,
        visit_u64: u64,
        visit_u128: u128,
        visit_f64: f64,
        visit_str: &str,
        visit_borrowed_str: &'de str,
        visit_string: String,
        visit_bytes: &[u8],
        visit_borrowed_bytes: &'de [u8],
        visit_byte_buf: Vec<u8>,
    }

    fn visit_none<E: de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        let (inner, value) = self.swap(value);
        inner.visit_some(value)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        let (inner, value) = self.swap(value);
        inner.visit_newtype_struct(value)
    }

    /// Reads a variant as it is: no enum of a body has one with members.
    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(variant)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        let object = self.notes.enter();
        self.inner.visit_map(Members {
            inner: members,
            object,
            known: self.known,
            notes: self.notes,
        })
    }

    /// Reads a list. A struct would also read its members from a list, in order.
    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        if self.known.is_some() {
            return Err(de::Error::invalid_type(Unexpected::Seq, &self));
        }
        let list = self.notes.enter();
        self.inner.visit_seq(Items {
            inner: items,
            list,
            index: 0,
            notes: self.notes,
        })
    }
}

/// The members of an object.
struct Members<'a, A> {
    inner: A,
    /// Length of the path to the object.
    object: usize,
    known: Option<&'static [&'static str]>,
    notes: &'a mut Notes,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Members<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        self.inner.next_key_seed(Name {
            inner: seed,
            object: self.object,
            known: self.known,
            notes: self.notes,
        })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.inner.next_value_seed(Noting::new(seed, self.notes))
    }
}

/// The elements of a list.
struct Items<'a, A> {
    inner: A,
    /// Length of the path to the list.
    list: usize,
    index: usize,
    notes: &'a mut Notes,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Items<'_, A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, A::Error> {
        self.notes.step_to_element(self.list, self.index);
        self.index += 1;
        self.inner.next_element_seed(Noting::new(seed, self.notes))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Noting<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<S::Value, D::Error> {
        let (inner, value) = self.swap(value);
        inner.deserialize(value)
    }
}

/// The name of a property, or what reads it.
struct Name<'a, T> {
    inner: T,
    /// Length of the path to the object.
    object: usize,
    known: Option<&'static [&'static str]>,
    notes: &'a mut Notes,
}

impl<'a, T> Name<'a, T> {
    fn swap<U>(self, other: U) -> (T, Name<'a, U>) {
        let name = Name {
            inner: other,
            object: self.object,
            known: self.known,
            notes: self.notes,
        };
        (self.inner, name)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Name<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<S::Value, D::Error> {
        let (inner, name) = self.swap(name);
        inner.deserialize(name)
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Name<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let (inner, visitor) = self.swap(visitor);
        inner.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Name<'_, V> {
    type Value = V::Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(out)
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<V::Value, E> {
        self.notes.step(self.object, name, self.known)?;
        self.inner.visit_str(name)
    }

    fn visit_borrowed_str<E: de::Error>(self, name: &'de str) -> Result<V::Value, E> {
        self.notes.step(self.object, name, self.known)?;
        self.inner.visit_borrowed_str(name)
    }

    fn visit_string<E: de::Error>(self, name: String) -> Result<V::Value, E> {
        self.notes.step(self.object, &name, self.known)?;
        self.inner.visit_string(name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::value::RawValue;

    use super::*;
    use crate::unknown::{MAX_WARNINGS, Warning};

    #[derive(Debug, Deserialize)]
    struct Body<'a> {
        name: String,
        #[serde(borrow)]
        raw: Option<&'a RawValue>,
        #[serde(default)]
        by_name: BTreeMap<String, Vec<Inner>>,
    }

    #[derive(Debug, Deserialize)]
    struct Inner {
        count: u8,
    }

    fn read(text: &str) -> (serde_json::Result<Body<'_>>, Warnings) {
        let mut notes = Notes::default();
        let mut json = serde_json::Deserializer::from_str(text);
        let read = Body::deserialize(Noting::new(&mut json, &mut notes));
        (read, notes.warnings)
    }

    #[test]
    fn unknown_members_are_noted_at_any_depth() {
        let (body, warnings) = read(
            r#"{"nam":0,"raw":{"any":1},"by_name":{"a":[{"count":1},{"cuont":2,"count":3}]},"name":"n"}"#,
        );
        let body = body.unwrap();
        assert_eq!(
            (&*body.name, body.raw.unwrap().get()),
            ("n", r#"{"any":1}"#)
        );
        assert_eq!(body.by_name["a"][1].count, 3);
        assert_eq!(
            warnings.named().map(Warning::to_string).collect::<Vec<_>>(),
            [
                "unknown body member `nam` is ignored; the nearest known name is `name`",
                "unknown body member `by_name.a[1].cuont` is ignored; the nearest known name is `by_name.a[1].count`",
            ]
        );
        let many = format!("{{{}\"name\":\"n\"}}", "\"\":0,".repeat(5_000));
        let warnings = read(&many).1;
        assert_eq!(warnings.named().count(), MAX_WARNINGS);
        assert_eq!(warnings.unnamed(), 5_000 - MAX_WARNINGS);
    }
}
