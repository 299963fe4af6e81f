//! Requests, queries and views of projects.

use std::collections::HashMap;

use app::{
    Error, Listed,
    core::clock::iso,
    events::{event::MessageVersion, subscriptions::Opened},
    projects::{Config, NewProject, Project, ShownKey},
};
use http::{Page, Position, members::present};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{keys, project_config, webhook_subscriptions::Version as WebhookVersion};

// An unknown field is refused, because a misspelled restriction of the key would permit everything.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreateProject)]
pub(crate) struct Create {
    name: String,
    should_create_api_key: Option<bool>,
    config: Option<project_config::Update>,
    /// Permissions of the key; all of them without it.
    api_key_permissions: Option<Vec<keys::Permission>>,
    /// Addresses and ranges from which the key may be used, at least one; any address without the list.
    api_key_allowed_ips: Option<Vec<String>>,
}

impl TryFrom<Create> for NewProject {
    type Error = Error;

    fn try_from(body: Create) -> Result<Self, Error> {
        let mut config = Config::default();
        if let Some(update) = &body.config {
            update.check()?;
            update.apply(&mut config);
        }
        let rights = keys::restrictions(
            "api_key_",
            body.api_key_permissions,
            body.api_key_allowed_ips,
        )?;
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
    #[serde(default, deserialize_with = "present")]
    pub revoke_on_delete: Option<bool>,
}

view! {
    /// The project that was created.
    #[schema(as = NewProject)]
    pub(crate) struct CreatedView from (project: Project, key: Option<ShownKey>) {
        id: String = project.id.to_string(),
        name: String = project.stored.name,
        /// The key in full; null if no key was requested.
        api_key!: Option<String> = key.map(|key| key.secret.to_string()),
    }
}

view! {
    /// A project of the organization.
    #[schema(as = Project)]
    pub(crate) struct View from (project: &Project, webhook: Option<Opened>, in_full: bool) where {
        let version = webhook.as_ref().map(|webhook| webhook.record.body.version);
        let endpoint = webhook.map(|webhook| webhook.endpoint);
        let (url, secret) = endpoint.map(|own| (own.url, own.secret)).unzip();
    } {
        pub id: String = project.id.to_string(),
        org_id: String = project.organization.to_string(),
        name: String = project.stored.name.clone(),
        email: &'static str = "",
        #[schema(format = DateTime)] created_at: String = iso(project.created_at),
        #[schema(format = DateTime)] updated_at: String = iso(project.updated_at),
        webhook_url!: Option<String> = url,
        event_webhook_url!: Option<String> = None,
        webhook_secret!: Option<String> = secret.filter(|_| in_full),
        triggers_enabled: bool = false,
        last_subscribed_at!: Option<String> = None,
        is_new_webhook: bool = version.is_none_or(|version| version == MessageVersion::V2),
        webhook_version: WebhookVersion = version.unwrap_or(MessageVersion::V3).into(),
        deleted: bool = false,
    }
}

view! {
    /// A page of projects.
    #[schema(as = Projects)]
    pub(crate) struct List from (
        found: Listed<Project>,
        webhooks: Vec<Opened>,
        page: &Page,
        in_full: bool,
    ) where {
        let by_project = webhooks
            .into_iter()
            .map(|webhook| (webhook.record.project.clone(), webhook));
        let mut webhooks: HashMap<_, _> = by_project.collect();
    } {
        data: Vec<View> = found
            .items
            .iter()
            .map(|project| View::new(project, webhooks.remove(project.id.as_str()), in_full))
            .collect(),
        #[serde(flatten)] position: Position = Position::after(page, found.total, found.next),
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
