//! Keys, projects, the organization.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

/// Whom a key speaks for.
#[derive(ToSchema)]
pub(crate) struct Session {
    project: SessionProject,
    /// Null for a person's key, which is of no one project.
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
    /// Never the key itself.
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

/// Whether runs are recorded with what was said.
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
    /// In full when it is new or the operator has set `keys.reveal`; otherwise its first characters.
    key: String,
    /// Null when it may do everything.
    #[schema(required)]
    permissions: Option<Vec<Permission>>,
    /// Empty when it may be used from anywhere.
    allowed_ips: Vec<String>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(required, format = DateTime)]
    last_used_at: Option<String>,
}

/// What a key may do in one area.
#[derive(ToSchema)]
struct Permission {
    preset: Area,
    access: Access,
}

/// A part of the interface that keys may be restricted to.
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

/// What may be done in an area.
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

/// What a project decides for itself, as far as it is to be changed: null changes nothing, an empty text clears.
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

/// What a project decided for itself. Texts are there when they were given.
#[derive(ToSchema)]
pub(crate) struct ProjectConfig {
    /// Calls that pin an account must name its user.
    #[serde(rename = "is_2FA_enabled")]
    is_2fa_enabled: bool,
    /// Secrets of accounts are masked in answers.
    mask_secret_keys_in_connected_account: bool,
    log_visibility_setting: LogVisibility,
    require_mcp_api_key: bool,
    is_service_link_enabled_for_managed_auth: bool,
    /// How long a link to a file works.
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

/// A person of the organization.
#[derive(ToSchema)]
pub(crate) struct OrganizationMember {
    id: String,
    email: String,
    name: String,
    role: Role,
    /// The project when a request names none; null for the oldest.
    #[schema(required)]
    project_id: Option<String>,
    #[schema(format = DateTime)]
    created_at: String,
}

/// What a person may do in the projects.
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
    /// In full, this once.
    key: String,
}

/// Sums, by what was counted.
#[derive(ToSchema)]
pub(crate) struct UsageSummary {
    entities: BTreeMap<String, UsageSum>,
}

#[derive(ToSchema)]
struct UsageSum {
    unit: String,
    /// A number.
    total_quantity: String,
    event_count: u64,
}

#[derive(ToSchema)]
pub(crate) struct UsageGroups {
    entity_type: String,
    unit: String,
    /// A number.
    total_quantity: String,
    event_count: u64,
    groups: Vec<UsageGroup>,
}

#[derive(ToSchema)]
struct UsageGroup {
    key: String,
    /// A number.
    total_quantity: String,
    event_count: u64,
}

#[derive(ToSchema)]
pub(crate) struct NewProject {
    id: String,
    name: String,
    /// In full; null when none was asked for.
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
    /// `success`
    status: String,
}

#[derive(ToSchema)]
pub(crate) struct RegeneratedKey {
    api_key: Key,
    message: String,
}
