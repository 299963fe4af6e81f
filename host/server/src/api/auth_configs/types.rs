//! Requests and views of auth configs.

use app::{
    Record,
    accounts::{
        auth_configs::{AuthConfig, Credentials, Proxy, Status},
        mask,
    },
    catalog::{AuthScheme, Field, Release},
    core::clock::iso,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::api::{
    texts,
    toolkits::{logo_url, shows_field},
};

/// Filters of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// With credentials of the server, or without.
    pub is_service_managed: Option<bool>,
    /// Of these toolkits.
    #[serde(default)]
    #[param(explode = false)]
    pub toolkit_slug: Vec<String>,
    /// Of this toolkit.
    #[deprecated]
    pub deprecated_app_id: Option<String>,
    /// Of this status.
    #[deprecated]
    #[param(inline)]
    pub deprecated_status: Option<Switch>,
    /// Disabled ones too; without it they are left out.
    pub show_disabled: Option<bool>,
    /// Part of the name.
    pub search: Option<String>,
}

/// Parameters of a deletion.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RemoveQuery {
    /// The credentials of its accounts are revoked at the provider first, too.
    pub revoke_on_delete: Option<bool>,
}

mirror! {
    /// State of something that can be enabled or disabled.
    #[serde(rename_all = "UPPERCASE")]
    pub(crate) enum Switch of Status {
        #[serde(alias = "ACTIVE")]
        Enabled,
        #[serde(alias = "INACTIVE")]
        Disabled,
    }
}

#[derive(Deserialize, ToSchema)]
#[schema(as = CreateAuthConfig)]
pub(crate) struct Create {
    pub toolkit: ToolkitSlug,
    pub auth_config: Option<CreateSettings>,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub(crate) struct ToolkitSlug {
    pub slug: String,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = AuthConfigSettings)]
pub(crate) struct CreateSettings {
    pub r#type: String,
    pub name: Option<String>,
    #[serde(rename = "authScheme")]
    pub auth_scheme: Option<String>,
    #[schema(value_type = Option<Object>)]
    pub credentials: Option<Value>,
    #[schema(value_type = Option<Object>)]
    pub shared_credentials: Option<Value>,
    pub proxy_config: Option<ProxyConfig>,
    #[serde(default, deserialize_with = "texts")]
    pub restrict_to_following_tools: Vec<String>,
    pub tool_access_config: Option<ToolAccess>,
    pub is_enabled_for_tool_router: Option<bool>,
}

#[derive(Default, Deserialize, ToSchema)]
pub(crate) struct ToolAccess {
    #[serde(default, deserialize_with = "texts")]
    pub tools_for_connected_account_creation: Vec<String>,
    #[serde(default, deserialize_with = "texts")]
    pub tools_available_for_execution: Vec<String>,
}

/// The HTTP proxy through which requests to the provider are sent.
#[derive(Deserialize, ToSchema)]
pub(crate) struct ProxyConfig {
    /// `http://host:port` or `https://host:port`.
    proxy_url: String,
    /// `user:password`, a bearer token, or a complete value of `proxy-authorization` with its
    /// scheme.
    proxy_auth_key: Option<String>,
}

impl From<ProxyConfig> for Proxy {
    fn from(config: ProxyConfig) -> Self {
        Self {
            url: config.proxy_url,
            key: config.proxy_auth_key.filter(|key| !key.is_empty()),
        }
    }
}

/// Changes to an auth config. Null or an empty list clears members that have one.
#[derive(Deserialize, ToSchema)]
#[schema(as = UpdateAuthConfig)]
pub(crate) struct Update {
    /// The existing kind of the auth config.
    pub r#type: Kind,
    pub name: Option<String>,
    /// Merged into the existing credentials, name by name.
    #[schema(value_type = Option<Object>)]
    pub credentials: Option<Value>,
    /// A text with commas or spaces, or a list; with `default`, the scopes requested in addition to
    /// the operator's.
    #[serde(default, deserialize_with = "present")]
    pub scopes: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    pub user_scopes: Option<Value>,
    #[schema(value_type = Option<Object>)]
    pub shared_credentials: Option<Value>,
    /// Null for direct requests without a proxy.
    #[schema(value_type = Option<ProxyConfig>)]
    #[serde(default, deserialize_with = "present_or_null")]
    pub proxy_config: Option<Option<ProxyConfig>>,
    #[serde(default, deserialize_with = "cleared")]
    pub restrict_to_following_tools: Option<Vec<String>>,
    pub tool_access_config: Option<UpdatedToolAccess>,
    pub is_enabled_for_tool_router: Option<bool>,
}

#[derive(Default, Deserialize, ToSchema)]
pub(crate) struct UpdatedToolAccess {
    #[serde(default, deserialize_with = "cleared")]
    pub tools_for_connected_account_creation: Option<Vec<String>>,
    #[serde(default, deserialize_with = "cleared")]
    pub tools_available_for_execution: Option<Vec<String>>,
}

