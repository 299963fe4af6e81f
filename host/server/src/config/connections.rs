//! `connections.*`: connecting accounts, and refreshing their tokens.

use std::time::Duration;

use app::accounts::Settings as ConnectionSettings;

use super::{Config, setting::settings};

settings! {
    /// Connecting accounts, and refreshing their tokens.
    pub(crate) struct Connections {
        /// Time that an account waits for its user to connect it.
        #[setting(unit = "s", range = 1..=3_600)] pub pending_s: u64 = 600,
        /// Time that a user may take at a provider before the callback is refused.
        #[setting(unit = "s", range = 1..=3_600)] pub away_s: u64 = 3_600,
        /// Time before its expiry at which a token is refreshed, or, if shorter, the last quarter
        /// of its life.
        #[setting(unit = "s", range = 1..=3_600)] pub refresh_margin_s: u64 = 300,
        /// Time that a server has for refreshing a token before another one may try; token
        /// endpoints get 30 s of it.
        #[setting(unit = "s", range = 1..=600)] pub refresh_lease_s: u64 = 90,
        /// Time that a call waits for the refresh of a token, or for the registration of a client.
        #[setting(unit = "s", range = 1..=60)] pub refresh_wait_s: u64 = 20,
        /// Minimum time after its last refresh after which the token of an unused account is
        /// refreshed, so that its refresh token does not expire.
        #[setting(unit = "s", range = 1..=2_592_000)] pub idle_refresh_s: u64 = 86_400,
    }
}

impl Config {
    /// Returns the settings for connecting accounts and refreshing their tokens.
    pub(crate) fn connections(&self, net: net::Client) -> ConnectionSettings {
        let settings = &self.connections;
        ConnectionSettings {
            net,
            pending_ttl: Duration::from_secs(settings.pending_s),
            authorization_ttl: Duration::from_secs(settings.away_s),
            refresh_margin: Duration::from_secs(settings.refresh_margin_s),
            lease_ttl: Duration::from_secs(settings.refresh_lease_s),
            wait_timeout: Duration::from_secs(settings.refresh_wait_s),
            idle_refresh_after: Duration::from_secs(settings.idle_refresh_s),
        }
    }
}
