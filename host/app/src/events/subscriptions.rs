//! Webhook subscriptions: the endpoint of a project's application, and the events it receives.
//!
//! A project has at most one. The URL and the secret that signs messages are sealed in the store. A
//! URL is checked when it is set, and again by every delivery, because a name can get another
//! address at any time.

mod check;
mod endpoint;

use serde::{Deserialize, Serialize};
use store::{
    Batch, Collection, CommitError, Document, EditError, Erasure, Field, Kind, Listed, Query,
    Record, Time, Window,
};
use strum::IntoStaticStr;

pub(super) use self::check::check_url;
pub use self::{check::MAX_URL_CHARS, endpoint::Endpoint};
use self::{
    check::{check_versions, parse_events},
    endpoint::PreviousSecret,
};
use super::{
    errors,
    event::{EventKind, MessageVersion},
    signing::SigningKey,
};
use crate::{
    App, Error, Result,
    core::{
        clock::time_after,
        ids::{self, ProjectId, SubscriptionId},
        vault::{DataKey, SealContext, Sealed},
    },
    projects::{self, Project},
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "webhook_subscriptions",
    erasure: Erasure::Project,
    fields: &[Field::unique("place", Kind::Text)],
};

/// Characters of a secret, enough for 256 random bits.
const SECRET_CHARS: usize = 43;
/// Value of [`Subscription::place`], the only one.
const ONLY_PLACE: &str = "only";

/// A webhook subscription, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Subscription {
    /// Version of the messages.
    pub version: MessageVersion,
    /// Events that are sent.
    pub events: Vec<EventKind>,
    /// True if the messages of one trigger instance or account are sent in the order of its events.
    #[serde(default)]
    pub ordered: bool,
    /// The same text in every record, so that a project has at most one.
    place: String,
    endpoint: Sealed<Endpoint>,
    /// Time of the first failure after which the endpoint accepted nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failing_since: Option<Time>,
    /// Set if the server sends nothing any more. A change of the subscription ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<Disabled>,
}

/// Decision of the server to send nothing more to a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disabled {
    /// Time of the decision.
    pub at: Time,
    /// The reason.
    pub reason: DisableReason,
}

/// Reason to disable a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum DisableReason {
    /// The endpoint answered that it is gone.
    Gone,
    /// The endpoint accepted nothing for [`disable_after`](super::WebhookSettings::disable_after).
    Failing,
}

impl Document for Subscription {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// A subscription with its secret parts.
pub struct Opened {
    /// The record.
    pub record: Record<Subscription>,
    /// The secret parts.
    pub endpoint: Endpoint,
}

impl Opened {
    fn new(key: &DataKey, record: Record<Subscription>) -> Result<Self> {
        let context = SealContext::of(&record, "endpoint");
        let endpoint = key.open(context, &record.body.endpoint)?;
        Ok(Self { record, endpoint })
    }
}

/// Request to create a subscription.
#[derive(Debug)]
pub struct NewSubscription {
    /// URL that messages are sent to.
    pub url: String,
    /// Names of events.
    pub events: Vec<String>,
    /// Version of the messages.
    pub version: MessageVersion,
    /// True if the messages of one trigger instance or account are sent in order.
    pub ordered: bool,
    /// True if messages also carry asymmetric signatures.
    pub asymmetric: bool,
}

/// Changes of a subscription. Absent fields stay as they are.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// URL that messages are sent to.
    pub url: Option<String>,
    /// Names of events.
    pub events: Option<Vec<String>>,
    /// Version of the messages.
    pub version: Option<MessageVersion>,
    /// True if the messages of one trigger instance or account are sent in order. Applies to later
    /// events.
    pub ordered: Option<bool>,
    /// True if messages also carry asymmetric signatures.
    pub asymmetric: Option<bool>,
}

/// Creates the subscription of a project. Fails if the request is invalid, the URL may not be
/// reached, or the project has a subscription.
pub async fn create(app: &App, project: &Project, request: NewSubscription) -> Result<Opened> {
    let url = check_url(app, project, &request.url).await;
    let events = parse_events(app, &request.events).and_then(|events| {
        check_versions(app, &events, request.version)?;
        Ok(events)
    });
    let ((), events) = errors::both(url, events)?;
    let id = SubscriptionId::random();
    let endpoint = Endpoint {
        url: request.url,
        secret: ids::random_text(SECRET_CHARS),
        signing_key: request.asymmetric.then(SigningKey::random),
        previous: None,
    };
    let body = Subscription {
        version: request.version,
        events,
        ordered: request.ordered,
        place: ONLY_PLACE.to_owned(),
        endpoint: seal(app, &project.id, id.as_str(), &endpoint).await?,
        failing_since: None,
        disabled: None,
    };
    match projects::insert(app, project, id.as_str(), body).await {
        Ok(created) => open(app, &project.id, created).await,
        Err(EditError::Commit(CommitError::Taken { .. })) => Err(errors::subscription_exists()),
        Err(cause) => Err(cause.into()),
    }
}

/// Returns a subscription of the project. Fails if the subscription does not exist.
pub async fn get(app: &App, project: &Project, id: &SubscriptionId) -> Result<Opened> {
    open(app, &project.id, record(app, project, id).await?).await
}

/// Returns a page of the subscriptions of a project, newest first, and their total number.
pub async fn list(app: &App, project: &Project, window: Window) -> Result<Listed<Opened>> {
    let query = Query::for_project(project.id.as_str())
        .descending()
        .window(window);
    let found = app.store.list(&query).await?;
    let key = app.vault.key(project.id.as_str(), app.clock.now()).await?;
    found.try_map(|record| Opened::new(&key, record))
}

