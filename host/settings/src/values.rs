//! Types of values that settings have.

use serde::{Deserialize, Serialize, Serializer};
use zeroize::Zeroizing;

/// Text shown instead of a secret.
pub(super) const HIDDEN_TEXT: &str = "(hidden)";

/// Returns true if a string contains an address with a user name or a password.
pub(super) fn has_credentials(text: &str) -> bool {
    let authorities = text.split("://").skip(1);
    authorities
        .filter_map(|rest| rest.split(['/', '?', '#']).next())
        .any(|authority| authority.contains('@'))
}

/// A setting whose value is never shown.
#[derive(Clone, Deserialize)]
#[serde(from = "String")]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub(super) fn expose(&self) -> &Zeroizing<String> {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN_TEXT)
    }
}

/// List of texts. In the environment it is one text with commas.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(from = "Listed")]
pub struct List(Vec<String>);

#[derive(Deserialize)]
#[serde(untagged, expecting = "a list of texts, or one text with commas")]
enum Listed {
    Joined(String),
    Parts(Vec<String>),
}

impl From<Listed> for List {
    fn from(listed: Listed) -> Self {
        match listed {
            Listed::Joined(text) => {
                Self(text.split(',').map(|part| part.trim().to_owned()).collect())
            }
            Listed::Parts(parts) => Self(parts),
        }
    }
}

impl std::ops::Deref for List {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.0
    }
}
