//! Query parameters as a struct.
//!
//! Clients spell them in several ways: lists are comma-joined, repeated or written as `name[]`;
//! maps are written as `name[key]`; words and booleans come in any case; an empty value counts as
//! absent. No library reads all of these, so this module has a deserializer of its own. Unknown
//! parameters are ignored, and the response names them (see [`crate::http::unknown`]).

use std::{fmt, sync::Arc};

use axum::{extract::FromRequestParts, http::request::Parts};
use serde::{
    Deserialize,
    de::{
        self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess,
        Visitor,
        value::{MapDeserializer, SeqDeserializer, StrDeserializer},
    },
};

use crate::{
    Server,
    http::{ApiError, ApiResult, branding::Branding, context::CURRENT_REQUEST, errors},
};

/// Maximum number of entries of a list. Clients send all ids or slugs they know.
pub(crate) const MAX_LIST_ENTRIES: usize = 1_000;
/// Maximum characters of a text, and of an entry of a list.
pub(crate) const MAX_TEXT_CHARS: usize = 256;

/// Query parameters of an operation.
pub(crate) struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<Arc<Server>> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> ApiResult<Self> {
        Self::parse(parts.uri.query().unwrap_or_default(), &server.branding)
    }
}

impl<T: DeserializeOwned> Query<T> {
    /// Reads the parameters of a query.
    ///
    /// # Errors
    /// If a parameter does not fit, or contains NUL.
    pub(crate) fn parse(query: &str, branding: &Branding) -> ApiResult<Self> {
        let pairs = pairs(query)?;
        let parameters = Parameters {
            pairs: &pairs,
            branding,
        };
        T::deserialize(parameters)
            .map(Self)
            .map_err(|invalid| errors::invalid(invalid.0).into())
    }
}

/// All query parameters as they were sent, for handlers that refuse repeated ones.
pub(crate) struct Pairs(pub Vec<(String, String)>);

