//! Requests of auth configs.

use app::accounts::auth_configs::{Proxy, Status};
use http::{
    members::present,
    unimplemented::{Unimplemented, refused},
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use crate::texts;

/// Filters of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// With credentials of the server, or without.
    #[serde(default, deserialize_with = "present")]
    pub is_service_managed: Option<bool>,
    /// Of these toolkits.
    #[serde(default)]
    pub toolkit_slug: Vec<String>,
    /// Of this toolkit.
    #[serde(default, deserialize_with = "present")]
    #[deprecated]
    pub deprecated_app_id: Option<String>,
    /// Of this status.
    #[serde(default, deserialize_with = "present")]
    #[deprecated]
    #[param(inline)]
    pub deprecated_status: Option<Switch>,
    /// Disabled ones too; without it they are left out.
    #[serde(default, deserialize_with = "present")]
    pub show_disabled: Option<bool>,
    /// Part of the name.
    pub search: Option<String>,
}

/// Parameters of a deletion.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RemoveQuery {
    /// The credentials of its accounts are revoked at the provider first, too.
    #[serde(default, deserialize_with = "present")]
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
    pub credentials: Option<Map<String, Value>>,
    /// Values merged into those of every account; an account's own values take precedence.
    #[schema(value_type = Option<Object>)]
    pub shared_connection_fields: Option<Map<String, Value>>,
    /// Older name of `shared_connection_fields`.
    #[schema(value_type = Option<Object>)]
    pub shared_credentials: Option<Map<String, Value>>,
    /// Refused: this server lacks a keyring whose key opens them.
    #[schema(schema_with = refused, required = false)]
    #[expect(dead_code, reason = "refused while it is read")]
    sealed_credentials: Option<Unimplemented>,
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
    pub credentials: Option<Map<String, Value>>,
    /// A string with commas or spaces, or a list; with `default`, the scopes requested in addition
    /// to the operator's.
    #[serde(default, deserialize_with = "present")]
    pub scopes: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    pub user_scopes: Option<Value>,
    /// Merged into the existing shared values, name by name.
    #[schema(value_type = Option<Object>)]
    pub shared_connection_fields: Option<Map<String, Value>>,
    /// Older name of `shared_connection_fields`.
    #[schema(value_type = Option<Object>)]
    pub shared_credentials: Option<Map<String, Value>>,
    /// Refused: this server lacks a keyring whose key opens them.
    #[schema(schema_with = refused, required = false)]
    #[expect(dead_code, reason = "refused while it is read")]
    sealed_credentials: Option<Unimplemented>,
    /// Null for direct requests without a proxy.
    #[serde(default, deserialize_with = "present")]
    pub proxy_config: Option<Option<ProxyConfig>>,
    #[serde(default, deserialize_with = "cleared")]
    pub restrict_to_following_tools: Option<Vec<String>>,
    #[serde(default, deserialize_with = "cleared_access")]
    pub tool_access_config: Option<UpdatedToolAccess>,
    pub is_enabled_for_tool_router: Option<bool>,
    /// Always refused: another operation enables and disables auth configs.
    #[serde(
        default,
        alias = "enabled",
        alias = "is_disabled",
        alias = "disabled",
        deserialize_with = "refuse_status"
    )]
    #[schema(ignore)]
    #[expect(dead_code, reason = "refused while it is read")]
    status: Option<bool>,
}

refusals! {
    refuse_status: "is not changed here: send `PATCH /auth_configs/{nanoid}/DISABLED` or `ENABLED`";
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

/// Reads present lists of tools; null is read as empty lists.
fn cleared_access<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<UpdatedToolAccess>, D::Error> {
    let access = Option::deserialize(from)?;
    Ok(access.or_else(|| {
        Some(UpdatedToolAccess {
            tools_for_connected_account_creation: Some(Vec::new()),
            tools_available_for_execution: Some(Vec::new()),
        })
    }))
}

/// Reads a present list; null is read as an empty list.
fn cleared<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    texts(from).map(Some)
}
