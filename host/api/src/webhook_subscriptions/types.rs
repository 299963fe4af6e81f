//! Requests and views of webhook subscriptions.

use app::{
    core::clock::iso,
    events::{
        event::{EventKind, MessageVersion},
        subscriptions::{Changes, Endpoint, NewSubscription, Opened},
    },
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[schema(as = CreateWebhookSubscription)]
pub(crate) struct Create {
    /// https URL that messages are sent to, at most 2048 characters.
    webhook_url: String,
    /// Events that are sent, at least one.
    enabled_events: Vec<String>,
    /// Version of the messages; V3 without it.
    version: Option<Version>,
    /// True to send the messages of one trigger instance or connected account in the order of its
    /// events: each waits until the one before was acknowledged or has failed.
    #[serde(default)]
    ordered: bool,
    /// True to add an Ed25519 signature to each message, which receivers verify with `public_key`.
    #[serde(default)]
    asymmetric_signatures: bool,
}

impl From<Create> for NewSubscription {
    fn from(body: Create) -> Self {
        Self {
            url: body.webhook_url,
            events: body.enabled_events,
            version: body.version.map_or(MessageVersion::V3, Into::into),
            ordered: body.ordered,
            asymmetric: body.asymmetric_signatures,
        }
    }
}

/// Changes of a webhook subscription, at least one.
#[derive(Deserialize, ToSchema)]
#[schema(as = UpdateWebhookSubscription)]
pub(crate) struct Update {
    webhook_url: Option<String>,
    enabled_events: Option<Vec<String>>,
    version: Option<Version>,
    /// Applies to later events.
    ordered: Option<bool>,
    asymmetric_signatures: Option<bool>,
}

impl From<Update> for Changes {
    fn from(body: Update) -> Self {
        Self {
            url: body.webhook_url,
            events: body.enabled_events,
            version: body.version.map(Into::into),
            ordered: body.ordered,
            asymmetric: body.asymmetric_signatures,
        }
    }
}

mirror! {
    /// Version of the messages of webhooks.
    #[schema(as = WebhookVersion)]
    pub(crate) enum Version of MessageVersion {
        V1,
        V2,
        V3,
    }
}

view! {
    /// A webhook subscription of a project.
    #[schema(as = WebhookSubscription)]
    pub(crate) struct View from (subscription: Opened, operator_word: &str, in_full: bool) where {
        let Opened { record, endpoint } = subscription;
        let disabled = record.body.disabled;
        let public_key = public_key(&endpoint);
    } {
        id: String = record.id,
        webhook_url: String = endpoint.url,
        version: Version = record.body.version.into(),
        enabled_events: Vec<String> = {
            let events = record.body.events.iter();
            events.map(|kind| kind.name(operator_word)).collect()
        },
        /// True if the messages of one trigger instance or connected account are sent in order.
        ordered: bool = record.body.ordered,
        /// Secret that signs messages. In full if the operator has not unset `keys.reveal`; otherwise
        /// only in the response that created it.
        secret: String = if in_full { endpoint.secret } else { "REDACTED".to_owned() },
        /// Key with which receivers verify asymmetric signatures, present if messages have them.
        public_key?: Option<String> = public_key,
        /// Present if the server sends nothing any more. A change of the subscription enables it.
        #[schema(format = DateTime)]
        disabled_at?: Option<String> = disabled.map(|disabled| iso(disabled.at)),
        /// `gone` if the endpoint answered 410, `failing` if it accepted nothing for days.
        disabled_reason?: Option<&'static str> = disabled.map(|disabled| disabled.reason.into_str()),
        #[schema(format = DateTime)] created_at: String = iso(record.created_at),
        #[schema(format = DateTime)] updated_at: String = iso(record.updated_at),
    }
}

view! {
    /// A new secret.
    #[schema(as = WebhookSecret)]
    pub(crate) struct SecretView from subscription: Opened where {
        let public_key = public_key(&subscription.endpoint);
    } {
        id: String = subscription.record.id,
        secret: String = subscription.endpoint.secret,
        /// New key of asymmetric signatures, present if messages have them.
        public_key?: Option<String> = public_key,
    }
}

fn public_key(endpoint: &Endpoint) -> Option<String> {
    let key = endpoint.signing_key.as_ref()?;
    key.public_key().ok()
}

/// The kinds of events.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookEventTypes)]
pub(crate) struct EventTypes {
    pub items: Vec<EventTypeView>,
}

view! {
    #[schema(as = WebhookEventType)]
    pub(crate) struct EventTypeView from (kind: EventKind, operator_word: &str) {
        event_type: String = kind.name(operator_word),
        description: &'static str = kind.description(),
        supported_versions: Vec<Version> =
            kind.versions().iter().copied().map(Into::into).collect(),
    }
}
