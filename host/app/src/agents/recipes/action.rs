//! Recipes that run for events of trigger instances.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::time::timeout;

use super::{
    checked_input, get, is_recipe, outcome,
    record::{self, Origin, RunStatus},
    stored::RecipeCopy,
    wait,
};
use crate::{
    App, Result,
    agents::{CallerRights, errors},
    core::ids::RecipeRunId,
    events::triggers::actions::{RecipeAction, RecipeActions},
    projects::Project,
    runs::{self, Execution, HostCall},
};

/// Time for which the action waits for a run that it has started.
const SHORT_RUN: Duration = Duration::from_secs(1);

/// The functions of this module for the actions of trigger instances.
pub(crate) const RECIPE_ACTIONS: RecipeActions = RecipeActions {
    is_recipe,
    copy: |app, project, user, slug| Box::pin(copy(app, project, user, slug)),
    run: |app, action| Box::pin(run(app, action)),
};

async fn copy(app: &App, project: &Project, user: &str, slug: &str) -> Result<Value> {
    let copy = RecipeCopy::from(get(app, project, user, slug).await?);
    serde_json::to_value(copy).map_err(errors::internal)
}

async fn run(app: &App, action: RecipeAction<'_>) -> Result<Option<Execution>> {
    let RecipeAction { project, slug, .. } = action;
    let recipe = serde_json::from_value::<Option<RecipeCopy>>(action.recipe)
        .map_err(errors::internal)?
        .ok_or_else(|| errors::recipe_not_found(slug))?;
    let id = RecipeRunId::for_event(action.event);
    let arguments = Value::Object(action.arguments);
    if record::status(app, project, &id).await?.is_none() {
        let input = checked_input(app, project, &recipe, arguments.clone()).await?;
        let origin = Origin::Trigger {
            toolkit: action.toolkit.to_owned(),
            account: action.account.clone(),
        };
        // An action lacks a workbench, and only scripts of recipes send proxy requests.
        let rights = CallerRights::default();
        record::begin(app, project, &id, &recipe, origin, &rights, input).await?;
        // A longer run is looked at later, so that the action does not occupy a worker.
        if let Ok(waited) = timeout(SHORT_RUN, wait(app, project, &id)).await {
            waited?;
        }
    }
    if record::status(app, project, &id).await? == Some(RunStatus::Running) {
        return Ok(None);
    }
    let call = HostCall {
        project,
        tool: Arc::from(slug),
        user: &recipe.user_id,
        session: None,
        // The log can be searched for the executions of an instance.
        request_id: action.instance.as_str().into(),
        arguments: serde_json::to_vec(&arguments)
            .map_err(errors::internal)?
            .into(),
    };
    let work = outcome(app, project, &recipe.user_id, &id);
    runs::record_host_call(app, call, work).await.map(Some)
}
