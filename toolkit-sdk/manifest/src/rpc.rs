//! Messages of JSON-RPC 2.0 in responses of Model Context Protocol servers: JSON, or the events of a
//! stream (HTML, section 9.2).
//!
//! The content of a body decides which of the two it is. Servers write the media type in several ways,
//! and some name the wrong one.

use serde_json::{Value, json};

/// Character that some servers write at the start of a message.
const BYTE_ORDER_MARK: char = '\u{feff}';
/// Prefix of a line with data of an event.
const DATA_FIELD: &str = "data:";
/// Error code for a method that the receiver does not have.
const METHOD_NOT_FOUND: i32 = -32601;

/// Returns all messages of a body, without those of an event stream that are not JSON.
#[must_use]
pub fn messages(body: &[u8]) -> Vec<Value> {
    let decoded = String::from_utf8_lossy(body);
    let text = decoded.trim_start_matches(BYTE_ORDER_MARK);
    match serde_json::from_str(text) {
        Ok(message) => single(message),
        Err(_) => of_events(text),
    }
}

/// Finds the response to the request with an id.
#[must_use]
pub fn response_to(id: &Value, messages: Vec<Value>) -> Option<Value> {
    messages
        .into_iter()
        .find(|message| is_response(message, id))
}

/// Returns true if a message is the response to the request with an id.
#[must_use]
pub fn is_response(message: &Value, id: &Value) -> bool {
    // A result of null is one, too.
    message.get("id") == Some(id)
        && (message.get("result").is_some()
            || message.get("error").is_some_and(|error| !error.is_null()))
}

/// Returns the response to a request that a server sends while it works on one of its client, or
/// `None` for any other message. The client declares no capabilities, so it supports only `ping`.
#[must_use]
pub fn reply(message: &Value) -> Option<Value> {
    let id = message.get("id").filter(|id| !id.is_null())?;
    let method = message.get("method")?.as_str()?;
    Some(if method == "ping" {
        json!({ "jsonrpc": "2.0", "id": id, "result": {} })
    } else {
        let error = json!({ "code": METHOD_NOT_FOUND, "message": "Method not found" });
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    })
}

/// Reader of an incomplete event stream. Every byte is examined once.
#[derive(Debug, Default)]
pub struct EventReader {
    /// Number of bytes whose lines are known.
    scanned: usize,
    /// True if the line at `scanned` has started.
    in_line: bool,
    /// Number of bytes whose events were returned.
    returned: usize,
}

impl EventReader {
    /// Returns the messages of the events that have become complete. `body` is everything that has
    /// arrived so far.
    pub fn read(&mut self, body: &[u8]) -> Vec<Value> {
        let start = self.returned;
        while let Some(byte) = body.get(self.scanned) {
            let width = match (byte, body.get(self.scanned + 1)) {
                (b'\r', Some(b'\n')) => 2,
                // The second byte of the line break may still arrive.
                (b'\r', None) => break,
                (b'\r' | b'\n', _) => 1,
                _ => {
                    self.in_line = true;
                    self.scanned += 1;
                    continue;
                }
            };
            self.scanned += width;
            if !self.in_line {
                self.returned = self.scanned;
            }
            self.in_line = false;
        }
        let complete = body.get(start..self.returned).unwrap_or_default();
        if complete.is_empty() {
            return Vec::new();
        }
        of_events(&String::from_utf8_lossy(complete))
    }
}

/// Parses the data of each event. Data other than JSON is skipped.
fn of_events(stream: &str) -> Vec<Value> {
    let stream = stream.replace("\r\n", "\n").replace('\r', "\n");
    stream
        .split("\n\n")
        .filter_map(|event| serde_json::from_str(&data_of(event)).ok())
        .flat_map(single)
        .collect()
}

/// Returns the data of an event, whose lines are joined.
fn data_of(event: &str) -> String {
    event
        .trim_start_matches(BYTE_ORDER_MARK)
        .lines()
        .filter_map(|line| line.strip_prefix(DATA_FIELD))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the messages of a batch, which an earlier version of the protocol allowed, or the message.
fn single(message: Value) -> Vec<Value> {
    match message {
        Value::Array(batch) => batch,
        message => vec![message],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(id: u64) -> Value {
        json!({ "jsonrpc": "2.0", "id": id, "result": {} })
    }

    #[test]
    fn content_tells_stream_from_json() {
        let one = response(1);
        for body in [
            one.to_string(),
            format!("\u{feff}{one}\n"),
            format!("[{one}]"),
            format!("event: message\r\ndata: {one}\r\n\r\n"),
            format!("\u{feff}data:{one}"),
            format!(": hello\rdata: 7 a\r\rdata: {one}\r\r"),
            "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{}}\n\n".to_owned(),
        ] {
            assert_eq!(
                messages(body.as_bytes()),
                std::slice::from_ref(&one),
                "{body}"
            );
        }
        assert_eq!(messages(b"<html>"), Vec::<Value>::new());
    }

    #[test]
    fn events_are_read_while_they_arrive() {
        let stream = format!(
            ": open\r\n\r\ndata: {}\r\n\r\ndata: {}\n\ndata: {}",
            response(1),
            response(2),
            response(3)
        );
        let mut reader = EventReader::default();
        let mut found = Vec::new();
        for end in 0..=stream.len() {
            found.extend(reader.read(&stream.as_bytes()[..end]));
        }
        assert_eq!(found, [response(1), response(2)], "the third is incomplete");
        let whole = EventReader::default().read(stream.as_bytes());
        assert_eq!(whole, found);
    }

    #[test]
    fn only_requests_of_a_server_get_replies() {
        let ping = json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" });
        assert_eq!(
            reply(&ping),
            Some(json!({ "jsonrpc": "2.0", "id": "p", "result": {} }))
        );
        let other = json!({ "jsonrpc": "2.0", "id": 4, "method": "roots/list" });
        assert_eq!(reply(&other).unwrap()["error"]["code"], METHOD_NOT_FOUND);
        let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress" });
        assert_eq!(reply(&progress), None);
        assert_eq!(reply(&response(1)), None);
    }

    #[test]
    fn response_belongs_to_its_request() {
        let refused = json!({ "id": 1, "error": { "code": -1 } });
        let found = response_to(&json!(1), vec![response(2), refused.clone()]);
        assert_eq!(found, Some(refused));
        assert!(is_response(
            &json!({ "id": 1, "result": null, "error": null }),
            &json!(1)
        ));
        assert!(!is_response(
            &json!({ "id": 1, "method": "ping" }),
            &json!(1)
        ));
    }
}
