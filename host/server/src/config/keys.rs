//! `keys.*`: API keys.

use super::setting::settings;

settings! {
    /// API keys.
    pub(crate) struct Keys {
        /// Project detail, read with the organization key, shows project keys in full.
        pub reveal: bool = true,
    }
}
