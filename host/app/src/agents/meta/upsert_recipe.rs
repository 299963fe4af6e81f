//! Stores a recipe, or deletes one.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{MetaResult, MetaTool, parse};
use crate::{
    App, Result,
    agents::{
        SessionCaller, errors,
        recipes::{self, Definition},
    },
    core::spelling::misspelling,
    projects::permissions::Area,
};

/// Fields of a definition.
const DEFINITION_MEMBERS: [&str; 5] = ["name", "description", "input_schema", "steps", "output"];
/// Fields that a definition must have, unlike a deletion.
const REQUIRED_MEMBERS: [&str; 2] = ["name", "steps"];

const OWN_TOOL: MetaTool = MetaTool::UpsertRecipe;

#[derive(Deserialize)]
struct Arguments {
    slug: Option<String>,
    #[serde(default)]
    delete: bool,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Stores or deletes the recipe.
pub(super) async fn run(app: &App, caller: &SessionCaller, arguments: Value) -> Result<MetaResult> {
    if !caller.rights.store_recipes {
        // Other sessions and the actions of trigger instances run what is stored.
        return Err(errors::key_permission("write", Area::Sessions.into_str()));
    }
    let Arguments { slug, delete, rest } = parse(OWN_TOOL, arguments)?;
    let slug = slug.as_deref();
    if delete {
        let slug =
            slug.ok_or_else(|| errors::arguments_invalid(OWN_TOOL.slug(), "slug: is required"))?;
        recipes::remove(app, caller, slug).await?;
        return Ok(json!({ "slug": slug, "deleted": true }).into());
    }
    check_members(&rest)?;
    let definition: Definition = parse(OWN_TOOL, rest.into())?;
    let stored = recipes::upsert(app, caller, slug, definition).await?;
    let recipe = stored.record.body;
    Ok(json!({ "slug": recipe.slug, "version": recipe.version, "deleted": false }).into())
}

/// Refuses a definition whose fields are misspelled or missing.
fn check_members(definition: &Map<String, Value>) -> Result<()> {
    let unknown = definition
        .keys()
        .filter(|name| !DEFINITION_MEMBERS.contains(&name.as_str()));
    for name in unknown {
        if let Some(problem) = misspelling(name, &DEFINITION_MEMBERS) {
            let problem = format!("{name}: {problem}");
            return Err(errors::arguments_invalid(OWN_TOOL.slug(), problem));
        }
    }
    let missing: Vec<_> = REQUIRED_MEMBERS
        .iter()
        .filter(|name| !definition.contains_key(**name))
        .map(|name| format!("{name}: is required"))
        .collect();
    if !missing.is_empty() {
        return Err(errors::arguments_invalid(OWN_TOOL.slug(), missing));
    }
    Ok(())
}
