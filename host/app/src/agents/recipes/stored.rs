//! Recipes in the store.
//!
//! A recipe belongs to one user of a project, because a session acts for its user alone: what the
//! assistant of one user stores must not run with the accounts of another.

use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Erasure, Field, Kind, Query, Record};

use super::{
    MAX_RECIPES, RECIPE_PREFIX,
    check::{self, Walk},
    definition::Definition,
    permitted, versions,
};
use crate::{
    App, Error, Result,
    agents::{SessionCaller, errors},
    catalog::LATEST,
    core::{
        truncate,
        vault::{DataKey, SealContext, Sealed, keyed_hash},
    },
    projects::{
        self, Project,
        record_limits::{self, RecordKind},
    },
};

/// Collection of recipes.
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
    definition: Sealed<Definition>,
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
        let definition = key.open(context, &record.body.definition)?;
        let definition = Definition::cleaned(definition);
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

/// Returns the slug of a recipe that has a name and no slug yet.
fn slug_of(name: &str) -> String {
    let words = name.split(|character: char| !character.is_ascii_alphanumeric());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    format!("{RECIPE_PREFIX}{}", words.join("_").to_ascii_uppercase())
}

/// Creates a recipe of the session's user, or replaces the one with the same slug, which raises its
/// version. Without a slug it is made from the name. Returns the recipe as this call stored it. Fails
/// with every problem of the recipe, if the session may not replace the stored one, or if the user has too
/// many recipes.
pub async fn upsert(
    app: &App,
    caller: &SessionCaller,
    slug: Option<&str>,
    mut definition: Definition,
) -> Result<OpenRecipe> {
    let slug = slug.map_or_else(|| slug_of(&definition.name), normalized);
    check_slug(app, &slug)?;
    let problems = check::problems(app, caller, &mut definition).await?;
    if !problems.is_empty() {
        return Err(errors::recipe_invalid(slug, problems));
    }
    let project = &caller.project;
    let owner = project.id.as_str();
    let user = &caller.config().user_id;
    let id = recipe_id(app, project, user, &slug);
    let key = app.vault.key(owner, app.clock.now()).await?;
    let context = SealContext::new::<Recipe>(owner, &id, "definition");
    let sealed = key.seal(context, &definition)?;
    record_limits::count_bytes(app, owner, sealed.size())?;
    let calls = Walk::calls_of(&definition.steps);
    let script_limits = match calls.values().any(|step| step.script.is_some()) {
        true => permitted::script_limits(caller.config())?,
        false => None,
    };
    let stored = app.store.change(&COLLECTION, &id, || async {
        let before = app.store.get::<Recipe>(owner, &id).await?;
        let now = app.clock.now();
        if let Some(mut recipe) = before {
            let current = OpenRecipe::open(&key, recipe.clone())?;
            permitted::check_stored(app, caller, &current).await?;
            let batch = versions::keep(app, caller, &key, Batch::at(now), current).await?;
            recipe.body.version += 1;
            recipe.body.definition = sealed.clone();
            recipe.body.script_limits = script_limits.clone();
            return Ok::<_, Error>((batch.update(&recipe), recipe.updated(now)));
        }
        let recipes_of_user = Query::for_project(owner)
            .is("user_id", user.as_str())
            .page(0, 0);
        if app.store.rows(&COLLECTION, &recipes_of_user).await?.total >= MAX_RECIPES {
            return Err(errors::too_many_recipes(MAX_RECIPES));
        }
        record_limits::admit(app, &project.id, RecordKind::Recipe, &COLLECTION).await?;
        let recipe = Recipe {
            user_id: user.clone(),
            slug: slug.clone(),
            version: 1,
            definition: sealed.clone(),
            script_limits: script_limits.clone(),
        };
        // A deleted project gets no new recipes.
        let exists = projects::record(app, &project.organization, &project.id).await?;
        let batch = Batch::at(now).check(&exists).insert(owner, &id, &recipe);
        Ok((batch, Record::inserted(owner, &id, now, recipe)))
    });
    Ok(OpenRecipe {
        record: stored.await?,
        definition,
    })
}

