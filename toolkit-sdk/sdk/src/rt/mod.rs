//! Functions that the code of the macros calls. Toolkits must not use this module: it changes
//! together with the macros.

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use manifest;
use manifest::{SubscriptionAction, SubscriptionCall};

pub use crate::__export_toolkit as export_toolkit;
pub use crate::__plan_place as plan_place;
#[cfg(target_arch = "wasm32")]
pub use crate::host::guest::bindings;
use crate::http::Client;
pub use crate::plan::PlanPlace;
use crate::subscription::{Endpoint, Subscribe};
use crate::{Inbound, Polled, Received, Result, ToolError, mismatch};

mod describe;
#[cfg(target_arch = "wasm32")]
mod export;

pub use describe::{
    Carries, Outcome, client_certificate, config_schema, example, flow, input_schema,
    manifest_json, no_input_schema, oauth1, output_schema, payload_schema, png, sign, subscribing,
    version,
};
#[cfg(target_arch = "wasm32")]
pub use export::manifest_address;
#[cfg(target_arch = "wasm32")]
pub use wit_bindgen::rt as wit_bindgen_rt;

/// Name and version of this crate, as manifests state it.
pub const SDK_VERSION: &str = concat!("toolkit-sdk ", env!("CARGO_PKG_VERSION"));

/// Placeholder for the version until the build stamps one.
pub const UNSTAMPED_VERSION: &str = "19700101_00";

/// Function that runs an imported tool by its name, or returns `None` if no tool has this name.
pub type Imported = fn(&str, &[u8]) -> Option<Result<Vec<u8>>>;

/// A declared toolkit.
pub struct Toolkit {
    pub slug: &'static str,
    pub tools: &'static [Tool],
    pub triggers: &'static [Trigger],
    /// Runs the tools that `toolkit build` adds from the description of an API.
    pub imported: Option<Imported>,
    /// Builds the manifest. A component keeps it apart from this table: the code of a call must not
    /// reach it, so that it can be left out.
    #[cfg(not(target_arch = "wasm32"))]
    pub describe: fn() -> manifest::Manifest,
}

/// Registration that an attribute makes of a function. It is a constant, not a static, so that code
/// that uses one part does not retain the other.
pub struct Registration<E, D> {
    pub entry: E,
    /// Builds the description, given the part of the slug that precedes the suffix.
    pub describe: fn(&str) -> D,
}

pub type ToolRegistration = Registration<Tool, manifest::Tool>;
pub type TriggerRegistration = Registration<Trigger, manifest::Trigger>;

/// A registered tool.
pub struct Tool {
    pub function: &'static str,
    /// Slug without the toolkit's name, for example `LIST_STORIES`.
    pub suffix: &'static str,
    pub run: fn(&[u8]) -> Result<Vec<u8>>,
}

/// A registered trigger.
pub struct Trigger {
    pub function: &'static str,
    pub suffix: &'static str,
    pub source: Source,
    pub subscription: Option<RunSubscription>,
}

/// Function that subscribes at the provider, given the arguments of the call and the suffix.
pub type RunSubscription = fn(&[u8], &'static str) -> Result<Vec<u8>>;

/// Function through which events arrive: a poll or a webhook.
pub enum Source {
    Poll(fn(&[u8], &[u8]) -> Result<RawPolled>),
    Webhook(fn(&[u8], Inbound) -> Result<RawReceived>),
}

/// Result of a poll, as JSON.
pub struct RawPolled {
    pub events: Vec<(String, Vec<u8>)>,
    pub cursor: Vec<u8>,
    pub more: bool,
}

/// Result of a webhook request, as JSON.
pub struct RawReceived {
    pub events: Vec<(String, Vec<u8>)>,
    pub status: u16,
    pub media_type: String,
    pub body: Vec<u8>,
}

/// A type that knows its toolkit. `export_toolkit!` generates one.
pub trait Provide {
    const TOOLKIT: &'static Toolkit;
}

impl Toolkit {
    /// Returns the part of a slug after the toolkit's name, or `None` if the slug belongs to
    /// another toolkit.
    fn suffix<'a>(&self, slug: &'a str) -> Option<&'a str> {
        let (name, rest) = slug.split_at_checked(self.slug.len())?;
        if name.eq_ignore_ascii_case(self.slug) {
            rest.strip_prefix('_')
        } else {
            None
        }
    }
}

/// Runs a tool, or subscribes for a trigger.
pub fn execute(toolkit: &Toolkit, slug: &str, arguments: Vec<u8>) -> Result<Vec<u8>> {
    let tool = toolkit
        .suffix(slug)
        .and_then(|suffix| toolkit.tools.iter().find(|tool| tool.suffix == suffix));
    if let Some(tool) = tool {
        return (tool.run)(&arguments);
    }
    let trigger = find(toolkit, slug).ok();
    if let Some((trigger, run)) = trigger.and_then(|trigger| Some((trigger, trigger.subscription?)))
    {
        return run(&arguments, trigger.suffix);
    }
    let imported = toolkit.imported.and_then(|run| run(slug, &arguments));
    imported.unwrap_or_else(|| {
        Err(ToolError::not_found(format!(
            "this toolkit has no tool `{slug}`"
        )))
    })
}

/// Polls for new events.
pub fn poll_trigger(
    toolkit: &Toolkit,
    slug: &str,
    config: &[u8],
    cursor: &[u8],
) -> Result<RawPolled> {
    match find(toolkit, slug)?.source {
        Source::Poll(poll) => poll(config, cursor),
        Source::Webhook(_) => Err(ToolError::invalid_input(format!(
            "the trigger `{slug}` receives webhooks and cannot be polled"
        ))),
    }
}

