//! The queue of runs, and the callers on whose behalf their tools run.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gate::Shares;
use serde_json::Value;

use super::{
    engine::{Engine, StepResult, Stop},
    record::{self, Origin, RecipeRun, RunResult, RunSeal, RunStatus},
};
use crate::{
    App, Result, accounts,
    agents::{
        CallerRights, SessionCaller, SessionExecute, errors, execute,
        meta::{self, MetaTool},
    },
    catalog::LATEST,
    core::{
        ids::{AccountId, ProjectId},
        truncate,
    },
    projects::{self, SharedProject},
    runs::{self, Execution, Input, ToolCall},
    work::{Admission, Claim, Next, Queue, doubled},
};

/// Shares of projects in the runs that one server works on at a time.
pub const RUN_SHARES: Shares = Shares {
    total: 64,
    reserve: 16,
    base: 2,
    cap: 48,
};
/// Time after which the run of a lost server is taken up. A worker that lives renews its claim.
const LEASE_TTL: Duration = Duration::from_secs(10);
/// Times that a run may be interrupted before it fails.
const MAX_INTERRUPTIONS: u32 = 10;
/// Delay after the first interruption, which doubles with further ones.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Maximum delay after an interruption.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Returns the queue of runs.
pub(crate) fn queue() -> Queue<RecipeRun, App> {
    Queue {
        name: "recipe_runs",
        shares: RUN_SHARES,
        lease_ttl: LEASE_TTL,
        // The work itself ends a run that was interrupted too often.
        retry_delay: |attempts| Some(doubled(MIN_RETRY_DELAY, MAX_RETRY_DELAY, attempts)),
        admission: Admission::by_project(),
        work: |app: &App, claim, ()| Box::pin(work(app, claim)),
    }
}

/// Starts or resumes a run, and works on it until its end.
async fn work(app: &App, claim: Arc<Claim<RecipeRun>>) -> Result<Next> {
    let run = claim.body().await;
    let ended = if run.interruptions >= MAX_INTERRUPTIONS {
        let problem = format!("the run was interrupted {MAX_INTERRUPTIONS} times");
        Err(Stop::Failed(problem))
    } else {
        resume(app, &claim, &run).await
    };
    let (status, output, error) = match ended {
        Ok(output) => (RunStatus::Succeeded, output, None),
        Err(Stop::Failed(error)) => (RunStatus::Failed, Value::Null, Some(error)),
        Err(Stop::Later(cause)) => {
            claim.edit(|run| run.interruptions += 1).await?;
            return Err(cause);
        }
    };
    record::end(app, &claim, status, &RunResult { output, error }).await?;
    Ok(Next::Ended)
}

async fn resume(app: &App, claim: &Claim<RecipeRun>, run: &RecipeRun) -> StepResult<Value> {
    let project = projects::lookup(app, &ProjectId::parse(claim.project())?).await?;
    let caller = StepCaller {
        project: Arc::new(project),
        run,
        id: claim.id(),
    };
    let seal = RunSeal::new(app, claim.project()).await?;
    let plan = seal.plan(app, claim.id(), run).await?;
    let owner = app.shares.owner(&caller.project.tenant);
    let steps = Engine::run(app, claim, caller, plan, seal);
    app.shares.measure(&owner, steps).await
}

/// The caller on whose behalf the tools of a run are executed.
pub(super) struct StepCaller<'a> {
    project: SharedProject,
    run: &'a RecipeRun,
    /// Id of the run, by which the log can be searched for its steps.
    id: &'a str,
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
                runs::execute_resolved(app, &self.project, &resolved, call).await
            }
        }
    }

    /// Returns the account that a session of the user uses by default.
    async fn default_account(&self, app: &App, toolkit: &str) -> Result<AccountId> {
        let user = &self.run.user_id;
        let usable = accounts::session_accounts(app, &self.project, user, toolkit, None).await?;
        let newest = usable
            .first()
            .ok_or_else(|| errors::no_active_connection(user, toolkit))?;
        AccountId::parse(&newest.record.id)
    }

    async fn named_account(&self, app: &App, toolkit: &str, named: &str) -> Result<AccountId> {
        let user = &self.run.user_id;
        let account = accounts::find_by_id_or_alias(app, &self.project, user, toolkit, named)
            .await?
            .ok_or_else(|| {
                let named = truncate(named);
                errors::invalid(format!(
                    "account: `{named}` is not an account of user `{user}` for toolkit {toolkit}"
                ))
            })?;
        AccountId::parse(&account.id)
    }
}
