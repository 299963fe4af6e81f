//! Errors of events, trigger instances, webhook subscriptions and deliveries.

use std::fmt::Display;

use crate::core::error::{Problems, SHORT_WAIT};
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
    /// The delivery has not ended, and another URL would end its attempts at the endpoint.
    DELIVERY_PENDING = delivery_pending(id: impl Display): Conflict, 2807, "Webhook_DeliveryPending",
        "delivery {id} has not ended: a replay to another URL would end its attempts at the endpoint",
        "wait until the delivery has ended, or replay it without `webhook_url`";
    /// The event does not exist in the project, or was erased.
    EVENT_NOT_FOUND = event_not_found(id: impl Display): NotFound, 2804, "Event_NotFound",
        "event {id} not found",
        "open the stream without `Last-Event-ID`, and replay what was missed to a webhook subscription";
    /// The project has stored as many bytes of events as it may in a day. Nothing was stored.
    EVENTS_FULL = events_full(): StorageFull, 2806, "Event_QuotaExceeded",
        "the event would exceed the quota for all events of the project in a day",
        "retry after some hours, or ask the operator to raise `limits.records_mib`";

    /// The webhook endpoint does not exist in the project.
    ENDPOINT_NOT_FOUND = endpoint_not_found(id: impl Display): NotFound, 2821, "Webhook_EndpointNotFound",
        "webhook endpoint {id} not found",
        "list the webhook endpoints of the project";
    /// The project has as many webhook endpoints as it may have.
    TOO_MANY_ENDPOINTS = too_many_endpoints(most: u64): Unprocessable, 2822, "Webhook_TooManyEndpoints",
        "the project has {most} webhook endpoints, which is the most",
        "delete webhook endpoints, or use one for several trigger instances of a toolkit";
    /// No trigger of the toolkit receives webhooks.
    NO_WEBHOOK_TRIGGER = no_webhook_trigger(toolkit: impl Display): Invalid, 2823, "Webhook_NoTrigger",
        "toolkit {toolkit} has no trigger that receives webhooks",
        "choose a toolkit with a trigger type whose `type` is `webhook`";
    /// No trigger instance accepts the signature of the webhook.
    WEBHOOK_NOT_SIGNED = webhook_not_signed(reason: impl Display): Unauthenticated, 2824, "Webhook_NotSigned",
        "the toolkit refuses the signature of the webhook: {reason}",
        "enter the same secret at the provider and in the webhook endpoint";
    /// The toolkit refuses the webhook.
    WEBHOOK_INVALID = webhook_invalid(reason: impl Display): Invalid, 2825, "Webhook_Invalid",
        "the toolkit refuses the webhook: {reason}",
        "correct the settings of the webhook at the provider";
    /// The toolkit failed to process the webhook.
    WEBHOOK_NOT_PROCESSED = webhook_not_processed(reason: impl Display): Unavailable, 2828, "Webhook_NotProcessed",
        "the toolkit could not process the webhook: {reason}",
        "report the error to the author of the toolkit";
    /// The webhook could not be received now.
    WEBHOOK_FAILED = webhook_failed(): Unavailable, 2826, "Webhook_Failed",
        "the webhook could not be received, and at least one of its events is not stored",
        "send it again; an event that was stored is not stored twice", with_retry_after(SHORT_WAIT);

    /// The log entry does not exist.
    EVENT_LOG_NOT_FOUND = event_log_not_found(id: impl Display): NotFound, 2805, "Event_LogNotFound",
        "trigger log {id} not found",
        "list the trigger logs of the project; they are erased after `webhooks.keep_days`";
    /// The trigger instance does not exist in the project.
    INSTANCE_NOT_FOUND = instance_not_found(id: impl Display): NotFound, 2911, "TriggerInstance_NotFound",
        "trigger instance {id} not found",
        "list the trigger instances of the project";
    /// The trigger instance is deleted.
    INSTANCE_DELETED = instance_deleted(id: impl Display): Gone, 2912, "TriggerInstance_Deleted",
        "trigger instance {id} is deleted",
        "create a new instance; a deleted one cannot be restored";
    /// The trigger instance is in the requested state.
    INSTANCE_UNCHANGED = instance_unchanged(id: impl Display, state: &str): Conflict, 2913, "TriggerInstance_Unchanged",
        "trigger instance {id} is {state} already",
        "nothing is to be done";
    /// The configuration does not match the schema of the trigger type.
    CONFIG_INVALID = config_invalid(trigger: impl Display, problems: impl Into<Problems>): Invalid, 2914, "TriggerInstance_ConfigInvalid",
        "the configuration does not match the schema of {trigger}",
        "correct the problems that the error lists; `config` of the trigger type is the schema", with_problems(problems);
    /// The project has as many trigger instances as it may have.
    TOO_MANY_INSTANCES = too_many_instances(most: u64): Unprocessable, 2915, "TriggerInstance_TooMany",
        "the project has {most} trigger instances, which is the most",
        "delete instances, or ask the operator to raise `limits.accounts_per_project`";
    /// The trigger instance is disabled.
    INSTANCE_DISABLED = instance_disabled(id: impl Display): Conflict, 2916, "TriggerInstance_Disabled",
        "trigger instance {id} is disabled",
        "enable it first";
    /// The trigger instance is being polled.
    INSTANCE_BUSY = instance_busy(id: impl Display): Conflict, 2917, "TriggerInstance_Busy",
        "trigger instance {id} is being polled",
        "retry after a moment";
    /// The trigger instance was changed while it was polled. The poll had no effect.
    INSTANCE_CHANGED = instance_changed(id: impl Display): Conflict, 2918, "TriggerInstance_Changed",
        "trigger instance {id} was changed while it was polled, and the poll had no effect",
        "retry after a moment";
    /// The trigger instance lacks an action.
    INSTANCE_WITHOUT_ACTION = instance_without_action(id: impl Display): Conflict, 2923, "TriggerInstance_NoAction",
        "trigger instance {id} has no action",
        "set `action` with an upsert of the instance";
    /// Events of the trigger instance arrive by webhook.
    INSTANCE_NOT_POLLED = instance_not_polled(id: impl Display, trigger: impl Display): Invalid, 2919, "TriggerInstance_NotPolled",
        "trigger instance {id} is not polled: events of {trigger} arrive by webhook",
        "poll an instance of a trigger type whose `type` is `poll`";
}
