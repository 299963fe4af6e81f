//! Requests, queries and views of projects.

use app::{
    Error, Listed,
    core::clock::iso,
    projects::{Config, NewProject, Project, ShownKey},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    api::{keys, project_config},
    http::page::{Page, Position},
};

#[derive(Deserialize, ToSchema)]
#[schema(as = CreateProject)]
pub(crate) struct Create {
    name: String,
    #[serde(default)]
    should_create_api_key: Option<bool>,
    #[serde(default)]
    config: Option<project_config::Update>,
    /// Permissions of the key; all of them without it.
    #[serde(default)]
    api_key_permissions: Option<Vec<keys::Permission>>,
    /// Addresses and ranges from which the key may be used; any address without it.
    #[serde(default)]
    api_key_allowed_ips: Option<Vec<String>>,
}

impl TryFrom<Create> for NewProject {
    type Error = Error;

    fn try_from(body: Create) -> Result<Self, Error> {
        let mut config = Config::default();
        if let Some(update) = &body.config {
            update.apply(&mut config);
        }
        let rights = keys::restrictions(body.api_key_permissions, body.api_key_allowed_ips)?;
        let with_key = body.should_create_api_key.unwrap_or(false);
        Ok(Self {
            name: body.name,
            config,
            key: with_key.then_some(rights),
        })
    }
}

/// Parameters of a deletion.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RemoveQuery {
    /// The accounts of the project are deleted first, and their credentials are revoked at the
    /// provider. If that takes long, the response is 503, and the same request continues it.
    pub revoke_on_delete: Option<bool>,
}

/// The project that was created.
#[derive(Serialize, ToSchema)]
#[schema(as = NewProject)]
pub(crate) struct CreatedView {
    id: String,
    name: String,
    /// The key in full; null if none was requested.
    #[schema(required)]
    api_key: Option<String>,
}

impl CreatedView {
    /// Builds the view of a new project and its key.
    pub(crate) fn new(project: Project, key: Option<ShownKey>) -> Self {
        Self {
            id: project.id.to_string(),
            name: project.stored.name,
            api_key: key.map(|key| key.secret.to_string()),
        }
    }
}

/// A project of the organization.
#[derive(Serialize, ToSchema)]
#[schema(as = Project)]
pub(crate) struct View {
    id: String,
    org_id: String,
    name: String,
    email: &'static str,
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

/// Format of the messages of webhooks.
#[derive(Serialize, ToSchema)]
enum WebhookVersion {
    #[expect(dead_code, reason = "clients know it, no project has it")]
    V1,
    #[expect(dead_code, reason = "clients know it, no project has it")]
    V2,
    V3,
}

impl From<&Project> for View {
    fn from(project: &Project) -> Self {
        Self {
            id: project.id.to_string(),
            org_id: project.organization.to_string(),
            name: project.stored.name.clone(),
            email: "",
            created_at: iso(project.created_at),
            updated_at: iso(project.updated_at),
            webhook_url: None,
            event_webhook_url: None,
            webhook_secret: None,
            triggers_enabled: false,
            last_subscribed_at: None,
            is_new_webhook: true,
            webhook_version: WebhookVersion::V3,
            deleted: false,
        }
    }
}

/// A page of projects.
#[derive(Serialize, ToSchema)]
#[schema(as = Projects)]
pub(crate) struct List {
    data: Vec<View>,
    #[serde(flatten)]
    position: Position,
}

impl List {
    /// Builds the view of a page of projects.
    pub(crate) fn new(found: Listed<Project>, page: &Page) -> Self {
        Self {
            data: found.items.iter().map(View::from).collect(),
            position: Position::after(page, found.total, found.next),
        }
    }
}

/// A project with its keys.
#[derive(Serialize, ToSchema)]
#[schema(as = ProjectWithKeys)]
pub(crate) struct DetailView {
    #[serde(flatten)]
    pub project: View,
    pub api_keys: Vec<keys::View>,
}

/// The key that replaces all earlier ones.
#[derive(Serialize, ToSchema)]
#[schema(as = RegeneratedKey)]
pub(crate) struct RegeneratedView {
    pub api_key: keys::View,
    pub message: &'static str,
}
