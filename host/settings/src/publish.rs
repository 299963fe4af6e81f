//! `publish.*`: publishing toolkits.

use anyhow::Result;
use app::catalog::TrustedKeys;

use super::{Config, setting::settings, values::List};

settings! {
    /// Publishing toolkits.
    pub struct Publish {
        /// Public minisign keys. If there are any, only components signed with one of them can be
        /// published. Set them if only builds that you have checked may run.
        #[setting(example = ["RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"])]
        pub trusted_keys: List,
    }
}

impl Config {
    /// Returns the public keys that may sign publications.
    ///
    /// # Errors
    /// If one is not a minisign public key; the message contains it.
    pub fn trusted_keys(&self) -> Result<TrustedKeys> {
        TrustedKeys::read(&self.publish.trusted_keys).map_err(|text| {
            anyhow::anyhow!("`publish.trusted_keys`: `{text}` is not a minisign public key")
        })
    }
}
