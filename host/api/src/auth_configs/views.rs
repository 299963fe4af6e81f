//! Views of auth configs.

use app::{
    Record,
    accounts::{
        auth_configs::{AuthConfig, Credentials, Proxy},
        mask,
    },
    catalog::{AuthScheme, Field, Release},
    core::clock::iso,
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::requests::{Kind, Switch, ToolkitSlug};
use crate::toolkits::{logo_url, shows_field};

view! {
    /// The auth config that was created.
    #[schema(as = NewAuthConfig)]
    pub(crate) struct CreatedView from record: Record<AuthConfig> {
        toolkit: ToolkitSlug = ToolkitSlug { slug: record.body.toolkit },
        auth_config: CreatedDetail = CreatedDetail {
            id: record.id,
            auth_scheme: record.body.scheme.as_str(),
            is_service_managed: record.body.managed,
            restrict_to_following_tools: record.body.restrict_to,
        },
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = NewAuthConfigDetail)]
struct CreatedDetail {
    id: String,
    auth_scheme: &'static str,
    is_service_managed: bool,
    restrict_to_following_tools: Vec<String>,
}

view! {
    /// The way in which a project connects accounts of one toolkit.
    #[schema(as = AuthConfig)]
    pub(crate) struct View from (
        record: Record<AuthConfig>,
        credentials: &Credentials,
        active_accounts: u64,
        release: Option<&Release>,
    ) where {
        let config = record.body;
        let scheme = release.and_then(|release| release.scheme(config.scheme));
        let fields = scheme.map_or(&[][..], |scheme| &scheme.fields);
        let fields: Vec<ExpectedField> = fields.iter().map(ExpectedField::from).collect();
        let shared = masked(scheme, &credentials.shared);
    } {
        id: String = record.id,
        #[schema(value_type = String)] uuid: Uuid = config.uuid,
        /// `default` with credentials of the server, `custom` with the project's own.
        #[schema(value_type = String)] r#type: Kind = if config.managed {
            Kind::Default
        } else {
            Kind::Custom
        },
        toolkit: ToolkitView = ToolkitView::new(config.toolkit.clone(), release),
        name: String = config.name,
        auth_scheme: &'static str = config.scheme.as_str(),
        is_service_managed: bool = config.managed,
        /// The credentials. Of secrets, only the first characters are shown.
        credentials: Map<String, Value> = masked(scheme, &credentials.own),
        proxy_config!: Option<ProxyView> = credentials.proxy.as_ref().map(Into::into),
        status: Switch = config.status.into(),
        created_by: &'static str = "operator",
        #[schema(format = DateTime)] created_at: String = iso(record.created_at),
        #[schema(format = DateTime)] last_updated_at: String = iso(record.updated_at),
        /// Number of active accounts.
        no_of_connections: u64 = active_accounts,
        expected_input_fields: Vec<ExpectedField> = fields.clone(),
        restrict_to_following_tools: Vec<String> = config.restrict_to,
        tool_access_config: ToolAccessView = ToolAccessView {
            tools_for_connected_account_creation: config.tools_for_connection,
            tools_available_for_execution: config.tools_for_execution,
        },
        /// Values merged into those of every account; an account's own values take precedence.
        shared_connection_fields: Map<String, Value> = shared.clone(),
        /// Older name of `shared_connection_fields`.
        shared_credentials: Map<String, Value> = shared,
        deprecated_params: DeprecatedView =
            DeprecatedView::new(config.uuid, config.toolkit, fields),
        is_enabled_for_tool_router: bool = config.in_sessions,
    }
}

view! {
    #[schema(as = AuthConfigToolkit)]
    struct ToolkitView from (slug: String, release: Option<&Release>) {
        slug: String = slug,
        logo: String = release.map_or_else(String::new, logo_url),
        auth_guide_url!: Option<String> = None,
        auth_hint_url!: Option<String> = None,
    }
}

view! {
    #[schema(as = ShownProxy)]
    struct ProxyView from proxy: &Proxy {
        proxy_url: String = proxy.url.clone(),
        /// The first characters of the key.
        #[schema(value_type = Option<String>)]
        proxy_auth_key?: Option<Value> = proxy.key.as_deref().map(|key| mask(&key.into())),
    }
}

view! {
    /// A field of a form; without a default value, `default` is absent.
    #[derive(Clone)]
    struct ExpectedField from field: &Field {
        name: String = field.name.clone(),
        #[serde(rename = "displayName")] display_name: String = field.title.clone(),
        r#type: &'static str = "string",
        description: String = field.description.clone(),
        required: bool = !field.optional && field.default.is_none(),
        default?: Option<String> = field.default.clone(),
        legacy_template_name: String = field.name.clone(),
        is_secret: bool = field.secret,
        user_visible: bool = true,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = ShownToolAccess)]
struct ToolAccessView {
    tools_for_connected_account_creation: Vec<String>,
    tools_available_for_execution: Vec<String>,
}

view! {
    #[schema(as = DeprecatedAuthConfig)]
    struct DeprecatedView from (uuid: Uuid, toolkit: String, fields: Vec<ExpectedField>) {
        default_connector_id!: Option<String> = None,
        #[schema(value_type = String)] member_uuid: Uuid = uuid,
        toolkit_id: String = toolkit,
        expected_input_fields: Vec<ExpectedField> = fields,
    }
}

/// Masks every value except the scopes and the fields that the toolkit declares and that are not
/// secret.
fn masked(scheme: Option<&AuthScheme>, values: &Map<String, Value>) -> Map<String, Value> {
    values
        .iter()
        .map(|(name, value)| {
            let is_shown = matches!(name.as_str(), "scopes" | "user_scopes")
                || scheme.is_some_and(|scheme| shows_field(scheme, name));
            let shown = if is_shown { value.clone() } else { mask(value) };
            (name.clone(), shown)
        })
        .collect()
}
