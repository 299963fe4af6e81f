//! Auth configs: settings with which a project connects accounts of one toolkit.
//!
//! A disabled auth config starts no new connections and appears in lists only on request. A deleted
//! auth config no longer exists. Accounts that were connected with it stay visible but can no
//! longer be used.

mod edit;
mod secrets;
mod tools;

use std::collections::HashMap;

use manifest::AuthMode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{
    Batch, Collection, Document, Erasure, Field, Kind, Listed, Query, Record, Store, Time, Window,
};
use strum::IntoStaticStr;
use uuid::Uuid;

pub(crate) use edit::offered_scheme;
pub use edit::{Changes, MAX_AUTH_CONFIG_BYTES, NewAuthConfig, change, create};
pub use secrets::{Credentials, Proxy, credentials};
pub(crate) use secrets::{net_proxy, open_credentials, scopes};
pub(crate) use tools::PROXY_REQUEST_SLUG;

use crate::{
    App, Error, Result,
    accounts::{self, Account, errors},
    core::{
        ids::{AuthConfigId, ProjectId},
        vault::Sealed,
    },
    projects::Project,
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "auth_configs",
    erasure: Erasure::HidingProject,
    fields: &[
        Field::new("toolkit", Kind::Text),
        Field::new("status", Kind::Text),
        Field::new("managed", Kind::Text),
        Field::new("folded", Kind::Text),
        Field::unique("uuid", Kind::Text),
    ],
};

/// An auth config, as stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct AuthConfig {
    /// Display name.
    pub name: String,
    /// Name in lower case, for search; records of earlier versions have the id after it.
    folded: String,
    /// Slug of the toolkit.
    pub toolkit: String,
    /// Auth scheme with which accounts are connected.
    pub scheme: AuthMode,
    /// True if the operator's OAuth app is used.
    pub managed: bool,
    /// Status; it decides whether new connections may start.
    pub status: Status,
    /// Legacy id, for older clients.
    pub uuid: Uuid,
    /// Tools to which the accounts are restricted; empty for no restriction.
    #[serde(default)]
    pub restrict_to: Vec<String>,
    /// Tools that may run with the accounts; empty for all.
    #[serde(default)]
    pub tools_for_execution: Vec<String>,
    /// Tools whose scopes are requested in new connections.
    #[serde(default)]
    pub tools_for_connection: Vec<String>,
    /// True if sessions may use the auth config.
    #[serde(default)]
    pub in_sessions: bool,
    credentials: Sealed<Map<String, Value>>,
    shared: Sealed<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proxy: Option<Sealed<Proxy>>,
}

impl Document for AuthConfig {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// Status of an auth config.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE", const_into_str)]
pub enum Status {
    /// New connections may start.
    Enabled,
    /// New connections may not start.
    Disabled,
}

/// Filter for lists of auth configs. Empty fields do not filter.
#[derive(Debug, Default)]
pub struct Filter {
    /// Slugs of toolkits.
    pub toolkits: Vec<String>,
    /// Service-managed or custom auth configs only.
    pub managed: Option<bool>,
    /// True to include disabled auth configs.
    pub disabled: bool,
    /// Auth configs in this status only.
    pub status: Option<Status>,
    /// Part of the name.
    pub search: String,
    /// Latest time of creation.
    pub until: Option<Time>,
}

/// Returns an auth config of the project. Fails if the auth config does not exist.
pub async fn get(app: &App, project: &Project, id: &AuthConfigId) -> Result<Record<AuthConfig>> {
    find(&app.store, &project.id, id)
        .await?
        .ok_or_else(|| errors::auth_config_not_found(id))
}

/// Returns an auth config of a project, if it exists.
pub(crate) async fn find(
    store: &Store,
    project: &ProjectId,
    id: &AuthConfigId,
) -> Result<Option<Record<AuthConfig>>> {
    Ok(store.get(project.as_str(), id.as_str()).await?)
}

/// Returns the id of the auth config of a project with a legacy id.
pub(crate) async fn id_of_legacy(
    app: &App,
    project: &Project,
    uuid: Uuid,
) -> Result<Option<AuthConfigId>> {
    let query = Query::for_project(project.id.as_str()).is("uuid", uuid.to_string());
    let config = app.store.first::<AuthConfig>(query).await?;
    config
        .map(|config| AuthConfigId::parse(&config.id))
        .transpose()
}

/// Returns a page of auth configs, newest first, and their total number.
pub async fn list(
    app: &App,
    project: &Project,
    filter: &Filter,
    window: Window,
) -> Result<Listed<Record<AuthConfig>>> {
    let owner = project.id.as_str();
    let enabled = (!filter.disabled).then_some(Status::Enabled);
    let status = filter.status.or(enabled);
    let slugs = filter.toolkits.iter().map(|slug| slug.to_lowercase());
    let mut query = Query::for_project(owner)
        .descending()
        .window(window)
        .filter("toolkit", slugs)
        .filter("managed", filter.managed)
        .filter("status", status.map(|status| status.into_str()));
    if !filter.search.is_empty() {
        query = query.contains("folded", &filter.search.to_lowercase());
    }
    if let Some(until) = filter.until {
        query = query.below("created_at", until.0.saturating_add(1));
    }
    Ok(app.store.list(&query).await?)
}

/// Returns the number of active accounts that were connected with each of these auth configs.
pub async fn active_accounts(
    app: &App,
    project: &Project,
    ids: &[&str],
) -> Result<HashMap<String, u64>> {
    let active =
        Query::for_project(project.id.as_str()).is("status", accounts::Status::Active.into_str());
    let counts = app.store.count_by::<Account>(&active, "auth_config", ids);
    Ok(counts.await?)
}

/// Enables or disables an auth config. Fails if the auth config does not exist.
pub async fn set_status(
    app: &App,
    project: &Project,
    id: &AuthConfigId,
    status: Status,
) -> Result<()> {
    let (owner, now) = (project.id.as_str(), app.clock.now());
    app.store
        .edit(owner, id.as_str(), now, |config: &mut AuthConfig| {
            config.status = status;
            Ok::<_, Error>(())
        })
        .await?
        .ok_or_else(|| errors::auth_config_not_found(id))
}

/// Deletes an auth config and the dynamic clients that were registered for it. Its accounts stay
/// but can no longer be used. With `revoke`, their credentials are revoked first. A repeated call
/// continues an interrupted revocation. Fails if the auth config does not exist.
pub async fn remove(app: &App, project: &Project, id: &AuthConfigId, revoke: bool) -> Result<()> {
    if revoke {
        // A disabled auth config prevents new connections during the revocation.
        set_status(app, project, id, Status::Disabled).await?;
        accounts::revoke_all(app, project, id).await?;
    }
    let removed = app.store.change(&COLLECTION, id.as_str(), || async {
        let batch = Batch::at(app.clock.now()).remove(&get(app, project, id).await?);
        Ok::<_, Error>((accounts::purge_clients(app, project, id, batch).await?, ()))
    });
    removed.await?;
    // Registrations that were in progress during the deletion are deleted here. No new ones can
    // start now.
    accounts::delete_clients(app, project, id).await
}
