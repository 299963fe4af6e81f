//! Actions of trigger instances: a tool or a recipe that runs for every event of an instance.
//!
//! An event and the run of its action are stored in one batch ([`record`]). A queue executes the tool
//! ([`running`]) as a request of the project would, with arguments into which values of the event are
//! filled ([`mapping`]). A run whose server is lost is repeated only if the tool is read-only, so that
//! no event causes an effect twice. A recipe goes on where it was instead.

mod recipes;
mod record;
pub(crate) mod running;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::Record;

pub(crate) use self::{
    recipes::{RecipeAction, RecipeActions},
    record::{COLLECTION, add},
};
pub use self::{
    record::{ActionRun, ActionRunView, RunStatus, list},
    running::MAX_ATTEMPTS,
};
use super::config;
use crate::{
    App, Result,
    accounts::{self, Account},
    catalog::{LATEST, ResolvedTool},
    core::{ids::AccountId, mapping},
    events::errors,
    projects::Project,
};

/// Maximum size of the arguments of an action as JSON, before values are filled in, in bytes.
pub const MAX_ARGUMENTS_BYTES: usize = 64 << 10;

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

/// Relation of the action of an instance to webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ActionMode {
    BesideWebhooks,
    InsteadOfWebhooks,
}

/// The tool or the recipe of an action, as found.
enum Target {
    Tool(ResolvedTool),
    Recipe,
}

impl Action {
    /// Finds the tool, or the recipe if no tool has the slug.
    fn target(&self, app: &App) -> Result<Target> {
        if app.recipe_actions.is_recipe(app, &self.tool) {
            return Ok(Target::Recipe);
        }
        let found = app.catalog.tool(&self.tool, &self.version)?;
        Ok(Target::Tool(found))
    }

    pub(super) fn mode(&self) -> ActionMode {
        if self.replaces_webhook {
            ActionMode::InsteadOfWebhooks
        } else {
            ActionMode::BesideWebhooks
        }
    }

    /// Checks a requested action of an instance with this account.
    ///
    /// # Errors
    /// Fails if the tool or the recipe does not exist, the arguments are too large or have an invalid
    /// placeholder, or no account of the project can be used for the tool.
    pub(super) async fn check(
        &self,
        app: &App,
        project: &Project,
        own: &Record<Account>,
    ) -> Result<()> {
        let target = self.target(app)?;
        if config::text(&self.arguments)?.len() > MAX_ARGUMENTS_BYTES {
            return Err(errors::invalid(format!(
                "action.arguments: at most {MAX_ARGUMENTS_BYTES} bytes as JSON"
            )));
        }
        mapping::fill_members(&self.arguments, &[(EVENT_ROOT, &Value::Null)])
            .map_err(|problem| errors::invalid(format!("action.arguments: {problem}")))?;
        let Account {
            toolkit, user_id, ..
        } = &own.body;
        let own = AccountId::parse(&own.id)?;
        let found = match target {
            Target::Tool(found) => found,
            Target::Recipe => return self.check_recipe(app, project, user_id).await,
        };
        let (user, account) = self.credential(&found, toolkit, user_id, &own);
        accounts::check_account_for_tool(app, project, &found, user, account.as_ref()).await
    }

    /// Checks that the user has the recipe, and that nothing is named that its steps decide.
    async fn check_recipe(&self, app: &App, project: &Project, user: &str) -> Result<()> {
        let problem = if self.account.is_some() {
            "action.connected_account_id: the steps of a recipe name their accounts"
        } else if self.version != LATEST {
            "action.version: a recipe runs in its newest version"
        } else {
            let user = self.user_id.as_deref().unwrap_or(user);
            return app
                .recipe_actions
                .check(app, project, user, &self.tool)
                .await;
        };
        Err(errors::invalid(problem))
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
