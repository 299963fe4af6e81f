//! `PROXY_EXECUTE`: sends a request to a provider with an account of the session's user.

use bytes::Bytes;
use serde_json::Value;

use super::{MetaResult, MetaTool, meta_result, parse};
use crate::{
    App, Result,
    agents::{SessionCaller, proxy::ProxyCall},
};

/// Runs the meta tool. Every response of the provider counts as a success, whatever its status. Fails if
/// the session or the key of its caller does not permit the request, or if the provider does not respond.
pub(super) async fn run(
    app: &App,
    caller: &SessionCaller,
    value: Value,
    arguments: &Bytes,
) -> Result<MetaResult> {
    let tool = MetaTool::ProxyExecute;
    let call: ProxyCall = parse(tool, value)?;
    let answer = call.send(app, caller, tool.slug(), arguments).await?;
    meta_result(&answer, None)
}
