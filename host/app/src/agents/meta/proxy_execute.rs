//! `PROXY_EXECUTE`: sends a request to a provider with an account of the session's user.

use bytes::Bytes;
use serde_json::Value;

use super::{MetaTool, parse};
use crate::{
    App, Result,
    agents::{SessionCaller, errors, proxy::ProxyCall},
};

/// Runs the meta tool, and returns its data. Every response of the provider counts as a success, whatever its
/// status. Fails if the session or the key of its caller does not permit the request, or if the provider
/// does not respond.
pub(super) async fn run(
    app: &App,
    caller: &SessionCaller,
    value: Value,
    arguments: &Bytes,
) -> Result<Bytes> {
    let tool = MetaTool::ProxyExecute;
    let call: ProxyCall = parse(tool, value)?;
    let answer = call.send(app, caller, tool.slug(), arguments).await?;
    let data = serde_json::to_vec(&answer).map_err(errors::internal)?;
    Ok(data.into())
}
