//! Deserializer of one query parameter, in every spelling that clients use.

use std::{collections::BTreeMap, fmt};

use serde::de::{
    self, Deserializer, Expected, IntoDeserializer, Unexpected, Visitor,
    value::{MapDeserializer, SeqDeserializer, StrDeserializer},
};

use super::{MAX_LIST_ENTRIES, MAX_TEXT_CHARS};
use crate::branding::Branding;

/// Reason why parameters do not fit.
#[derive(Debug)]
pub(super) struct Invalid(pub String);

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

/// The values of one parameter, without empty ones.
pub(super) struct Parameter<'a> {
    pub field: &'static str,
    /// True if it was sent, perhaps without a value.
    pub is_sent: bool,
    /// Values of `name` and `name[]`.
    pub texts: Vec<&'a str>,
    /// Keys of `name[key]`, with their brackets, and values.
    pub entries: Vec<(&'a str, &'a str)>,
    pub branding: &'a Branding,
}

impl<'a> Parameter<'a> {
    /// Returns one entry of a list, which is read as a parameter of its own.
    pub(super) fn new(text: &'a str, branding: &'a Branding) -> Self {
        Self {
            field: "",
            is_sent: true,
            texts: vec![text],
            entries: Vec::new(),
            branding,
        }
    }

    /// Returns the value of a parameter that has one.
    fn text(&self) -> Result<&'a str, Invalid> {
        self.refuse_keys()?;
        self.text_without_key()
    }

    fn text_without_key(&self) -> Result<&'a str, Invalid> {
        let (&first, others) = self.texts.split_first().ok_or_else(empty)?;
        if others.iter().any(|&other| other != first) {
            return Err(Invalid("is sent with several values; send one".to_owned()));
        }
        short(first)
    }

    fn list(&self) -> Result<Vec<&'a str>, Invalid> {
        self.refuse_keys()?;
        let entries: Vec<_> = self
            .texts
            .iter()
            .flat_map(|text| text.split(','))
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .collect();
        if entries.is_empty() {
            return Err(empty());
        }
        if entries.len() > MAX_LIST_ENTRIES {
            return Err(Invalid(format!("at most {MAX_LIST_ENTRIES} entries")));
        }
        entries.into_iter().map(short).collect()
    }

    /// Returns the values by key. The value without a key has an empty one.
    fn map(&self) -> Result<BTreeMap<&'a str, &'a str>, Invalid> {
        let mut values = BTreeMap::new();
        for &(key, value) in &self.entries {
            let key = key
                .strip_prefix('[')
                .and_then(|key| key.strip_suffix(']'))
                .ok_or_else(|| Invalid("has a key without its bracket".to_owned()))?;
            let earlier = values.insert(key, value);
            if earlier.is_some_and(|earlier| earlier != value) {
                let problem = "is sent with several values for one key; send one";
                return Err(Invalid(problem.to_owned()));
            }
        }
        if !self.texts.is_empty() {
            values.insert("", self.text_without_key()?);
        }
        Ok(values)
    }

    fn refuse_keys(&self) -> Result<(), Invalid> {
        if self.entries.is_empty() {
            return Ok(());
        }
        Err(Invalid("takes no key in brackets".to_owned()))
    }
}

fn empty() -> Invalid {
    Invalid("must not be empty: omit it, or send a value".to_owned())
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
        if self.texts.is_empty() && self.entries.is_empty() {
            return visitor.visit_none();
        }
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
        visitor.visit_map(MapDeserializer::new(self.map()?.into_iter()))
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
