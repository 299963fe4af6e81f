//! Lists of trigger instances.

use std::collections::HashMap;

use store::{Cursor, Listed, Predicate, Query, Record, Time, Window};
use uuid::Uuid;

use super::{
    Instance,
    actions::Action,
    config::{self, Config},
    progress::{PollStatus, Progress, Seal},
    recent::RecentEvent,
    schedule::Schedule,
    subscribing::{self, SubscriptionView},
};
use crate::{
    App, Result,
    core::large_pages::LargePage,
    events::delivery::{self, Delivery},
    projects::Project,
};

/// Number of instances whose progress is read at a time. It has up to half a MiB each, most of which lists do
/// not show.
const INSTANCES_PER_READ: usize = 16;

/// Filter for lists of instances. Empty fields do not filter.
#[derive(Debug, Default)]
pub struct Filter {
    /// Ids of instances.
    pub ids: Vec<String>,
    /// Slugs of trigger types, in any case.
    pub triggers: Vec<String>,
    /// Ids of accounts.
    pub accounts: Vec<String>,
    /// Legacy ids of accounts.
    pub account_uuids: Vec<String>,
    /// Ids of auth configs.
    pub auth_configs: Vec<String>,
    /// Legacy ids of auth configs.
    pub auth_config_uuids: Vec<String>,
    /// User ids.
    pub users: Vec<String>,
    /// True to include disabled instances.
    pub disabled: bool,
    /// Latest time of creation.
    pub until: Option<Time>,
}

/// An instance as responses show it.
#[derive(Debug)]
pub struct InstanceView {
    /// The instance.
    pub record: Record<Instance>,
    /// Configuration, with its secrets masked unless the project has disabled masking.
    pub config: Config,
    /// Tool that runs for every event.
    pub action: Option<Action>,
    /// Schedule of its polls.
    pub schedule: Schedule,
    /// The last and the next poll.
    pub poll: PollStatus,
    /// Subscription at the provider, if the toolkit subscribes for the instance.
    pub subscription: Option<SubscriptionView>,
    /// The newest events, newest first.
    pub events: Vec<RecentEvent>,
}

/// Returns a page of instances, newest first, and their total number. A page whose configurations and actions
/// have more than [`MAX_PAGE_BYTES`](store::MAX_PAGE_BYTES) ends before its limit. Fails if a configuration cannot be decrypted.
pub async fn list(
    app: &App,
    project: &Project,
    filter: &Filter,
    window: Window,
) -> Result<Listed<InstanceView>> {
    let query = query(project, filter, window);
    let found = app.store.list::<Instance>(&query).await?;
    let mut subscriptions = subscribing::views(app, project, &found.items).await?;
    let mut page = LargePage::new(found, INSTANCES_PER_READ);
    while let Some(part) = page.next_part(Cursor::at) {
        let (views, bytes) = views(app, project, part, &mut subscriptions).await?;
        page.add(views, bytes);
    }
    Ok(page.end())
}

/// Returns the views of instances that still exist, and the size of their configurations and actions.
async fn views(
    app: &App,
    project: &Project,
    instances: Vec<Record<Instance>>,
    subscriptions: &mut HashMap<String, SubscriptionView>,
) -> Result<(Vec<InstanceView>, usize)> {
    let ids = instances.iter().map(|record| record.id.as_str());
    let of_instances = Query::for_project(project.id.as_str()).any_of("id", ids);
    let records = app.store.find::<Progress>(&of_instances).await?.records;
    let events = records.iter().flat_map(|record| record.body.recent.ids());
    let events: Vec<_> = events.collect();
    let deliveries = delivery::of_events(app, project, &events).await?;
    let by_id = records.into_iter().map(|one| (one.id.clone(), one));
    let mut progress_by_id: HashMap<_, _> = by_id.collect();
    let mut views = Vec::with_capacity(instances.len());
    let mut bytes = 0;
    for record in instances {
        if let Some(progress) = progress_by_id.remove(&record.id) {
            bytes += progress.body.shown_bytes();
            let subscription = subscriptions.remove(&record.id);
            let mut view = view(app, project, record, &progress, &deliveries).await?;
            view.subscription = subscription;
            views.push(view);
        }
    }
    Ok((views, bytes))
}

fn query(project: &Project, filter: &Filter, window: Window) -> Query {
    let triggers = filter.triggers.iter().map(|slug| slug.to_ascii_uppercase());
    let triggers: Vec<_> = triggers.collect();
    let mut query = Query::for_project(project.id.as_str())
        .window(window)
        .descending();
    for (field, accepted) in [
        ("id", &filter.ids),
        ("trigger", &triggers),
        ("account", &filter.accounts),
        ("account_uuid", &filter.account_uuids),
        ("auth_config", &filter.auth_configs),
        ("auth_config_uuid", &filter.auth_config_uuids),
        ("user_id", &filter.users),
    ] {
        query = query.filter(field, accepted.iter().map(String::as_str));
    }
    if !filter.disabled {
        let is_set = Predicate::AtLeast(i64::MIN);
        query = query.test("disabled_at", Predicate::Not(Box::new(is_set)));
    }
    match filter.until {
        Some(until) => query.below("created_at", until.0.saturating_add(1)),
        None => query,
    }
}

async fn view(
    app: &App,
    project: &Project,
    record: Record<Instance>,
    progress: &Record<Progress>,
    deliveries: &HashMap<Uuid, Vec<Record<Delivery>>>,
) -> Result<InstanceView> {
    let seal = Seal::new(app, &project.id, &progress.id).await?;
    let mut config = seal.open_config(&progress.body)?;
    if project.stored.config.mask_secrets {
        let body = &record.body;
        let resolved = app.catalog.trigger(&body.trigger, &body.version).ok();
        config = config::mask(resolved.as_ref(), config);
    }
    let poll = seal.open_status(&progress.body)?;
    Ok(InstanceView {
        record,
        config,
        action: seal.open_action(&progress.body)?,
        schedule: progress.body.schedule.clone(),
        poll,
        subscription: None,
        events: progress.body.recent.with(deliveries),
    })
}
