//! Secret values, and the bounds on those of one call.

use std::fmt;

use zeroize::Zeroizing;

/// Maximum number of secrets of one call.
pub const MAX_SECRETS: usize = 64;
/// Maximum total size of the secrets of one call, in bytes.
pub const MAX_SECRET_BYTES: usize = 16 << 10;

/// Secret value. It is erased from memory when dropped and is hidden in `Debug` output.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Returns the value, for code that puts it into a request.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(Zeroizing::new(value))
    }
}

impl From<&str> for Secret {
    fn from(value: &str) -> Self {
        value.to_owned().into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}
