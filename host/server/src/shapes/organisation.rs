//! Keys, projects, the organization.

use serde::Serialize;
use utoipa::ToSchema;

/// Whom a key speaks for.
#[derive(ToSchema)]
pub(crate) struct Session {
    project: SessionProject,
    api_key: SessionKey,
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
    #[schema(format = DateTime)]
    created_at: String,
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
