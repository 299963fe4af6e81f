//! Requests and views of webhook endpoints.

use std::collections::BTreeMap;

use app::{
    Record,
    core::clock::iso,
    events::endpoints::{Endpoint, EndpointView, SetupField},
};
use http::members::present;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

#[derive(Deserialize, ToSchema)]
#[schema(as = CreateWebhookEndpoint)]
pub(crate) struct Create {
    /// Toolkit whose triggers receive the events.
    pub toolkit_slug: String,
    /// Client at the provider, for example the id of an app there; at most 256 characters.
    pub client_id: String,
}

/// Values of an endpoint, by name. `GET /webhook_endpoints/schema` lists the names.
#[derive(Deserialize, ToSchema)]
#[schema(as = SetWebhookEndpointValues)]
pub(crate) struct SetValues {
    pub data: BTreeMap<String, String>,
}

/// Filter of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Of this toolkit.
    #[serde(default, deserialize_with = "present")]
    pub toolkit_slug: Option<String>,
}

/// Toolkit whose values are listed.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SetupQuery {
    /// Slug of the toolkit.
    pub toolkit_slug: String,
}

view! {
    /// A webhook endpoint of a project.
    #[schema(as = WebhookEndpoint)]
    pub(crate) struct View from endpoint: EndpointView {
        id: String = endpoint.record.id,
        toolkit_slug: String = endpoint.record.body.toolkit,
        client_id!: Option<String> = Some(endpoint.record.body.client_id),
        /// Address at which the provider delivers events; enter it there.
        webhook_url: String = endpoint.url,
        /// Values that are set, masked; null if no value was ever set.
        data!: Option<BTreeMap<String, String>> = endpoint.values,
        #[schema(format = DateTime)] created_at: String = iso(endpoint.record.created_at),
    }
}

/// The endpoints of a project.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookEndpoints)]
pub(crate) struct Items {
    pub items: Vec<Summary>,
}

view! {
    /// A webhook endpoint in a list.
    #[schema(as = WebhookEndpointSummary)]
    pub(crate) struct Summary from endpoint: Record<Endpoint> {
        id: String = endpoint.id,
        toolkit_slug: String = endpoint.body.toolkit,
        client_id!: Option<String> = Some(endpoint.body.client_id),
    }
}

view! {
    /// The values that endpoints of a toolkit can have.
    #[schema(as = WebhookEndpointSetup)]
    pub(crate) struct SetupView from (toolkit_slug: String, fields: BTreeMap<String, SetupField>) {
        toolkit_slug: String = toolkit_slug,
        setup_fields: BTreeMap<String, SetupFieldView> = {
            let fields = fields.into_iter();
            fields.map(|(name, field)| (name, field.into())).collect()
        },
    }
}

view! {
    #[schema(as = WebhookEndpointSetupField)]
    pub(crate) struct SetupFieldView from field: SetupField {
        display_name: String = field.title,
        description: String = field.description,
        /// True if no event can be received without the value.
        is_required: bool = field.is_required,
        /// True if the value is shown masked.
        is_secret: bool = true,
    }
}
