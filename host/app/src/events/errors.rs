//! Errors of events, webhook subscriptions and deliveries.

use std::fmt::Display;

pub use crate::runs::errors::*;

crate::error_table! { pub table:
    /// The webhook subscription does not exist in the project.
    SUBSCRIPTION_NOT_FOUND = subscription_not_found(id: impl Display): NotFound, 2801, "Webhook_SubscriptionNotFound",
        "webhook subscription {id} not found",
        "list the webhook subscriptions of the project";
    /// The project has a webhook subscription already.
    SUBSCRIPTION_EXISTS = subscription_exists(): Conflict, 2802, "Webhook_SubscriptionExists",
        "the project has a webhook subscription already",
        "change the subscription with PATCH, or delete it first";
    /// The delivery does not exist in the subscription, or its event was erased.
    DELIVERY_NOT_FOUND = delivery_not_found(id: impl Display): NotFound, 2803, "Webhook_DeliveryNotFound",
        "delivery {id} not found",
        "list the deliveries of the subscription; they are erased after `webhooks.keep_days`";
    /// The event does not exist in the project, or was erased.
    EVENT_NOT_FOUND = event_not_found(id: impl Display): NotFound, 2804, "Event_NotFound",
        "event {id} not found",
        "open the stream without `Last-Event-ID`, and replay what was missed to a webhook subscription";
}
