//! `webhooks.*`: messages to the endpoints of applications.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use app::events::{AccountData, WebhookSettings};

use super::{Config, Sandbox, days, setting::settings};

settings! {
    /// Messages to the endpoints of applications.
    pub struct Webhooks {
        /// Time for which messages are also signed with the secret that a rotation has replaced. Set
        /// it if receivers cannot change their secret at that moment.
        #[setting(unit = "s", range = 0..=604_800, zero = "not at all")]
        pub secret_overlap_s: u64 = 0,
        /// Delays before the second attempt of a delivery and before each further one, in seconds
        /// and separated by commas. Each is lengthened or shortened by up to a fifth. After the last attempt the delivery has
        /// failed. Change them if receivers are down for longer, or give up earlier.
        pub retry_delays_s: String = DEFAULT_RETRY_DELAYS_S.into(),
        /// Timeout of an attempt, from the connection to the end of the response. Raise it for
        /// receivers that work before they respond. After ten failures in a row, an endpoint gets no message for
        /// three times as long.
        #[setting(unit = "s", range = 1..=300)] pub timeout_s: u64 = 10,
        /// Time for which events and their deliveries are kept, and what they may name: connected
        /// accounts, auth configs, trigger instances and keys that were deleted. Change it for the
        /// space on the disk, or for rules on data.
        #[setting(unit = "days", range = 7..=3_650)] pub keep_days: u64 = 30,
    }
}

/// Time for which an endpoint gets no message after ten failures in a row, in timeouts of an attempt.
const ENDPOINT_PAUSE_TIMEOUTS: u32 = 3;
/// Messages that an endpoint gets from a server at a time.
pub const DELIVERIES_PER_ENDPOINT: usize = 16;
/// Delays of Standard Webhooks: ten attempts in 75 hours and 35 minutes.
const DEFAULT_RETRY_DELAYS_S: &str = "5,300,1800,7200,18000,36000,50400,72000,86400";
/// Maximum number of delays.
const MAX_RETRY_DELAYS: usize = 20;
/// Maximum delay, in seconds.
const MAX_RETRY_DELAY_S: f64 = 86_400.0;

impl Sandbox {
    /// Returns the number of deliveries that a server works on at a time.
    pub const fn deliveries(&self) -> usize {
        self.live_part(2)
    }
}

impl Config {
    /// Reads the delays between attempts.
    pub(super) fn retry_delays(&self) -> Result<Vec<Duration>> {
        let texts = self.webhooks.retry_delays_s.split(',');
        let delays = texts
            .filter(|text| !text.trim().is_empty())
            .map(|text| {
                let seconds = text.trim().parse().ok();
                seconds
                    .filter(|seconds| (0.0..=MAX_RETRY_DELAY_S).contains(seconds))
                    .map(Duration::from_secs_f64)
                    .with_context(|| {
                        format!("`webhooks.retry_delays_s`: `{text}` is not a number from 0 to {MAX_RETRY_DELAY_S}")
                    })
            })
            .collect::<Result<Vec<_>>>()?;
        ensure!(
            delays.len() <= MAX_RETRY_DELAYS,
            "`webhooks.retry_delays_s`: at most {MAX_RETRY_DELAYS} delays"
        );
        Ok(delays)
    }

    /// Returns the settings of outgoing webhooks.
    pub fn webhooks(&self, net: net::Client, account_data: AccountData) -> WebhookSettings {
        let settings = &self.webhooks;
        let timeout = Duration::from_secs(settings.timeout_s);
        WebhookSettings {
            net,
            operator_word: self.operator_word.clone(),
            account_data,
            version_header: format!("x-{}-webhook-version", self.operator_word),
            secret_overlap: Duration::from_secs(settings.secret_overlap_s),
            retry_delays: self.retry_delays().unwrap_or_default(),
            timeout,
            concurrency: self.sandbox.deliveries(),
            concurrency_per_endpoint: DELIVERIES_PER_ENDPOINT,
            pause: timeout * ENDPOINT_PAUSE_TIMEOUTS,
            disable_after: self.events.disable_after(),
            max_replayed_events: self.limits.replayed_events(),
            retention: days(settings.keep_days),
        }
    }
}
