//! The caller on whose behalf the tools of a run are executed.

use bytes::Bytes;

use super::record::{Origin, RecipeRun};
use crate::{
    App, Result, accounts,
    agents::{
        CallerRights, SessionCaller, SessionExecute, errors, execute,
        meta::{self, MetaTool},
    },
    catalog::LATEST,
    core::{ids::AccountId, shown_slug},
    projects::SharedProject,
    runs::{self, Execution, Input, ToolCall},
};

/// The caller on whose behalf the tools of a run are executed.
pub(super) struct StepCaller<'a> {
    pub(super) project: SharedProject,
    pub(super) run: &'a RecipeRun,
    /// Id of the run, by which the log can be searched for its steps.
    pub(super) id: &'a str,
}

impl StepCaller<'_> {
    /// Returns true if a repeated call of a tool has no further effect.
    pub(super) fn is_repeatable(&self, app: &App, tool: &str) -> bool {
        let resolved = app.catalog.snapshot().find_tool(tool, LATEST);
        resolved
            .is_some_and(|resolved| resolved.tool.hints.read_only || resolved.tool.hints.idempotent)
    }

    /// Executes a tool of a step. `account` is the id or the alias of the account that it names.
    /// Fails if nothing ran, or with [`errors::TURN_LOST`] after a script was ended.
    pub(super) async fn execute(
        &self,
        app: &App,
        tool: &str,
        arguments: Bytes,
        account: Option<&str>,
    ) -> Result<Execution> {
        match &self.run.origin {
            Origin::Session(session) => {
                // The session may have changed since the last step, and the credential been revoked.
                if let Some(credential) = &self.run.credential {
                    credential.check(app).await?;
                }
                let rights = CallerRights {
                    credential: self.run.credential.clone(),
                    proxy: self.run.may_proxy,
                    ..CallerRights::default()
                };
                let id = self.id.into();
                let caller = SessionCaller::open(app, &self.project, session, id, rights).await?;
                if let Some(script) = MetaTool::from_slug(tool) {
                    return Box::pin(meta::execute(app, &caller, script, arguments)).await;
                }
                let request = SessionExecute {
                    tool: tool.to_owned(),
                    arguments,
                    account: account.map(str::to_owned),
                };
                execute::execute_tool(app, &caller, request).await
            }
            Origin::Trigger {
                toolkit,
                account: own,
            } => {
                if MetaTool::from_slug(tool).is_some() {
                    return Err(errors::invalid(
                        "the action of a trigger instance has no workbench for a script",
                    ));
                }
                let resolved = app.catalog.tool(tool, LATEST)?;
                let slug = &*resolved.release.slug;
                let account = match account {
                    Some(named) => Some(self.named_account(app, slug, named).await?),
                    None if *slug == **toolkit => Some(own.clone()),
                    None if resolved.tool.no_auth => None,
                    None => Some(self.default_account(app, slug).await?),
                };
                let call = ToolCall {
                    user_id: Some(self.run.user_id.clone()),
                    account,
                    custom: None,
                    session: None,
                    input: Input::Arguments(arguments),
                    request_id: self.id.into(),
                };
                runs::execute(app, &self.project, &resolved, call).await
            }
        }
    }

    /// Returns the account that a session of the user uses by default.
    async fn default_account(&self, app: &App, toolkit: &str) -> Result<AccountId> {
        let user = &self.run.user_id;
        let usable = accounts::session_accounts(app, &self.project, user, toolkit, None).await?;
        match usable.first() {
            Some(newest) => AccountId::parse(&newest.record.id),
            None => {
                let note =
                    accounts::inactive_account_note(app, &self.project, user, toolkit).await?;
                Err(errors::no_active_connection(user, toolkit, &note))
            }
        }
    }

    async fn named_account(&self, app: &App, toolkit: &str, named: &str) -> Result<AccountId> {
        let user = &self.run.user_id;
        let account = accounts::find_by_id_or_alias(app, &self.project, user, toolkit, named)
            .await?
            .ok_or_else(|| {
                let named = shown_slug(named);
                errors::invalid(format!(
                    "account: {named} is not an account of user `{user}` for toolkit {toolkit}"
                ))
            })?;
        AccountId::parse(&account.id)
    }
}