impl FromRequestParts<Arc<Server>> for Pairs {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> ApiResult<Self> {
        CURRENT_REQUEST.with(|context| context.names.read_all_parameters());
        pairs(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

/// Returns all parameters as they were sent.
///
/// # Errors
/// If one contains NUL, which not every store can hold.
pub(crate) fn pairs(query: &str) -> ApiResult<Vec<(String, String)>> {
    let pairs: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    let with_nul = pairs
        .iter()
        .find(|(name, value)| name.contains('\0') || value.contains('\0'));
    match with_nul {
        Some((name, _)) => {
            let name = name.escape_debug();
            Err(errors::invalid(format!("{name}: contains a NUL character")).into())
        }
        None => Ok(pairs),
    }
}

/// Reads an optional number. Clients that have none send `null`.
///
/// # Errors
/// If the parameter is another text.
pub(crate) fn number_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    text.filter(|text| text != "null")
        .map(|text| text.parse())
        .transpose()
        .map_err(|_| de::Error::custom("must be a number"))
}

/// Reads one word of an enum, in any case, from the member of a body that may hold it.
///
/// # Errors
/// If the enum has no such word.
pub(crate) fn word<T: DeserializeOwned>(
    member: &str,
    word: Option<String>,
    branding: &Branding,
) -> ApiResult<Option<T>> {
    let read = |word: String| T::deserialize(Parameter::new(&word, branding));
    word.map(read)
        .transpose()
        .map_err(|invalid| errors::invalid(format!("{member}: {invalid}")).into())
}

/// Reason why parameters do not fit.
#[derive(Debug)]
struct Invalid(String);

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
}

/// All parameters of a request.
struct Parameters<'a> {
    pairs: &'a [(String, String)],
    branding: &'a Branding,
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
            if value.is_empty() {
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
struct Parameter<'a> {
    field: &'static str,
    /// Values of `name` and `name[]`.
    texts: Vec<&'a str>,
    /// Keys and values of `name[key]`.
    entries: Vec<(&'a str, &'a str)>,
    branding: &'a Branding,
}

impl<'a> Parameter<'a> {
    /// Returns one entry of a list, which is read as a parameter of its own.
    fn new(text: &'a str, branding: &'a Branding) -> Self {
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

    numbers! {
        deserialize_f64 visit_f64 f64;
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::http::branding::DEFAULT_WORD;

    #[derive(Debug, Default, Deserialize, PartialEq, Eq)]
    #[serde(rename_all = "lowercase")]
    enum Direction {
        #[default]
        Asc,
        Desc,
    }

    #[derive(Debug, Deserialize)]
    struct Example {
        #[serde(default)]
        ids: Vec<String>,
        #[serde(default)]
        versions: BTreeMap<String, String>,
        is_service_managed: Option<bool>,
        #[serde(default, deserialize_with = "number_or_null")]
        limit: Option<f64>,
        #[serde(default)]
        direction: Direction,
    }

    fn read_as(word: &str, query: &str) -> Result<Example, String> {
        let pairs = pairs(query).map_err(|_| "NUL".to_owned())?;
        let parameters = Parameters {
            pairs: &pairs,
            branding: &Branding::new(word),
        };
        Example::deserialize(parameters).map_err(|invalid| invalid.0)
    }

    fn read(query: &str) -> Result<Example, String> {
        read_as(DEFAULT_WORD, query)
    }

    #[test]
    fn list_arrives_comma_joined_repeated_or_bracketed() {
        for text in [
            "ids=a,b,c",
            "ids=a&ids=b,c",
            "ids[]=a&ids[]=b&ids[]=c",
            "ids=%20a%20,,b,&ids%5B%5D=c",
        ] {
            assert_eq!(read(text).unwrap().ids, ["a", "b", "c"], "{text}");
        }
        assert!(read("other=a").unwrap().ids.is_empty());
    }

    #[test]
    fn long_lists_and_texts_are_refused() {
        assert_eq!(
            read(&format!("ids={}", "a,".repeat(1_001))).unwrap_err(),
            "ids: at most 1000 entries"
        );
        let long = read(&format!("ids={}", "a,".repeat(1_000)));
        assert_eq!(long.unwrap().ids.len(), 1_000);
        assert_eq!(
            read(&format!("ids={}", "a".repeat(257))).unwrap_err(),
            "ids: at most 256 characters"
        );
        assert!(read(&format!("versions={}", "a".repeat(257))).is_err());
    }

    #[test]
    fn map_arrives_in_brackets() {
        let read = read("versions%5Bgh%5D=20251027_00&versions[x]=latest&versions=20251028_00");
        let expected = [("", "20251028_00"), ("gh", "20251027_00"), ("x", "latest")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(read.unwrap().versions, BTreeMap::from(expected));
    }

    #[test]
    fn words_are_read_in_any_case() {
        assert_eq!(read("direction=DESC").unwrap().direction, Direction::Desc);
        assert_eq!(read("direction=").unwrap().direction, Direction::Asc);
        assert_eq!(
            read("direction=up").unwrap_err(),
            "direction: must be one of asc, desc"
        );
    }

    #[test]
    fn booleans_numbers_and_nul_are_checked() {
        let managed = |text: &str| read(text).map(|read| read.is_service_managed);
        assert_eq!(managed("is_service_managed=True").unwrap(), Some(true));
        assert_eq!(managed("is_service_managed=0").unwrap(), Some(false));
        assert_eq!(managed("is_service_managed=").unwrap(), None);
        assert!(managed("is_service_managed=yes").is_err());
        assert_eq!(read("limit=1&limit=5").unwrap().limit, Some(5.0));
        assert_eq!(read("limit=many").unwrap_err(), "limit: must be a number");
        assert_eq!(read("limit=null").unwrap().limit, None);
        assert_eq!(read("x=%00").unwrap_err(), "NUL");
    }

    #[test]
    fn operator_word_names_the_parameter() {
        let read = |query| read_as("acme", query).unwrap().is_service_managed;
        assert_eq!(read("is_acme_managed=1"), Some(true));
        assert_eq!(read("is_service_managed=1"), None);
    }
}
