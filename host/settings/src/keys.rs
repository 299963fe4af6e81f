//! `keys.*`: API keys.

use super::setting::settings;

settings! {
    /// API keys.
    pub struct Keys {
        /// Project detail, read with the organization key, shows project keys in full, and responses show
        /// the secrets of webhook subscriptions. Set it to false if only their creation may show them.
        pub reveal: bool = true,
    }
}
