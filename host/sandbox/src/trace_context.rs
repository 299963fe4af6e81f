//! Position of work in a trace that several systems share (W3C Trace Context).

use std::fmt;

use serde::{Deserialize, Serialize};

/// Id of a trace, written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TraceId(pub [u8; 16]);

/// Id of a span within its trace, written as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SpanId(pub [u8; 8]);

/// A span, as other systems refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanContext {
    /// The trace.
    pub trace: TraceId,
    /// The span in it.
    pub span: SpanId,
    /// True if the spans of the trace are recorded.
    pub is_sampled: bool,
}

/// Trace of a run. Each of its outgoing requests is a span in it.
#[derive(Debug, Clone, Copy)]
pub struct RunTrace {
    /// Span of the run.
    pub run: SpanContext,
    /// True if providers get the `traceparent` of their requests.
    pub propagates: bool,
}

impl SpanContext {
    /// Parses a `traceparent`. Returns `None` if it is not valid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.splitn(5, '-');
        let [version] = lower_hex(fields.next()?)?;
        let trace: [u8; 16] = lower_hex(fields.next()?)?;
        let span: [u8; 8] = lower_hex(fields.next()?)?;
        let [flags] = lower_hex(fields.next()?)?;
        // Later versions may add fields, and version 255 is forbidden.
        let is_complete = version > 0 || fields.next().is_none();
        let is_valid = is_complete && version < 0xff && trace != [0; 16] && span != [0; 8];
        is_valid.then_some(Self {
            trace: TraceId(trace),
            span: SpanId(span),
            is_sampled: flags & 1 == 1,
        })
    }
}

impl RunTrace {
    /// Returns the span of the run's request with this number. The id of the run's span is random,
    /// so that those that follow it are unique, too.
    #[must_use]
    pub fn request(self, number: usize) -> SpanContext {
        let run = u64::from_be_bytes(self.run.span.0);
        let id = run.wrapping_add(number as u64).wrapping_add(1);
        SpanContext {
            span: SpanId(id.to_be_bytes()),
            ..self.run
        }
    }
}

fn lower_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    hex::decode_to_slice(text, &mut bytes).ok()?;
    Some(bytes)
}

/// Formats the span as a `traceparent`.
impl fmt::Display for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace, span, .. } = self;
        let flags = u8::from(self.is_sampled);
        write!(f, "00-{trace}-{span}-{flags:02x}")
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<TraceId> for String {
    fn from(id: TraceId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for TraceId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let id = lower_hex(&text);
        id.map(Self).ok_or("a trace id has 32 hexadecimal digits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE_HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn traceparent_is_read_and_written() {
        let span = SpanContext::parse(EXAMPLE_HEADER).unwrap();
        assert!(span.is_sampled);
        assert_eq!(span.to_string(), EXAMPLE_HEADER);
        let unsampled = EXAMPLE_HEADER.replace("-01", "-02");
        assert!(!SpanContext::parse(&unsampled).unwrap().is_sampled);
        let later = format!("01{}-more", EXAMPLE_HEADER.strip_prefix("00").unwrap());
        assert_eq!(SpanContext::parse(&later), Some(span));
    }

    #[test]
    fn invalid_traceparent_is_ignored() {
        for text in [
            "",
            "00",
            &EXAMPLE_HEADER.to_uppercase(),
            &format!("{EXAMPLE_HEADER}-more"),
            &EXAMPLE_HEADER.replace("00-4", "ff-4"),
            &EXAMPLE_HEADER.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &EXAMPLE_HEADER.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &EXAMPLE_HEADER.replace("b7-01", "b7-0"),
            &EXAMPLE_HEADER.replace("4bf9", "4bg9"),
        ] {
            assert_eq!(SpanContext::parse(text), None, "{text}");
        }
    }

    #[test]
    fn requests_of_a_run_have_their_own_spans() {
        let run = SpanContext::parse(EXAMPLE_HEADER).unwrap();
        let trace = RunTrace {
            run,
            propagates: true,
        };
        let (first, second) = (trace.request(0), trace.request(1));
        assert_eq!(first.trace, run.trace);
        assert!(first.span != run.span && first.span != second.span);
    }

    #[test]
    fn trace_id_is_stored_as_digits() {
        let id = SpanContext::parse(EXAMPLE_HEADER).unwrap().trace;
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(json, "\"4bf92f3577b34da6a3ce929d0e0e4736\"");
        assert_eq!(serde_json::from_str::<TraceId>(&json).unwrap(), id);
    }
}
