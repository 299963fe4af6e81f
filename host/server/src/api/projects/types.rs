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
    http::{Page, Position},
};

#[derive(Deserialize, ToSchema)]
#[schema(as = CreateProject)]
pub(crate) struct Create {
    name: String,
    should_create_api_key: Option<bool>,
    config: Option<project_config::Update>,
    /// Permissions of the key; all of them without it.
    api_key_permissions: Option<Vec<keys::Permission>>,
    /// Addresses and ranges from which the key may be used; any address without it.
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
pub(crate) struct RemoveQuery {
    /// The accounts of the project are deleted first, and their credentials are revoked at the
    /// provider. If that takes long, the response is 503, and the same request continues it.
    pub revoke_on_delete: Option<bool>,
}

view! {
    /// The project that was created.
    #[schema(as = NewProject)]
    pub(crate) struct CreatedView from (project: Project, key: Option<ShownKey>) {
        id: String = project.id.to_string(),
        name: String = project.stored.name,
        /// The key in full; null if none was requested.
        #[schema(required)]
        api_key: Option<String> = key.map(|key| key.secret.to_string()),
    }
}

view! {
    /// A project of the organization.
    #[schema(as = Project)]
    pub(crate) struct View from project: &Project {
        id: String = project.id.to_string(),
        org_id: String = project.organization.to_string(),
        name: String = project.stored.name.clone(),
        email: &'static str = "",
        #[schema(format = DateTime)]
        created_at: String = iso(project.created_at),
        #[schema(format = DateTime)]
        updated_at: String = iso(project.updated_at),
        #[schema(required)]
        webhook_url: Option<String> = None,
        #[schema(required)]
        event_webhook_url: Option<String> = None,
        #[schema(required)]
        webhook_secret: Option<String> = None,
        triggers_enabled: bool = false,
        #[schema(required)]
        last_subscribed_at: Option<String> = None,
        is_new_webhook: bool = true,
        webhook_version: WebhookVersion = WebhookVersion::V3,
        deleted: bool = false,
    }
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

view! {
    /// A page of projects.
    #[schema(as = Projects)]
    pub(crate) struct List from (found: Listed<Project>, page: &Page) {
        data: Vec<View> = found.items.iter().map(View::from).collect(),
        #[serde(flatten)]
        position: Position = Position::after(page, found.total, found.next),
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
