//! Properties of bodies that clients send and that this server does not have.
//!
//! Problem: a client that sends one expects less access, another destination or a guard, so that a
//! server that ignores it does more than was asked for.
//!
//! Guarantee: a request with such a property is refused. The description marks the property with
//! `x-unimplemented`.

use serde::{Deserialize, Deserializer, de};
use utoipa::openapi::{
    extensions::Extensions,
    schema::{ObjectBuilder, Schema, SchemaType},
};

/// Extension of a schema that says what happens to the property: `refuse` or `ignore`.
const UNIMPLEMENTED_MARK: &str = "x-unimplemented";

/// Reason why a property is refused.
const UNIMPLEMENTED_REASON: &str =
    "this server does not have it, and does not ignore it: send the request without it";

/// Value of a property that this server does not have. It cannot be read, not even from null. A
/// property for which null means absent has the type `Option<Unimplemented>`. Its schema is
/// [`refused`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Unimplemented;

impl<'de> Deserialize<'de> for Unimplemented {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(de::Error::custom(UNIMPLEMENTED_REASON))
    }
}

/// Returns the schema of an always refused property.
pub fn refused() -> Schema {
    marked("refuse")
}

/// Returns the schema of a property that is accepted without effect.
pub fn ignored() -> Schema {
    marked("ignore")
}

fn marked(outcome: &str) -> Schema {
    let mark = Extensions::builder()
        .add(UNIMPLEMENTED_MARK, outcome)
        .build();
    let object = ObjectBuilder::new()
        .schema_type(SchemaType::AnyValue)
        .extensions(Some(mark));
    object.into()
}
