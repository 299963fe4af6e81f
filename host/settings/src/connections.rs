//! `connections.*`: connecting accounts, and refreshing their tokens.

use std::time::Duration;

use app::accounts::Settings as ConnectionSettings;

use super::{Config, setting::settings};

settings! {
    /// Connecting accounts, and refreshing their tokens.
    pub struct Connections {
        /// Time that an account waits for its user to connect it. At the provider the user may take six
        /// times as long, but at most an hour. Raise it if users need more time to find their
        /// credentials.
        #[setting(unit = "s", range = 1..=3_600)] pub pending_s: u64 = 600,
        /// Minimum time after its last refresh after which the token of an unused account is
        /// refreshed, so that its refresh token does not expire. Lower it if a provider's refresh
        /// tokens expire sooner without use.
        #[setting(unit = "s", range = 1..=2_592_000)] pub idle_refresh_s: u64 = 86_400,
    }
}

/// Time before its expiry at which a token is refreshed.
const REFRESH_MARGIN: Duration = Duration::from_secs(300);
/// Maximum time that a user may take at a provider.
const MAX_AUTHORIZATION_TTL: Duration = Duration::from_secs(3_600);

impl Connections {
    /// Returns the time that an account waits for its user.
    fn pending(&self) -> Duration {
        Duration::from_secs(self.pending_s)
    }

    /// Returns the time that a user may take at a provider before the callback is refused.
    pub fn authorization_ttl(&self) -> Duration {
        MAX_AUTHORIZATION_TTL.min(self.pending() * 6)
    }
}

impl Config {
    /// Returns the settings for connecting accounts and refreshing their tokens.
    pub fn connections(&self, net: net::Client) -> ConnectionSettings {
        let settings = &self.connections;
        ConnectionSettings {
            net,
            pending_ttl: settings.pending(),
            authorization_ttl: settings.authorization_ttl(),
            refresh_margin: REFRESH_MARGIN,
            lease_ttl: self.limits.refresh_lease(),
            wait_timeout: self.limits.wait(),
            idle_refresh_after: Duration::from_secs(settings.idle_refresh_s),
        }
    }
}
