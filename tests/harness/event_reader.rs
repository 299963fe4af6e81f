//! A client of a stream of server-sent events.

use serde_json::Value;

/// An open stream. Dropping it closes the connection.
#[derive(Debug)]
pub struct EventReader {
    response: reqwest::Response,
    unread: String,
}

/// A received event.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedEvent {
    pub id: String,
    pub data: Value,
}

impl EventReader {
    pub(crate) fn new(response: reqwest::Response) -> Self {
        let media_type = response.headers()["content-type"].to_str();
        assert_eq!(response.status(), 200, "{response:?}");
        assert_eq!(media_type.expect("it is text"), "text/event-stream");
        Self {
            response,
            unread: String::new(),
        }
    }

    /// Waits for the next event. Returns none at the end of the stream.
    ///
    /// # Panics
    /// If no event comes within [`CONDITION_TIMEOUT`](crate::CONDITION_TIMEOUT).
    pub async fn next(&mut self) -> Option<ReceivedEvent> {
        let next = tokio::time::timeout(crate::CONDITION_TIMEOUT, self.read());
        next.await.expect("an event comes in time")
    }

    async fn read(&mut self) -> Option<ReceivedEvent> {
        loop {
            while let Some((block, rest)) = self.unread.split_once("\n\n") {
                let field = |name: &str| {
                    let mut lines = block.lines();
                    lines.find_map(|line| line.strip_prefix(name).map(str::to_owned))
                };
                let event = field("data: ").map(|data| ReceivedEvent {
                    id: field("id: ").unwrap_or_default(),
                    data: serde_json::from_str(&data).expect("an event is JSON"),
                });
                self.unread = rest.to_owned();
                if event.is_some() {
                    return event;
                }
            }
            // A server that was killed ends the stream with an error.
            let piece = self.response.chunk().await.ok()??;
            self.unread.push_str(&String::from_utf8_lossy(&piece));
        }
    }
}
