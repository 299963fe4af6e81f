//! Recipes in the store.
//!
//! A recipe belongs to one user of a project, because a session acts for its user alone: what the
//! assistant of one user stores must not run with the accounts of another.

use manifest::did_you_mean;
use serde::{Deserialize, Serialize};
use store::{Collection, Document, Erasure, Field, Kind, Query, Record};

use super::{RECIPE_PREFIX, definition::Definition};
use crate::{
    App, Error, Result,
    agents::errors,
    catalog::LATEST,
    core::{
        shown_slug,
        vault::{DataKey, SealContext, Sealed, keyed_hash},
    },
    projects::Project,
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "recipes",
    erasure: Erasure::Project,
    fields: &[Field::new("user_id", Kind::Text)],
};

/// Maximum number of characters of a slug.
pub const MAX_SLUG_CHARS: usize = 64;

/// A recipe, as stored. Its id is derived from its user and its slug.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recipe {
    /// User to whom the recipe belongs.
    pub user_id: String,
    /// Slug, in upper case, with [`RECIPE_PREFIX`].
    pub slug: String,
    /// Number of the version, from 1. Each change raises it.
    pub version: u32,
    pub(super) definition: Sealed<Definition>,
    /// Digest of the limits of the session that stored the scripts of the recipe. Absent without limits or
    /// scripts, and in recipes of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) script_limits: Option<String>,
}

impl Document for Recipe {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// A recipe with its content.
#[derive(Debug)]
pub struct OpenRecipe {
    /// The record.
    pub record: Record<Recipe>,
    /// The content.
    pub definition: Definition,
}

impl OpenRecipe {
    pub(super) fn open(key: &DataKey, record: Record<Recipe>) -> Result<Self> {
        let context = SealContext::of(&record, "definition");
        let opened = key.open(context, &record.body.definition)?;
        let definition = Definition::cleaned(opened);
        Ok(Self { record, definition })
    }
}

/// The content of a recipe for a run, with what names the recipe.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RecipeCopy {
    /// Id of the recipe.
    pub id: String,
    /// User to whom the recipe belongs.
    pub user_id: String,
    /// Slug of the recipe.
    pub slug: String,
    /// Version of the recipe.
    pub version: u32,
    /// The content.
    pub definition: Definition,
}

impl From<OpenRecipe> for RecipeCopy {
    fn from(OpenRecipe { record, definition }: OpenRecipe) -> Self {
        Self {
            id: record.id,
            user_id: record.body.user_id,
            slug: record.body.slug,
            version: record.body.version,
            definition,
        }
    }
}

/// Returns true if a slug is that of a recipe, and not of a tool. The recipe need not exist.
#[must_use]
pub fn is_recipe(app: &App, slug: &str) -> bool {
    has_prefix(slug) && app.catalog.snapshot().find_tool(slug, LATEST).is_none()
}

fn has_prefix(slug: &str) -> bool {
    let prefix = slug.trim().get(..RECIPE_PREFIX.len());
    prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(RECIPE_PREFIX))
}

/// Returns a slug in the form in which it is stored.
pub(super) fn normalized(slug: &str) -> String {
    slug.trim().to_ascii_uppercase()
}

/// Returns a recipe of a user. Fails if the user lacks a recipe with the slug.
pub async fn get(app: &App, project: &Project, user: &str, slug: &str) -> Result<OpenRecipe> {
    let (owner, slug) = (project.id.as_str(), normalized(slug));
    let id = recipe_id(app, project, user, &slug);
    let stored = app.store.get::<Recipe>(owner, &id).await?;
    let Some(record) = stored else {
        return Err(missing(app, project, user, &slug).await?);
    };
    let key = app.vault.key(owner, app.clock.now()).await?;
    OpenRecipe::open(&key, record)
}

/// Returns the error for a recipe that a user lacks, with the similar slug of another one. Fails if the
/// store cannot be read.
pub(super) async fn missing(app: &App, project: &Project, user: &str, slug: &str) -> Result<Error> {
    let records = records_of(app, project, user).await?;
    let similar = did_you_mean(slug, records.iter().map(|record| &*record.body.slug));
    let shown = shown_slug(slug);
    Ok(errors::recipe_not_found(format!("{shown}{similar}")))
}

/// Returns the records of the recipes of a user, newest first.
async fn records_of(app: &App, project: &Project, user: &str) -> Result<Vec<Record<Recipe>>> {
    let query = Query::for_project(project.id.as_str())
        .is("user_id", user)
        .descending();
    Ok(app.store.find::<Recipe>(&query).await?.records)
}

/// Returns the recipes of a user, newest first.
pub async fn list(app: &App, project: &Project, user: &str) -> Result<Vec<OpenRecipe>> {
    let records = records_of(app, project, user).await?;
    let key = app.vault.key(project.id.as_str(), app.clock.now()).await?;
    let opened = records
        .into_iter()
        .map(|record| OpenRecipe::open(&key, record));
    opened.collect()
}

pub(super) fn recipe_id(app: &App, project: &Project, user: &str, slug: &str) -> String {
    let message = format!("{}\0{user}\0{slug}", project.id);
    let hash = keyed_hash(&app.vault.derive("ids of recipes"), message.as_bytes());
    format!("rec_{}", hex::encode(&hash[..16]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_is_that_of_recipes() {
        assert!(has_prefix(" recipe_a") && !has_prefix("RECIPES"));
    }
}
