//! Executes several tools in parallel. Calls fail one by one: an error of one is a part of its result.
//!
//! The calls run on several tasks, so that they use all processors, and count toward the share of the
//! project. They have one deadline together, so that one that hangs does not withhold the results of the others. The
//! result keeps the order of the calls. Data that is too large for the context of a model becomes a file
//! of the project, and the result has a link to it. All results become a file of the workbench if the call
//! asks for it.

use std::{sync::Arc, time::Duration, vec::IntoIter};

use bytes::Bytes;
use parking_lot::Mutex;
use sandbox::FileChange;
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};
use tokio::{
    task::{JoinSet, yield_now},
    time::{Instant, timeout_at},
};

use super::{MetaTool, Workflow};
use crate::{
    App, Result,
    agents::{
        SessionCaller, SessionExecute, errors, execute, resolve,
        session_files::{self, SANDBOX_FOLDER},
    },
    core::{
        ids::{LogId, random_text},
        json::RawJson,
    },
    files,
};

/// Maximum number of calls.
pub const MAX_CALLS: usize = 50;
/// Maximum number of calls that run at a time, so that other calls of the project find room.
const MAX_CONCURRENT_CALLS: usize = 16;
/// Time after which calls that wait for nothing leave their thread to other requests.
const YIELD_INTERVAL: Duration = Duration::from_micros(250);
/// Folder of the files of the workbench that have results.
const RESULTS_FOLDER: &str = "tool_results";
/// Number of random characters in the name of such a file.
const FILE_NAME_CHARS: usize = 8;
/// Toolkit of the files of a recipe.
const RECIPE_TOOLKIT: &str = "recipes";
/// Size of the data of a call from which it becomes a file, in bytes, unless the session sets another.
pub const MAX_INLINE_BYTES: usize = 80 << 10;

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    tools: Vec<CallArguments<'a>>,
    #[serde(default)]
    sync_response_to_workbench: bool,
    session_id: Option<String>,
}

#[derive(Deserialize)]
struct CallArguments<'a> {
    tool_slug: String,
    #[serde(borrow)]
    arguments: &'a RawValue,
}

struct Call {
    index: usize,
    tool: String,
    arguments: Bytes,
}

#[derive(Serialize)]
struct Data {
    results: Vec<CallResult>,
    total_count: usize,
    success_count: usize,
    error_count: usize,
    session: Workflow,
    remote_file_info: Option<RemoteFile>,
    next_steps: Option<String>,
}

/// A file of the workbench that has all results.
#[derive(Serialize)]
struct RemoteFile {
    file_path: String,
    mimetype: &'static str,
    size: usize,
}

#[derive(Serialize)]
struct CallResult {
    tool_slug: String,
    index: usize,
    response: Option<Response>,
    error: Option<String>,
}

/// The result of a tool that ran.
#[derive(Serialize)]
struct Response {
    data: RawJson,
    error: Option<String>,
    successful: bool,
    log_id: LogId,
}

/// Executes the tools, and returns the data and the failure.
pub(super) async fn run(
    app: &App,
    caller: &SessionCaller,
    arguments: &Bytes,
) -> Result<(Bytes, Option<String>)> {
    let invalid = |problem: String| {
        errors::arguments_invalid(MetaTool::MultiExecuteTool.short_slug(), problem)
    };
    let request: Arguments<'_> =
        serde_json::from_slice(arguments).map_err(|cause| invalid(cause.to_string()))?;
    if !(1..=MAX_CALLS).contains(&request.tools.len()) {
        let problem = format!("tools: must have 1 to {MAX_CALLS} calls");
        return Err(invalid(problem));
    }
    let calls = request.tools.into_iter().enumerate();
    let calls = calls.map(|(index, call)| Call {
        index,
        tool: call.tool_slug,
        arguments: arguments.slice_ref(call.arguments.get().as_bytes()),
    });
    let results = run_all(app, caller, calls.collect()).await?;
    let succeeded = results.iter().filter(|result| result.error.is_none());
    let success_count = succeeded.count();
    let total_count = results.len();
    let error_count = total_count - success_count;
    let (mut remote_file_info, mut next_steps) = (None, None);
    if request.sync_response_to_workbench && caller.config().workbench.enabled {
        // The tools ran, so the caller gets their results in either case.
        match results_as_file(app, caller, &results).await {
            Ok(file) => remote_file_info = Some(file),
            Err(cause) => {
                let reason = format!("The results are no file of the workbench: {cause}");
                next_steps = Some(reason);
            }
        }
    }
    let data = Data {
        results,
        total_count,
        success_count,
        error_count,
        session: Workflow::new(request.session_id.as_deref()),
        remote_file_info,
        next_steps,
    };
    let error =
        (error_count > 0).then(|| format!("{error_count} out of {total_count} calls failed"));
    let data = serde_json::to_vec(&data).map_err(errors::internal)?;
    Ok((data.into(), error.filter(|_| success_count == 0)))
}

