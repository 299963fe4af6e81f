//! Stores a recipe, or deletes one.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{ARGUMENTS_NAME, MetaResult, MetaTool, meta_result, parse};
use crate::{
    App, Result,
    agents::{
        SessionCaller, errors,
        recipes::{self, Definition},
    },
    core::{
        json,
        spelling::{misspelling, shortened},
    },
    projects::permissions::Area,
};

const DEFINITION_MEMBERS: [&str; 5] = ["name", "description", "input_schema", "steps", "output"];

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
        return meta_result(&json!({ "slug": slug, "deleted": true }), None);
    }
    let stored = recipes::upsert(app, caller, slug, definition(rest)?).await?;
    let recipe = stored.record.body;
    let data = json!({ "slug": recipe.slug, "version": recipe.version, "deleted": false });
    meta_result(&data, None)
}

/// Reads a definition. Fails with every problem, also with fields that are misspelled.
fn definition(members: Map<String, Value>) -> Result<Definition> {
    let unknown = members
        .keys()
        .filter(|name| !DEFINITION_MEMBERS.contains(&name.as_str()));
    let misspelled = unknown.filter_map(|name| {
        let problem = misspelling(name, &DEFINITION_MEMBERS)?;
        Some(format!("{}: {problem}", shortened(name)))
    });
    let mut problems: Vec<_> = misspelled.collect();
    let value = Value::Object(members);
    problems.extend(json::all_problems(
        value.clone(),
        ARGUMENTS_NAME,
        |reader| Definition::deserialize(reader).err(),
    ));
    errors::refuse_problems(problems, |problems| {
        errors::arguments_invalid(OWN_TOOL.slug(), problems)
    })?;
    parse(OWN_TOOL, value)
}