/// Origin of the credentials of an auth config.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = AuthConfigKind)]
pub(crate) enum Kind {
    Custom,
    Default,
}

/// Reads a member that is present, null included.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Reads a member that is present, as its type or null.
pub(crate) fn present_or_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// Reads a list that is present; null is read as an empty list.
fn cleared<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    texts(from).map(Some)
}

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
    } {
        id: String = record.id,
        #[schema(value_type = String)]
        uuid: Uuid = config.uuid,
        /// `default` with credentials of the server, `custom` with the project's own.
        #[schema(value_type = String)]
        r#type: Kind = if config.managed {
            Kind::Default
        } else {
            Kind::Custom
        },
        toolkit: ToolkitView = ToolkitView {
            slug: config.toolkit.clone(),
            logo: release.map_or_else(String::new, logo_url),
            auth_guide_url: None,
            auth_hint_url: None,
        },
        name: String = config.name,
        auth_scheme: &'static str = config.scheme.as_str(),
        is_service_managed: bool = config.managed,
        /// The credentials. Of secrets, only the first characters are shown.
        credentials: Map<String, Value> = masked(scheme, &credentials.own),
        #[schema(required)]
        proxy_config: Option<ProxyView> = credentials.proxy.as_ref().map(|proxy| ProxyView {
            proxy_url: proxy.url.clone(),
            proxy_auth_key: proxy.key.as_deref().map(|key| mask(&key.into())),
        }),
        status: Switch = config.status.into(),
        created_by: &'static str = "operator",
        #[schema(format = DateTime)]
        created_at: String = iso(record.created_at),
        #[schema(format = DateTime)]
        last_updated_at: String = iso(record.updated_at),
        /// Number of active accounts.
        no_of_connections: u64 = active_accounts,
        expected_input_fields: Vec<ExpectedField> = fields.clone(),
        restrict_to_following_tools: Vec<String> = config.restrict_to,
        tool_access_config: ToolAccessView = ToolAccessView {
            tools_for_connected_account_creation: config.tools_for_connection,
            tools_available_for_execution: config.tools_for_execution,
        },
        /// Values merged into those of every account; an account's own values take precedence.
        shared_credentials: Map<String, Value> = masked(scheme, &credentials.shared),
        deprecated_params: DeprecatedView = DeprecatedView {
            default_connector_id: None,
            member_uuid: config.uuid,
            toolkit_id: config.toolkit,
            expected_input_fields: fields,
        },
        is_enabled_for_tool_router: bool = config.in_sessions,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = AuthConfigToolkit)]
struct ToolkitView {
    slug: String,
    logo: String,
    #[schema(required)]
    auth_guide_url: Option<String>,
    #[schema(required)]
    auth_hint_url: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ShownProxy)]
struct ProxyView {
    proxy_url: String,
    /// The first characters of the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>)]
    proxy_auth_key: Option<Value>,
}

/// A field of a form; `default` is absent if it has none.
#[derive(Clone, Serialize, ToSchema)]
struct ExpectedField {
    name: String,
    #[serde(rename = "displayName")]
    display_name: String,
    r#type: &'static str,
    description: String,
    required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    default: Option<String>,
    legacy_template_name: String,
    is_secret: bool,
    user_visible: bool,
}

impl From<&Field> for ExpectedField {
    fn from(field: &Field) -> Self {
        Self {
            name: field.name.clone(),
            display_name: field.title.clone(),
            r#type: "string",
            description: field.description.clone(),
            required: !field.optional && field.default.is_none(),
            default: field.default.clone(),
            legacy_template_name: field.name.clone(),
            is_secret: field.secret,
            user_visible: true,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = ShownToolAccess)]
struct ToolAccessView {
    tools_for_connected_account_creation: Vec<String>,
    tools_available_for_execution: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = DeprecatedAuthConfig)]
struct DeprecatedView {
    #[schema(required)]
    default_connector_id: Option<String>,
    #[schema(value_type = String)]
    member_uuid: Uuid,
    toolkit_id: String,
    expected_input_fields: Vec<ExpectedField>,
}

/// Masks every value except the scopes and the fields that the toolkit declares and that are not
/// secret.
fn masked(scheme: Option<&AuthScheme>, values: &Map<String, Value>) -> Map<String, Value> {
    let shown = |name: &str, value: &Value| match name {
        "scopes" | "user_scopes" => value.clone(),
        _ if scheme.is_some_and(|scheme| shows_field(scheme, name)) => value.clone(),
        _ => mask(value),
    };
    values
        .iter()
        .map(|(name, value)| (name.clone(), shown(name, value)))
        .collect()
}
