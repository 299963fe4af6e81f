//! JSON from outside: strict parsing, values that borrow from their text ([`Tree`]), and reading of
//! values as types with errors that name paths ([`Reader`]).
//!
//! JSON that was checked before is written unchanged ([`RawJson`]).

mod numbers;
mod problem;
mod problem_search;
mod reader;
mod syntax;
mod tree;

use bumpalo::Bump;
use bytes::Bytes;
use serde::{
    Serialize, Serializer,
    de::DeserializeOwned,
    ser::{self, SerializeStruct},
};
use serde_json::Value;

pub use numbers::without_large_numbers;
pub use problem::Problem;
pub use problem_search::all_problems;
use reader::RAW_VALUE;
pub use reader::Reader;
pub use tree::MAX_DEPTH;
pub(crate) use tree::{Members, Rules, Tree};

/// Parses one JSON value strictly. Fails with the problem if the bytes are not exactly one JSON
/// value in UTF-8 or break a rule of [`Rules::Strict`]. Its path leads to the value that breaks a
/// rule.
pub fn parse(bytes: &[u8]) -> Result<Value, Problem> {
    Tree::parse(bytes, &Bump::new(), Rules::Strict).map(|tree| tree.to_value())
}

/// Parses one JSON value without the strict rules. Fails as [`parse`] does, under
/// [`Rules::Lenient`].
pub(crate) fn parse_leniently(bytes: &[u8]) -> Result<Value, Problem> {
    Tree::parse(bytes, &Bump::new(), Rules::Lenient).map(|tree| tree.to_value())
}

/// Reads a value as a type. Fails with the first problem if the value does not fit the type.
pub(crate) fn read<T: DeserializeOwned>(value: Value) -> Result<T, Problem> {
    T::deserialize(Reader::new(value))
}

/// JSON text that was checked before. It becomes a part of other JSON unchanged.
#[derive(Debug)]
pub struct RawJson(pub Bytes);

impl RawJson {
    /// The value null.
    pub const NULL_VALUE: Self = Self(Bytes::from_static(b"null"));
    /// An object without members.
    pub const EMPTY_OBJECT: Self = Self(Bytes::from_static(b"{}"));

    /// Returns a string as JSON.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self(Value::from(text).to_string().into())
    }
}

// A `RawValue` cannot be made of text without checking the text again, which takes long for large
// results.
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
