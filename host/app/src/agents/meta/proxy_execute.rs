//! `PROXY_EXECUTE`: sends a request to a provider with an account of the session's user.

use serde_json::Value;

use super::{MetaResult, MetaTool, parse};
use crate::{
    App, Result,
    agents::{SessionCaller, errors, proxy::ProxyCall},
};

/// Runs the meta tool. Every response of the provider counts as a success, whatever its status. Fails
/// if the session or the key of its caller does not permit the request, or if there is no response.
pub(super) async fn run(app: &App, caller: &SessionCaller, arguments: Value) -> Result<MetaResult> {
    let call: ProxyCall = parse(MetaTool::ProxyExecute, arguments)?;
    let answer = call.send(app, caller).await?;
    let data = serde_json::to_value(answer).map_err(errors::internal)?;
    Ok(data.into())
}
