//! Members of bodies that clients send and that this server does not have.
//!
//! Problem: a client that sends one expects less access, another destination or a guard, so that a
//! server that ignores it does more than was asked for.
//!
//! Guarantee: a request with a value of such a member is refused. The description marks the member
//! with `x-unimplemented`.

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny},
};

/// End of the sentence that refuses a member or a value.
pub(crate) const UNIMPLEMENTED_REASON: &str =
    "this server does not have it, and does not ignore it: send the request without it";

/// Value of a member that this server does not have. Only null can be read, as an absent value.
#[derive(Debug)]
pub(crate) enum Unimplemented {}

impl<'de> Deserialize<'de> for Unimplemented {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(from)?;
        Err(D::Error::custom(UNIMPLEMENTED_REASON))
    }
}
