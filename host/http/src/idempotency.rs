//! Requests with an `Idempotency-Key`: performed once, answered the same way each time they are
//! sent.
//!
//! Such a request runs in its own task, so that it completes even if the client disconnects: the
//! client then sends the request again. Requests without the header bypass this module.

use std::sync::Arc;

use app::{
    Class, Error,
    projects::{
        Holder, LogVisibility, Owner,
        idempotency::{self, Claim, Outcome, Pending, Response as RecordedResponse},
    },
};
use axum::{
    body::Body,
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header, response::Parts,
    },
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use crate::{
    ApiError, ApiResult, Server, auth, body::read, context::operation, errors, handover,
    limiter::Caller, permits, refusal::EffectUnknown,
};

/// Maximum length of an idempotency key, in characters.
pub const MAX_KEY_CHARS: usize = 255;
const KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// Header of a replayed response.
const REPLAYED_HEADER: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Returns true if a request is handled by this module.
pub(crate) fn applies_to(request: &Request<Body>) -> bool {
    *request.method() == Method::POST && request.headers().contains_key(KEY_HEADER)
}

/// Performs a request with a handler, until its deadline if it has one, or replays its earlier
/// response.
pub(crate) async fn answer(
    server: &Arc<Server>,
    request: Request<Body>,
    deadline: Option<Instant>,
    handle: impl FnOnce(Request<Body>) -> BoxFuture<'static, Response> + Send,
) -> Response {
    match begin(server, request).await {
        Err(error) => error.into_response(),
        Ok(Step::Replay(answer)) => replay(answer),
        Ok(Step::New(pending, keep, request)) => {
            run(server, handle(request), deadline, pending, keep).await
        }
        // The handler itself refuses a request without a valid key.
        Ok(Step::NotAuthenticated(request)) => handle(request).await,
    }
}

enum Step {
    New(Pending, bool, Request<Body>),
    Replay(RecordedResponse),
    NotAuthenticated(Request<Body>),
}

async fn begin(server: &Arc<Server>, request: Request<Body>) -> ApiResult<Step> {
    let holder = match auth::anyone(server, request.headers()).await {
        Ok(holder) => holder,
        Err(error) => return not_authenticated(request, error),
    };
    let project = match auth::project(server, &holder, request.headers()).await {
        Ok(project) => project,
        Err(error) => return not_authenticated(request, error),
    };
    // A request refused for its rate or its project's concurrency limit is neither read nor
    // recorded.
    let tenant = project.as_ref().map(|project| &project.tenant);
    auth::admit(server, &holder, tenant)?;
    if let Some(tenant) = tenant {
        let caller = Caller {
            tenant: tenant.clone(),
            stranger: None,
        };
        permits::acquire_for_project(&server.limiter, caller).await?;
    }
    let (parts, body) = request.into_parts();
    let whole = Request::from_parts(parts.clone(), body);
    let limit = operation().max_body.bytes();
    let bytes = read(server, whole, limit).await?;
    let key = key(&parts.headers)?;
    let target = parts
        .uri
        .path_and_query()
        .map_or("", |target| target.as_str());
    let mut request = vec![Bytes::copy_from_slice(target.as_bytes()), bytes.clone()];
    request.extend(
        auth::SELECTION_HEADERS
            .iter()
            .filter_map(|name| parts.headers.get(*name))
            .map(|value| Bytes::copy_from_slice(value.as_bytes())),
    );
    match idempotency::claim(&server.app, &holder, key, request).await? {
        Claim::Replay(answer) => Ok(Step::Replay(answer)),
        Claim::New(pending) => {
            let keep = keeps(&holder);
            Ok(Step::New(
                pending,
                keep,
                Request::from_parts(parts, Body::from(bytes)),
            ))
        }
    }
}

/// Reads the idempotency key of a request.
fn key(headers: &HeaderMap) -> Result<&str, Error> {
    let key = headers
        .get(KEY_HEADER)
        .and_then(|key| key.to_str().ok())
        .filter(|key| (1..=MAX_KEY_CHARS).contains(&key.len()))
        .filter(|key| key.bytes().all(|byte| byte.is_ascii_graphic()));
    key.ok_or_else(|| {
        errors::invalid(format!(
            "Idempotency-Key: must be 1 to {MAX_KEY_CHARS} printable characters without spaces"
        ))
    })
}

/// Leaves the refusal of a request to its handler. Fails if the server could not check the key: the
/// handler might succeed in checking it, and would perform an unrecorded request.
fn not_authenticated(request: Request<Body>, error: ApiError) -> ApiResult<Step> {
    let is_unchecked = matches!(
        &error,
        ApiError::App(cause) if matches!(cause.info().class, Class::Unavailable | Class::Internal)
    );
    if is_unchecked {
        return Err(error);
    }
    Ok(Step::NotAuthenticated(request))
}

/// Returns true if the response may be stored. Responses of tools are not stored if the project
/// stores no data.
fn keeps(holder: &Holder) -> bool {
    let stores = match &holder.owner {
        Owner::Project(project) => project.stored.config.log_visibility == LogVisibility::ShowAll,
        // The project that a user's request is about is not known yet.
        Owner::Member(_) => false,
        Owner::Organization(_) => true,
    };
    stores || !operation().returns_tool_data
}

fn replay(answer: RecordedResponse) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let json = (
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    (
        status,
        [json, (REPLAYED_HEADER, HeaderValue::from_static("true"))],
        answer.body,
    )
        .into_response()
}

/// Performs the request in its own task.
async fn run(
    server: &Arc<Server>,
    handled: BoxFuture<'static, Response>,
    deadline: Option<Instant>,
    pending: Pending,
    keep: bool,
) -> Response {
    let noting = server.clone();
    let answer = async move {
        let done = match deadline {
            Some(deadline) => timeout_at(deadline, handled).await,
            None => Ok(handled.await),
        };
        match done {
            Ok(response) => note(&noting, pending, keep, response).await,
            // The request may have had its effect, so later requests with this key are refused.
            Err(_) => ApiError::App(errors::deadline(noting.config.limits.deadline().as_secs()))
                .into_response(),
        }
    };
    handover::answer_in_task(&server.detached, answer).await
}

/// Returns the outcome of a request; `None` if it is unknown.
fn outcome(parts: &Parts, body: &[u8], keep: bool) -> Option<Outcome> {
    match parts.status {
        status if status.is_success() => Some(match (keep, String::from_utf8(body.to_vec())) {
            (true, Ok(body)) => Outcome::Done(RecordedResponse {
                status: status.as_u16(),
                body,
            }),
            _ => Outcome::DoneWithoutResponse,
        }),
        _ if parts.extensions.get::<EffectUnknown>().is_some() => None,
        // A request that failed inside the server or at a provider may still have had its effect.
        StatusCode::INTERNAL_SERVER_ERROR
        | StatusCode::BAD_GATEWAY
        | StatusCode::GATEWAY_TIMEOUT => None,
        _ => Some(Outcome::Refused),
    }
}

/// Records the outcome before the response is sent.
async fn note(server: &Server, pending: Pending, keep: bool, response: Response) -> Response {
    let (parts, body) = response.into_parts();
    // Every response body is in memory already.
    let bytes = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    if let Some(outcome) = outcome(&parts, &bytes, keep)
        && let Err(cause) = idempotency::complete(&server.app, pending, outcome).await
    {
        // Later requests with this key are refused; the response of this one is still sent.
        tracing::warn!(%cause, "the answer to a request with an Idempotency-Key could not be noted");
    }
    Response::from_parts(parts, Body::from(bytes))
}
