//! The sink: a queue of the operator that gets the events of all projects.
//!
//! A message for the sink is stored in the batch of its event, under the id of the event, and erased
//! when the sink has acknowledged that it has stored it. The sink is a NATS server with JetStream,
//! which drops a message whose id it knows. While the sink cannot be reached, a few messages wait for
//! it and all others stay untouched in the store, so that the sink delays nothing else.

use std::{sync::Arc, time::Duration};

use async_nats::{
    Client, ConnectOptions, HeaderMap, Request, ServerAddr, client::RequestErrorKind,
    connection::State, header::NATS_MESSAGE_ID,
};
use bytes::Bytes;
use gate::Shares;
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Erasure, Field};
use tokio::time::{sleep, timeout};
use url::Url;

use super::{
    errors,
    event::{Event, MessageVersion},
    message,
};
use crate::{
    App, Error, Result,
    work::{Admission, Claim, Claimable, LEASE_TTL, Next, Queue, WorkState, retry_delay},
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "sink_messages",
    erasure: Erasure::Project,
    fields: &[Field::due("due")],
};

/// Shares of projects in the messages that one server sends to the sink at a time.
pub const SINK_SHARES: Shares = Shares {
    total: 32,
    reserve: 8,
    base: 1,
    cap: 24,
};
/// Time that a message waits for the connection and its acknowledgment.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
/// Time that the sink may take to acknowledge a message.
const ACKNOWLEDGMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which a message that waits looks for the connection.
const CONNECTION_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Pause of a worker after a failure, to rate-limit retries.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);
/// First part of the subjects of messages.
const SUBJECT_PREFIX: &str = "toolhost";

/// The connection to the sink.
pub(crate) struct Sink(Client);

/// A message for the sink, as stored under the id of its event.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SinkMessage {
    #[serde(flatten)]
    work: WorkState,
}

impl Document for SinkMessage {
    const COLLECTION: &'static Collection = &COLLECTION;
}

impl Claimable for SinkMessage {
    fn work(&mut self) -> &mut WorkState {
        &mut self.work
    }
}

impl Sink {
    /// Connects to the sink in the background and retries with backoff. The address contains the
    /// credential. Fails only if it cannot be used.
    pub(crate) async fn open(mut url: Url) -> Result<Self> {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let user = decoded(url.username());
        let password = url.password().map(decoded);
        // The client may log the address.
        let stripped = url.set_username("").and_then(|()| url.set_password(None));
        stripped.map_err(|()| errors::internal("the address of the sink has no host"))?;
        let address = ServerAddr::from_url(url)
            .map_err(|cause| errors::internal(format_args!("the address of the sink: {cause}")))?;
        let options = ConnectOptions::new()
            .name("toolhost")
            .retry_on_initial_connect()
            .event_callback(|event| async move {
                tracing::warn!(%event, "the connection to the sink has changed");
            });
        let options = match password {
            Some(password) => options.user_and_password(user, password),
            None if user.is_empty() => options,
            None => options.token(user),
        };
        let connected = options.connect(address).await;
        let client =
            connected.map_err(|cause| errors::unavailable(format_args!("the sink: {cause}")))?;
        Ok(Self(client))
    }

    /// Publishes a message once the sink is connected, and waits until it is stored there.
    async fn publish(
        &self,
        subject: String,
        id: &str,
        body: Bytes,
    ) -> std::result::Result<(), Failure> {
        // The client would keep the message of an attempt that has ended, and publish it later.
        while self.0.connection_state() != State::Connected {
            sleep(CONNECTION_CHECK_INTERVAL).await;
        }
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, id);
        let request = Request::new()
            .headers(headers)
            .payload(body)
            .timeout(Some(ACKNOWLEDGMENT_TIMEOUT));
        let response = self.0.send_request(subject.clone(), request).await;
        let response = response.map_err(|cause| match cause.kind() {
            RequestErrorKind::MaxPayloadExceeded => Failure::TooLarge,
            RequestErrorKind::NoResponders => {
                Failure::Other(format!("no stream has the subject {subject}"))
            }
            _ => Failure::Other(cause.to_string()),
        })?;
        let response = serde_json::from_slice(&response.payload);
        match response.map_err(|cause| Failure::Other(cause.to_string()))? {
            Acknowledgment { error: None } => Ok(()),
            Acknowledgment { error: Some(error) } => Err(Failure::Other(error.description)),
        }
    }
}

/// Response of JetStream to a message: the stream that has stored it, or an error.
#[derive(Deserialize)]
struct Acknowledgment {
    error: Option<StreamError>,
}

#[derive(Deserialize)]
struct StreamError {
    description: String,
}

/// Reason why a message was not stored.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("it is larger than the `max_payload` of the server")]
    TooLarge,
    #[error("{0}")]
    Other(String),
}

/// Adds the message of an event for the sink to the batch of the event.
pub(super) fn add(batch: Batch, project: &str, id: &str) -> Batch {
    let work = WorkState::due_at(batch.now);
    batch.insert(project, id, &SinkMessage { work })
}

/// Returns the queue of messages for the sink.
pub(crate) fn queue() -> Queue<impl Claimable, App> {
    Queue {
        name: "sink_messages",
        shares: SINK_SHARES,
        lease_ttl: LEASE_TTL,
        retry_delay,
        admission: Admission::by_project(),
        work: |app: &App, claim, ()| Box::pin(send(app, claim)),
    }
}

async fn send(app: &App, claim: Arc<Claim<SinkMessage>>) -> Result<Next> {
    let no_sink = || errors::unavailable("this server has no sink");
    let sink = app.sink.as_ref().ok_or_else(no_sink)?;
    let event = app.store.get::<Event>(claim.project(), claim.id()).await?;
    let Some(event) = event else {
        return erase(&claim).await;
    };
    let body = match message::write(app, &event, MessageVersion::V3).await {
        Ok(body) => body,
        Err(cause) if cause.is(&errors::PROJECT_NOT_FOUND) => return erase(&claim).await,
        Err(cause) => return Err(cause),
    };
    let kind = event.body.kind.name(&app.webhooks.operator_word);
    let subject = format!("{SUBJECT_PREFIX}.{}.{kind}", event.project);
    let id = message::message_id(&event.id);
    let published = timeout(ATTEMPT_TIMEOUT, sink.publish(subject, &id, body)).await;
    let failure = match published {
        Ok(Ok(())) => return erase(&claim).await,
        Ok(Err(cause)) => cause,
        Err(_) => Failure::Other("it cannot be reached".to_owned()),
    };
    let reason = format!("the sink does not store the message: {failure}");
    if matches!(failure, Failure::TooLarge) {
        return Ok(Next::GiveUp { reason });
    }
    sleep(FAILURE_PAUSE).await;
    Ok(Next::Retry { reason })
}

/// Ends a message that needs no further attempt.
async fn erase(claim: &Claim<SinkMessage>) -> Result<Next> {
    claim.erase(claim.batch().await?).await?;
    Ok::<_, Error>(Next::Ended)
}
