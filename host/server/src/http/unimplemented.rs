//! Members of bodies that clients send and that this server does not have.
//!
//! Problem: a client that sends one expects less access, another destination or a guard, so that a
//! server that ignores it does more than was asked for.
//!
//! Guarantee: a request with such a member is refused. The description marks the member with
//! `x-unimplemented`.

use serde::{Deserialize, Deserializer, de};
use utoipa::openapi::{
    extensions::Extensions,
    schema::{ObjectBuilder, Schema, SchemaType},
};

/// Extension of a schema that says what happens to the member: `refuse` or `ignore`.
const UNIMPLEMENTED_MARK: &str = "x-unimplemented";

/// Reason why a member is refused.
const UNIMPLEMENTED_REASON: &str =
    "this server does not have it, and does not ignore it: send the request without it";

/// Value of a member that this server does not have. It cannot be read, not even from null. A member
/// for which null means that it is absent has the type `Option<Unimplemented>`. Its schema is
/// [`refused`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unimplemented;

impl<'de> Deserialize<'de> for Unimplemented {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(de::Error::custom(UNIMPLEMENTED_REASON))
    }
}

/// Returns the schema of a member that is always refused.
pub(crate) fn refused() -> Schema {
    marked("refuse")
}

/// Returns the schema of a member that is accepted and has no effect.
pub(crate) fn ignored() -> Schema {
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
