//! Shapes of keys, projects and the organization.

use serde::Serialize;
use utoipa::ToSchema;

/// The project and the member that a key belongs to.
#[derive(ToSchema)]
pub(crate) struct Session {
    project: SessionProject,
    /// Null for the key of a user, which belongs to no single project.
    #[schema(required)]
    api_key: Option<SessionKey>,
    org_member: Member,
}

#[derive(ToSchema)]
struct SessionProject {
    #[serde(flatten)]
    project: Project,
    auto_id: u64,
    nano_id: String,
    org: Organization,
}

#[derive(ToSchema)]
struct Organization {
    id: String,
    name: String,
    plan: String,
}

#[derive(ToSchema)]
struct SessionKey {
    auto_id: u64,
    id: String,
    name: String,
    project_id: String,
    org_member_id: String,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
    #[schema(required)]
    deleted_at: Option<String>,
    /// A placeholder, never the key itself.
    key: String,
    deleted: bool,
}

#[derive(ToSchema)]
struct Member {
    id: String,
    email: String,
    name: String,
    role: String,
}

#[derive(ToSchema)]
pub(crate) struct Project {
    id: String,
    org_id: String,
    name: String,
    email: String,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
    #[schema(required)]
    webhook_url: Option<String>,
    #[schema(required)]
    event_webhook_url: Option<String>,
    #[schema(required)]
    webhook_secret: Option<String>,
    triggers_enabled: bool,
    #[schema(required)]
    last_subscribed_at: Option<String>,
    is_new_webhook: bool,
    webhook_version: WebhookVersion,
    deleted: bool,
}

/// Storage of arguments and results in the execution log.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogVisibility {
    ShowAll,
    DontStoreData,
}

#[derive(Serialize, ToSchema)]
enum WebhookVersion {
    V1,
    V2,
    V3,
}

#[derive(ToSchema)]
pub(crate) struct ProjectWithKeys {
    #[serde(flatten)]
    project: Project,
    api_keys: Vec<Key>,
}

/// A key of a project.
#[derive(ToSchema)]
pub(crate) struct Key {
    id: String,
    name: String,
    /// In full if it is new or the operator has set `keys.reveal`; otherwise its first characters.
    key: String,
    /// Null if the key is unrestricted.
    #[schema(required)]
    permissions: Option<Vec<Permission>>,
    /// Empty if the key may be used from any address.
    allowed_ips: Vec<String>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(required, format = DateTime)]
    last_used_at: Option<String>,
}

/// Permission of a key in one area.
#[derive(ToSchema)]
struct Permission {
    preset: Area,
    access: Access,
}

/// A part of the API that keys may be restricted to.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Area {
    AuthConfigs,
    ConnectedAccounts,
    Tools,
    ToolExecution,
    ProxyExecute,
    Toolkits,
    Triggers,
    Webhooks,
    Observability,
    Sessions,
    SessionToolExecution,
    McpServers,
}

/// Access to an area.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Access {
    None,
    Read,
    Write,
    ReadWrite,
}

#[derive(ToSchema)]
pub(crate) struct Keys {
    items: Vec<Key>,
}

#[derive(ToSchema)]
pub(crate) struct Received {
    received: bool,
}

/// Changes to the settings of a project: null changes nothing, an empty text clears a setting.
#[derive(ToSchema)]
pub(crate) struct ProjectSettings {
    #[serde(rename = "is_2FA_enabled")]
    is_2fa_enabled: Option<bool>,
    logo_url: Option<String>,
    display_name: Option<String>,
    mask_secret_keys_in_connected_account: Option<bool>,
    log_visibility_setting: Option<LogVisibility>,
    require_mcp_api_key: Option<bool>,
    is_service_link_enabled_for_managed_auth: Option<bool>,
    /// 60 to 604800.
    signed_url_file_expiry_in_seconds: Option<f64>,
    oauth_callback_verifier_url: Option<String>,
}

/// The settings of a project. Texts are present only if they were set.
#[derive(ToSchema)]
pub(crate) struct ProjectConfig {
    /// True if calls that name an account must name its user, too.
    #[serde(rename = "is_2FA_enabled")]
    is_2fa_enabled: bool,
    /// True if secrets of accounts are masked in responses.
    mask_secret_keys_in_connected_account: bool,
    log_visibility_setting: LogVisibility,
    require_mcp_api_key: bool,
    is_service_link_enabled_for_managed_auth: bool,
    /// Lifetime of a link to a file, in seconds.
    signed_url_file_expiry_in_seconds: u32,
    logo_url: Option<String>,
    display_name: Option<String>,
    oauth_callback_verifier_url: Option<String>,
}

/// A page of organizations.
#[derive(ToSchema)]
pub(crate) struct Organizations {
    organizations: Vec<ListedOrganization>,
    #[schema(required)]
    next_cursor: Option<String>,
    total_pages: u64,
    current_page: u64,
    total_items: u64,
}

#[derive(ToSchema)]
struct ListedOrganization {
    id: String,
    name: String,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

/// A member of the organization.
#[derive(ToSchema)]
pub(crate) struct OrganizationMember {
    id: String,
    email: String,
    name: String,
    role: Role,
    /// The project used when a request names none; null for the oldest.
    #[schema(required)]
    project_id: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
}

/// Role of a member, which determines the permissions in all projects.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    Admin,
    Viewer,
}

#[derive(ToSchema)]
pub(crate) struct NewMember {
    #[serde(flatten)]
    member: OrganizationMember,
    /// The key in full, shown only in this response.
    key: String,
}

#[derive(ToSchema)]
pub(crate) struct NewProject {
    id: String,
    name: String,
    /// The key in full; null if none was requested.
    #[schema(required)]
    api_key: Option<String>,
}

/// A page of projects.
#[derive(ToSchema)]
pub(crate) struct Projects {
    data: Vec<Project>,
    #[schema(required)]
    next_cursor: Option<String>,
    total_pages: u64,
    current_page: u64,
    total_items: u64,
}

#[derive(ToSchema)]
pub(crate) struct Deleted {
    /// Always `success`.
    status: String,
}

#[derive(ToSchema)]
pub(crate) struct RegeneratedKey {
    api_key: Key,
    message: String,
}
