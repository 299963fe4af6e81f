//! Identifiers of the interface that carry the operator's word, rendered once at start.

/// The identifiers, ready to be used as names of members.
#[derive(Debug)]
pub(crate) struct Words {
    /// The word in lower case.
    pub lower: String,
    /// `is_service_managed`
    pub is_managed: String,
    /// `use_service_managed_auth`
    pub use_managed_auth: String,
    /// `service_managed_auth_schemes`
    pub managed_auth_schemes: String,
    /// `service_managed_auth`
    pub managed_auth: String,
}

impl Words {
    /// Renders them with a word.
    pub(crate) fn new(word: &str) -> Self {
        Self {
            lower: word.to_owned(),
            is_managed: format!("is_{word}_managed"),
            use_managed_auth: format!("use_{word}_managed_auth"),
            managed_auth_schemes: format!("{word}_managed_auth_schemes"),
            managed_auth: format!("{word}_managed_auth"),
        }
    }
}
