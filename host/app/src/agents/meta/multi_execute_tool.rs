//! Executes several tools in parallel. Calls fail one by one: an error of one is a part of its result.
//!
//! The result keeps the order of the calls. Data that is too large for the context of a model becomes
//! a file of the project, and the result has a link to it.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::{MetaResult, MetaTool, Workflow, parse};
use crate::{
    App, Result,
    agents::{SessionCaller, SessionExecute, errors, execute, resolve},
    core::ids::LogId,
    files,
};

/// Maximum number of calls.
pub const MAX_CALLS: usize = 50;
/// Maximum number of calls that run at a time, so that other calls of the project find room.
const MAX_CONCURRENT_CALLS: usize = 16;
/// Toolkit of the files of a recipe.
const RECIPE_TOOLKIT: &str = "recipes";
/// Size of the data of a call from which it becomes a file, in bytes, unless the session sets another.
pub const MAX_INLINE_BYTES: usize = 80 << 10;

#[derive(Deserialize)]
struct Arguments {
    tools: Vec<Call>,
    session_id: Option<String>,
}

#[derive(Deserialize)]
struct Call {
    tool_slug: String,
    arguments: Value,
}

#[derive(Serialize)]
struct Data {
    results: Vec<CallResult>,
    total_count: usize,
    success_count: usize,
    error_count: usize,
    session: Workflow,
    remote_file_info: Option<Value>,
    next_steps: Option<String>,
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
    data: Box<RawValue>,
    error: Option<String>,
    successful: bool,
    log_id: LogId,
}

/// Executes the tools.
pub(super) async fn run(app: &App, caller: &SessionCaller, arguments: Value) -> Result<MetaResult> {
    let Arguments { tools, session_id } = parse(MetaTool::MultiExecuteTool, arguments)?;
    if !(1..=MAX_CALLS).contains(&tools.len()) {
        return Err(errors::arguments_invalid(
            MetaTool::MultiExecuteTool.short_slug(),
            format!("tools: must have 1 to {MAX_CALLS} calls"),
        ));
    }
    let calls = tools.into_iter().enumerate();
    let calls = calls.map(|(index, call)| run_one(app, caller, index, call));
    let mut results: Vec<_> = stream::iter(calls)
        .buffer_unordered(MAX_CONCURRENT_CALLS)
        .collect()
        .await;
    results.sort_by_key(|result| result.index);
    let succeeded = results.iter().filter(|result| result.error.is_none());
    let success_count = succeeded.count();
    let total_count = results.len();
    let error_count = total_count - success_count;
    let data = Data {
        results,
        total_count,
        success_count,
        error_count,
        session: Workflow::new(session_id.as_deref()),
        remote_file_info: None,
        next_steps: None,
    };
    let error =
        (error_count > 0).then(|| format!("{error_count} out of {total_count} calls failed"));
    Ok(MetaResult {
        data: serde_json::to_value(data).map_err(errors::internal)?,
        error: error.filter(|_| success_count == 0),
    })
}

async fn run_one(app: &App, caller: &SessionCaller, index: usize, call: Call) -> CallResult {
    let tool_slug = call.tool_slug.clone();
    let (response, error) = match execute_one(app, caller, call).await {
        Ok(response) => {
            let error = response.error.clone();
            (Some(response), error)
        }
        Err(cause) => (None, Some(cause.to_string())),
    };
    CallResult {
        tool_slug,
        index,
        response,
        error,
    }
}

async fn execute_one(app: &App, caller: &SessionCaller, call: Call) -> Result<Response> {
    if MetaTool::from_slug(&call.tool_slug).is_some() {
        return Err(errors::session_invalid(format!(
            "{}: a meta tool cannot be called by another",
            call.tool_slug
        )));
    }
    let request = SessionExecute {
        tool: call.tool_slug.clone(),
        arguments: call.arguments.to_string().into(),
        account: None,
    };
    let execution = execute(app, caller, request).await?;
    let data = inline_or_file(app, caller, &call.tool_slug, execution.data).await?;
    Ok(Response {
        data: serde_json::from_slice(&data).map_err(errors::internal)?,
        successful: execution.error.is_none(),
        error: execution.error,
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
    let most = threshold.map_or(MAX_INLINE_BYTES, |threshold| {
        (threshold as usize).min(MAX_INLINE_BYTES)
    });
    if data.len() <= most {
        return Ok(data);
    }
    let resolved = resolve(app, caller, tool).ok();
    let toolkit = resolved.map_or_else(
        || Arc::from(RECIPE_TOOLKIT),
        |found| found.release.slug.clone(),
    );
    let [data, _] = files::result_as_file(app, &caller.project, (&toolkit, tool), data).await?;
    Ok(data)
}
