//! Creation of trigger instances. A repeated request finds the instance of the first and enables it.

use serde_json::Value;
use store::{Batch, CommitError, EditError, Query, Record};
use uuid::Uuid;

use super::{
    COLLECTION, Instance,
    actions::{Action, ActionRequest},
    config::{self, Config},
    progress::{Progress, Seal},
    schedule::Schedule,
    subscribing,
};
use crate::{
    App, Error, Result,
    accounts::{self, Account, auth_configs},
    catalog::{ResolvedTrigger, VersionSelector},
    core::{
        ids::{AccountId, TriggerInstanceId},
        vault::Sealed,
    },
    events::{endpoints, errors},
    projects::{Project, SharedProject, count_record},
};

/// Maximum size of a configuration as JSON, in bytes.
pub const MAX_CONFIG_BYTES: usize = 64 << 10;

/// Request to create an instance, or to enable an existing one.
#[derive(Debug)]
pub struct Upsert {
    /// Slug of the trigger type.
    pub trigger: String,
    /// Version of the toolkit.
    pub versions: VersionSelector,
    /// Account; absent for the newest active account of the user.
    pub account: Option<AccountId>,
    /// User; absent for the default user.
    pub user_id: Option<String>,
    /// Configuration.
    pub config: Config,
    /// Schedule of polls; the default one changes nothing in an existing instance.
    pub schedule: Schedule,
    /// Tool that runs for every event: absent to change nothing in an existing instance, and
    /// `Some(None)` for no tool.
    pub action: Option<Option<ActionRequest>>,
}

/// Result of an upsert.
#[derive(Debug)]
pub struct Upserted {
    /// Id of the instance.
    pub id: String,
    /// Legacy id of the instance.
    pub uuid: Uuid,
    /// True if the instance is new.
    pub created: bool,
}

/// Creates an instance, or enables the one with the same trigger type, account and configuration.
/// Fails if the trigger type or the account does not exist, the account is deleted or not active,
/// the configuration does not match its schema, the schedule or the action is invalid, or the
/// project has too many instances.
pub async fn upsert(app: &App, project: &SharedProject, request: Upsert) -> Result<Upserted> {
    let found = app
        .catalog
        .snapshot()
        .trigger(&request.trigger, &request.versions)?;
    request.schedule.check(app.triggers.poll_interval)?;
    if config::text(&request.config)?.len() > MAX_CONFIG_BYTES {
        let problem = format!("trigger_config: at most {MAX_CONFIG_BYTES} bytes as JSON");
        return Err(errors::config_invalid(&found.trigger.slug, vec![problem]));
    }
    let (config, subscription) = check_config(app, project, &found, &request.config).await?;
    let account = accounts::account_for_trigger(
        app,
        project,
        &found.release.slug,
        request.account.as_ref(),
        request.user_id,
    )
    .await?;
    let identity = config::identity(app, &found.trigger.slug, &account.id, &config);
    let (action, recipe) = match request.action {
        Some(Some(requested)) => {
            let stored = stored_action(app, project, &identity).await?;
            let action = requested.replacing(app, stored);
            let recipe = action.check(app, project, &account).await?;
            (Some(Some(action)), recipe)
        }
        Some(None) => (Some(None), None),
        None => (None, None),
    };
    let wanted = Wanted {
        identity,
        subscription,
        found: &found,
        account,
        config,
        schedule: request.schedule,
        action,
        recipe,
    };
    match wanted.store(app, project).await {
        // Another request created the instance first.
        Err(EditError::Commit(CommitError::Taken {
            field: "identity", ..
        })) => Ok(wanted.store(app, project).await?),
        done => Ok(done?),
    }
}

/// Returns the action of the instance with an identity, if there is one.
async fn stored_action(app: &App, project: &Project, identity: &str) -> Result<Option<Action>> {
    let query = Query::for_project(project.id.as_str()).is("identity", identity);
    let Some(instance) = app.store.first::<Instance>(query).await? else {
        return Ok(None);
    };
    let progress = Progress::get(app, &project.id, &instance.id).await?;
    let seal = Seal::new(app, &project.id, &instance.id).await?;
    seal.open_action(&progress.body)
}

/// Checks a configuration. Returns it without the members that are null where the schema does not
/// allow null. Secrets of a webhook trigger may be those of an endpoint instead, or of the returned
/// subscription at the provider.
async fn check_config<'a>(
    app: &App,
    project: &SharedProject,
    found: &'a ResolvedTrigger,
    config: &Config,
) -> Result<(Config, Option<subscribing::Wanted<'a>>)> {
    let mut complete = config.clone();
    let mut subscription = None;
    if found.trigger.kind.receives_webhooks() {
        let values = endpoints::values_of_toolkit(app, project, &found.release.slug).await?;
        subscription = subscribing::Wanted::new(found, config, &values);
        for (name, value) in values {
            if complete.get(&name).is_none_or(Value::is_null) {
                complete.insert(name, value);
            }
        }
    }
    if let Some(subscription) = &subscription {
        subscription.complete(&mut complete);
    }
    let mut accepted = config::accept(app, project, &found.trigger, config, &complete).await?;
    accepted.retain(|name, value| {
        let given = config.get(name);
        given.is_some_and(|given| !given.is_null() || value.is_null())
    });
    Ok((accepted, subscription))
}

