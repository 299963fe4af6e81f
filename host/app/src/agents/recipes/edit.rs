//! Creation, replacement and deletion of recipes.

use store::{Batch, Query, Record};

use super::{
    MAX_RECIPES, RECIPE_PREFIX, check,
    definition::Definition,
    permitted,
    stored::{COLLECTION, MAX_SLUG_CHARS, OpenRecipe, Recipe, missing, normalized, recipe_id},
    versions,
    walk::Walk,
};
use crate::{
    App, Error, Result,
    agents::{SessionCaller, errors},
    catalog::LATEST,
    core::{shown_slug, vault::SealContext},
    projects::{
        self, Project,
        record_limits::{self, RecordKind},
    },
};

/// Returns the slug of a recipe that has a name and no slug yet.
fn slug_of(name: &str) -> String {
    let words: Vec<_> = name
        .split(|character: char| !character.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    format!("{RECIPE_PREFIX}{}", words.join("_").to_ascii_uppercase())
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
    Err(errors::recipe_invalid(shown_slug(slug), problem))
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
    errors::refuse_problems(problems, |problems| errors::recipe_invalid(&slug, problems))?;
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
        admit(app, project, user).await?;
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

/// Refuses a further recipe of a user or a project that has too many.
async fn admit(app: &App, project: &Project, user: &str) -> Result<()> {
    let of_user = Query::for_project(project.id.as_str()).is("user_id", user);
    let count = app
        .store
        .rows(&COLLECTION, &of_user.page(0, 0))
        .await?
        .total;
    if count >= MAX_RECIPES {
        return Err(errors::too_many_recipes(MAX_RECIPES));
    }
    record_limits::admit(app, &project.id, RecordKind::Recipe, &COLLECTION).await
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
        let Some(record) = stored else {
            return Err(missing(app, project, user, slug).await?);
        };
        let recipe = OpenRecipe::open(&key, record)?;
        permitted::check_stored(app, caller, &recipe).await?;
        let purged = Batch::at(app.clock.now()).purge(&recipe.record);
        let batch = versions::purge_all(app, caller, &key, purged, &recipe.record);
        Ok::<_, Error>((batch.await?, ()))
    });
    Ok(removed.await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_made_from_names() {
        assert_eq!(slug_of("Weekly report, v2"), "RECIPE_WEEKLY_REPORT_V2");
        assert_eq!(slug_of("…"), RECIPE_PREFIX);
    }
}
