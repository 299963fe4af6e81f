//! Recipes as actions of trigger instances.

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{
    App, Result,
    core::ids::{AccountId, TriggerInstanceId},
    projects::{Project, SharedProject},
    runs::Execution,
};

/// The functions with recipes that actions need. They belong to a module above this one, and are set
/// where the [`App`] is put together.
pub(crate) struct RecipeActions {
    /// Returns true if a slug is that of a recipe, and not of a tool.
    pub is_recipe: fn(&App, &str) -> bool,
    /// Returns a copy of the recipe of a user with a slug. Fails with the class *not found* if the user
    /// has no such recipe.
    pub copy: for<'a> fn(&'a App, &'a Project, &'a str, &'a str) -> BoxFuture<'a, Result<Value>>,
    /// Runs a recipe for an event. A repeated call for the same event looks at the same run.
    /// Returns `None` if the run has not ended soon. An error means that no run has started, or
    /// that its outcome is not known yet.
    pub run: for<'a> fn(&'a App, RecipeAction<'a>) -> BoxFuture<'a, Result<Option<Execution>>>,
}

/// A recipe to run for an event.
pub(crate) struct RecipeAction<'a> {
    /// Project of the event and of the recipe.
    pub project: &'a SharedProject,
    /// Id of the event.
    pub event: Uuid,
    /// Instance that reported the event.
    pub instance: &'a TriggerInstanceId,
    /// Slug of the recipe.
    pub slug: &'a str,
    /// Copy of the recipe, which is what runs; null if there was no recipe to copy.
    pub recipe: Value,
    /// Toolkit of the instance.
    pub toolkit: &'a str,
    /// Account of the instance, which is used for tools of its toolkit.
    pub account: &'a AccountId,
    /// Arguments of the recipe, with the values of the event filled in.
    pub arguments: Map<String, Value>,
}
