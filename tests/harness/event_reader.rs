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

    /// Returns a header of the response; empty if it is absent.
    pub fn header(&self, name: &str) -> &str {
        let value = self.response.headers().get(name);
        value.map_or("", |value| value.to_str().expect("it is text"))
    }

    /// Waits for the next event. Returns `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<ReceivedEvent> {
        let next = tokio::time::timeout(crate::CONDITION_TIMEOUT, self.read());
        next.await.expect("an event comes in time")
    }

    /// Waits for the id at the start of the stream, after which another one can start.
    pub async fn opening_id(&mut self) -> String {
        loop {
            if let Some(block) = self.take_block() {
                return field(&block, "id: ").expect("the first block has an id");
            }
            assert!(self.receive().await, "the stream ended before its id");
        }
    }

    async fn read(&mut self) -> Option<ReceivedEvent> {
        loop {
            while let Some(block) = self.take_block() {
                if let Some(data) = field(&block, "data: ") {
                    return Some(ReceivedEvent {
                        id: field(&block, "id: ").unwrap_or_default(),
                        data: serde_json::from_str(&data).expect("an event is JSON"),
                    });
                }
            }
            if !self.receive().await {
                return None;
            }
        }
    }

    fn take_block(&mut self) -> Option<String> {
        let (block, rest) = self.unread.split_once("\n\n")?;
        let block = block.to_owned();
        self.unread = rest.to_owned();
        Some(block)
    }

    /// Waits for more of the stream. Returns false at its end, which is an error if the server was
    /// killed.
    async fn receive(&mut self) -> bool {
        let piece = self.response.chunk().await.ok().flatten();
        let text = piece.as_deref().map(String::from_utf8_lossy);
        self.unread.push_str(text.as_deref().unwrap_or_default());
        piece.is_some()
    }
}

fn field(block: &str, name: &str) -> Option<String> {
    let mut lines = block.lines();
    lines.find_map(|line| line.strip_prefix(name).map(str::to_owned))
}
