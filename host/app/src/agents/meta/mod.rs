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
mod upsert_recipe;
mod wait_for_connections;
mod workflow;

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use strum::{IntoStaticStr, VariantArray};

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
    wait_for_connections::MAX_WAITS_PER_PROJECT,
    workflow::Workflow,
};
use super::{Config, SessionCaller, errors};
use crate::{
    App, Error, Result, catalog,
    runs::{self, Execution, HostCall},
};

/// Prefix of the slugs of meta tools, with the default operator word.
pub const SLUG_PREFIX: &str = "SERVICE_";

/// Maximum number of problems of arguments that a refusal names.
const MAX_ARGUMENT_PROBLEMS: usize = 20;

/// A meta tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
#[strum(
    serialize_all = "SCREAMING_SNAKE_CASE",
    prefix = "SERVICE_",
    const_into_str
)]
pub enum MetaTool {
    /// Finds tools for use cases.
    SearchTools,
    /// Returns the schemas of tools.
    GetToolSchemas,
    /// Executes several tools in parallel.
    MultiExecuteTool,
    /// Creates links by which the user connects accounts.
    ManageConnections,
    /// Waits until the user has connected accounts.
    WaitForConnections,
    /// Runs Python in the workbench.
    RemoteWorkbench,
    /// Runs a shell command in the workbench.
    RemoteBashTool,
    /// Stores a recipe.
    UpsertRecipe,
    /// Returns a recipe.
    GetRecipe,
    /// Sends a request to a provider.
    ProxyExecute,
    /// Answers feedback about tools, which newer clients send by themselves, and stores nothing.
    SubmitFeedback,
}

/// The result of a meta tool.
#[derive(Debug, Default)]
pub struct MetaResult {
    /// The data, an object that matches the output schema.
    pub data: Value,
    /// The failure, or the summary of partial failures.
    pub error: Option<String>,
}

impl From<Value> for MetaResult {
    fn from(data: Value) -> Self {
        Self { data, error: None }
    }
}

impl MetaTool {
    /// Returns all meta tools, in the order in which sessions list them.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::VARIANTS.iter().copied()
    }

    /// Returns the slug, with the default operator word.
    #[must_use]
    pub fn slug(self) -> &'static str {
        self.into_str()
    }

    /// Returns the slug without its prefix, for messages.
    fn short_slug(self) -> &'static str {
        self.slug().trim_start_matches(SLUG_PREFIX)
    }

    /// Finds a meta tool by its slug with the default operator word, in upper or lower case.
    #[must_use]
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::all().find(|tool| tool.slug().eq_ignore_ascii_case(slug))
    }

    /// Returns true if a session has the meta tool.
    #[must_use]
    pub fn is_enabled(self, config: &Config) -> bool {
        let connections = &config.manage_connections;
        match self {
            Self::SearchTools => !config.search_disabled,
            Self::MultiExecuteTool => !config.multi_execute_disabled,
            Self::ManageConnections => connections.enabled,
            Self::WaitForConnections => connections.enabled && connections.wait_for_connections,
            Self::RemoteWorkbench | Self::RemoteBashTool => config.workbench.enabled,
            Self::ProxyExecute => config.proxy_execute == Some(true),
            Self::GetToolSchemas | Self::UpsertRecipe | Self::GetRecipe | Self::SubmitFeedback => {
                true
            }
        }
    }

    pub(super) fn check_switched_on(self, config: &Config) -> Result<()> {
        if self.is_enabled(config) {
            Ok(())
        } else {
            Err(errors::meta_tool_off(self.short_slug()))
        }
    }

    /// Returns true if the result has data of other tools, or of scripts.
    #[must_use]
    pub fn returns_tool_data(self) -> bool {
        matches!(
            self,
            Self::MultiExecuteTool
                | Self::RemoteWorkbench
                | Self::RemoteBashTool
                | Self::UpsertRecipe
                | Self::GetRecipe
                | Self::ProxyExecute
        )
    }

    /// Returns the meta tools that lists of a session show.
    pub fn in_force(config: &Config) -> impl Iterator<Item = Self> {
        Self::all().filter(|tool| *tool != Self::SubmitFeedback && tool.is_enabled(config))
    }
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
    let run = async {
        match run(app, caller, tool, &arguments).await {
            Err(cause) if cause.is(&errors::ARGUMENTS_INVALID) => {
                Err(with_problems_named(app, caller, tool, &arguments, cause).await?)
            }
            ran => ran,
        }
    };
    runs::record_host_call(app, call, run).await
}

