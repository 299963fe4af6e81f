//! Enabling, disabling and deletion of trigger instances.

use store::{Batch, Query, Record};

use super::{COLLECTION, Instance, actions, progress::Progress, record, subscribing};
use crate::{
    App, Error, Result, accounts,
    core::ids::{AccountId, TriggerInstanceId},
    events::errors,
    projects::Project,
};

/// Number of instances of a deleted account that are deleted in one batch.
const REMOVAL_BATCH_SIZE: u64 = 100;

/// Enables or disables an instance. `user` is the user that the caller expects. Fails if the
/// instance does not exist, is deleted, belongs to another user or is in the state already, if its
/// account is not active, or if no change is given.
pub async fn set_enabled(
    app: &App,
    project: &Project,
    id: &TriggerInstanceId,
    user: Option<&str>,
    enabled: Option<bool>,
) -> Result<()> {
    let changed = app.store.change(&COLLECTION, id.as_str(), || async {
        let mut instance = record(app, project, id).await?;
        if user.is_some_and(|user| user != instance.body.user_id) {
            return Err(errors::instance_not_found(id));
        }
        let enabled = enabled
            .ok_or_else(|| errors::invalid("status: is required: send `enable` or `disable`"))?;
        if instance.body.is_enabled() == enabled {
            let state = if enabled { "enabled" } else { "disabled" };
            return Err(errors::instance_unchanged(id, state));
        }
        let now = app.clock.now();
        let mut progress = Progress::get(app, &project.id, id.as_str()).await?;
        let batch = if enabled {
            let account = accounts::active_account(app, project, &instance.body.account).await?;
            let body = &instance.body;
            let resolved = app.catalog.trigger(&body.trigger, &body.version)?;
            instance.body.enable(now);
            progress.body.start(resolved.trigger.kind, now);
            let batch = Batch::at(now).check(&account);
            subscribing::start(app, project.id.as_str(), batch, &instance.body).await?
        } else {
            instance.body.disable(None, now);
            progress.body.stop();
            let batch = Batch::at(now);
            subscribing::stop(app, project.id.as_str(), batch, &instance.body, false).await?
        };
        Ok((batch.update(&instance).update(&progress), ()))
    });
    Ok(changed.await?)
}

/// Deletes an instance and erases its configuration. Fails if the instance does not exist or is
/// deleted.
pub async fn remove(app: &App, project: &Project, id: &TriggerInstanceId) -> Result<()> {
    let removed = app.store.change(&COLLECTION, id.as_str(), || async {
        let instance = record(app, project, id).await?;
        let batch = Batch::at(app.clock.now());
        Ok::<_, Error>((with_removal(app, batch, &instance).await?, ()))
    });
    removed.await?;
    actions::erase_pending(app, &project.id, id).await
}

/// Adds the deletion of an instance to a batch.
async fn with_removal(app: &App, batch: Batch, instance: &Record<Instance>) -> Result<Batch> {
    let batch = subscribing::stop(app, &instance.project, batch, &instance.body, true).await?;
    let batch = batch.remove(instance);
    let progress = app.store.get::<Progress>(&instance.project, &instance.id);
    Ok(progress.await?.iter().fold(batch, Batch::purge))
}

/// Deletes the instances of a deleted account. No instance of it can be created any more.
pub(crate) async fn remove_of_account(
    app: &App,
    project: &Project,
    account: &AccountId,
) -> Result<()> {
    let query = Query::for_project(project.id.as_str())
        .is("account", account.as_str())
        .page(0, REMOVAL_BATCH_SIZE);
    loop {
        let removed = app.store.change(&COLLECTION, account.as_str(), || async {
            let found = app.store.find::<Instance>(&query).await?.records;
            let mut batch = Batch::at(app.clock.now());
            for instance in &found {
                batch = with_removal(app, batch, instance).await?;
            }
            Ok::<_, Error>((batch, found.is_empty()))
        });
        if removed.await? {
            return Ok(());
        }
    }
}
