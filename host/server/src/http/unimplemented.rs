//! Members of bodies that clients send and that this server does not have.
//!
//! Problem: a client that sends one expects less access, another destination or a guard, so that a
//! server that ignores it does more than was asked for.
//!
//! Guarantee: a request with such a member is refused. The description marks the member with
//! `x-unimplemented`.

use serde::{Deserialize, Deserializer, de};

/// End of the sentence that refuses a member or a value.
pub(crate) const UNIMPLEMENTED_REASON: &str =
    "this server does not have it, and does not ignore it: send the request without it";

/// Value of a member that this server does not have. It cannot be read, not even from null. A member
/// for which null means that it is absent has the type `Option<Unimplemented>`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unimplemented;

impl<'de> Deserialize<'de> for Unimplemented {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(de::Error::custom(UNIMPLEMENTED_REASON))
    }
}
