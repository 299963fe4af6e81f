//! Bytes as readable, lossless JSON.

use std::fmt;

use bytes::Bytes;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::value::RawValue;

use crate::redact::Redactor;

/// Byte content. It is serialized as `{"json": …}` if it is a JSON object or list, as a string if
/// it is other text, and as `{"base64": "…"}` otherwise.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Content(Bytes);

impl Content {
    /// Copies the bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.0.clone()
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn redact(&mut self, redactor: &Redactor) {
        if let std::borrow::Cow::Owned(clean) = redactor.redact_bytes(&self.0) {
            self.0 = clean.into();
        }
    }

    /// Returns the bytes as JSON if they can be written unchanged.
    fn json(&self) -> Option<&RawValue> {
        // Surrounding whitespace would be lost, and a value other than an object or a list is more
        // readable as text.
        let whole = matches!(*self.0, [b'{', .., b'}'] | [b'[', .., b']']);
        if whole {
            serde_json::from_slice(&self.0).ok()
        } else {
            None
        }
    }
}

impl From<Bytes> for Content {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        if let Some(json) = self.json() {
            let mut map = serializer.serialize_map(Some(1))?;
            map.serialize_entry("json", json)?;
            return map.end();
        }
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("base64", &STANDARD.encode(&self.0))?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, {\"json\": …} or {\"base64\": \"…\"}")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Content, E> {
        Ok(Content::from_bytes(text.as_bytes()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Content, A::Error> {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        let content = match map.next_key::<String>()?.as_deref() {
            Some("json") => {
                Content::from_bytes(map.next_value::<Box<RawValue>>()?.get().as_bytes())
            }
            Some("base64") => {
                let decoded = STANDARD.decode(map.next_value::<String>()?);
                Content(
                    decoded
                        .map_err(|cause| A::Error::custom(format!("not base64: {cause}")))?
                        .into(),
                )
            }
            _ => return Err(A::Error::custom("expected `json` or `base64`")),
        };
        match map.next_key::<String>()? {
            None => Ok(content),
            Some(other) => Err(A::Error::custom(format!("`{other}` does not belong here"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn there_and_back(bytes: &[u8]) -> (String, Content) {
        let written = serde_json::to_string_pretty(&Content::from_bytes(bytes)).unwrap();
        let read = serde_json::from_str(&written).unwrap();
        (written, read)
    }

    #[test]
    fn json_is_written_unchanged() {
        for (bytes, start) in [
            (
                r#"{"a" :1.0e2,"a":"é\u00e9"}"#,
                "{\n  \"json\": {\"a\" :1.0e2,",
            ),
            (" {}", "\" {}\""),
            ("7", "\"7\""),
            ("{not json}", "\"{not json}\""),
            ("", "\"\""),
        ] {
            let (written, read) = there_and_back(bytes.as_bytes());
            assert!(written.starts_with(start), "{written}");
            assert_eq!(read, Content::from_bytes(bytes.as_bytes()));
        }
        assert!(
            there_and_back(&[0xff, 0])
                .0
                .contains("\"base64\": \"/wA=\"")
        );
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes: Vec<u8>) {
            prop_assert_eq!(there_and_back(&bytes).1, Content::from_bytes(&bytes));
        }

        #[test]
        fn anything_like_json_comes_back(text in r#"[\[\]{}",:a0 .\n\\]{0,24}"#) {
            prop_assert_eq!(there_and_back(text.as_bytes()).1, Content::from_bytes(text.as_bytes()));
        }
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in [
            "7",
            "{}",
            r#"{"json":1,"base64":""}"#,
            r#"{"base64":"*"}"#,
            r#"{"text":"x"}"#,
        ] {
            assert!(serde_json::from_str::<Content>(text).is_err(), "{text}");
        }
    }
}
