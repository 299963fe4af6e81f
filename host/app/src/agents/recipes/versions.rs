//! Older versions of recipes in the store.
//!
//! The record of a recipe has its current content. What a change replaces becomes a record of its own in
//! the same batch, which erases the oldest one. Versions that an earlier release has replaced are gone.

use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Erasure, Field, Kind, Query, Record};

use super::{
    definition::Definition,
    permitted,
    stored::{OpenRecipe, Recipe, get},
};
use crate::{
    App, Result,
    agents::{SessionCaller, errors},
    core::vault::{DataKey, SealContext, Sealed},
    projects::Project,
};

pub(crate) static VERSIONS_COLLECTION: Collection = Collection {
    name: "recipe_versions",
    erasure: Erasure::Project,
    fields: &[Field::new("recipe", Kind::Text)],
};

/// Number of versions of a recipe that are kept, the current one included.
pub const MAX_VERSIONS: u32 = 20;

/// An older version of a recipe, as stored. Its time of creation is that of the version.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct RecipeVersion {
    recipe: String,
    definition: Sealed<Definition>,
    /// Digest of the limits of the session that stored the scripts, as [`Recipe`] has it. Absent in versions
    /// that an earlier release has replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    script_limits: Option<String>,
}

impl Document for RecipeVersion {
    const COLLECTION: &'static Collection = &VERSIONS_COLLECTION;
}

/// Returns the id of a version. The ids of a recipe sort by number.
fn version_id(recipe: &str, version: u32) -> String {
    format!("{recipe}_{version:010}")
}

/// Returns an older version of a recipe as the recipe that it was. Its number remains that of the recipe.
fn reopened(
    key: &DataKey,
    recipe: &Record<Recipe>,
    older: &Record<RecipeVersion>,
) -> Result<OpenRecipe> {
    let context = SealContext::of(older, "definition");
    let definition: Definition = key.open(context, &older.body.definition)?;
    let mut record = recipe.clone();
    record
        .body
        .script_limits
        .clone_from(&older.body.script_limits);
    record.updated_at = older.created_at;
    Ok(OpenRecipe {
        record,
        definition: definition.cleaned(),
    })
}

/// Adds the current version of a recipe to the batch that replaces it, and erases the oldest one. Fails if the
/// session may not erase that one.
pub(super) async fn keep(
    app: &App,
    caller: &SessionCaller,
    key: &DataKey,
    batch: Batch,
    OpenRecipe { record, definition }: OpenRecipe,
) -> Result<Batch> {
    let id = version_id(&record.id, record.body.version);
    let context = SealContext::new::<RecipeVersion>(&record.project, &id, "definition");
    let version = RecipeVersion {
        recipe: record.id.clone(),
        definition: key.seal(context, &definition)?,
        script_limits: record.body.script_limits.clone(),
    };
    let batch = batch.insert_created(record.updated_at, &record.project, &id, &version);
    let next = record.body.version.saturating_add(1);
    let obsolete_id = version_id(&record.id, next.saturating_sub(MAX_VERSIONS));
    let obsolete = app
        .store
        .get::<RecipeVersion>(&record.project, &obsolete_id)
        .await?;
    purge(app, caller, key, batch, &record, obsolete.as_slice()).await
}

/// Adds the erasure of the older versions of a recipe to a batch. Fails if the session may not erase one of them.
pub(super) async fn purge_all(
    app: &App,
    caller: &SessionCaller,
    key: &DataKey,
    batch: Batch,
    recipe: &Record<Recipe>,
) -> Result<Batch> {
    let query = Query::for_project(&recipe.project).is("recipe", recipe.id.as_str());
    let versions = app.store.find::<RecipeVersion>(&query).await?.records;
    purge(app, caller, key, batch, recipe, &versions).await
}

async fn purge(
    app: &App,
    caller: &SessionCaller,
    key: &DataKey,
    batch: Batch,
    recipe: &Record<Recipe>,
    versions: &[Record<RecipeVersion>],
) -> Result<Batch> {
    for version in versions {
        let version = reopened(key, recipe, version)?;
        permitted::check_stored(app, caller, &version).await?;
    }
    Ok(versions.iter().fold(batch, Batch::purge))
}

/// Returns one of the newest [`MAX_VERSIONS`] versions of a recipe of a user, with the time at
/// which it was stored as the time of its last change. Fails if the user lacks a recipe with the
/// slug, or if the version is not kept.
pub async fn get_version(
    app: &App,
    project: &Project,
    user: &str,
    slug: &str,
    version: u32,
) -> Result<OpenRecipe> {
    let mut recipe = get(app, project, user, slug).await?;
    let record = &recipe.record;
    if record.body.version != version {
        let id = version_id(&record.id, version);
        let slug = &record.body.slug;
        let older = app
            .store
            .get::<RecipeVersion>(&record.project, &id)
            .await?
            .ok_or_else(|| errors::recipe_not_found(format!("{slug} in version {version}")))?;
        let key = app.vault.key(&record.project, app.clock.now()).await?;
        recipe = reopened(&key, record, &older)?;
        recipe.record.body.version = version;
    }
    Ok(recipe)
}
