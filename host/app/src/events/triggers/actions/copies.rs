//! Copies of recipes for actions that an earlier version has stored without one.
//!
//! Such an action runs its recipe as it is when the server starts in this version, whatever is stored under
//! its slug later.

use std::time::Duration;

use serde_json::Value;
use store::{Batch, Query, Record, Window};

use super::Target;
use crate::{
    App, Class, Error, Result,
    core::ids::ProjectId,
    events::triggers::{
        Instance,
        progress::{self, Progress, Seal},
    },
    projects::{self, Project},
    work::JobClaim,
};

/// Interval at which actions are looked at. A server of the earlier version may run at the same
/// time.
pub(crate) const COPIES_INTERVAL: Duration = Duration::from_secs(24 * 3_600);
/// Number of instances that are read at a time.
const INSTANCES_PER_READ: u64 = 64;

/// Adds the copies that actions of all projects lack. This is a job that one server at a time runs.
pub(crate) async fn add_missing(app: &App, claim: &JobClaim) -> Result<()> {
    let mut window = Window::first(INSTANCES_PER_READ);
    loop {
        let query = Query::all_projects().window(window.clone()).uncounted();
        let found = app.store.list::<Instance>(&query).await?;
        let instances = found.items.iter();
        for instance in instances.filter(|instance| instance.body.action.is_some()) {
            let project = ProjectId::parse(&instance.project)?;
            let Some(project) = projects::find(app, &project).await? else {
                continue;
            };
            match copy(app, &project, instance).await {
                // The instance was deleted in the meantime.
                Err(cause) if !matches!(cause.info().class, Class::NotFound | Class::Gone) => {
                    return Err(cause);
                }
                _ => {}
            }
        }
        claim.batch().await?;
        match found.next {
            Some(next) => window = window.after(next),
            None => return Ok(()),
        }
    }
}

/// Returns the copy of the recipe that the action of an instance runs, and adds it if it is missing. Null if
/// the user has no such recipe, or the action runs a tool.
pub(super) async fn copy(
    app: &App,
    project: &Project,
    instance: &Record<Instance>,
) -> Result<Value> {
    let copied = app
        .store
        .change(&progress::COLLECTION, &instance.id, || async {
            let batch = Batch::at(app.clock.now());
            let mut progress = Progress::get(app, &project.id, &instance.id).await?;
            let seal = Seal::new(app, &project.id, &instance.id).await?;
            if let Some(recipe) = seal.open_recipe(&progress.body)? {
                return Ok::<_, Error>((batch, recipe));
            }
            let action = seal.open_action(&progress.body)?;
            let action = action.filter(|action| matches!(action.target(app), Ok(Target::Recipe)));
            let Some(action) = action else {
                return Ok((batch, Value::Null));
            };
            let user = action.user_id.as_ref().unwrap_or(&instance.body.user_id);
            let copy = (app.recipe_actions.copy)(app, project, user, &action.tool);
            let recipe = match copy.await {
                Err(cause) if cause.info().class == Class::NotFound => Value::Null,
                copied => copied?,
            };
            progress.body.recipe = Some(seal.recipe(&recipe)?);
            Ok((batch.update(&progress), recipe))
        });
    Ok(copied.await?)
}
