//! Actions of trigger instances: a tool or a recipe that runs for every event of an instance.
//!
//! An event and the run of its action are stored in one batch ([`record`]). A queue executes the
//! tool ([`running`]) as a request of the project would, with arguments into which values of the
//! event are filled ([`mapping`](crate::core::mapping)). A run whose server is lost is repeated
//! only if the tool is read-only, so that no event causes an effect twice. A recipe resumes where
//! it was instead. The action runs a stored copy of the recipe: only a request that may set actions
//! changes it.

mod check;
mod copies;
mod recipes;
mod record;
mod request;
pub(crate) mod running;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::{
    check::MAX_ARGUMENTS_BYTES,
    record::{ActionRun, ActionRunView, RunStatus, list},
    request::ActionRequest,
    running::{ACTION_SHARES, MAX_ATTEMPTS},
};
pub(crate) use self::{
    copies::{COPIES_INTERVAL, add_missing},
    recipes::{RecipeAction, RecipeActions},
    record::{COLLECTION, add, erase_pending},
};
use crate::{App, Result, catalog::ResolvedTool, core::ids::AccountId, events::event::ActionMode};

/// Root of placeholders in arguments: the event, in the third version of messages.
const EVENT_ROOT: &str = "event";

/// A tool or a recipe that runs for every event of an instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// Slug of the tool or of the recipe.
    pub tool: String,
    /// Version selector of the tool, which is applied at every run.
    pub version: String,
    /// Account with which the tool runs.
    pub account: Option<AccountId>,
    /// User for whom the tool runs.
    pub user_id: Option<String>,
    /// Arguments of the tool, with placeholders for values of the event.
    pub arguments: Map<String, Value>,
    /// True if the events of the instance are not sent to webhook subscriptions.
    pub replaces_webhook: bool,
}

/// The tool or the recipe of an action, as found.
enum Target {
    Tool(ResolvedTool),
    Recipe,
}

impl Action {
    /// Finds the tool, or the recipe if no tool has the slug.
    fn target(&self, app: &App) -> Result<Target> {
        if (app.recipe_actions.is_recipe)(app, &self.tool) {
            return Ok(Target::Recipe);
        }
        let found = app.catalog.tool(&self.tool, &self.version)?;
        Ok(Target::Tool(found))
    }

    pub(super) fn mode(&self) -> ActionMode {
        match self.replaces_webhook {
            true => ActionMode::InsteadOfWebhooks,
            false => ActionMode::BesideWebhooks,
        }
    }

    /// Returns the user and the account with which the tool runs. Without them, they are those of the
    /// instance, the account as far as it is of the same toolkit.
    fn credential(
        &self,
        found: &ResolvedTool,
        toolkit: &str,
        user: &str,
        account: &AccountId,
    ) -> (Option<String>, Option<AccountId>) {
        let is_own = self.user_id.is_none() && *toolkit == *found.release.slug;
        let own = is_own.then(|| account.clone());
        let user = self.user_id.as_deref().unwrap_or(user).to_owned();
        (Some(user), self.account.clone().or(own))
    }
}
