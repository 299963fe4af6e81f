//! Calls in a tool router session, as REST and MCP make them: the rights that the key gives, and the
//! operator word in results of meta tools.

use app::{
    agents::{
        CallerRights, SessionCaller,
        meta::{self, MetaTool},
    },
    core::ids::SessionId,
    projects::permissions::{Access, Area},
    runs::Execution,
};
use bytes::Bytes;

use crate::{ApiResult, ProjectKey, Server, context::request_id};

/// Reads the session of a request.
pub async fn open(key: &ProjectKey, id: &SessionId) -> ApiResult<SessionCaller> {
    let may = |areas: &'static [Area]| key.may(Access::Write, areas).is_ok();
    let rights = CallerRights {
        credential: Some(key.credential()),
        proxy: may(&[Area::ProxyExecute]),
        connect: may(&[Area::Sessions, Area::ConnectedAccounts]),
        store_recipes: may(&[Area::Sessions, Area::ToolExecution]),
    };
    let caller = SessionCaller::open(key.app(), &key.project, id, request_id(), rights);
    Ok(caller.await?)
}

/// Executes a meta tool. Its result names other meta tools with the word of this installation, unless
/// it is the data of other tools.
pub async fn execute_meta_tool(
    server: &Server,
    caller: &SessionCaller,
    tool: MetaTool,
    arguments: Bytes,
) -> app::Result<Execution> {
    let mut execution = meta::execute(&server.app, caller, tool, arguments).await?;
    if !server.branding.is_default()
        && !tool.returns_tool_data()
        && let Ok(text) = std::str::from_utf8(&execution.data)
    {
        execution.data = server.branding.rename_slugs(text).into_owned().into();
    }
    Ok(execution)
}
