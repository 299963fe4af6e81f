//! Shapes of auth configs, connected accounts and OAuth apps.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Switch;

#[derive(ToSchema)]
pub(crate) struct NewAuthConfig {
    toolkit: ToolkitSlug,
    auth_config: NewAuthConfigDetail,
}

#[derive(ToSchema)]
struct ToolkitSlug {
    slug: String,
}

#[derive(ToSchema)]
struct NewAuthConfigDetail {
    id: String,
    auth_scheme: String,
    is_service_managed: bool,
    restrict_to_following_tools: Vec<String>,
}

/// The way in which a project connects accounts of one toolkit.
#[derive(ToSchema)]
pub(crate) struct AuthConfig {
    id: String,
    uuid: String,
    /// `default` with credentials of the server, `custom` with the project's own.
    r#type: String,
    toolkit: AuthConfigToolkit,
    name: String,
    auth_scheme: String,
    is_service_managed: bool,
    /// The credentials. Of secrets, only the first characters are shown.
    credentials: Map<String, Value>,
    #[schema(required)]
    proxy_config: Option<ShownProxy>,
    status: Switch,
    created_by: String,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    last_updated_at: String,
    /// Number of active accounts.
    no_of_connections: u64,
    expected_input_fields: Vec<ExpectedField>,
    restrict_to_following_tools: Vec<String>,
    tool_access_config: ShownToolAccess,
    /// Values merged into those of every account; an account's own values take precedence.
    shared_credentials: Map<String, Value>,
    deprecated_params: DeprecatedAuthConfig,
    is_enabled_for_tool_router: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuthConfigKind {
    Custom,
    Default,
}

#[derive(ToSchema)]
struct ShownProxy {
    proxy_url: String,
    /// The first characters of the key.
    #[schema(nullable = false)]
    proxy_auth_key: Option<String>,
}

#[derive(ToSchema)]
struct AuthConfigToolkit {
    slug: String,
    logo: String,
    #[schema(required)]
    auth_guide_url: Option<String>,
    #[schema(required)]
    auth_hint_url: Option<String>,
}

/// A field of a form; `default` is absent if it has none.
#[derive(ToSchema)]
struct ExpectedField {
    name: String,
    #[serde(rename = "displayName")]
    display_name: String,
    r#type: String,
    description: String,
    required: bool,
    #[schema(nullable = false)]
    default: Option<String>,
    legacy_template_name: String,
    is_secret: bool,
    user_visible: bool,
}

#[derive(ToSchema)]
struct ShownToolAccess {
    tools_for_connected_account_creation: Vec<String>,
    tools_available_for_execution: Vec<String>,
}

#[derive(ToSchema)]
struct DeprecatedAuthConfig {
    #[schema(required)]
    default_connector_id: Option<String>,
    member_uuid: String,
    toolkit_id: String,
    expected_input_fields: Vec<ExpectedField>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum AccountStatus {
    Initializing,
    Initiated,
    Active,
    Failed,
    Expired,
    Inactive,
    Revoked,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AccountOrder {
    CreatedAt,
    UpdatedAt,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    Asc,
    Desc,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum AccountType {
    Private,
    Shared,
    All,
}

#[derive(ToSchema)]
pub(crate) struct NewAccount {
    id: String,
    #[serde(rename = "connectionData")]
    connection_data: AccountState,
    status: AccountStatus,
    /// URL where the user connects the account; null if no user action is needed.
    #[schema(required)]
    redirect_url: Option<String>,
    #[schema(required)]
    redirect_uri: Option<String>,
    deprecated: NewAccountIds,
    experimental: AccountSharing,
}

#[derive(ToSchema)]
struct NewAccountIds {
    uuid: String,
    #[serde(rename = "authConfigUuid")]
    auth_config_uuid: String,
}

#[derive(ToSchema)]
struct AccountState {
    #[serde(rename = "authScheme")]
    auth_scheme: String,
    val: AccountValues,
}

/// Values of the auth scheme. Of secrets, only the first characters are shown.
#[derive(ToSchema)]
struct AccountValues {
    status: AccountStatus,
    #[serde(flatten)]
    of_the_scheme: HashMap<String, Value>,
}

/// One user's account at one provider.
#[derive(ToSchema)]
pub(crate) struct Account {
    toolkit: ToolkitSlug,
    auth_config: AccountAuthConfig,
    id: String,
    user_id: String,
    status: AccountStatus,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
    state: AccountState,
    /// The older name of `state.val`.
    data: AccountValues,
    #[schema(required)]
    status_reason: Option<String>,
    is_disabled: bool,
    deprecated: AccountIds,
    #[schema(required)]
    word_id: Option<String>,
    #[schema(required)]
    alias: Option<String>,
    experimental: AccountSharing,
    #[serde(rename = "authScheme")]
    auth_scheme: String,
}

#[derive(ToSchema)]
struct AccountAuthConfig {
    id: String,
    auth_scheme: String,
    is_service_managed: bool,
    is_disabled: bool,
    #[schema(nullable = false)]
    deprecated: Option<Uuid>,
}

#[derive(ToSchema)]
#[schema(as = LegacyId)]
struct Uuid {
    uuid: String,
}

#[derive(ToSchema)]
struct AccountIds {
    uuid: String,
    labels: Vec<String>,
}

/// The users that may use an account in addition to its own user.
#[derive(ToSchema)]
struct AccountSharing {
    account_type: Sharing,
    /// Only for a shared account.
    #[schema(nullable = false)]
    acl_config_for_shared: Option<AccountAcl>,
}

#[derive(ToSchema)]
struct AccountAcl {
    /// True if all users may use it, except those in `not_allowed_user_ids`.
    allow_all_users: bool,
    allowed_user_ids: Vec<String>,
    /// Users that are never allowed, regardless of the other members.
    not_allowed_user_ids: Vec<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
enum Sharing {
    Private,
    Shared,
}

#[derive(ToSchema)]
pub(crate) struct AccountDetail {
    #[serde(flatten)]
    account: Account,
    /// The oldest name of `state.val`.
    params: AccountValues,
}

/// A link to the page on which a user connects an account.
#[derive(ToSchema)]
pub(crate) struct Link {
    link_token: String,
    redirect_url: String,
    #[schema(format = DateTime)]
    expires_at: String,
    connected_account_id: String,
    experimental: AccountSharing,
}

#[derive(ToSchema)]
pub(crate) struct Completed {
    connected_account_id: String,
    toolkit_slug: String,
}

#[derive(ToSchema)]
pub(crate) struct Refreshed {
    id: String,
    status: AccountStatus,
    /// URL where the user connects the account again; null if no user action is needed.
    #[schema(required)]
    redirect_url: Option<String>,
}

#[derive(ToSchema)]
pub(crate) struct Updated {
    success: bool,
    id: String,
    status: AccountStatus,
}

#[derive(ToSchema)]
pub(crate) struct Revoked {
    /// The tokens that were revoked at the provider.
    revoked_tokens: Vec<RevokedToken>,
    connected_account: RevokedAccount,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum RevokedToken {
    AccessToken,
    RefreshToken,
    Credential,
}

#[derive(ToSchema)]
struct RevokedAccount {
    id: String,
    status: AccountStatus,
}

/// The operator's OAuth app at a provider, without its secret.
#[derive(ToSchema)]
pub(crate) struct OauthApp {
    /// Slug of the toolkit.
    toolkit: String,
    client_id: String,
    scopes: Vec<String>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

#[derive(ToSchema)]
pub(crate) struct OauthApps {
    items: Vec<OauthApp>,
}
