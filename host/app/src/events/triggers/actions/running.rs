//! Execution of actions: the work of their queue.
//!
//! A tool with effects is marked as started before it runs. If its server is lost after that, the
//! run has failed with an unknown outcome, and the tool does not run again. It does run again if
//! the provider refused it for its rate limit, since then it did nothing. A read-only tool is
//! repeated after every failure that may pass. A recipe has a run of its own, which continues after
//! its server was lost; the action is due again until it has ended.

use std::{fmt::Display, sync::Arc, time::Duration};

use gate::{PacedPermit, Shares};
use net::MAX_RETRY_AFTER;
use sandbox::kind;
use serde::Deserialize;
use serde_json::{Map, Value};
use store::Record;
use uuid::Uuid;

use super::{
    Action, EVENT_ROOT, RecipeAction, Target, copies,
    record::{self, ActionRun},
};
use crate::{
    App, Error, Result,
    core::{
        clock::time_after,
        ids::{ProjectId, TriggerInstanceId},
        mapping::Filling,
    },
    events::{
        errors,
        event::{Event, MessageVersion},
        message,
        triggers::{
            Instance,
            progress::{Progress, Seal},
        },
    },
    projects::{self, SharedProject},
    runs::{self, Execution, Input, ToolCall},
    work::{Admission, Claim, LEASE_TTL, Next, Queue, doubled, jittered, retry_delay},
};

/// Shares of projects in the actions that one server runs at a time.
pub const ACTION_SHARES: Shares = Shares {
    total: 24,
    reserve: 8,
    base: 1,
    cap: 16,
};
/// Interval at which the run of a recipe is looked at that takes long.
const RECIPE_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum attempts to run the tool for one event.
pub const MAX_ATTEMPTS: u32 = 10;
/// Delay after the first failure, which doubles with further failures.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Maximum delay after a failure.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(300);
/// Error of a run whose tool must not run again.
const OUTCOME_UNKNOWN: &str = "outcome_unknown: the server was lost while the tool ran, and it is unknown if the tool had an effect";
/// Kind of failure of a provider that refused a request for its rate limit.
const RATE_LIMITED: &str = "rate_limited";
/// Kinds of failure after which a read-only tool may succeed.
const PASSING_FAILURES: [&str; 9] = [
    "upstream_unavailable",
    "upstream_error",
    "timeout",
    "connect",
    "dns",
    kind::TIMEOUT,
    kind::HOST,
    kind::MEMORY_BUSY,
    kind::CANCELLED,
];

pub(crate) fn queue() -> Queue<ActionRun, App, PacedPermit> {
    Queue {
        name: "trigger_actions",
        shares: ACTION_SHARES,
        lease_ttl: LEASE_TTL,
        // Attempts that could not start. They end when the event is erased.
        retry_delay,
        admission: Admission {
            key: |run| run.project.clone(),
            acquire: |app, project, now| app.pacer.acquire(project, now.0),
            retry_at: None,
        },
        work: |app: &App, claim, permit| Box::pin(run(app, claim, permit)),
    }
}

/// Makes the next attempt of a run. An error means that nothing ran.
async fn run(app: &App, claim: Arc<Claim<ActionRun>>, mut permit: PacedPermit) -> Result<Next> {
    let project = ProjectId::parse(claim.project())?;
    let run = claim.body().await;
    let Some((project, instance)) = find_instance(app, &project, &run.instance).await? else {
        record::erase_pending(app, &project, &run.instance).await?;
        return Ok(Next::Ended);
    };
    let subject = match Subject::load(app, &claim, &run, project.clone(), instance).await {
        Ok(subject) => subject,
        Err(cause) if cause.info().class.may_pass() => return Err(cause),
        Err(cause) => return fail(app, &claim, &project.id, &cause.to_string()).await,
    };
    let repeatable = subject.is_repeatable();
    if run.started {
        return fail(app, &claim, &project.id, OUTCOME_UNKNOWN).await;
    }
    if run.attempt_count >= MAX_ATTEMPTS {
        let error = "the server was lost during the last attempt";
        return fail(app, &claim, &project.id, error).await;
    }
    if !repeatable {
        claim.edit(|run| run.started = true).await?;
    }
    match subject.execute(app).await {
        Ok(None) => {
            let now = claim.batch().await?.now;
            Ok(Next::At(time_after(now, RECIPE_INTERVAL)))
        }
        Ok(Some(execution)) => {
            permit.accepted(ACTION_SHARES.cap as usize);
            settle(app, &claim, &project.id, execution, repeatable).await
        }
        Err(cause) if cause.info().class.may_pass() => {
            claim.edit(|run| run.started = false).await?;
            Err(cause)
        }
        Err(cause) => fail(app, &claim, &project.id, &cause.to_string()).await,
    }
}

