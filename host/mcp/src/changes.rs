//! Announcements that the list of tools has changed.
//!
//! Clients of protocol versions before 2026-07-28 open a stream with `GET`; later ones send the request
//! `subscriptions/listen`. Both only read the catalog, so that any server of an installation can serve
//! them. A stream ends after [`MAX_AGE`], and the client opens another one, whose key is checked. The
//! number of streams is limited. A client without one works, and learns of changes when it lists the
//! tools.

use std::{convert::Infallible, time::Duration};

use axum::response::{Response, sse::Event};
use futures::stream;
use http::sse::event_stream;
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use super::{endpoint::Endpoint, messages::refuse_stream};

/// Time after which a stream ends.
const MAX_AGE: Duration = Duration::from_secs(900);
/// Interval at which a stream looks if the server stops.
const STOP_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Notification of protocol versions before 2026-07-28.
const LIST_CHANGED_NOTIFICATION: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

/// The changes of the list of tools of an endpoint, which holds the permit of the stream.
pub(super) struct ToolListChanges {
    endpoint: Endpoint,
    published: watch::Receiver<()>,
    /// Digest of the list that the client has or will read.
    digest: u64,
    end: Instant,
}

impl ToolListChanges {
    /// Watches the list from now on.
    pub(super) fn watch(endpoint: Endpoint) -> Self {
        let published = endpoint.app().catalog.changes();
        Self {
            digest: endpoint.digest(),
            endpoint,
            published,
            end: Instant::now() + MAX_AGE,
        }
    }

    /// Waits until the list has changed. Returns false if the stream is too old or the server stops.
    pub(super) async fn next(&mut self) -> bool {
        while self.endpoint.server.is_serving() && Instant::now() < self.end {
            let changed = timeout(STOP_CHECK_INTERVAL, self.published.changed()).await;
            if matches!(changed, Ok(Ok(()))) {
                let digest = self.endpoint.digest();
                if std::mem::replace(&mut self.digest, digest) != digest {
                    return true;
                }
            }
        }
        false
    }
}

/// Answers `GET` with a stream of notifications.
pub(super) fn stream(mut endpoint: Endpoint) -> Response {
    if let Err(refused) = endpoint.open_stream() {
        return refuse_stream(refused, None);
    }
    let changes = ToolListChanges::watch(endpoint);
    let notifications = stream::unfold(changes, async |mut changes| {
        let event = Event::default().data(LIST_CHANGED_NOTIFICATION);
        let has_changed = changes.next().await;
        has_changed.then_some((Ok::<_, Infallible>(event), changes))
    });
    event_stream(notifications)
}