/// Handles a webhook request.
pub fn receive_trigger(
    toolkit: &Toolkit,
    slug: &str,
    config: &[u8],
    request: Inbound,
) -> Result<RawReceived> {
    match find(toolkit, slug)?.source {
        Source::Webhook(receive) => receive(config, request),
        Source::Poll(_) => Err(ToolError::invalid_input(format!(
            "the trigger `{slug}` is polled and receives no webhooks"
        ))),
    }
}

fn find<'a>(toolkit: &'a Toolkit, slug: &str) -> Result<&'a Trigger> {
    let suffix = toolkit.suffix(slug);
    suffix
        .and_then(|suffix| {
            toolkit
                .triggers
                .iter()
                .find(|trigger| trigger.suffix == suffix)
        })
        .ok_or_else(|| ToolError::not_found(format!("this toolkit has no trigger `{slug}`")))
}

/// Parses the arguments of a tool.
pub fn arguments<T: DeserializeOwned>(json: &[u8]) -> Result<T> {
    serde_json::from_slice(json).map_err(|error| {
        let reason = mismatch::reason_with_path(json, &error);
        ToolError::invalid_input(format!(
            "the arguments do not match the input type: {reason}"
        ))
    })
}

/// Serializes the output of a tool.
pub fn answer<R: Outcome>(outcome: R) -> Result<Vec<u8>>
where
    R::Data: Serialize,
{
    let data = outcome.outcome()?;
    serde_json::to_vec(&data)
        .map_err(|error| ToolError::internal(format!("the result cannot be serialized: {error}")))
}

/// Runs a poll function.
pub fn poll<C, K, T>(
    run: fn(C, Option<K>) -> Result<Polled<T, K>>,
    config: &[u8],
    cursor: &[u8],
) -> Result<RawPolled>
where
    C: DeserializeOwned,
    K: DeserializeOwned + Serialize,
    T: Serialize,
{
    let cursor = match cursor {
        b"" => None,
        json => Some(serde_json::from_slice(json).map_err(|error| {
            let reason = mismatch::reason_with_path(json, &error);
            ToolError::internal(format!("the stored cursor cannot be read: {reason}"))
        })?),
    };
    let polled = run(arguments(config)?, cursor)?;
    Ok(RawPolled {
        events: events(polled.events)?,
        cursor: serde_json::to_vec(&polled.cursor)?,
        more: polled.more,
    })
}

/// Runs a receive function.
pub fn receive<C, T>(
    run: fn(C, Inbound) -> Result<Received<T>>,
    config: &[u8],
    request: Inbound,
) -> Result<RawReceived>
where
    C: DeserializeOwned,
    T: Serialize,
{
    let received = run(arguments(config)?, request)?;
    Ok(RawReceived {
        events: events(received.events)?,
        status: received.status,
        media_type: received.media_type,
        body: received.body,
    })
}

/// Runs one function of a subscription.
pub fn subscription<S: Subscribe>(call: &[u8], trigger: &'static str) -> Result<Vec<u8>> {
    let SubscriptionCall {
        action,
        config,
        url,
        secret,
        previous,
    } = arguments(call)?;
    let endpoint = Endpoint {
        url,
        secret,
        trigger,
    };
    Ok(match action {
        SubscriptionAction::Subscribe => {
            serde_json::to_vec(&S::subscribe(config, &endpoint, previous.as_ref())?)?
        }
        SubscriptionAction::Unsubscribe => {
            S::unsubscribe(config, &endpoint, previous.as_ref())?;
            b"{}".to_vec()
        }
    })
}

fn events<T: Serialize>(events: Vec<(String, T)>) -> Result<Vec<(String, Vec<u8>)>> {
    events
        .into_iter()
        .map(|(id, item)| Ok((id, serde_json::to_vec(&item)?)))
        .collect()
}

/// Runs a tool of the plan at this location. Its requests share the settings of the client.
pub fn imported(
    place: &PlanPlace,
    client: Option<Client>,
    tool: &str,
    arguments: &[u8],
) -> Option<Result<Vec<u8>>> {
    crate::plan::execute(place, client, tool, arguments)
}

/// Declares the location of the plan. `toolkit build` finds it by its name, which the module
/// exports as a global.
#[doc(hidden)]
#[macro_export]
macro_rules! __plan_place {
    ($name:ident) => {
        #[cfg_attr(target_arch = "wasm32", unsafe(export_name = "toolkit_plan"))]
        static $name: $crate::rt::PlanPlace = $crate::rt::PlanPlace::empty();
    };
}

/// Expands to nothing: only a component exports the toolkit.
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __export_toolkit {
    ($toolkit:path, $manifest:expr) => {};
}

/// Exports the toolkit from a component.
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
#[macro_export]
macro_rules! __export_toolkit {
    ($toolkit:path, $manifest:expr) => {
        const _: () = {
            struct Component;

            impl $crate::rt::Provide for Component {
                const TOOLKIT: &'static $crate::rt::Toolkit = &$toolkit;
            }

    $crate::rt::bindings::export!(Component with_types_in $crate::rt::bindings);

            #[unsafe(no_mangle)]
            extern "C" fn toolkit_manifest() -> u64 {
                $crate::rt::manifest_address(&$manifest)
            }
        };
    };
}
