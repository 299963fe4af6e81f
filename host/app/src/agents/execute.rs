//! Execution in a session: the only way in which a session runs a tool of a toolkit, or a recipe.

use bytes::Bytes;

use super::{SessionCaller, errors, recipes, resolve};
use crate::{
    App, Result,
    catalog::ResolvedTool,
    core::ids::AccountId,
    runs::{self, Execution, Input, ToolCall},
};

/// A request to execute a tool in a session.
#[derive(Debug)]
pub struct SessionExecute {
    /// Slug of the tool, in upper or lower case.
    pub tool: String,
    /// Arguments, a JSON object.
    pub arguments: Bytes,
    /// Id or alias of the account to use, or `None` for the one that the session uses by default.
    pub account: Option<String>,
}

/// A tool or a recipe that a session may execute.
pub(super) enum Prepared {
    /// A recipe. It is not read yet.
    Recipe,
    /// A tool, with the account of its calls if it needs one.
    Tool {
        found: ResolvedTool,
        account: Option<AccountId>,
    },
}

/// Executes a tool or a recipe in a session, and records the execution. A tool that has the slug of
/// a recipe goes first. Fails as [`execute_tool`] does, or for a reason of [`recipes::execute`].
pub async fn execute(
    app: &App,
    caller: &SessionCaller,
    request: SessionExecute,
) -> Result<Execution> {
    let tool = &*request.tool;
    let prepared = prepare(app, caller, tool, request.account.as_deref()).await?;
    execute_prepared(app, caller, tool, &prepared, request.arguments).await
}

/// Decides how the calls of a tool or a recipe run in a session. Fails as [`execute_tool`] does before
/// it reads the arguments.
pub(super) async fn prepare(
    app: &App,
    caller: &SessionCaller,
    tool: &str,
    account: Option<&str>,
) -> Result<Prepared> {
    if recipes::is_recipe(app, tool) {
        return match account {
            None => Ok(Prepared::Recipe),
            Some(_) => Err(errors::session_invalid(
                "account: the steps of a recipe name their accounts",
            )),
        };
    }
    let (found, account) = resolve::permit(app, caller, tool, account).await?;
    Ok(Prepared::Tool { found, account })
}

/// Executes a prepared tool or recipe, and records the execution. `slug` is that of the recipe.
pub(super) async fn execute_prepared(
    app: &App,
    caller: &SessionCaller,
    slug: &str,
    prepared: &Prepared,
    arguments: Bytes,
) -> Result<Execution> {
    match prepared {
        // On the heap, so that calls of tools do not carry the larger future of a recipe.
        Prepared::Recipe => Box::pin(recipes::execute(app, caller, slug, arguments)).await,
        Prepared::Tool { found, account } => {
            run(app, caller, found, account.clone(), arguments).await
        }
    }
}

/// Executes a tool in a session, with an account of the session's user, and records the execution.
/// Fails before the tool runs: if the session does not permit it or requires approval of the call,
/// if the user lacks a usable account, or for a reason of `runs::execute`. After that, every
/// outcome is an [`Execution`].
pub(super) async fn execute_tool(
    app: &App,
    caller: &SessionCaller,
    request: SessionExecute,
) -> Result<Execution> {
    let named = request.account.as_deref();
    let (found, account) = resolve::permit(app, caller, &request.tool, named).await?;
    run(app, caller, &found, account, request.arguments).await
}

/// Runs a tool that the session permits and, if required, its user has approved.
pub(super) async fn run(
    app: &App,
    caller: &SessionCaller,
    found: &ResolvedTool,
    account: Option<AccountId>,
    arguments: Bytes,
) -> Result<Execution> {
    let call = ToolCall {
        user_id: Some(caller.config().user_id.clone()),
        account,
        custom: None,
        session: caller.id.clone(),
        input: Input::Arguments(arguments),
        request_id: caller.request_id.clone(),
    };
    // An execution is large, and the calls that contain it would exceed the stack of a thread.
    Box::pin(runs::execute(app, &caller.project, found, call)).await
}
