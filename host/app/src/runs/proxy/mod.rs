//! Proxy requests: requests of a caller to a provider, with the credential of a connected account.
//!
//! The credential must not be sent to any other provider. A request may go below the account's base
//! URL, to a host of the same registrable domain, or to a host that the toolkit may reach. Any
//! other request is refused before anything is sent. The request leaves through the sandbox like a
//! request of a guest, so network policy, credential injection and redaction are the same.
mod body;
mod target;

use std::{collections::BTreeMap, sync::Arc};

use sandbox::{
    Cause, Failure, Limits, Outcome, ProxyFailure, ProxyOutcome, ProxyRequest,
    ProxyResponse as ReceivedResponse, Usage,
};
use serde_json::json;

pub use body::{MAX_BODY_BYTES, ProxyBody, ResponseBody};
pub(super) use target::allowed_origins;

use body::{body_bytes, to_response_body};
use target::{resolve_target, without_query};

use super::log;
use crate::{
    App, Error, Result,
    accounts::{self, CredentialChoice, CustomCredential, Granted, ProxyContext},
    core::ids::{AccountId, LogId},
    projects::SharedProject,
    runs::errors,
};

/// The name of proxy requests in the execution log and in the allowed tools of an auth config.
const TOOL_SLUG: &str = "PROXY_EXECUTE";

/// A proxy request.
#[derive(Debug)]
pub struct Proxy {
    /// The user, or `None` for the user of the account.
    pub user_id: Option<String>,
    /// The connected account whose credential is used.
    pub account: Option<AccountId>,
    /// A complete credential sent with the request.
    pub custom: Option<CustomCredential>,
    /// The path below the account's base URL, or an absolute URL.
    pub endpoint: String,
    /// The HTTP method, in upper case.
    pub method: String,
    /// The names and values of headers.
    pub headers: Vec<(String, String)>,
    /// The names and values of query parameters.
    pub query: Vec<(String, String)>,
    /// The request body.
    pub body: Option<ProxyBody>,
    /// The id of the request, for the log.
    pub request_id: String,
}

/// The response of the provider, with any status.
#[derive(Debug)]
pub struct ProxyResponse {
    /// The id of the log record.
    pub log_id: LogId,
    /// The HTTP status code of the provider.
    pub status: u16,
    /// The response headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The response body.
    pub body: ResponseBody,
}

/// Sends a request with the credential of an account and records it.
///
/// # Errors
/// Returns an error if the request is refused or the provider does not respond.
pub async fn proxy(app: &App, project: &SharedProject, request: Proxy) -> Result<ProxyResponse> {
    let choice = CredentialChoice {
        user_id: request.user_id,
        account: request.account,
        custom: request.custom,
    };
    let ProxyContext {
        release,
        user,
        base_url,
        granted,
    } = accounts::proxy_context(app, project, TOOL_SLUG, choice).await?;
    let (mut url, policy) = resolve_target(&release, base_url.as_deref(), &request.endpoint)?;
    if !request.query.is_empty() {
        url.query_pairs_mut().extend_pairs(&request.query);
    }
    let mut headers = request.headers;
    let body = match request.body {
        None => None,
        Some(body) => Some(body_bytes(app, project, body, &mut headers).await?),
    };
    let slot = app.log.reserve().await?;
    let started_at = app.clock.now();
    let log_id = app.sequence.log(started_at);
    let arguments = json!({"endpoint": without_query(&request.endpoint), "method": request.method, "bytes": body.as_ref().map(bytes::Bytes::len)});
    let Granted {
        grant,
        account,
        auth_config,
        source,
        ..
    } = granted;
    let proxy_request = ProxyRequest {
        tenant: project.tenant.clone(),
        policy: Arc::new(policy),
        grant,
        limits: Limits::default(),
        method: request.method,
        url: url.into(),
        headers,
        body,
    };
    let sent = app
        .sandbox
        .send_proxy_request(proxy_request)
        .await
        .map_err(|refusal| super::run::refusal_error(refusal, &release))?;
    let ProxyOutcome {
        response: answer,
        requests,
        log,
        wall,
    } = sent;
    let (summary, failure) = match &answer {
        Ok(answer) => (
            json!({"status": answer.status, "bytes": answer.body.len()}),
            None,
        ),
        Err(failed) => (
            json!({}),
            Some(format!("{}: {}", failed.kind, failed.message)),
        ),
    };
    let outcome = Outcome {
        output: Err(unused_result()),
        requests,
        log,
        usage: Usage {
            wall,
            ..Usage::default()
        },
        files: Vec::new(),
        memory: None,
        state: BTreeMap::new(),
    };
    let toolkit = release.slug.clone();
    let written = slot.submit(log::Entry {
        id: log_id.clone(),
        project: project.clone(),
        user,
        account,
        auth_config,
        source,
        request_id: request.request_id,
        started_at,
        ended_at: app.clock.now(),
        arguments: arguments.to_string().into(),
        tokens: None,
        data: summary.to_string().into(),
        error: failure,
        cassette: None,
        tool: TOOL_SLUG.into(),
        release,
        outcome,
    });
    if !written.await {
        return Err(errors::unavailable(
            "the request was sent, but its record could not be written",
        ));
    } // The memory permit is held until the body has become a file or a part of the response.
    let ReceivedResponse {
        status,
        headers,
        body,
        memory: _memory,
    } = answer.map_err(proxy_error)?;
    let body = to_response_body(app, project, &toolkit, &headers, body).await?;
    Ok(ProxyResponse {
        log_id,
        status,
        headers,
        body,
    })
}

fn proxy_error(failed: ProxyFailure) -> Error {
    let ProxyFailure { kind, message } = failed;
    match kind.as_str() {
        "denied" => errors::proxy_denied(message),
        "invalid_request" => errors::invalid(message),
        "credential" => errors::account_refused(message),
        "timeout" => errors::upstream_timeout(message),
        _ => errors::upstream_failed(message),
    }
}

/// Returns a placeholder for the result of an execution. The log does not read the result of a
/// proxy request.
fn unused_result() -> Failure {
    Failure {
        cause: Cause::Host,
        kind: String::new(),
        message: String::new(),
        retry_after: None,
        upstream_status: None,
        details: None,
    }
}
