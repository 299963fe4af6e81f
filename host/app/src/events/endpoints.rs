//! Webhook endpoints: the addresses at which providers deliver events to a project.
//!
//! The id of an endpoint is unguessable, because its address needs no key. An endpoint is unique for
//! its project, toolkit and client id. The values that the project sets, for example the signing
//! secret of the provider, take precedence over those of trigger instances. They are sealed in the
//! store, and erased with the endpoint.

mod setup;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{
    Batch, Collection, CommitError, Document, EditError, Erasure, Field, Kind, Query, Record,
};

use self::setup::setup_fields_of;
pub use self::setup::{SetupField, setup_fields};
use super::errors;
use crate::{
    App, Error, Result, accounts,
    catalog::LATEST,
    core::{
        ids::EndpointId,
        truncate,
        vault::{SealContext, Sealed},
    },
    projects::{self, Project},
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "webhook_endpoints",
    erasure: Erasure::Project,
    fields: &[
        Field::new("toolkit", Kind::Text),
        Field::unique("identity", Kind::Text),
    ],
};

/// Maximum number of endpoints of a project.
pub const MAX_ENDPOINTS: u64 = 100;
/// Maximum characters of a client id.
pub const MAX_CLIENT_ID_CHARS: usize = 256;
/// Maximum size of a value, in bytes.
pub const MAX_VALUE_BYTES: usize = 4 << 10;
/// Field of an endpoint with its sealed values.
const VALUES_FIELD: &str = "values";

/// Values of an endpoint by name: the secrets in the configurations of its toolkit's triggers.
pub(super) type Values = Map<String, Value>;

/// An endpoint, as stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct Endpoint {
    /// Slug of the toolkit.
    pub toolkit: String,
    /// Client at the provider, for example the id of an app there.
    pub client_id: String,
    /// Toolkit and client id.
    identity: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    values: Option<Sealed<Values>>,
}

impl Document for Endpoint {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// An endpoint as responses show it.
#[derive(Debug)]
pub struct EndpointView {
    /// The endpoint.
    pub record: Record<Endpoint>,
    /// Address at which the provider delivers events.
    pub url: String,
    /// Values that the project has set, masked.
    pub values: Option<BTreeMap<String, String>>,
}

/// Change of the values of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueChange {
    /// Values that are not given stay as they are.
    Merge,
    /// Values that are not given are erased.
    Replace,
}

/// Creates an endpoint, or finds the one of the project with the same toolkit and client id.
/// Returns true with a new endpoint. Fails if the toolkit does not exist or has no webhook trigger,
/// the client id is empty or too long, or the project has too many endpoints.
pub async fn create(
    app: &App,
    project: &Project,
    toolkit: &str,
    client_id: &str,
) -> Result<(EndpointView, bool)> {
    let release = app.catalog.release(toolkit, LATEST)?;
    setup_fields_of(&release)?;
    let client_id = client_id.trim();
    if client_id.is_empty() || client_id.chars().count() > MAX_CLIENT_ID_CHARS {
        let problem = format!("client_id: must have 1 to {MAX_CLIENT_ID_CHARS} characters");
        return Err(errors::invalid(problem));
    }
    let identity = format!("{} {client_id}", release.slug);
    if let Some(existing) = with_identity(app, project, &identity).await? {
        return Ok((view(app, existing).await?, false));
    }
    let all = Query::for_project(project.id.as_str()).page(0, 0);
    if app.store.rows(&COLLECTION, &all).await?.total >= MAX_ENDPOINTS {
        return Err(errors::too_many_endpoints(MAX_ENDPOINTS));
    }
    let endpoint = Endpoint {
        toolkit: release.slug.to_string(),
        client_id: client_id.to_owned(),
        identity: identity.clone(),
        values: None,
    };
    let id = EndpointId::unguessable();
    match projects::insert(app, project, id.as_str(), endpoint).await {
        Ok(created) => Ok((view(app, created).await?, true)),
        // Another request created the endpoint first.
        Err(EditError::Commit(CommitError::Taken {
            field: "identity", ..
        })) => {
            let created = with_identity(app, project, &identity).await?;
            let created = created.ok_or_else(|| errors::endpoint_not_found(&id))?;
            Ok((view(app, created).await?, false))
        }
        Err(cause) => Err(cause.into()),
    }
}

async fn with_identity(
    app: &App,
    project: &Project,
    identity: &str,
) -> Result<Option<Record<Endpoint>>> {
    let query = Query::for_project(project.id.as_str()).is("identity", identity);
    Ok(app.store.first(query).await?)
}