/// Returns the project and the instance of a run, if both exist.
async fn find_instance(
    app: &App,
    project: &ProjectId,
    instance: &TriggerInstanceId,
) -> Result<Option<(SharedProject, Record<Instance>)>> {
    let Some(project) = projects::find(app, project).await? else {
        return Ok(None);
    };
    let owner = project.id.as_str();
    let instance = app.store.get::<Instance>(owner, instance.as_str()).await?;
    Ok(instance.map(|instance| (Arc::new(project), instance)))
}

/// A tool or a recipe to run for an event.
struct Subject {
    project: SharedProject,
    instance: Record<Instance>,
    action: Action,
    target: Target,
    /// Copy of the recipe; null if the action runs a tool.
    recipe: Value,
    arguments: Map<String, Value>,
    event: Uuid,
}

impl Subject {
    /// Reads all that an attempt needs.
    async fn load(
        app: &App,
        claim: &Claim<ActionRun>,
        run: &ActionRun,
        project: SharedProject,
        instance: Record<Instance>,
    ) -> Result<Self> {
        if !instance.body.is_enabled() {
            return Err(errors::instance_disabled(&instance.id));
        }
        let progress = Progress::get(app, &project.id, &instance.id).await?;
        let seal = Seal::new(app, &project.id, &instance.id).await?;
        let action = seal.open_action(&progress.body)?;
        let action = action.ok_or_else(|| errors::instance_without_action(&run.instance))?;
        let owner = project.id.as_str();
        let event = app.store.get::<Event>(owner, claim.id()).await?;
        let event = event.ok_or_else(|| errors::event_not_found(claim.id()))?;
        let message = message::write(app, &event, MessageVersion::V3).await?;
        let malformed =
            |cause: &dyn Display| errors::internal(format_args!("event {}: {cause}", claim.id()));
        let message = serde_json::from_slice(&message).map_err(|cause| malformed(&cause))?;
        let arguments = Filling::new(&[(EVENT_ROOT, &message)])
            .members(&action.arguments)
            .map_err(|problem| errors::invalid(format!("action.arguments: {problem}")))?;
        let target = action.target(app)?;
        let recipe = match (&target, seal.open_recipe(&progress.body)?) {
            (Target::Tool(_), _) => Value::Null,
            (Target::Recipe, Some(recipe)) => recipe,
            (Target::Recipe, None) => copies::copy(app, &project, &instance).await?,
        };
        Ok(Self {
            target,
            recipe,
            project,
            instance,
            action,
            arguments,
            event: Uuid::parse_str(claim.id()).map_err(|cause| malformed(&cause))?,
        })
    }

    /// Returns true if the run can be made again after its server was lost: a read-only tool, or a
    /// recipe, whose run continues.
    fn is_repeatable(&self) -> bool {
        match &self.target {
            Target::Tool(found) => found.tool.hints.read_only,
            Target::Recipe => true,
        }
    }

    /// Runs the tool or the recipe. Returns `None` if the recipe has not ended.
    async fn execute(&self, app: &App) -> Result<Option<Execution>> {
        let instance = &self.instance.body;
        let (toolkit, user_id, account) = (&instance.toolkit, &instance.user_id, &instance.account);
        let tool = match &self.target {
            Target::Tool(tool) => tool,
            Target::Recipe => {
                let action = RecipeAction {
                    project: &self.project,
                    event: self.event,
                    instance: &TriggerInstanceId::parse(&self.instance.id)?,
                    slug: &self.action.tool,
                    recipe: self.recipe.clone(),
                    toolkit,
                    account,
                    arguments: self.arguments.clone(),
                };
                return (app.recipe_actions.run)(app, action).await;
            }
        };
        let (user_id, account) = self.action.credential(tool, toolkit, user_id, account);
        let arguments = serde_json::to_vec(&self.arguments).map_err(errors::internal)?;
        let call = ToolCall {
            user_id,
            account,
            custom: None,
            session: None,
            input: Input::Arguments(arguments.into()),
            // The log can be searched for the executions of an instance.
            request_id: self.instance.id.as_str().into(),
        };
        let executed = runs::execute(app, &self.project, tool, call).await;
        executed.map(Some)
    }
}

/// Members of the data of a failed execution.
#[derive(Deserialize)]
struct FailureData {
    kind: String,
    retry_after_ms: Option<u64>,
}

