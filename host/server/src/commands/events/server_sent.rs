//! Parser of server-sent events, as far as the server's own stream uses them: fields `id` and `data`
//! on one line each, and comments.

use anyhow::{Result, ensure};

/// Maximum size of one event, in bytes.
const MAX_EVENT_BYTES: usize = 32 << 20;

/// Pieces of a stream that do not form a whole event yet.
#[derive(Debug, Default)]
pub(in crate::commands) struct Parser {
    unread: Vec<u8>,
    /// Number of bytes that contain no end of an event.
    searched: usize,
}

/// Event of a stream.
#[derive(Debug, Default, PartialEq)]
pub(in crate::commands) struct ServerSentEvent {
    pub(in crate::commands) id: Option<String>,
    pub(in crate::commands) data: Option<String>,
}

impl Parser {
    /// Adds a piece of the stream and returns the events that are complete with it.
    ///
    /// # Errors
    /// Fails if an event is too large.
    pub(in crate::commands) fn push(&mut self, piece: &[u8]) -> Result<Vec<ServerSentEvent>> {
        self.unread.extend_from_slice(piece);
        let mut events = Vec::new();
        while let Some(distance) = find_end(&self.unread[self.searched..]) {
            let end = self.searched + distance;
            events.push(parse(&String::from_utf8_lossy(&self.unread[..end])));
            self.unread.drain(..end + 2);
            self.searched = 0;
        }
        self.searched = self.unread.len().saturating_sub(1);
        ensure!(
            self.unread.len() <= MAX_EVENT_BYTES,
            "an event of the stream has more than {MAX_EVENT_BYTES} bytes"
        );
        Ok(events)
    }
}

fn find_end(unread: &[u8]) -> Option<usize> {
    unread.windows(2).position(|pair| pair == b"\n\n")
}

fn parse(block: &str) -> ServerSentEvent {
    let mut event = ServerSentEvent::default();
    for line in block.lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match name {
            "id" => event.id = Some(value),
            "data" => event.data = Some(value),
            _ => {}
        }
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_complete_however_they_arrive() {
        let stream = b"id: at_1\n\n: comment\n\nid: msg_1\ndata: {\"a\": 1}\n\nid: msg_2\nda";
        let expected = [
            (Some("at_1"), None),
            (None, None),
            (Some("msg_1"), Some("{\"a\": 1}")),
        ];
        for length in 1..=stream.len() {
            let mut parser = Parser::default();
            let mut events = Vec::new();
            for piece in stream.chunks(length) {
                events.extend(parser.push(piece).unwrap());
            }
            let events: Vec<_> = events
                .iter()
                .map(|event| (event.id.as_deref(), event.data.as_deref()))
                .collect();
            assert_eq!(events, expected, "pieces of {length} bytes");
        }
    }

    #[test]
    fn endless_event_is_refused() {
        let mut parser = Parser::default();
        let piece = vec![b'x'; MAX_EVENT_BYTES];
        parser.push(&piece).unwrap();
        parser.push(b"x").unwrap_err();
    }
}