/// Returns the endpoints of a project, newest first; only those of a toolkit if it is given.
pub async fn list(
    app: &App,
    project: &Project,
    toolkit: Option<&str>,
) -> Result<Vec<Record<Endpoint>>> {
    let query = Query::for_project(project.id.as_str())
        .filter("toolkit", toolkit.map(str::to_ascii_lowercase))
        .descending();
    Ok(app.store.find(&query).await?.records)
}

/// Returns an endpoint of the project. Fails if the endpoint does not exist.
pub async fn get(app: &App, project: &Project, id: &EndpointId) -> Result<EndpointView> {
    view(app, record(app, project, id).await?).await
}

async fn record(app: &App, project: &Project, id: &EndpointId) -> Result<Record<Endpoint>> {
    let found = app.store.get(project.id.as_str(), id.as_str()).await?;
    found.ok_or_else(|| errors::endpoint_not_found(id))
}

/// Sets values of an endpoint. Fails if the endpoint does not exist, or if a value is empty or too
/// large or its toolkit does not ask for it.
pub async fn set_values(
    app: &App,
    project: &Project,
    id: &EndpointId,
    given: &BTreeMap<String, String>,
    change: ValueChange,
) -> Result<EndpointView> {
    let endpoint = record(app, project, id).await?;
    check_values(&setup_fields(app, &endpoint.body.toolkit)?, given)?;
    let changed = app.store.change(&COLLECTION, id.as_str(), || async {
        let mut endpoint = record(app, project, id).await?;
        let mut values = match change {
            ValueChange::Merge => open_values(app, &endpoint).await?.unwrap_or_default(),
            ValueChange::Replace => Values::new(),
        };
        for (name, value) in given {
            values.insert(name.clone(), value.as_str().into());
        }
        let now = app.clock.now();
        let context = SealContext::of(&endpoint, VALUES_FIELD);
        endpoint.body.values = Some(app.vault.seal(context, &values, now).await?);
        Ok::<_, Error>((Batch::at(now).update(&endpoint), ()))
    });
    changed.await?;
    get(app, project, id).await
}

fn check_values(
    fields: &BTreeMap<String, SetupField>,
    given: &BTreeMap<String, String>,
) -> Result<()> {
    let mut problems = Vec::new();
    for (name, value) in given {
        let shown = truncate(name);
        if !fields.contains_key(name) {
            let known: Vec<_> = fields.keys().map(String::as_str).collect();
            let known = known.join(", ");
            problems.push(format!("data.{shown}: is not one of [{known}]"));
        } else if value.is_empty() || value.len() > MAX_VALUE_BYTES {
            problems.push(format!(
                "data.{shown}: must have 1 to {MAX_VALUE_BYTES} bytes"
            ));
        }
    }
    errors::refuse_problems(problems, errors::invalid)
}

/// Deletes an endpoint and erases its values. No event is received at its address any more. Fails
/// if the endpoint does not exist.
pub async fn remove(app: &App, project: &Project, id: &EndpointId) -> Result<()> {
    let removed = app.store.change(&COLLECTION, id.as_str(), || async {
        let endpoint = record(app, project, id).await?;
        Ok::<_, Error>((Batch::at(app.clock.now()).purge(&endpoint), ()))
    });
    Ok(removed.await?)
}

/// Decrypts the values of an endpoint. Fails if they cannot be decrypted.
pub(super) async fn open_values(app: &App, endpoint: &Record<Endpoint>) -> Result<Option<Values>> {
    let Some(values) = &endpoint.body.values else {
        return Ok(None);
    };
    let context = SealContext::of(endpoint, VALUES_FIELD);
    let now = app.clock.now();
    Ok(Some(app.vault.unseal(context, values, now).await?))
}

/// Returns the values of all endpoints of a toolkit, which complete the configurations of trigger
/// instances.
pub(super) async fn values_of_toolkit(
    app: &App,
    project: &Project,
    toolkit: &str,
) -> Result<Values> {
    let mut values = Values::new();
    for endpoint in list(app, project, Some(toolkit)).await? {
        values.extend(open_values(app, &endpoint).await?.unwrap_or_default());
    }
    Ok(values)
}

async fn view(app: &App, record: Record<Endpoint>) -> Result<EndpointView> {
    let values = open_values(app, &record).await?;
    Ok(EndpointView {
        url: address(app, &record.body.toolkit, &record.id),
        values: values.map(|values| values.into_iter().map(masked).collect()),
        record,
    })
}

fn masked((name, value): (String, Value)) -> (String, String) {
    let value = accounts::mask(&value);
    (name, value.as_str().unwrap_or_default().to_owned())
}

/// Returns the URL at which a provider delivers events.
pub(super) fn address(app: &App, toolkit: &str, id: &str) -> String {
    let base = app.base_url();
    format!("{base}/api/v3.1/webhook_ingress/{toolkit}/{id}/trigger_event")
}
