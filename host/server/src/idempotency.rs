//! Requests with an `Idempotency-Key`: performed once, answered the same way each time they are
//! sent.
//!
//! Such a request runs in its own task, so that it completes even if the client disconnects: the
//! client then sends the request again. Requests without the header bypass this module.

use std::sync::Arc;

use app::{
    Error,
    idempotency::{self, Claim, Outcome, Pending, Response as RecordedResponse},
    projects::{Holder, LogVisibility, Owner},
};
use axum::{
    Router,
    body::Body,
    http::{HeaderName, HeaderValue, Method, Request, StatusCode, header},
    response::{IntoResponse, Response},
};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};
use tower::Service;

use crate::{
    Server, auth,
    extract::{LARGEST_JSON, read},
    places,
    respond::{EXCHANGE, Exchange, Failure, Reply, Wire},
};

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Header of a replayed response.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Returns true if a request is handled by this module.
pub(crate) fn is_meant(request: &Request<Body>) -> bool {
    *request.method() == Method::POST && request.headers().contains_key(KEY)
}

/// Performs a request, until its deadline if it has one, or replays its earlier response.
pub(crate) async fn answer(
    server: &Arc<Server>,
    router: &mut Router,
    request: Request<Body>,
    deadline: Option<Instant>,
) -> Response {
    match begin(server, request).await {
        Err(failure) => failure.into_response(),
        Ok(Step::Replay(answer)) => again(answer),
        Ok(Step::New(pending, keep, request)) => {
            run(server, router.clone(), request, deadline, pending, keep).await
        }
        // The route itself refuses a request without a valid key.
        Ok(Step::NotAuthenticated(request)) => match router.call(request).await {
            Ok(response) => response,
        },
    }
}

enum Step {
    New(Pending, bool, Request<Body>),
    Replay(RecordedResponse),
    NotAuthenticated(Request<Body>),
}

async fn begin(server: &Arc<Server>, request: Request<Body>) -> Reply<Step> {
    let Ok(holder) = auth::anyone(server, request.headers()).await else {
        return Ok(Step::NotAuthenticated(request));
    };
    let Ok(project) = auth::project(server, &holder, request.headers()).await else {
        return Ok(Step::NotAuthenticated(request));
    };
    // A request that is refused for its rate or its project's concurrency limit is neither read nor
    // recorded.
    let tenant = project.as_ref().map(|project| &project.tenant);
    auth::admit(server, &holder, tenant)?;
    if let Some(tenant) = tenant {
        places::enter_project(&server.admission, tenant).await?;
    }
    let limits = &server.config.limits;
    let (parts, body) = request.into_parts();
    let whole = Request::from_parts(parts.clone(), body);
    let most = (limits.execute_body_kib.max(limits.body_kib) * 1024).max(LARGEST_JSON);
    let bytes = read(server, whole, most).await?;
    let key = parts
        .headers
        .get(KEY)
        .and_then(|key| key.to_str().ok())
        .unwrap_or_default();
    let target = parts
        .uri
        .path_and_query()
        .map_or("", |target| target.as_str());
    let mut request = vec![target.as_bytes(), &bytes];
    request.extend(
        auth::CHOSEN
            .iter()
            .filter_map(|name| parts.headers.get(*name))
            .map(HeaderValue::as_bytes),
    );
    match idempotency::claim(&server.app, &holder, key, &request).await? {
        Claim::Replay(answer) => Ok(Step::Replay(answer)),
        Claim::New(pending) => {
            let keep = keeps(&holder, target);
            Ok(Step::New(
                pending,
                keep,
                Request::from_parts(parts, Body::from(bytes)),
            ))
        }
    }
}

/// Returns true if the response may be stored. Responses of tools are not stored if the project
/// stores no data.
fn keeps(holder: &Holder, target: &str) -> bool {
    let stores = match &holder.owner {
        Owner::Project(project) => project.stored.config.log_visibility == LogVisibility::ShowAll,
        // The project that a user's request is about is not known yet.
        Owner::Member(_) => false,
        Owner::Organization(_) => true,
    };
    stores || !target.contains("/execute")
}

fn again(answer: RecordedResponse) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let json = (
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    (
        status,
        [json, (REPLAYED, HeaderValue::from_static("true"))],
        answer.body,
    )
        .into_response()
}

/// Performs the request in its own task.
async fn run(
    server: &Arc<Server>,
    mut router: Router,
    request: Request<Body>,
    deadline: Option<Instant>,
    pending: Pending,
    keep: bool,
) -> Response {
    let exchange = EXCHANGE.with(Exchange::hand_over);
    let server = server.clone();
    let doing = async move {
        let done = router.call(request);
        let done = match deadline {
            Some(deadline) => timeout_at(deadline, done).await,
            None => Ok(done.await),
        };
        let response = match done {
            Ok(Ok(response)) => note(&server, pending, keep, response).await,
            // The request may have had its effect, so later requests with this key are refused.
            Err(_) => {
                Failure::App(Error::Deadline(server.config.limits.deadline())).into_response()
            }
        };
        (response, EXCHANGE.with(|exchange| exchange.allowance.get()))
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "it ends by itself or at its deadline, and must not end with the connection"
    )]
    let done = tokio::spawn(EXCHANGE.scope(exchange, doing)).await;
    match done {
        Ok((response, allowance)) => {
            EXCHANGE.with(|exchange| exchange.allowance.set(allowance));
            response
        }
        Err(_) => Failure::Wire(Wire::Panic).into_response(),
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
    let outcome = match parts.status {
        status if status.is_success() => Some(match (keep, String::from_utf8(bytes.to_vec())) {
            (true, Ok(body)) => Outcome::Done(RecordedResponse {
                status: status.as_u16(),
                body,
            }),
            _ => Outcome::DoneWithoutResponse,
        }),
        // A request that failed inside the server or at a provider may still have had its effect.
        StatusCode::INTERNAL_SERVER_ERROR
        | StatusCode::BAD_GATEWAY
        | StatusCode::GATEWAY_TIMEOUT => None,
        _ => Some(Outcome::Refused),
    };
    if let Some(outcome) = outcome
        && let Err(cause) = idempotency::complete(&server.app, pending, outcome).await
    {
        // Later requests with this key are refused; the response of this one is sent all the same.
        tracing::warn!(%cause, "the answer to a request with an Idempotency-Key could not be noted");
    }
    Response::from_parts(parts, Body::from(bytes))
}
