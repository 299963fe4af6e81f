//! Requests and views of trigger types.

use app::catalog::{ResolvedTrigger, TriggerKind};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::tools::{ToolkitVersions, ToolkitView};

/// Filters of the list.
#[derive(Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Of these toolkits.
    pub toolkit_slugs: Vec<String>,
    /// A version or `latest` for every toolkit; or, written `toolkit_versions[slug]=version`, for
    /// each toolkit separately.
    #[param(value_type = Option<String>)]
    pub toolkit_versions: ToolkitVersions,
}

/// Version of a trigger type to read.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReadQuery {
    /// A version or `latest` for every toolkit; or, written `toolkit_versions[slug]=version`, for
    /// each toolkit separately.
    #[serde(default)]
    #[param(value_type = Option<String>)]
    pub toolkit_versions: ToolkitVersions,
}

/// The slugs of all trigger types.
#[derive(Serialize, ToSchema)]
#[schema(as = TriggerTypeSlugs)]
pub(crate) struct Slugs(pub Vec<String>);

/// A trigger type in one version.
#[derive(Serialize, ToSchema)]
#[schema(as = TriggerType)]
pub(crate) struct View {
    slug: String,
    name: String,
    description: String,
    instructions: String,
    #[schema(inline)]
    r#type: Kind,
    /// All ways in which events of the type are delivered; `type` is the first.
    types: [Kind; 1],
    toolkit: ToolkitView,
    /// A JSON Schema of the configuration of an instance.
    #[schema(value_type = Map<String, Value>)]
    config: Box<RawValue>,
    /// A JSON Schema of the data of one event.
    #[schema(value_type = Map<String, Value>)]
    payload: Box<RawValue>,
    version: String,
    /// True if the provider sends the events to a webhook endpoint that the project sets up.
    requires_webhook_endpoint_setup: bool,
}

mirror! {
    /// Delivery of events from the provider.
    #[serde(rename_all = "lowercase")]
    #[schema(as = TriggerDelivery)]
    enum Kind of TriggerKind {
        Webhook,
        Poll,
    }
}

impl View {
    /// Builds the view of a trigger type.
    ///
    /// # Errors
    /// If the schemas of the trigger type cannot be read.
    pub(crate) fn new(found: &ResolvedTrigger) -> Result<Self, app::Error> {
        let ResolvedTrigger { release, trigger } = found;
        Ok(Self {
            slug: trigger.slug.to_string(),
            name: trigger.name.clone(),
            description: trigger.description.clone(),
            instructions: String::new(),
            r#type: trigger.kind.into(),
            types: [trigger.kind.into()],
            toolkit: ToolkitView::new(release),
            config: trigger.config.text()?,
            payload: trigger.payload.text()?,
            version: release.version.as_str().to_owned(),
            requires_webhook_endpoint_setup: trigger.kind.receives_webhooks(),
        })
    }
}