impl FailureData {
    /// Returns the delay before the next attempt, if the tool may run again.
    fn retry_delay(&self, read_only: bool, attempts: u32) -> Option<Duration> {
        let kind = self.kind.as_str();
        let passes = kind == RATE_LIMITED || (read_only && PASSING_FAILURES.contains(&kind));
        if !passes || attempts >= MAX_ATTEMPTS {
            return None;
        }
        let asked = Duration::from_millis(self.retry_after_ms.unwrap_or(0));
        let delay = jittered(doubled(MIN_RETRY_DELAY, MAX_RETRY_DELAY, attempts));
        Some(delay.max(asked.min(MAX_RETRY_AFTER)))
    }
}

/// Ends an attempt with the result of the tool.
async fn settle(
    app: &App,
    claim: &Claim<ActionRun>,
    project: &ProjectId,
    execution: Execution,
    read_only: bool,
) -> Result<Next> {
    let log_id = execution.log_id;
    let Some(error) = execution.error else {
        return end(claim, |run| {
            run.attempted(log_id);
            run.succeed();
        })
        .await;
    };
    let failure = serde_json::from_slice::<FailureData>(&execution.data).ok();
    let failure = failure.filter(|failure| error.starts_with(&failure.kind));
    let attempts = claim.body().await.attempt_count + 1;
    let delay = failure.and_then(|failure| failure.retry_delay(read_only, attempts));
    let ended = async {
        let sealed = record::seal(app, project, claim.id(), &error).await?;
        Ok::<_, Error>((sealed, claim.batch().await?.now))
    };
    let (sealed, now) = match ended.await {
        Ok(ended) => ended,
        Err(cause) => return Ok(abandon(claim, &cause)),
    };
    end(claim, |run| {
        run.attempted(log_id);
        match delay {
            Some(delay) => run.retry_at(sealed, time_after(now, delay)),
            None => run.fail(sealed),
        }
    })
    .await
}

/// Ends a run as failed.
async fn fail(
    app: &App,
    claim: &Claim<ActionRun>,
    project: &ProjectId,
    error: &str,
) -> Result<Next> {
    tracing::warn!(event = claim.id(), project = %project, "the action of an event has failed");
    let sealed = record::seal(app, project, claim.id(), error).await?;
    end(claim, |run| run.fail(sealed)).await
}

async fn end(claim: &Claim<ActionRun>, change: impl FnOnce(&mut ActionRun)) -> Result<Next> {
    let ended = async {
        claim.end(claim.batch().await?, change).await?;
        Ok::<_, Error>(Next::Ended)
    };
    let ended = ended.await;
    Ok(ended.unwrap_or_else(|cause| abandon(claim, &cause)))
}

/// Leaves a claim to lapse whose end could not be stored. An error would make the queue run the
/// tool again immediately.
fn abandon(claim: &Claim<ActionRun>, cause: &Error) -> Next {
    tracing::warn!(%cause, event = claim.id(), "the end of an action could not be stored");
    Next::Ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_read_only_tools_repeat_unclear_failures() {
        let delay = |kind: &str, read_only, attempts| {
            let failure = FailureData {
                kind: kind.to_owned(),
                retry_after_ms: None,
            };
            failure.retry_delay(read_only, attempts)
        };
        for (kind, read_only, repeats) in [
            (RATE_LIMITED, false, true),
            (RATE_LIMITED, true, true),
            ("upstream_unavailable", true, true),
            ("upstream_unavailable", false, false),
            (kind::TIMEOUT, true, true),
            (kind::TIMEOUT, false, false),
            ("invalid_input", true, false),
            ("unauthorized", true, false),
        ] {
            assert_eq!(delay(kind, read_only, 1).is_some(), repeats, "{kind}");
        }
    }

    #[test]
    fn attempts_and_delays_are_bounded() {
        let failure = FailureData {
            kind: RATE_LIMITED.to_owned(),
            retry_after_ms: Some(7_000),
        };
        let asked = Some(Duration::from_secs(7));
        assert_eq!(failure.retry_delay(false, 1), asked);
        let last = failure.retry_delay(false, MAX_ATTEMPTS - 1);
        assert!(last > asked && last <= Some(MAX_RETRY_DELAY * 6 / 5));
        assert_eq!(failure.retry_delay(false, MAX_ATTEMPTS), None);
        let for_ever = FailureData {
            retry_after_ms: Some(u64::MAX),
            ..failure
        };
        assert_eq!(for_ever.retry_delay(false, 1), Some(MAX_RETRY_AFTER));
    }
}
