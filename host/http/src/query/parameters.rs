//! Deserializer of the parameters of a query.

use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};

use super::parameter::{Invalid, Parameter};
use crate::branding::Branding;

/// Optional parameters that are no texts, for which some clients send `null` instead of leaving them out.
const NULLABLE_PARAMETERS: [&str; 6] = [
    "include_deprecated",
    "show_disabled",
    "showDisabled",
    "is_connected",
    "page_no",
    "page",
];

/// All parameters of a request.
pub(super) struct Parameters<'a> {
    pub(super) pairs: &'a [(String, String)],
    pub(super) branding: &'a Branding,
}

impl<'a> Parameters<'a> {
    fn parameter(&self, field: &'static str) -> Parameter<'a> {
        let branded = self.branding.rename(field);
        let mut parameter = Parameter {
            field,
            is_sent: false,
            texts: Vec::new(),
            entries: Vec::new(),
            branding: self.branding,
        };
        for (name, value) in self.pairs {
            let rest = name.strip_prefix(&*branded);
            let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with('[')) else {
                continue;
            };
            let value = value.trim();
            if value == "null" && NULLABLE_PARAMETERS.contains(&field) {
                continue;
            }
            parameter.is_sent = true;
            match (rest, value) {
                (_, "") => {}
                ("" | "[]", value) => parameter.texts.push(value),
                (key, value) => parameter.entries.push((key, value)),
            }
        }
        parameter
    }
}

impl<'de> Deserializer<'de> for Parameters<'_> {
    type Error = Invalid;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Invalid> {
        Err(de::Error::custom("query parameters are read into a struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Invalid> {
        let sent = fields
            .iter()
            .map(|field| self.parameter(field))
            .filter(|parameter| parameter.is_sent)
            .collect::<Vec<_>>();
        visitor.visit_map(Fields {
            parameters: sent.into_iter(),
            next: None,
        })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The fields of a struct whose parameters were sent.
struct Fields<'a> {
    parameters: std::vec::IntoIter<Parameter<'a>>,
    next: Option<Parameter<'a>>,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Invalid;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Invalid> {
        self.next = self.parameters.next();
        let field = self.next.as_ref().map(|parameter| parameter.field);
        field
            .map(|field| seed.deserialize(field.into_deserializer()))
            .transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Invalid> {
        let parameter = self
            .next
            .take()
            .ok_or_else(|| de::Error::custom("a value is read before its key"))?;
        let name = parameter.branding.rename(parameter.field);
        seed.deserialize(parameter)
            .map_err(|invalid| Invalid(format!("{name}: {invalid}")))
    }
}