fn normalized(slug: &str) -> String {
    slug.trim().to_ascii_uppercase()
}

fn check_slug(app: &App, slug: &str) -> Result<()> {
    let rest = slug.strip_prefix(RECIPE_PREFIX);
    let is_valid = rest.is_some_and(|rest| {
        !rest.is_empty()
            && rest
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    }) && slug.len() <= MAX_SLUG_CHARS;
    let problem = if !is_valid {
        format!(
            "slug: must be `{RECIPE_PREFIX}` with letters, digits and `_`, at most {MAX_SLUG_CHARS} characters"
        )
    } else if app.catalog.snapshot().find_tool(slug, LATEST).is_some() {
        "slug: a tool has this slug".to_owned()
    } else {
        return Ok(());
    };
    Err(errors::recipe_invalid(truncate(slug), problem))
}

/// Returns a recipe of a user. Fails if the user lacks a recipe with the slug.
pub async fn get(app: &App, project: &Project, user: &str, slug: &str) -> Result<OpenRecipe> {
    let (owner, slug) = (project.id.as_str(), normalized(slug));
    let id = recipe_id(app, project, user, &slug);
    let stored = app.store.get::<Recipe>(owner, &id).await?;
    let record = stored.ok_or_else(|| errors::recipe_not_found(truncate(&slug)))?;
    let key = app.vault.key(owner, app.clock.now()).await?;
    OpenRecipe::open(&key, record)
}

/// Returns the recipes of a user, newest first.
pub async fn list(app: &App, project: &Project, user: &str) -> Result<Vec<OpenRecipe>> {
    let owner = project.id.as_str();
    let query = Query::for_project(owner).is("user_id", user).descending();
    let records = app.store.find::<Recipe>(&query).await?.records;
    let key = app.vault.key(owner, app.clock.now()).await?;
    let opened = records
        .into_iter()
        .map(|record| OpenRecipe::open(&key, record));
    opened.collect()
}

/// Deletes a recipe of the session's user with all its versions. Started runs continue, and so do actions
/// of trigger instances. Fails if the user lacks a recipe with the slug, or if the session may not replace
/// one of its versions.
pub async fn remove(app: &App, caller: &SessionCaller, slug: &str) -> Result<()> {
    let (project, user) = (&caller.project, &caller.config().user_id);
    let owner = project.id.as_str();
    let key = app.vault.key(owner, app.clock.now()).await?;
    let id = recipe_id(app, project, user, &normalized(slug));
    let removed = app.store.change(&COLLECTION, &id, || async {
        let stored = app.store.get::<Recipe>(owner, &id).await?;
        let record = stored.ok_or_else(|| errors::recipe_not_found(truncate(slug)))?;
        let recipe = OpenRecipe::open(&key, record)?;
        permitted::check_stored(app, caller, &recipe).await?;
        let batch = Batch::at(app.clock.now()).purge(&recipe.record);
        let batch = versions::purge_all(app, caller, &key, batch, &recipe.record);
        Ok::<_, Error>((batch.await?, ()))
    });
    Ok(removed.await?)
}

fn recipe_id(app: &App, project: &Project, user: &str, slug: &str) -> String {
    let message = format!("{}\0{user}\0{slug}", project.id);
    let hash = keyed_hash(&app.vault.derive("ids of recipes"), message.as_bytes());
    format!("rec_{}", hex::encode(&hash[..16]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_made_from_names() {
        assert_eq!(slug_of("Weekly report, v2"), "RECIPE_WEEKLY_REPORT_V2");
        assert_eq!(slug_of("…"), RECIPE_PREFIX);
        assert!(has_prefix(" recipe_a") && !has_prefix("RECIPES"));
    }
}