/// Returns an error with all problems of arguments that a meta tool refused, each with its path, or `cause`
/// if the arguments match the schema.
async fn with_problems_named(
    app: &App,
    caller: &SessionCaller,
    tool: MetaTool,
    arguments: &Bytes,
    cause: Error,
) -> Result<Error> {
    let Ok(value) = serde_json::from_slice(arguments) else {
        return Ok(cause);
    };
    let schema = tool.definition().input.clone();
    let project = &caller.project.tenant;
    let large = &app.large_work;
    let accepted = catalog::accept_with(large, project, "arguments", schema, value).await?;
    let Err(mut problems) = accepted else {
        return Ok(cause);
    };
    problems.truncate(MAX_ARGUMENT_PROBLEMS);
    Ok(errors::arguments_invalid(tool.short_slug(), problems))
}

/// Runs a meta tool, and returns its data and its failure.
async fn run(
    app: &App,
    caller: &SessionCaller,
    tool: MetaTool,
    arguments: &Bytes,
) -> Result<(Bytes, Option<String>)> {
    tool.check_switched_on(caller.config())?;
    let value = || {
        serde_json::from_slice(arguments)
            .map_err(|cause| errors::arguments_invalid(tool.short_slug(), cause.to_string()))
    };
    // The calls are large, and those that contain them would exceed the stack of a thread.
    let call: BoxFuture<'_, _> = match tool {
        // Arguments and results of its calls pass through it as they are, as bodies do through the other.
        MetaTool::MultiExecuteTool => {
            let call: BoxFuture<'_, _> = Box::pin(multi_execute_tool::run(app, caller, arguments));
            return call.await;
        }
        MetaTool::ProxyExecute => {
            let call = Box::pin(proxy_execute::run(app, caller, value()?, arguments));
            return Ok((call.await?, None));
        }
        MetaTool::SearchTools => Box::pin(search_tools::run(app, caller, value()?)),
        MetaTool::GetToolSchemas => Box::pin(get_tool_schemas::run(app, caller, value()?)),
        MetaTool::ManageConnections => Box::pin(manage_connections::run(app, caller, value()?)),
        MetaTool::UpsertRecipe => Box::pin(upsert_recipe::run(app, caller, value()?)),
        MetaTool::GetRecipe => Box::pin(get_recipe::run(app, caller, value()?)),
        MetaTool::WaitForConnections => Box::pin(wait_for_connections::run(app, caller, value()?)),
        MetaTool::RemoteWorkbench => Box::pin(remote_workbench::run(app, caller, value()?)),
        MetaTool::SubmitFeedback => {
            Box::pin(async { Ok(json!({ "message": "This server stores no feedback." }).into()) })
        }
        MetaTool::RemoteBashTool => Box::pin(remote_bash_tool::run(app, caller, value()?)),
    };
    let MetaResult { data, error } = call.await?;
    let data = serde_json::to_vec(&data).map_err(errors::internal)?;
    Ok((data.into(), error))
}

/// Reads the arguments of a meta tool. Fails with the problem if they do not match the type.
pub fn parse<T: DeserializeOwned>(tool: MetaTool, arguments: Value) -> Result<T> {
    serde_json::from_value(arguments)
        .map_err(|cause| errors::arguments_invalid(tool.short_slug(), cause.to_string()))
}

#[cfg(test)]
mod tests;
