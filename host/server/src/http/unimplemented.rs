//! Members that other servers of the API apply and this one does not.

use serde::{Deserialize, Deserializer, de};

/// Member that is refused wherever it is sent, also as null: a caller who sends it relies on a
/// restriction that this server would not keep. Its description has `x-unimplemented: refuse`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unimplemented;

impl<'de> Deserialize<'de> for Unimplemented {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(de::Error::custom(
            "this server does not have it, and ignores no member that restricts: leave it out",
        ))
    }
}
