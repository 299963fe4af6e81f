//! Subscribing at a provider: the trigger itself asks the provider to send events, so that users do
//! not have to enter an address there.
//!
//! ```
//! use toolkit_sdk::prelude::*;
//! use toolkit_sdk::subscription::{Endpoint, Subscribe, Subscription};
//! use toolkit_sdk::webhook::Secret;
//!
//! const API: Client = Client::new("https://api.example.com");
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Config {
//!     /// Signing secret of the webhook.
//!     secret: Secret,
//! }
//!
//! #[derive(Deserialize)]
//! struct Hook {
//!     id: u64,
//!     url: String,
//! }
//!
//! struct Hooks;
//!
//! impl Subscribe for Hooks {
//!     type Config = Config;
//!     const SECRET: &'static str = "secret";
//!     const SECRET_POINTER: &'static str = "/secret";
//!
//!     fn subscribe(_: Config, endpoint: &Endpoint, _: Option<&Subscription>) -> Result<Subscription> {
//!         let hooks: Vec<Hook> = API.get("/hooks").send()?.json()?;
//!         let existing = hooks.into_iter().find(|hook| hook.url == endpoint.url);
//!         let hook = match existing {
//!             Some(hook) => hook,
//!             None => {
//!                 let hook = json!({ "url": endpoint.url, "secret": endpoint.secret });
//!                 API.post("/hooks").json(&hook).send()?.json()?
//!             }
//!         };
//!         Ok(Subscription::new(hook.id))
//!     }
//!
//!     fn unsubscribe(_: Config, _: &Endpoint, previous: Option<&Subscription>) -> Result<()> {
//!         if let Some(previous) = previous {
//!             API.delete("/hooks/{id}").path("id", &previous.id).send()?;
//!         }
//!         Ok(())
//!     }
//! }
//!
//! /// Fires when something happens.
//! #[trigger(webhook, subscription = "Hooks")]
//! fn something_happened(_: Config, request: Inbound) -> Result<Received<Value>> {
//!     Ok(Received::event(request.header("x-delivery").unwrap_or_default(), request.json()?))
//! }
//! # fn main() {}
//! ```

pub use manifest::Subscription;
use serde::de::DeserializeOwned;

use crate::Result;

/// Address to which a provider sends the events of one trigger instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The address. No other instance has it.
    pub url: String,
    /// Placeholder of the signing secret. The platform creates the secret and replaces the
    /// placeholder with it, at [`Subscribe::SECRET_POINTER`] of the body of a JSON request.
    pub secret: String,
    /// Slug of the trigger without the toolkit's name, for example `ISSUE_CHANGED`.
    pub trigger: &'static str,
}

/// Subscribing at a provider.
///
/// The platform may not have stored the result of a call, for example if a server died. Both
/// functions therefore start with the existing subscriptions, if the provider lists them.
pub trait Subscribe {
    /// Configuration of the trigger.
    type Config: DeserializeOwned;
    /// Property of the configuration that contains the signing secret.
    const SECRET: &'static str;
    /// JSON pointer to the secret in the body of a request.
    const SECRET_POINTER: &'static str;
    /// Properties of the configuration without which it cannot subscribe. Users of instances without
    /// them enter the address at the provider.
    const REQUIRES: &'static [&'static str] = &[];

    /// Makes sure that the provider sends events to the address. The platform calls it again, with
    /// the previous subscription, before that expires.
    ///
    /// # Errors
    /// Any error. After `unauthorized` and `forbidden` (statuses 401, 402 and 403 of the provider),
    /// `invalid_input`, `not_found` and `denied`, the platform disables the instance. After other
    /// errors it retries.
    fn subscribe(
        config: Self::Config,
        endpoint: &Endpoint,
        previous: Option<&Subscription>,
    ) -> Result<Subscription>;

    /// Makes sure that the provider sends no events to the address.
    ///
    /// # Errors
    /// Any error. `not_found` counts as success.
    fn unsubscribe(
        config: Self::Config,
        endpoint: &Endpoint,
        previous: Option<&Subscription>,
    ) -> Result<()>;
}
