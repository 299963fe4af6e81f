//! Checks of a requested action.

use serde_json::Value;
use store::Record;

use super::{Action, EVENT_ROOT, Target};
use crate::{
    App, Result,
    accounts::{self, Account},
    catalog::LATEST,
    core::{ids::AccountId, mapping, spelling::shortened},
    events::{errors, triggers::config},
    projects::Project,
};

/// Maximum size of the arguments of an action as JSON, before values are filled in, in bytes.
pub const MAX_ARGUMENTS_BYTES: usize = 64 << 10;

impl Action {
    /// Checks a requested action of an instance with this account. Returns a copy of the recipe, if the
    /// action runs one. Fails if the tool or the recipe does not exist, the arguments are too large or
    /// have an invalid placeholder, or no account of the project can be used for the tool.
    pub(in crate::events::triggers) async fn check(
        &self,
        app: &App,
        project: &Project,
        own: &Record<Account>,
    ) -> Result<Option<Value>> {
        let target = self.target(app)?;
        if config::text(&self.arguments)?.len() > MAX_ARGUMENTS_BYTES {
            let problem = format!("action.arguments: at most {MAX_ARGUMENTS_BYTES} bytes as JSON");
            return Err(errors::invalid(problem));
        }
        errors::refuse_problems(self.placeholder_problems(), errors::invalid)?;
        let account = &own.body;
        let own = AccountId::parse(&own.id)?;
        let found = match target {
            Target::Tool(found) => found,
            Target::Recipe => {
                self.check_recipe()?;
                let user = self.user_id.as_deref().unwrap_or(&account.user_id);
                let copy = (app.recipe_actions.copy)(app, project, user, &self.tool);
                return copy.await.map(Some);
            }
        };
        let (user, account) = self.credential(&found, &account.toolkit, &account.user_id, &own);
        accounts::check_account_for_tool(app, project, &found, user, account.as_ref())
            .await
            .map_err(|cause| cause.inside("action"))?;
        Ok(None)
    }

    fn placeholder_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, value) in &self.arguments {
            let path = format!("action.arguments.{}", shortened(name));
            mapping::add_problems(&mut problems, value, &path, &|placeholder| {
                let root = placeholder.root;
                (root != EVENT_ROOT).then(|| mapping::not_a_placeholder(root, &[EVENT_ROOT]))
            });
        }
        problems
    }

    /// Checks that nothing is named that the steps of the recipe decide.
    fn check_recipe(&self) -> Result<()> {
        let problem = if self.account.is_some() {
            "action.connected_account_id: the steps of a recipe name their accounts"
        } else if self.version != LATEST {
            "action.version: a recipe runs in the version that is the newest when the action is set"
        } else {
            return Ok(());
        };
        Err(errors::invalid(problem))
    }
}
