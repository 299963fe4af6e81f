//! Proxy requests: requests of a caller to a provider, with the credential of a connected account.
//!
//! The credential must not be sent to any other provider. A request may go below the account's base
//! URL, to a host of the same registrable domain, or to a host that the toolkit may reach. Any
//! other request is refused before anything is sent. The request leaves through the sandbox like a
//! request of a guest, so network policy, credential injection and redaction are the same.
mod body;
mod destination;

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use sandbox::{Failure, Limits, Outcome};
use serde_json::json;

pub use body::{MAX_BODY_BYTES, ProxyBody, ResponseBody};
pub(super) use destination::allowed_origins;

use body::{MAX_TEXT_BYTES, body_bytes, to_response_body};
use destination::{resolve_target, without_query};

use super::{
    errors,
    log::Subject,
    record::{OpenRecord, reserve_slot},
    run::{self, Request, Run},
};
use crate::{
    App, Error, Result,
    accounts::{self, CredentialChoice, CustomCredential, auth_configs::PROXY_REQUEST_SLUG},
    core::{
        ids::{AccountId, LogId, SessionId},
        request_id::RequestId,
    },
    projects::SharedProject,
};

/// A proxy request.
#[derive(Debug)]
pub struct Proxy {
    /// The user, or `None` for the user of the account.
    pub user_id: Option<String>,
    /// The connected account whose credential is used.
    pub account: Option<AccountId>,
    /// A complete credential sent with the request.
    pub custom: Option<Box<CustomCredential>>,
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
    /// The tool router session in which the request is sent.
    pub session: Option<SessionId>,
    /// The id of the request, for the log.
    pub request_id: RequestId,
}

/// The response of the provider, with any status.
#[derive(Debug)]
pub struct ProxyResponse {
    /// The id of the log record.
    pub log_id: LogId,
    /// The HTTP status code of the provider.
    pub status: u16,
    /// The response headers, with names in lower case. Values of one name are joined by commas.
    pub headers: BTreeMap<String, String>,
    /// The response body.
    pub body: ResponseBody,
}

/// Sends a request with the credential of an account and records it. Fails if the request is
/// refused or the provider does not respond.
pub async fn proxy(app: &App, project: &SharedProject, request: Proxy) -> Result<ProxyResponse> {
    let choice = CredentialChoice {
        user_id: request.user_id,
        account: request.account,
        custom: request.custom,
    };
    let context = accounts::proxy_context(app, project, PROXY_REQUEST_SLUG, choice).await?;
    let (release, granted) = (context.release, context.granted);
    let base = context.base_url.as_deref();
    let (mut url, policy) = resolve_target(&release, base, &request.endpoint)?;
    if !request.query.is_empty() {
        url.query_pairs_mut().extend_pairs(&request.query);
    }
    let mut headers = request.headers;
    let body = match request.body {
        None => None,
        Some(body) => Some(body_bytes(app, project, &release, body, &mut headers).await?),
    };
    let arguments = json!({"endpoint": without_query(&request.endpoint), "method": request.method, "bytes": body.as_ref().map(Bytes::len)});
    let subject = Subject {
        project: project.clone(),
        tool: PROXY_REQUEST_SLUG.into(),
        release: Some(release.clone()),
        user: context.user,
        account: granted.account,
        auth_config: granted.auth_config,
        source: granted.source,
        session: request.session,
        request_id: request.request_id,
        arguments: arguments.to_string().into(),
        tokens: None,
    };
    let slot = reserve_slot(app, project).await?;
    let mut record = OpenRecord::open(app, slot, subject);
    let run = Run {
        project,
        release: &release,
        what: Request {
            method: request.method,
            url: url.into(),
            headers,
            body,
            max_text_bytes: MAX_TEXT_BYTES,
        },
        policy: Arc::new(policy),
        credential: granted.grant,
        // The limit of files also holds for responses that are decoded as text.
        limits: Limits {
            file: app.files.settings.size.max(MAX_TEXT_BYTES as u64),
            ..Limits::default()
        },
        record: Some(&mut record),
    };
    let outcome = run::send(app, run).await?;
    finish(app, project, &release.slug, record, outcome).await
}

/// Closes the record of a request and returns the response. Fails if the record could not be
/// written or the provider did not respond. If the provider responded but the operation fails, the
/// error says that its effect is unknown.
async fn finish(
    app: &App,
    project: &SharedProject,
    toolkit: &str,
    record: OpenRecord<'_>,
    outcome: Outcome<sandbox::ProxyResponse>,
) -> Result<ProxyResponse> {
    let log_id = record.id().clone();
    let has_response = record.has_response();
    let note_effect = |error: Error| match has_response {
        true => error.with_unknown_effect(),
        false => error,
    };
    let (summary, error) = match &outcome.output {
        Ok(response) => {
            let bytes = response.body.len();
            (json!({"status": response.status, "bytes": bytes}), None)
        }
        Err(failure) => (json!({}), Some(failure.to_string())),
    };
    if !record.close(summary.to_string().into(), error).await {
        let not_written = "the request was sent, but its record could not be written";
        return Err(note_effect(errors::unavailable(not_written)));
    }
    // The memory is reserved until the body has become a file or a part of the response.
    let _memory = outcome.memory;
    let response = outcome.output.map_err(proxy_error).map_err(note_effect)?;
    let (headers, body) = (response.headers, response.body);
    let body = to_response_body(app, project, toolkit, &headers, body).await;
    Ok(ProxyResponse {
        log_id,
        status: response.status,
        body: body.map_err(note_effect)?,
        headers: joined(headers),
    })
}

/// Joins the values of headers that are repeated (RFC 9110, section 5.2).
fn joined(headers: Vec<(String, String)>) -> BTreeMap<String, String> {
    let mut joined = BTreeMap::<String, String>::new();
    for (name, value) in headers {
        joined
            .entry(name)
            .and_modify(|before| {
                before.push_str(", ");
                before.push_str(&value);
            })
            .or_insert(value);
    }
    joined
}

fn proxy_error(failure: Failure) -> Error {
    let Failure { kind, message, .. } = failure;
    match kind.as_str() {
        "denied" => errors::proxy_denied(message),
        "invalid_request" => errors::invalid(message),
        "credential" => errors::account_refused(message),
        "timeout" => errors::upstream_timeout(message),
        _ => errors::upstream_failed(message),
    }
}
