//! The queue of runs.

use std::sync::Arc;

use gate::Shares;
use serde_json::Value;

use super::{
    engine::{Engine, StepResult, Stop},
    record::{self, RecipeRun, RunResult, RunSeal, RunStatus},
    step_caller::StepCaller,
};
use crate::{
    App, Result,
    core::ids::ProjectId,
    projects,
    work::{Admission, Claim, LEASE_TTL, Next, Queue, retry_delay},
};

/// Shares of projects in the runs that one server works on at a time.
pub const RUN_SHARES: Shares = Shares {
    total: 64,
    reserve: 16,
    base: 2,
    cap: 48,
};
/// Times that a run may be interrupted before it fails.
const MAX_INTERRUPTIONS: u32 = 10;

pub(crate) fn queue() -> Queue<RecipeRun, App> {
    Queue {
        name: "recipe_runs",
        shares: RUN_SHARES,
        lease_ttl: LEASE_TTL,
        // The work itself ends a run that was interrupted too often.
        retry_delay,
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
