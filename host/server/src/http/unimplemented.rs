//! Members that other servers of the API apply and this one does not.

use serde::{Deserialize, Deserializer, de};
use utoipa::openapi::{
    extensions::Extensions,
    schema::{ObjectBuilder, Schema, SchemaType},
};

/// Extension of a schema that says what happens to the member: `refuse` or `ignore`.
const UNIMPLEMENTED_MARK: &str = "x-unimplemented";

/// Member that is refused wherever it is sent, also as null: a caller who sends it relies on a
/// restriction that this server would not keep. Its schema is [`refused`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unimplemented;

impl<'de> Deserialize<'de> for Unimplemented {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(de::Error::custom(
            "this server does not have it, and ignores no member that restricts: leave it out",
        ))
    }
}

/// Returns the schema of a member that is always refused.
pub(crate) fn refused() -> Schema {
    let mark = Extensions::builder()
        .add(UNIMPLEMENTED_MARK, "refuse")
        .build();
    let object = ObjectBuilder::new()
        .schema_type(SchemaType::AnyValue)
        .extensions(Some(mark));
    object.into()
}
