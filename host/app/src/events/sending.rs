//! Sending of deliveries: the work of their queue.
//!
//! An attempt is recorded in the commit that ends it. If its server is lost before, it is repeated:
//! the endpoint may get a message twice, with the same id. Each attempt is signed anew, and passes
//! the guard of outgoing requests. The subscription is read right before an attempt, so that no
//! attempt starts after its deletion.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gate::{PacedPermit, Shares};
use net::{
    Body, HeaderMap, Limits, Method, Request, Response,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
    retry_after, text,
};
use store::{Record, Time};
use tokio::time::Instant;
use url::Url;

use super::{
    delivery::{Attempt, Delivery, StoredAttempt},
    errors,
    event::{Event, MessageVersion},
    message, ordering, signing,
    subscription_disabling::disable,
    subscriptions::{self, DisableReason, Endpoint, Subscription},
};
use crate::{
    App, Error, Result,
    core::{clock::time_after, ids::ProjectId},
    projects::quotas::Kind as QuotaKind,
    work::{Admission, Claim, LEASE_TTL, Next, Queue, jittered, retry_delay},
};

/// Maximum bytes of a response that are read.
pub const MAX_RESPONSE_BYTES: u64 = 64 << 10;
/// Maximum bytes of a response that are kept.
pub const MAX_KEPT_BYTES: usize = 4 << 10;
/// Status with which an endpoint says that it wants no more messages.
const STATUS_GONE: u16 = 410;
/// Timeout for the connection to an endpoint.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Part of the deliveries at a time that a project gets whenever it is free, as a divisor.
const DELIVERY_BASE_DIVISOR: u64 = 16;
/// Failures in a row after which an endpoint counts as failing.
const FAILURES_BEFORE_FAILING: u32 = 3;

pub(crate) fn queue(app: &App) -> Queue<Delivery, App, PacedPermit> {
    Queue {
        name: "webhook_deliveries",
        shares: delivery_shares(app.webhooks.concurrency),
        lease_ttl: LEASE_TTL,
        // Attempts that failed because of this server.
        retry_delay,
        admission: Admission {
            key: |delivery| permit_key(&delivery.body),
            acquire: |app, key, now| app.pacer.acquire(key, now.0),
            retry_at: Some(|app, key, now| Time(app.pacer.retry_at(key, now.0))),
        },
        work: |app: &App, claim, permit| Box::pin(send(app, claim, permit)),
    }
}

/// Returns the shares of projects in the deliveries that a server works on at a time.
#[must_use]
pub const fn delivery_shares(concurrency: usize) -> Shares {
    Shares::new(
        concurrency as u64,
        DELIVERY_BASE_DIVISOR,
        concurrency as u64,
    )
}

/// Returns the key of the permit for the messages of an endpoint. The failures of another URL say
/// nothing about the endpoint.
fn permit_key(delivery: &Delivery) -> String {
    match delivery.goes_elsewhere() {
        true => format!("{} elsewhere", delivery.subscription),
        false => delivery.subscription.to_string(),
    }
}

/// Result of an attempt.
enum Outcome {
    Accepted,
    /// The endpoint wants no more messages.
    Gone,
    Failed {
        retry_after: Option<Duration>,
    },
}

/// Makes the next attempt of a delivery.
async fn send(app: &App, claim: Arc<Claim<Delivery>>, mut permit: PacedPermit) -> Result<Next> {
    if ordering::wait(app, &claim).await? {
        return Ok(Next::Ended);
    }
    let delivery = claim.body().await;
    let now = claim.batch().await?.now;
    let elsewhere = delivery.goes_elsewhere();
    let id = delivery.subscription.as_str();
    let Some(subscription) = app.store.lookup::<Subscription>(id).await? else {
        return ordering::erase(app, &claim).await;
    };
    let project = ProjectId::parse(&subscription.project)?;
    let disabled = subscription.body.disabled.is_some() && !elsewhere;
    let event = delivery.event.to_string();
    let event = app.store.get::<Event>(project.as_str(), &event).await?;
    let Some(event) = event.filter(|_| !disabled) else {
        let reason = match disabled {
            true => "the subscription is disabled",
            false => "the event was erased",
        };
        return ordering::end(app, &claim, |delivery| delivery.fail(reason)).await;
    };
    let version = version_of(&event.body, &subscription.body);
    let mut opened = subscriptions::open(app, &project, subscription).await?;
    let key = app.vault.key(project.as_str(), now).await?;
    if let Some(url) = delivery.open_url(&key, &project, claim.id())? {
        opened.endpoint.url = url;
    }
    let body = message::write(app, &event, version).await?;
    let request = request(app, &opened.endpoint, &event.id, version, body)?;
    let (attempt, outcome) = attempt(app, &project, request).await;
    let attempt = attempt.seal(app, &project, claim.id()).await?;
    let now = claim.batch().await?.now;
    let subscription = &opened.record;
    match outcome {
        Outcome::Accepted => {
            permit.accepted(app.webhooks.concurrency_per_endpoint);
            if subscription.body.failing_since.is_some() && !elsewhere {
                edit(app, subscription, |body| body.failing_since = None).await?;
            }
            ordering::end(app, &claim, |delivery| delivery.deliver(attempt.clone())).await
        }
        Outcome::Gone => {
            let is_gone = elsewhere || disable(app, subscription, DisableReason::Gone, now).await?;
            if !is_gone {
                // The endpoint was changed during the attempt: the new one gets the message.
                return retry(app, &claim, attempt, Some(now)).await;
            }
            let reason = "the endpoint is gone";
            ordering::end(app, &claim, |delivery| {
                delivery.fail_with(attempt.clone(), reason)
            })
            .await
        }
        Outcome::Failed { retry_after } => {
            let failures = permit.failed(now.0, app.webhooks.pause);
            if !elsewhere {
                note_failure(app, failures, subscription, now).await?;
            }
            let delays = &app.webhooks.retry_delays;
            let due = delays.get(delivery.attempt_count as usize).map(|delay| {
                let delay = jittered(*delay).max(retry_after.unwrap_or_default());
                time_after(now, delay)
            });
            retry(app, &claim, attempt, due).await
        }
    }
}

