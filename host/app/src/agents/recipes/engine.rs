//! The steps of a run.
//!
//! A resumed run goes through the recipe from its start. A call of a tool that has ended before is not
//! repeated: its stored result is used. The way through the recipe depends on its input and on these
//! results alone, so that it is the same each time.
//!
//! The record of a call is stored before its tool starts. If a server is lost after that, the tool may
//! have had its effect. A read-only or idempotent tool then runs again; any other one does not, and the
//! run fails with an unknown outcome. So does a run whose script has lost the turn of its session while
//! it ran.

use std::{collections::HashMap, fmt::Display};

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use store::{Batch, Record};
use tokio::task::yield_now;

use super::{
    MAX_CALLS, MAX_LOOP_ITEMS, MAX_RUN_DATA_BYTES, MAX_RUN_ITEMS,
    definition::{Definition, INPUT_ROOT, ITEM_ROOT, STEPS_ROOT, Step},
    record::{self, CallResult, Plan, RecipeRun, RunSeal, StoredCall},
    step_caller::StepCaller,
};
use crate::{
    App, Error, Result,
    agents::{errors, meta::MetaTool},
    core::mapping::{Filling, Root},
    work::Claim,
};

/// Error of a run whose tool must not run again.
const OUTCOME_UNKNOWN: &str =
    "outcome_unknown: the tool was interrupted while it ran, and it is unknown if it had an effect";

/// The reason why a run does not continue.
#[derive(Debug)]
pub(super) enum Stop {
    /// The run has failed.
    Failed(String),
    /// The run is retried later. Nothing ran that is not recorded.
    Later(Error),
}

impl From<Error> for Stop {
    fn from(cause: Error) -> Self {
        if cause.info().class.may_pass() {
            Self::Later(cause)
        } else {
            Self::Failed(cause.to_string())
        }
    }
}

pub(super) type StepResult<T> = std::result::Result<T, Stop>;

/// A run in progress.
pub(super) struct Engine<'a> {
    app: &'a App,
    claim: &'a Claim<RecipeRun>,
    caller: StepCaller<'a>,
    seal: RunSeal<'a>,
    input: Value,
    /// Results of steps, by their names.
    results: Value,
    /// Calls that an earlier attempt has started, by their paths.
    begun: HashMap<String, Record<StoredCall>>,
    call_count: usize,
    /// Items of loops so far.
    item_count: usize,
    /// Bytes of data that further calls may return.
    data_room: usize,
}

impl<'a> Engine<'a> {
    /// Runs the steps of a recipe that have not run yet, and returns its output.
    pub(super) async fn run(
        app: &'a App,
        claim: &'a Claim<RecipeRun>,
        caller: StepCaller<'a>,
        plan: Plan,
        seal: RunSeal<'a>,
    ) -> StepResult<Value> {
        let begun = record::calls_of(app, claim.project(), claim.id()).await?;
        let mut engine = Self {
            app,
            claim,
            caller,
            seal,
            input: plan.input.into(),
            results: Map::new().into(),
            begun: begun
                .into_iter()
                .map(|call| (call.body.place.clone(), call))
                .collect(),
            call_count: 0,
            item_count: 0,
            data_room: MAX_RUN_DATA_BYTES,
        };
        let Definition { steps, output, .. } = plan.definition;
        engine.steps(&steps, "", None).await?;
        if let Some(output) = output {
            return engine.fill(&output, None);
        }
        let last = steps.last().map(|step| &engine.results[&step.name]["data"]);
        Ok(last.cloned().unwrap_or_default())
    }

