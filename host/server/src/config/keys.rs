//! `keys.*`: API keys.

use super::setting::settings;

settings! {
    /// API keys.
    pub(crate) struct Keys {
        /// Project detail, read with the organization key, shows project keys in full, and responses show
        /// the secrets of webhook subscriptions.
        pub reveal: bool = true,
    }
}