/// Returns the version of a message: that of the subscription, except for an event that has only
/// one.
fn version_of(event: &Event, subscription: &Subscription) -> MessageVersion {
    let versions = event.kind.versions();
    match versions.contains(&subscription.version) {
        true => subscription.version,
        false => MessageVersion::V3,
    }
}

/// Makes a delivery due again after a failed attempt, or ends it if no attempt follows.
async fn retry(
    app: &App,
    claim: &Claim<Delivery>,
    attempt: StoredAttempt,
    due: Option<Time>,
) -> Result<Next> {
    let Some(due) = due else {
        let reason = "the last attempt failed";
        return ordering::end(app, claim, |delivery| {
            delivery.fail_with(attempt.clone(), reason)
        })
        .await;
    };
    let batch = claim.batch().await?;
    claim
        .end(batch, |delivery| delivery.retry_at(attempt, due))
        .await?;
    Ok(Next::Ended)
}

/// Returns the text of a response that is kept: its start, while the quota of the project lasts.
fn kept_text(app: &App, project: &ProjectId, response: &Response) -> Option<String> {
    let kept = response.body.len().min(MAX_KEPT_BYTES);
    let media_type = text::media_type(&response.headers);
    let text = text::decode(media_type, &response.body[..kept]).replace('\0', "");
    let now = app.clock.now();
    let quotas = &app.quotas;
    let is_kept =
        !text.is_empty() && quotas.take(QuotaKind::Events, project.as_str(), text.len(), now);
    is_kept.then_some(text)
}

/// Sends a message once.
async fn attempt(app: &App, project: &ProjectId, request: Request) -> (Attempt, Outcome) {
    let at = app.clock.now();
    let started = Instant::now();
    let net = app.webhooks.net.clone().for_tenant(project.as_str().into());
    let sent = net.send(request).await;
    let mut attempt = Attempt {
        at,
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        status: None,
        error: None,
        response: None,
    };
    let response = match sent {
        Ok(response) => response,
        Err(cause) => {
            attempt.error = Some(cause.message);
            return (attempt, Outcome::Failed { retry_after: None });
        }
    };
    attempt.response = kept_text(app, project, &response);
    attempt.status = Some(response.status.as_u16());
    let outcome = match response.status.as_u16() {
        200..=299 => Outcome::Accepted,
        STATUS_GONE => Outcome::Gone,
        _ => Outcome::Failed {
            retry_after: retry_after(&response.headers, app.clock.now().0),
        },
    };
    (attempt, outcome)
}

fn request(
    app: &App,
    endpoint: &Endpoint,
    event_id: &str,
    version: MessageVersion,
    body: Bytes,
) -> Result<Request> {
    let at = app.clock.now();
    let url = Url::parse(&endpoint.url)
        .map_err(|cause| errors::internal(format_args!("a stored URL cannot be read: {cause}")))?;
    let id = message::message_id(event_id);
    let timestamp = at.0 / 1_000;
    let signature = signing::signature(
        endpoint.signing_secrets(at),
        endpoint.signing_keys(at),
        &id,
        timestamp,
        &body,
    )?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in [
        ("webhook-id", id.as_str()),
        ("webhook-timestamp", &timestamp.to_string()),
        ("webhook-signature", &signature),
        (&app.webhooks.version_header, version.into_str()),
    ] {
        let invalid =
            || errors::internal(format_args!("header {name} of a webhook cannot be sent"));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        let value = HeaderValue::from_str(value).map_err(|_| invalid())?;
        headers.insert(name, value);
    }
    let timeout = app.webhooks.timeout;
    Ok(Request {
        method: Method::POST,
        url,
        headers,
        body: Body::Bytes(body),
        limits: Limits {
            connect: timeout.min(CONNECT_TIMEOUT),
            first_byte: timeout,
            total: timeout,
            response_bytes: MAX_RESPONSE_BYTES,
            cuts_response: true,
        },
    })
}

/// Notes a failed attempt, and disables a subscription whose endpoint has failed for too long.
async fn note_failure(
    app: &App,
    failures: u32,
    subscription: &Record<Subscription>,
    now: Time,
) -> Result<()> {
    match (subscription.body.failing_since, app.webhooks.disable_after) {
        (None, _) if failures >= FAILURES_BEFORE_FAILING => {
            edit(app, subscription, |body| {
                body.failing_since.get_or_insert(now);
            })
            .await
        }
        (Some(since), Some(limit)) if time_after(since, limit) <= now => {
            let disabled = disable(app, subscription, DisableReason::Failing, now).await;
            disabled.map(drop)
        }
        _ => Ok(()),
    }
}

async fn edit(
    app: &App,
    subscription: &Record<Subscription>,
    change: impl Fn(&mut Subscription),
) -> Result<()> {
    let Record { project, id, .. } = subscription;
    let edited = app
        .store
        .edit(project, id, app.clock.now(), |body: &mut Subscription| {
            change(body);
            Ok::<_, Error>(())
        });
    // A subscription that was deleted meanwhile needs no change.
    edited.await.map(|_| ()).map_err(Error::from)
}