/// Runs calls on several tasks, each of which takes one call after another. Returns the results in the
/// order of the calls. Dropping the future aborts the tasks, which cancels their runs.
async fn run_all(app: &App, caller: &SessionCaller, calls: Vec<Call>) -> Result<Vec<CallResult>> {
    let deadline = Instant::now() + app.sessions.multi_execute_timeout;
    let total_count = calls.len();
    let waiting = Arc::new(Mutex::new(calls.into_iter()));
    let mut tasks = JoinSet::new();
    for _ in 0..total_count.min(MAX_CONCURRENT_CALLS) {
        let app = app.shared()?;
        let caller = caller.clone();
        let waiting = waiting.clone();
        tasks.spawn(async move {
            let owner = app.shares.owner(&caller.project.tenant);
            let calls = run_waiting(&app, &caller, deadline, &waiting);
            app.shares.measure(&owner, calls).await
        });
    }
    let mut results = Vec::with_capacity(total_count);
    while let Some(ended) = tasks.join_next().await {
        results.extend(ended.map_err(errors::internal)?);
    }
    results.sort_by_key(|result: &CallResult| result.index);
    Ok(results)
}

/// Runs one call after another until none waits.
async fn run_waiting(
    app: &App,
    caller: &SessionCaller,
    deadline: Instant,
    waiting: &Mutex<IntoIter<Call>>,
) -> Vec<CallResult> {
    let next = || waiting.lock().next();
    let mut results = Vec::new();
    let mut yielded_at = Instant::now();
    while let Some(call) = next() {
        results.push(run_one(app, caller, deadline, call).await);
        if yielded_at.elapsed() >= YIELD_INTERVAL {
            yield_now().await;
            yielded_at = Instant::now();
        }
    }
    results
}

/// Stores results as a file of the workbench.
async fn results_as_file(
    app: &App,
    caller: &SessionCaller,
    results: &[CallResult],
) -> Result<RemoteFile> {
    let content = serde_json::to_vec(results).map_err(errors::internal)?;
    let size = content.len();
    let path = format!("{RESULTS_FOLDER}/{}.json", random_text(FILE_NAME_CHARS));
    let change = FileChange {
        path: path.clone(),
        content: Some(content.into()),
    };
    session_files::apply(app, caller, vec![change], None, None).await?;
    Ok(RemoteFile {
        file_path: format!("{SANDBOX_FOLDER}/{path}"),
        mimetype: "application/json",
        size,
    })
}

async fn run_one(app: &App, caller: &SessionCaller, deadline: Instant, call: Call) -> CallResult {
    let index = call.index;
    let tool_slug = call.tool.clone();
    let seconds = app.sessions.multi_execute_timeout.as_secs();
    let ended = async {
        if Instant::now() >= deadline {
            return Err(format!(
                "the call was not started, because the calls before it took {seconds} s"
            ));
        }
        // Dropping a call cancels its run.
        match timeout_at(deadline, execute_one(app, caller, call)).await {
            Ok(executed) => executed.map_err(|cause| cause.to_string()),
            Err(_) => Err(format!(
                "the call was cancelled, because the calls have {seconds} s together; it may have had effects"
            )),
        }
    };
    let (response, error) = match ended.await {
        Ok(response) => {
            let error = response.error.clone();
            (Some(response), error)
        }
        Err(reason) => (None, Some(reason)),
    };
    CallResult {
        tool_slug,
        index,
        response,
        error,
    }
}

async fn execute_one(app: &App, caller: &SessionCaller, call: Call) -> Result<Response> {
    let tool = call.tool;
    if MetaTool::from_slug(&tool).is_some() {
        return Err(errors::session_invalid(format!(
            "{tool}: a meta tool cannot be called by another"
        )));
    }
    let request = SessionExecute {
        tool: tool.clone(),
        arguments: call.arguments,
        account: None,
    };
    let execution = execute(app, caller, request).await?;
    let stored = inline_or_file(app, caller, &tool, execution.data).await;
    // The tool ran, so the caller gets the id of its record in either case.
    let (data, error) = match stored {
        Ok(data) => (data, execution.error),
        Err(cause) => {
            let kind = sandbox::kind::FILE_NOT_KEPT;
            let message = format!("the tool ran, but its result could not be stored: {cause}");
            let data = json!({ "kind": kind, "message": message });
            (data.to_string().into(), Some(format!("{kind}: {message}")))
        }
    };
    Ok(Response {
        data: RawJson(data),
        successful: error.is_none(),
        error,
        log_id: execution.log_id,
    })
}

/// Returns data that fits into the context of a model as it is, and stores other data as a file.
async fn inline_or_file(
    app: &App,
    caller: &SessionCaller,
    tool: &str,
    data: Bytes,
) -> Result<Bytes> {
    let threshold = caller.config().workbench.auto_offload_threshold;
    let is_long = |max: f64| {
        let chars = str::from_utf8(&data).map_or(data.len(), |text| text.chars().count());
        chars as f64 > max
    };
    if data.len() <= MAX_INLINE_BYTES && !threshold.is_some_and(is_long) {
        return Ok(data);
    }
    let toolkit = match resolve(app, caller, tool) {
        Ok(found) => found.release.slug.clone(),
        Err(_) => Arc::from(RECIPE_TOOLKIT),
    };
    let [data, _] = files::result_as_file(app, &caller.project, (&toolkit, tool), data).await?;
    Ok(data)
}