/// Returns the subscription of a project, if it has one.
pub async fn of_project(app: &App, project: &Project) -> Result<Option<Opened>> {
    let found = list(app, project, Window::first(1)).await?;
    Ok(found.items.into_iter().next())
}

/// Returns the subscriptions of several projects.
pub async fn of_projects(
    app: &App,
    projects: impl IntoIterator<Item = &Project>,
) -> Result<Vec<Opened>> {
    let ids = projects.into_iter().map(|project| project.id.as_str());
    let query = Query::all_projects().any_of("project", ids);
    let mut opened = Vec::new();
    for record in app.store.find(&query).await?.records {
        let project = ProjectId::parse(&record.project)?;
        opened.push(open(app, &project, record).await?);
    }
    Ok(opened)
}

/// Changes a subscription, and enables it if the server has disabled it. Deliveries that are not
/// finished use the new URL and version. Fails if the subscription does not exist, the change names
/// nothing or is invalid, or the URL may not be reached.
pub async fn change(
    app: &App,
    project: &Project,
    id: &SubscriptionId,
    changes: Changes,
) -> Result<Opened> {
    record(app, project, id).await?;
    if changes == Changes::default() {
        return Err(errors::invalid(
            "body: must have webhook_url, enabled_events, version, ordered or asymmetric_signatures",
        ));
    }
    let url = match &changes.url {
        Some(url) => check_url(app, project, url).await,
        None => Ok(()),
    };
    let names = changes.events.as_ref();
    let events = names.map(|names| parse_events(app, names)).transpose();
    let ((), events) = errors::both(url, events)?;
    edit(app, project, id, |subscription, endpoint| {
        if let Some(url) = &changes.url {
            endpoint.url.clone_from(url);
        }
        if let Some(events) = &events {
            subscription.events.clone_from(events);
        }
        match changes.asymmetric {
            Some(true) => {
                endpoint.signing_key.get_or_insert_with(SigningKey::random);
            }
            Some(false) => endpoint.signing_key = None,
            None => {}
        }
        subscription.ordered = changes.ordered.unwrap_or(subscription.ordered);
        subscription.version = changes.version.unwrap_or(subscription.version);
        subscription.disabled = None;
        subscription.failing_since = None;
        check_versions(app, &subscription.events, subscription.version)
    })
    .await
}

/// Replaces the secret of a subscription, and its signing key if it has one. The previous ones
/// still sign messages for [`secret_overlap`](super::WebhookSettings::secret_overlap). Fails if the
/// subscription does not exist.
pub async fn rotate_secret(app: &App, project: &Project, id: &SubscriptionId) -> Result<Opened> {
    let secret = ids::random_text(SECRET_CHARS);
    let until = time_after(app.clock.now(), app.webhooks.secret_overlap);
    edit(app, project, id, |_, endpoint| {
        let key = endpoint.signing_key.as_ref().map(|_| SigningKey::random());
        endpoint.previous = Some(PreviousSecret {
            secret: std::mem::replace(&mut endpoint.secret, secret.clone()),
            signing_key: std::mem::replace(&mut endpoint.signing_key, key),
            until,
        });
        Ok(())
    })
    .await
}

/// Deletes a subscription. No delivery starts afterwards. Fails if the subscription does not exist.
pub async fn remove(app: &App, project: &Project, id: &SubscriptionId) -> Result<()> {
    let removed = app.store.change(&COLLECTION, id.as_str(), || async {
        let batch = Batch::at(app.clock.now()).purge(&record(app, project, id).await?);
        Ok::<_, Error>((batch, ()))
    });
    Ok(removed.await?)
}

impl Subscription {
    pub(super) fn wants(&self, kind: EventKind) -> bool {
        self.disabled.is_none() && self.events.contains(&kind)
    }

    /// Returns true if the endpoint is that of an earlier read of the subscription, and has neither
    /// recovered nor started to fail since.
    pub(super) fn has_endpoint_of(&self, earlier: &Self) -> bool {
        self.endpoint.is_same(&earlier.endpoint) && self.failing_since == earlier.failing_since
    }
}

pub(super) async fn record(
    app: &App,
    project: &Project,
    id: &SubscriptionId,
) -> Result<Record<Subscription>> {
    let found = app.store.get(project.id.as_str(), id.as_str()).await?;
    found.ok_or_else(|| errors::subscription_not_found(id))
}

/// Changes a record and its secret parts. Returns both as this change stored them.
async fn edit(
    app: &App,
    project: &Project,
    id: &SubscriptionId,
    change: impl Fn(&mut Subscription, &mut Endpoint) -> Result<()>,
) -> Result<Opened> {
    let changed = app.store.change(&COLLECTION, id.as_str(), || async {
        let mut found = get(app, project, id).await?;
        let body = &mut found.record.body;
        change(body, &mut found.endpoint)?;
        body.endpoint = seal(app, &project.id, id.as_str(), &found.endpoint).await?;
        let now = app.clock.now();
        let batch = Batch::at(now).update(&found.record);
        found.record = found.record.updated(now);
        Ok::<_, Error>((batch, found))
    });
    Ok(changed.await?)
}

/// Decrypts the secret parts of a record.
pub(crate) async fn open(
    app: &App,
    project: &ProjectId,
    record: Record<Subscription>,
) -> Result<Opened> {
    let key = app.vault.key(project.as_str(), app.clock.now()).await?;
    Opened::new(&key, record)
}

async fn seal(
    app: &App,
    project: &ProjectId,
    id: &str,
    endpoint: &Endpoint,
) -> Result<Sealed<Endpoint>> {
    let context = SealContext::new::<Subscription>(project.as_str(), id, "endpoint");
    app.vault.seal(context, endpoint, app.clock.now()).await
}
