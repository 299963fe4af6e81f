//! Stream of a project's events, as server-sent events.

use std::{convert::Infallible, sync::Arc, time::Duration};

use app::events::stream::{EventStream, Filter, StreamedEvent};
use axum::{
    http::HeaderMap,
    response::{Response, sse::Event},
};
use futures::{StreamExt as _, stream};
use http::{
    ApiResult, IN_TABLE, ProjectKey, Query, Server, limiter::CallerPermit, permits,
    sse::event_stream,
};
use serde::Deserialize;
use tokio::time::Instant;
use utoipa::IntoParams;

/// Header with the id of the last event that a client has received.
const LAST_EVENT_ID: &str = "last-event-id";
/// Time after which a stream ends. The client continues it with a new request, whose key is checked.
const MAX_AGE: Duration = Duration::from_secs(900);

/// Filter of the stream, and its beginning.
#[derive(Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub(crate) struct StreamQuery {
    /// Of these toolkits.
    toolkit_slugs: Vec<String>,
    /// Of these trigger types.
    trigger_slugs: Vec<String>,
    /// Of these trigger instances.
    trigger_ids: Vec<String>,
    /// Of these connected accounts.
    connected_account_ids: Vec<String>,
    /// Of these auth configs.
    auth_config_ids: Vec<String>,
    /// Of these users.
    user_ids: Vec<String>,
    /// Id after which the stream starts, for clients that cannot send the header `Last-Event-ID`.
    last_event_id: Option<String>,
}

/// Streams the events of the project.
///
/// Each message is the third version of a webhook. Without `Last-Event-ID` the stream starts with
/// the next event. It first sends an id without a message, with which a client continues that has
/// received no message. A stream ends after 15 minutes at the latest; a client continues it with
/// the id of the last message.
#[utoipa::path(get, path = IN_TABLE, operation_id = "open_stream", responses(
    (status = 200, description = "Messages", content_type = "text/event-stream", body = String),
    (status = 404, description = "The message in `Last-Event-ID` does not exist"),
))]
pub(crate) async fn open(
    key: ProjectKey,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let header = headers.get(LAST_EVENT_ID);
    let header = header.and_then(|value| value.to_str().ok());
    let after = header.or(query.last_event_id.as_deref()).map(str::to_owned);
    let filter = Filter {
        toolkits: query.toolkit_slugs,
        trigger_slugs: query.trigger_slugs,
        triggers: query.trigger_ids,
        accounts: query.connected_account_ids,
        auth_configs: query.auth_config_ids,
        users: query.user_ids,
    };
    let events = EventStream::open(key.app(), &key.project, filter, after.as_deref()).await?;
    let permit = permits::open_stream(&key.server.limiter)?;
    // The client continues after it if it is cut off before the first message.
    let beginning = after
        .is_none()
        .then(|| Event::default().id(events.position()));
    let body = stream::iter(beginning.map(Ok)).chain(messages(key.server, events, permit));
    Ok(event_stream(body))
}

/// Returns the messages until the stream is too old or the server stops.
fn messages(
    server: Arc<Server>,
    events: EventStream,
    permit: CallerPermit,
) -> impl stream::Stream<Item = Result<Event, Infallible>> {
    let end = Instant::now() + MAX_AGE;
    let open = (server, events, permit);
    let batches = stream::unfold(open, move |(server, mut events, permit)| async move {
        if !server.is_serving() || Instant::now() >= end {
            return None;
        }
        match events.next(&server.app).await {
            Ok(found) => Some((found, (server, events, permit))),
            Err(cause) => {
                tracing::warn!(%cause, "a stream of events ends");
                None
            }
        }
    });
    batches.flat_map(|found| stream::iter(found.into_iter().map(event).map(Ok)))
}

fn event(streamed: StreamedEvent) -> Event {
    let StreamedEvent { id, message } = streamed;
    // A line break in JSON is white space, and would end the data of an event.
    let text = String::from_utf8_lossy(&message).replace(['\r', '\n'], " ");
    Event::default().id(id).data(text)
}
