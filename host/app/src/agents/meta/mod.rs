//! The meta tools of a session: tools by which an assistant finds, connects and runs other tools.
//!
//! A meta tool acts for the session and its user alone. Names carry the default operator word; the
//! server replaces it. Each meta tool has a file here, and its description and schemas in `schemas`.

mod definition;
mod get_recipe;
mod get_tool_schemas;
mod manage_connections;
mod multi_execute_tool;
mod proxy_execute;
mod remote_bash_tool;
mod remote_workbench;
mod search_tools;
mod slugs;
mod tool;
mod upsert_recipe;
mod wait_for_connections;
mod workflow;

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

pub(super) use self::slugs::meta_tool_error;
pub use self::{
    definition::Definition,
    get_tool_schemas::MAX_SLUGS,
    manage_connections::MAX_TOOLKITS,
    multi_execute_tool::{MAX_CALLS, MAX_INLINE_BYTES},
    search_tools::{
        ConnectionStatus, FoundTool, MAX_KNOWN_FIELDS_CHARS, MAX_QUERIES, MAX_SCHEMAS_BYTES,
        MAX_USE_CASE_CHARS, SearchResult, SearchWorkflow, TimeInfo, ToolSearch, UseCase,
        UseCaseResult, search,
    },
    slugs::other_word_error,
    tool::MetaTool,
    wait_for_connections::MAX_WAITS_PER_PROJECT,
    workflow::Workflow,
};
use super::{SessionCaller, errors};
use crate::{
    App, Error, Result,
    catalog::{self, UnknownName},
    core::json::{self, Problem},
    runs::{self, Execution, HostCall, ProxyBody},
};

/// Name of the whole of the arguments in problems.
const ARGUMENTS_NAME: &str = "arguments";

/// The data of a meta tool as JSON, an object that matches the output schema, and the failure or the
/// summary of partial failures.
type MetaResult = (Bytes, Option<String>);

fn meta_result(data: &impl Serialize, error: Option<String>) -> Result<MetaResult> {
    let data = serde_json::to_vec(data).map_err(errors::internal)?;
    Ok((data.into(), error))
}

/// Runs a meta tool for a session, with arguments that are a JSON object, and records the call.
/// Dropping the future cancels the call and all tools that it runs. Fails if the session does not
/// have the meta tool, if the arguments do not match its schema, or for a reason of the meta tool.
pub async fn execute(
    app: &App,
    caller: &SessionCaller,
    tool: MetaTool,
    arguments: Bytes,
) -> Result<Execution> {
    let call = HostCall {
        project: &caller.project,
        tool: Arc::from(tool.slug()),
        user: &caller.config().user_id,
        session: caller.id.clone(),
        request_id: caller.request_id.clone(),
        arguments: arguments.clone(),
    };
    let unknown = catalog::undescribed_names(&tool.definition().input, &arguments);
    let run = async {
        match run(app, caller, tool, &arguments, &unknown).await {
            Err(cause) if cause.is(&errors::ARGUMENTS_INVALID) => {
                Err(with_problems_named(app, caller, tool, &arguments, cause).await?)
            }
            ran => ran,
        }
    };
    let mut execution = runs::record_host_call(app, call, run).await?;
    execution.unknown_arguments = unknown.into_iter().map(|unknown| unknown.name).collect();
    Ok(execution)
}

/// Adds the problems that the schema finds in arguments which a meta tool refused. Of two lines for one path,
/// that of the schema counts if it says more.
async fn with_problems_named(
    app: &App,
    caller: &SessionCaller,
    tool: MetaTool,
    arguments: &Bytes,
    cause: Error,
) -> Result<Error> {
    let Ok(value) = read_arguments(tool, arguments) else {
        return Ok(cause);
    };
    let schema = tool.definition().input.clone();
    let project = &caller.project.tenant;
    let large = &app.large_work;
    let accepted = catalog::accept_with(large, project, ARGUMENTS_NAME, schema, value).await?;
    let mut others = accepted.err().unwrap_or_default();
    let mut lines = cause.problems().to_vec();
    lines.retain(|line| {
        let mut longer = others.iter().filter(|other| *other != line);
        !longer.any(|other| other.starts_with(line))
    });
    others.retain(|other| lines.iter().all(|line| path(line) != path(other)));
    lines.append(&mut others);
    Ok(errors::arguments_invalid(tool.slug(), lines))
}

/// Returns the path at the start of the line of a problem. That of an unknown argument is its name.
fn path(line: &str) -> &str {
    let path = line.split_once(": ").map_or(line, |(path, _)| path);
    let name = path.strip_prefix("unknown argument `");
    name.map_or(path, |name| name.trim_end_matches('`'))
}

/// Runs a meta tool. `unknown` are the arguments that its schema does not describe. Fails if one of them
/// is misspelled.
async fn run(
    app: &App,
    caller: &SessionCaller,
    tool: MetaTool,
    arguments: &Bytes,
    unknown: &[UnknownName],
) -> Result<MetaResult> {
    tool.check_switched_on(caller.config())?;
    errors::refuse_problems(catalog::misspellings(unknown), |problems| {
        errors::arguments_invalid(tool.slug(), problems)
    })?;
    let value = || {
        read_arguments(tool, arguments)
            .map_err(|problem| errors::arguments_invalid(tool.slug(), problem.line(ARGUMENTS_NAME)))
    };
    // The calls are large, and those that contain them would exceed the stack of a thread.
    let call: BoxFuture<'_, _> = match tool {
        // Arguments and results of its calls pass through it as they are, as bodies do through the other.
        MetaTool::MultiExecuteTool => Box::pin(multi_execute_tool::run(app, caller, arguments)),
        MetaTool::ProxyExecute => Box::pin(proxy_execute::run(app, caller, value()?, arguments)),
        MetaTool::SearchTools => Box::pin(search_tools::run(app, caller, value()?)),
        MetaTool::GetToolSchemas => Box::pin(get_tool_schemas::run(app, caller, value()?)),
        MetaTool::ManageConnections => Box::pin(manage_connections::run(app, caller, value()?)),
        MetaTool::UpsertRecipe => Box::pin(upsert_recipe::run(app, caller, value()?)),
        MetaTool::GetRecipe => Box::pin(get_recipe::run(app, caller, value()?)),
        MetaTool::WaitForConnections => Box::pin(wait_for_connections::run(app, caller, value()?)),
        MetaTool::RemoteWorkbench => Box::pin(remote_workbench::run(app, caller, value()?)),
        MetaTool::SubmitFeedback => {
            let data = json!({ "message": "This server stores no feedback." });
            Box::pin(async move { meta_result(&data, None) })
        }
        MetaTool::RemoteBashTool => Box::pin(remote_bash_tool::run(app, caller, value()?)),
    };
    call.await
}

/// Parses the arguments of a meta tool. The body of a proxy request is sent as it is written.
fn read_arguments(tool: MetaTool, arguments: &Bytes) -> std::result::Result<Value, Problem> {
    match tool {
        MetaTool::ProxyExecute => {
            json::parse_leniently(&ProxyBody::with_readable_numbers(arguments))
        }
        _ => json::parse_leniently(arguments),
    }
}

/// Reads the arguments of a meta tool. Fails with the problem if they do not match the type.
pub fn parse<T: DeserializeOwned>(tool: MetaTool, arguments: Value) -> Result<T> {
    json::read(arguments)
        .map_err(|problem| errors::arguments_invalid(tool.slug(), problem.line(ARGUMENTS_NAME)))
}