/// A validated request.
struct Wanted<'a> {
    found: &'a ResolvedTrigger,
    subscription: Option<subscribing::Wanted<'a>>,
    account: Record<Account>,
    config: Config,
    identity: String,
    schedule: Schedule,
    action: Option<Option<Action>>,
    /// Copy of the recipe, if the action runs one.
    recipe: Option<Value>,
}

impl Wanted<'_> {
    async fn store(
        &self,
        app: &App,
        project: &SharedProject,
    ) -> std::result::Result<Upserted, EditError<Error>> {
        let change = app
            .store
            .change(&accounts::COLLECTION, &self.account.id, || async {
                let id = AccountId::parse(&self.account.id)?;
                let account = accounts::active_account(app, project, &id).await?;
                let batch = Batch::at(app.clock.now()).check(&account);
                let query =
                    Query::for_project(project.id.as_str()).is("identity", self.identity.as_str());
                match app.store.first::<Instance>(query).await? {
                    Some(existing) => self.update(app, project, batch, existing).await,
                    None => self.create(app, project, batch, &account).await,
                }
            });
        change.await
    }

    fn sealed_recipe(&self, seal: &Seal<'_>) -> Result<Option<Sealed<Value>>> {
        let recipe = self.recipe.as_ref();
        recipe.map(|recipe| seal.recipe(recipe)).transpose()
    }

    /// Adds the changes of an existing instance to a batch.
    async fn update(
        &self,
        app: &App,
        project: &SharedProject,
        batch: Batch,
        mut instance: Record<Instance>,
    ) -> Result<(Batch, Upserted)> {
        let now = app.clock.now();
        let mut progress = Progress::get(app, &project.id, &instance.id).await?;
        let is_rescheduled =
            self.schedule != Schedule::default() && self.schedule != progress.body.schedule;
        if is_rescheduled {
            progress.body.schedule = self.schedule.clone();
        }
        let seal = Seal::new(app, &project.id, &instance.id).await?;
        let stored = seal.open_action(&progress.body)?;
        let stored_recipe = seal.open_recipe(&progress.body)?;
        let action = self.action.as_ref();
        let action = action.filter(|action| **action != stored || self.recipe != stored_recipe);
        if let Some(action) = action {
            let sealed = action.as_ref().map(|action| seal.action(action));
            progress.body.action = sealed.transpose()?;
            progress.body.recipe = self.sealed_recipe(&seal)?;
            instance.body.action = action.as_ref().map(Action::mode);
        }
        let starts = is_rescheduled || !instance.body.is_enabled();
        if starts {
            progress.body.start(self.found.trigger.kind, now);
        }
        instance.body.enable(now);
        instance.body.version = self.found.release.version.to_string();
        let upserted = Upserted {
            id: instance.id.clone(),
            uuid: instance.body.uuid,
            created: false,
        };
        let mut batch = batch;
        if instance.body.subscription.is_some() {
            batch = subscribing::start(app, project.id.as_str(), batch, &instance.body).await?;
        } else if let Some(subscription) = &self.subscription {
            let id = TriggerInstanceId::parse(&instance.id)?;
            let of = (&id, &mut instance.body);
            let added = subscription.add(app, &project.id, batch, of, &self.config);
            batch = added.await?;
        }
        batch = batch.update(&instance);
        // A record written without need would make a running poll start again.
        if starts || action.is_some() {
            batch = batch.update(&progress);
        }
        Ok((batch, upserted))
    }

    /// Adds a new instance to a batch.
    async fn create(
        &self,
        app: &App,
        project: &SharedProject,
        batch: Batch,
        account: &Record<Account>,
    ) -> Result<(Batch, Upserted)> {
        let owner = project.id.as_str();
        let all = Query::for_project(owner).page(0, 0);
        let count = app.store.rows(&COLLECTION, &all).await?.total;
        if count >= app.triggers.max_instances {
            return Err(errors::too_many_instances(app.triggers.max_instances));
        }
        let config = auth_configs::get(app, project, &account.body.auth_config).await?;
        let action = self.action.as_ref().and_then(Option::as_ref);
        let id = TriggerInstanceId::random();
        let now = app.clock.now();
        let mut instance = Instance {
            trigger: self.found.trigger.slug.to_string(),
            toolkit: self.found.release.slug.to_string(),
            version: self.found.release.version.to_string(),
            user_id: account.body.user_id.clone(),
            account: AccountId::parse(&account.id)?,
            account_uuid: account.body.uuid,
            auth_config: account.body.auth_config.clone(),
            auth_config_uuid: config.body.uuid,
            uuid: Uuid::new_v4(),
            identity: self.identity.clone(),
            action: action.map(Action::mode),
            subscription: None,
            disabled_at: None,
            disabled_reason: None,
            changed_at: now,
        };
        let mut progress = Progress::new(app, &project.id, &id, &self.config, action).await?;
        progress.recipe = self.sealed_recipe(&Seal::new(app, &project.id, id.as_str()).await?)?;
        progress.schedule = self.schedule.clone();
        progress.start(self.found.trigger.kind, now);
        count_record(app, project, &instance)?;
        count_record(app, project, &progress)?;
        let upserted = Upserted {
            id: id.to_string(),
            uuid: instance.uuid,
            created: true,
        };
        let mut batch = batch;
        if let Some(subscription) = &self.subscription {
            let of = (&id, &mut instance);
            let added = subscription.add(app, &project.id, batch, of, &self.config);
            batch = added.await?;
        }
        let batch =
            batch
                .insert(owner, id.as_str(), &instance)
                .insert(owner, id.as_str(), &progress);
        Ok((batch, upserted))
    }
}
