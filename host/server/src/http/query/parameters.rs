//! Deserializer of query parameters, in every spelling that clients use.

use std::fmt;

use serde::de::{
    self, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess, Unexpected,
    Visitor,
    value::{MapDeserializer, SeqDeserializer, StrDeserializer},
};

use super::{MAX_LIST_ENTRIES, MAX_TEXT_CHARS};
use crate::http::{branding::Branding, context::CURRENT_REQUEST};

/// Optional parameters that are no texts, for which some clients send `null` instead of leaving them out.
const NULLABLE_PARAMETERS: [&str; 6] = [
    "include_deprecated",
    "show_disabled",
    "showDisabled",
    "is_connected",
    "page_no",
    "page",
];

/// Reason why parameters do not fit.
#[derive(Debug)]
pub(super) struct Invalid(pub(super) String);

impl fmt::Display for Invalid {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Invalid {}

impl de::Error for Invalid {
    fn missing_field(field: &'static str) -> Self {
        Self(format!("{field}: is required"))
    }

    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self(format!("must be {expected}"))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }
}

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
            texts: Vec::new(),
            entries: Vec::new(),
            branding: self.branding,
        };
        for (name, value) in self.pairs {
            let Some(rest) = name.strip_prefix(&*branded) else {
                continue;
            };
            let value = value.trim();
            if value.is_empty() || value == "null" && NULLABLE_PARAMETERS.contains(&field) {
                continue;
            }
            match rest {
                "" | "[]" => parameter.texts.push(value),
                key => {
                    let key = key.strip_prefix('[').and_then(|key| key.strip_suffix(']'));
                    parameter.entries.extend(key.map(|key| (key, value)));
                }
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
        // Some queries are parsed outside of a request.
        let _ = CURRENT_REQUEST.try_with(|context| context.names.read_parameters(fields));
        let present = fields
            .iter()
            .map(|field| self.parameter(field))
            .filter(|parameter| !parameter.texts.is_empty() || !parameter.entries.is_empty())
            .collect::<Vec<_>>();
        visitor.visit_map(Fields {
            parameters: present.into_iter(),
            next: None,
        })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The fields of a struct whose parameters are present.
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

/// The values of one parameter, without empty ones.
pub(super) struct Parameter<'a> {
    field: &'static str,
    /// Values of `name` and `name[]`.
    texts: Vec<&'a str>,
    /// Keys and values of `name[key]`.
    entries: Vec<(&'a str, &'a str)>,
    branding: &'a Branding,
}

impl<'a> Parameter<'a> {
    /// Returns one entry of a list, which is read as a parameter of its own.
    pub(super) fn new(text: &'a str, branding: &'a Branding) -> Self {
        Self {
            field: "",
            texts: vec![text],
            entries: Vec::new(),
            branding,
        }
    }

    /// Returns the last value, which wins over repeated ones.
    fn text(&self) -> Result<&'a str, Invalid> {
        short(self.texts.last().copied().unwrap_or_default())
    }

    fn list(&self) -> Result<Vec<&'a str>, Invalid> {
        let entries: Vec<_> = self
            .texts
            .iter()
            .flat_map(|text| text.split(','))
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .collect();
        if entries.len() > MAX_LIST_ENTRIES {
            return Err(Invalid(format!("at most {MAX_LIST_ENTRIES} entries")));
        }
        entries.into_iter().map(short).collect()
    }
}

fn short(text: &str) -> Result<&str, Invalid> {
    if text.chars().count() > MAX_TEXT_CHARS {
        return Err(Invalid(format!("at most {MAX_TEXT_CHARS} characters")));
    }
    Ok(text)
}

/// Reads a number. `NaN` is not accepted, because no limit of a range applies to it.
pub(super) fn finite(text: &str) -> Option<f64> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|number| number.is_finite())
}

macro_rules! numbers {
    ($($method:ident $visit:ident $type:ty;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
            let number: $type = self
                .text()?
                .parse()
                .map_err(|_| Invalid("must be a number".to_owned()))?;
            visitor.$visit(number)
        }
    )*};
}

impl<'de> IntoDeserializer<'de, Invalid> for Parameter<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Parameter<'_> {
    type Error = Invalid;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        visitor.visit_some(self)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        match self.text()?.to_ascii_lowercase().as_str() {
            "true" | "1" => visitor.visit_bool(true),
            "false" | "0" => visitor.visit_bool(false),
            _ => Err(Invalid("must be true or false".to_owned())),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        let number = finite(self.text()?);
        visitor.visit_f64(number.ok_or_else(|| Invalid("must be a number".to_owned()))?)
    }

    numbers! {
        deserialize_i64 visit_i64 i64;
        deserialize_u64 visit_u64 u64;
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        let entries = self.list()?.into_iter();
        visitor.visit_seq(SeqDeserializer::new(
            entries.map(|text| Parameter::new(text, self.branding)),
        ))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        let whole = self.texts.last().map(|text| short(text)).transpose()?;
        let entries = self.entries.into_iter().chain(whole.map(|text| ("", text)));
        visitor.visit_map(MapDeserializer::new(entries))
    }

    /// Visits the variant that a word names, in any case.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Invalid> {
        let word = self.text()?;
        let name = |variant| self.branding.rename(variant);
        match variants
            .iter()
            .find(|variant| name(variant).eq_ignore_ascii_case(word))
        {
            Some(variant) => {
                let variant: StrDeserializer<'_, Invalid> = variant.into_deserializer();
                visitor.visit_enum(variant)
            }
            None => {
                let words: Vec<_> = variants.iter().map(|variant| name(variant)).collect();
                Err(Invalid(format!("must be one of {}", words.join(", "))))
            }
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Invalid> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i128 u8 u16 u32 u128 f32 char str string bytes byte_buf unit unit_struct tuple
        tuple_struct struct identifier ignored_any
    }
}
