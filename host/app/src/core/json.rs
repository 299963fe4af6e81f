//! Strict parsing of JSON from outside.
//!
//! The nesting depth is bounded, a name occurs at most once in an object, and no text contains NUL,
//! which not every store can keep. All rules are checked in one pass, so that they cost no second
//! parse.
//!
//! Written by hand on `serde`: `serde_json` keeps the last of equal names, and its own depth limit
//! cannot be chosen.
//!
//! JSON that was checked before is written unchanged ([`RawJson`]).

use std::fmt;

use bytes::Bytes;
use serde::{
    Serialize, Serializer,
    de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor},
    ser::{self, SerializeStruct},
};
use serde_json::{Map, Value, map::Entry};

/// Maximum nesting depth of arrays and objects.
pub const MAX_DEPTH: usize = 64;

/// Parses one JSON value.
///
/// # Errors
/// Returns an error if the bytes are not exactly one JSON value in UTF-8 or break a rule of this
/// module. The text names line and column.
pub fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut from = serde_json::Deserializer::from_slice(bytes);
    let value = Strict { left: MAX_DEPTH }.deserialize(&mut from)?;
    from.end()?;
    Ok(value)
}

/// JSON text that was checked before. It becomes a part of other JSON unchanged.
#[derive(Debug)]
pub struct RawJson(pub Bytes);

/// Name of the struct as which `serde_json` receives a `RawValue`. A `RawValue` itself cannot be
/// made of text without checking the text again, which takes long for large results.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = std::str::from_utf8(&self.0).map_err(|cause| {
            ser::Error::custom(format!("text is not JSON after it was checked: {cause}"))
        })?;
        let mut raw = serializer.serialize_struct(RAW_VALUE, 1)?;
        raw.serialize_field(RAW_VALUE, text)?;
        raw.end()
    }
}

#[derive(Clone, Copy)]
struct Strict {
    left: usize,
}

impl Strict {
    fn inside<E: serde::de::Error>(self) -> Result<Self, E> {
        let left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| E::custom(format_args!("nested deeper than {MAX_DEPTH}")))?;
        Ok(Self { left })
    }
}

fn refuse_nul<E: serde::de::Error>(text: &str) -> Result<(), E> {
    if text.as_bytes().contains(&0) {
        Err(E::custom("text contains a NUL character"))
    } else {
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        refuse_nul(value)?;
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut out = Vec::new();
        while let Some(item) = items.next_element_seed(inside)? {
            out.push(item);
        }
        Ok(Value::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut out = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            refuse_nul(&name)?;
            match out.entry(name) {
                Entry::Vacant(member) => {
                    member.insert(members.next_value_seed(inside)?);
                }
                Entry::Occupied(member) => {
                    return Err(A::Error::custom(format_args!(
                        "an object has the member `{}` twice",
                        member.key()
                    )));
                }
            }
        }
        Ok(Value::Object(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_json_reads_as_it_is() {
        for text in [
            r#"{"a":[1,-2,1.5,"x",null,true],"b":{"c":{}}}"#,
            "18446744073709551615",
            "\"\"",
            "[]",
        ] {
            assert_eq!(
                parse(text.as_bytes()).unwrap(),
                serde_json::from_str::<Value>(text).unwrap()
            );
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        parse(nested(MAX_DEPTH).as_bytes()).unwrap();
        assert!(
            parse(nested(MAX_DEPTH + 1).as_bytes())
                .unwrap_err()
                .to_string()
                .contains("deeper than 64")
        );
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    }

    #[test]
    fn duplicate_names_nul_and_trailing_text_are_refused() {
        for (text, word) in [
            (r#"{"a":1,"a":2}"#, "twice"),
            (r#"{"a":{"b":1,"b":1}}"#, "twice"),
            (r#"{"a":"\u0000"}"#, "NUL"),
            (r#"{"\u0000":1}"#, "NUL"),
            ("{} x", "trailing"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        assert!(parse(b"\"\xff\"").is_err());
    }
}