    /// Runs the steps of a group, or of the recipe.
    fn steps<'s>(
        &'s mut self,
        steps: &'s [Step],
        prefix: &'s str,
        item: Option<&'s Value>,
    ) -> BoxFuture<'s, StepResult<()>> {
        Box::pin(async move {
            for step in steps {
                let place = format!("{prefix}{}", step.name);
                let result = match &step.for_each {
                    None => self.once(step, &place, item).await?,
                    Some(list) => self.for_each(step, list, &place, item).await?,
                };
                self.results[&step.name] = result;
            }
            Ok(())
        })
    }

    /// Runs a step for each item of a list. Its data is the list of their data.
    async fn for_each(
        &mut self,
        step: &Step,
        list: &Value,
        place: &str,
        item: Option<&Value>,
    ) -> StepResult<Value> {
        let items = loop_items(self.fill(list, item)?).map_err(|problem| failed(place, problem))?;
        let mut data = Vec::new();
        let mut errors = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let place = format!("{place}[{index}]");
            self.item_count += 1;
            if self.item_count > MAX_RUN_ITEMS {
                let problem =
                    format!("the loops of the run have more than {MAX_RUN_ITEMS} items together");
                return Err(failed(&place, problem));
            }
            // An item whose steps are skipped waits for nothing.
            yield_now().await;
            let mut result = self.once(step, &place, Some(item)).await?;
            data.push(result["data"].take());
            errors.push(result["error"].take());
        }
        Ok(json!({ "data": data, "errors": errors }))
    }

    /// Runs a step once, if its condition holds.
    async fn once(&mut self, step: &Step, place: &str, item: Option<&Value>) -> StepResult<Value> {
        if let Some(condition) = &step.condition {
            let holds = condition.holds(&self.roots(item));
            if !holds.map_err(|problem| failed(place, problem))? {
                return Ok(json!({ "data": null, "error": null, "skipped": true }));
            }
        }
        let script = step.script.as_ref();
        let tool = script.map(|_| MetaTool::RemoteWorkbench.slug());
        let CallResult { data, error } = match step.tool_slug.as_deref().or(tool) {
            Some(tool) => self.call(step, tool, place, item).await?,
            None => self.group(step, place, item).await?,
        };
        Ok(json!({ "data": data, "error": error, "skipped": false }))
    }

    /// Runs a group of steps. Its data has the data of each step, by name.
    async fn group(
        &mut self,
        step: &Step,
        place: &str,
        item: Option<&Value>,
    ) -> StepResult<CallResult> {
        self.steps(&step.steps, &format!("{place}."), item).await?;
        let mut data = Map::new();
        for inner in &step.steps {
            data.insert(inner.name.clone(), self.results[&inner.name]["data"].take());
        }
        let (data, error) = (data.into(), None);
        Ok(CallResult { data, error })
    }

    /// Calls a tool, or returns the result of the call that an earlier attempt has made.
    async fn call(
        &mut self,
        step: &Step,
        tool: &str,
        place: &str,
        item: Option<&Value>,
    ) -> StepResult<CallResult> {
        self.call_count += 1;
        if self.call_count > MAX_CALLS {
            let problem = format!("the run has more than {MAX_CALLS} calls of tools");
            return Err(failed(place, problem));
        }
        let before = self.begun.remove(place);
        let earlier_result = before
            .as_ref()
            .map(|call| self.seal.call_result(call))
            .transpose()?;
        let result = match earlier_result.flatten() {
            Some(result) => result,
            None => self.execute(step, tool, place, item, before).await?,
        };
        let size = result.data.to_string().len();
        self.data_room = self.data_room.checked_sub(size).ok_or_else(|| {
            let problem = format!("the data of all steps has more than {MAX_RUN_DATA_BYTES} bytes");
            failed(place, problem)
        })?;
        match &result.error {
            Some(error) if !step.continue_on_error => Err(failed(place, error)),
            _ => Ok(result),
        }
    }

    /// Executes a tool and records the call. `before` is the record of a call that did not end.
    async fn execute(
        &mut self,
        step: &Step,
        tool: &str,
        place: &str,
        item: Option<&Value>,
        before: Option<Record<StoredCall>>,
    ) -> StepResult<CallResult> {
        let filled = match &step.script {
            Some(script) => Ok(self.script_arguments(script, item)),
            None => Filling::new(&self.roots(item)).members(&step.arguments),
        };
        let arguments = filled.map_err(|problem| failed(place, problem))?;
        let repeatable = self.caller.is_repeatable(self.app, tool);
        let mut call = match before {
            Some(_) if !repeatable => return Err(failed(place, OUTCOME_UNKNOWN)),
            Some(call) => call,
            None => self.begin_call(tool, place).await?,
        };
        let json = serde_json::to_vec(&arguments).map_err(errors::internal)?;
        let (caller, account) = (&self.caller, step.account.as_deref());
        let executed = caller.execute(self.app, tool, json.into(), account);
        let (log_id, result) = match executed.await {
            Ok(execution) => {
                let data = serde_json::from_slice(&execution.data).map_err(errors::internal)?;
                let error = execution.error;
                (Some(execution.log_id), CallResult { data, error })
            }
            // A script may have run tools before it lost its turn.
            Err(cause) if cause.is(&errors::TURN_LOST) => {
                return Err(failed(place, OUTCOME_UNKNOWN));
            }
            // Nothing ran.
            Err(cause) if cause.info().class.may_pass() => {
                self.commit(|batch| batch.purge(&call)).await?;
                return Err(Stop::Later(cause));
            }
            Err(cause) => {
                let (data, error) = (Value::Null, Some(cause.to_string()));
                (None, CallResult { data, error })
            }
        };
        self.seal.complete(&mut call, log_id, &result)?;
        self.commit(|batch| batch.update(&call)).await?;
        Ok(result)
    }

    /// Commits a change of the record of a call.
    async fn commit(&self, change: impl FnOnce(Batch) -> Batch) -> Result<()> {
        let batch = self.claim.batch().await?;
        Ok(self.claim.commit(change(batch)).await?)
    }

    /// Returns the arguments of the workbench for a script, which gets its values as a first line.
    fn script_arguments(&self, script: &str, item: Option<&Value>) -> Map<String, Value> {
        let values = json!({ "input": self.input, "steps": self.results, "item": item });
        // A string of JSON is also one of Python.
        let text = Value::String(values.to_string());
        let code = format!("import json; recipe = json.loads({text})\n{script}");
        Map::from_iter([("code_to_execute".to_owned(), code.into())])
    }

    /// Stores the record of a call whose tool is about to start.
    async fn begin_call(&self, tool: &str, place: &str) -> Result<Record<StoredCall>> {
        let (project, run) = (self.claim.project(), self.claim.id());
        let id = record::call_id(run, self.call_count);
        let call = StoredCall::new(run, tool, place);
        self.commit(|batch| batch.insert(project, &id, &call))
            .await?;
        let stored = self.app.store.get::<StoredCall>(project, &id).await?;
        stored.ok_or_else(|| errors::internal("the record of a call is gone"))
    }

    fn fill(&self, value: &Value, item: Option<&Value>) -> StepResult<Value> {
        let filled = Filling::new(&self.roots(item)).value(value);
        filled.map_err(Stop::Failed)
    }

    fn roots<'r>(&'r self, item: Option<&'r Value>) -> Vec<Root<'r>> {
        let roots = [(INPUT_ROOT, &self.input), (STEPS_ROOT, &self.results)];
        let item = item.map(|item| (ITEM_ROOT, item));
        roots.into_iter().chain(item).collect()
    }
}

fn failed(place: &str, problem: impl Display) -> Stop {
    Stop::Failed(format!("step `{place}`: {problem}"))
}

fn loop_items(list: Value) -> std::result::Result<Vec<Value>, String> {
    match list {
        Value::Array(items) if items.len() <= MAX_LOOP_ITEMS => Ok(items),
        Value::Array(items) => {
            let (count, most) = (items.len(), MAX_LOOP_ITEMS);
            Err(format!(
                "the list has {count} items, and at most {most} are permitted"
            ))
        }
        _ => Err("the value of `for_each` is not a list".to_owned()),
    }
}
