//! Events, and how the application of a project receives them.
//!
//! An event is stored in the batch of its cause ([`outbox`]), together with one delivery for each
//! webhook subscription that wants it. A queue makes the deliveries ([`sending`]): at least once, with
//! retries over three days. Streams read events from the store ([`stream`]). Most events come from
//! trigger instances ([`triggers`]). They poll, or receive the webhooks of providers ([`ingress`]) at
//! webhook endpoints ([`endpoints`]).

mod account_expiry;
pub mod delivery;
pub mod endpoints;
pub mod errors;
pub mod event;
pub mod ingress;
mod message;
pub(crate) mod ordering;
pub(crate) mod outbox;
mod retention;
pub mod sending;
mod signing;
pub(crate) mod sink;
pub mod stream;
mod subscription_disabling;
pub mod subscriptions;
mod test_event;
pub mod trigger_log;
pub mod triggers;

use std::{sync::Arc, time::Duration};

use crate::accounts::AccountView;

pub(crate) use self::{
    account_expiry::ExpiryEvents,
    retention::{RETENTION_INTERVAL, erase_old},
};
pub use self::{message::message_id, sink::SINK_SHARES, test_event::send_test_event};

/// Function that writes an account as the API shows it, as JSON.
pub type AccountData = Arc<dyn Fn(AccountView) -> serde_json::Result<Vec<u8>> + Send + Sync>;

/// Settings of events and outgoing webhooks.
#[derive(Clone)]
pub struct WebhookSettings {
    /// Client for requests to endpoints.
    pub net: net::Client,
    /// Word of the operator in the names of events.
    pub operator_word: String,
    /// Function that writes the data of the event of an account's expiry.
    pub account_data: AccountData,
    /// Name of the header with the version of a message.
    pub version_header: String,
    /// Time for which messages also carry the signature of a replaced secret.
    pub secret_overlap: Duration,
    /// Delays before the second attempt of a delivery and before each further one.
    pub retry_delays: Vec<Duration>,
    /// Timeout of an attempt.
    pub timeout: Duration,
    /// Maximum number of deliveries that this server works on at a time.
    pub concurrency: usize,
    /// Maximum number of messages that one endpoint gets from this server at a time.
    pub concurrency_per_endpoint: usize,
    /// Time for which an endpoint that fails repeatedly gets no message.
    pub pause: Duration,
    /// Time after which the subscription of an endpoint that accepts nothing is disabled, or `None`
    /// if it never is.
    pub disable_after: Option<Duration>,
    /// Maximum number of events in the time range of one replay.
    pub max_replayed_events: u64,
    /// Time after which an event and its deliveries are erased.
    pub retention: Duration,
}
