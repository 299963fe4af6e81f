//! Returns a recipe, the state of a run, or the list of recipes.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{MetaResult, MetaTool, meta_result, parse};
use crate::{
    App, Result,
    agents::{
        SessionCaller, errors,
        recipes::{self, OpenRecipe},
    },
    core::{clock::iso, ids::RecipeRunId},
};

#[derive(Deserialize)]
struct Arguments {
    slug: Option<String>,
    version: Option<u32>,
    run_id: Option<String>,
}

/// Reads what the arguments name.
pub(super) async fn run(app: &App, caller: &SessionCaller, arguments: Value) -> Result<MetaResult> {
    const OWN_TOOL: MetaTool = MetaTool::GetRecipe;
    let arguments: Arguments = parse(OWN_TOOL, arguments)?;
    let project = &caller.project;
    let user = &caller.config().user_id;
    if let Some(id) = arguments.run_id {
        let id = RecipeRunId::parse(id.trim()).map_err(|error| error.at("run_id"))?;
        let recipe_run = recipes::read(app, project, user, &id).await?;
        let view = serde_json::to_value(recipe_run).map_err(errors::internal)?;
        return meta_result(&json!({ "run": view }), None);
    }
    if let Some(slug) = arguments.slug {
        let recipe = match arguments.version {
            Some(version) => recipes::get_version(app, project, user, &slug, version).await?,
            None => recipes::get(app, project, user, &slug).await?,
        };
        let newest_runs = recipes::newest_runs(app, project, &recipe.record.id).await?;
        let runs: Vec<_> = newest_runs
            .iter()
            .map(|run| {
                json!({
                    "run_id": run.id, "version": run.body.version, "status": run.body.status,
                    "created_at": iso(run.created_at),
                })
            })
            .collect();
        return meta_result(&json!({ "recipe": whole(&recipe)?, "runs": runs }), None);
    }
    if arguments.version.is_some() {
        let missing = "slug: is required with `version`";
        return Err(errors::arguments_invalid(OWN_TOOL.slug(), missing));
    }
    let recipes = recipes::list(app, project, user).await?;
    let summaries: Vec<_> = recipes.iter().map(summary).collect();
    meta_result(&json!({ "recipes": summaries }), None)
}

fn summary(found: &OpenRecipe) -> Value {
    let recipe = &found.record.body;
    json!({
        "slug": recipe.slug,
        "version": recipe.version,
        "name": found.definition.name,
        "description": found.definition.description,
        "updated_at": iso(found.record.updated_at),
    })
}

fn whole(found: &OpenRecipe) -> Result<Value> {
    let mut recipe = summary(found);
    let definition = serde_json::to_value(&found.definition).map_err(errors::internal)?;
    if let (Value::Object(recipe), Value::Object(definition)) = (&mut recipe, definition) {
        recipe.extend(definition);
    }
    Ok(recipe)
}
